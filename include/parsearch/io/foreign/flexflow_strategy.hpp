#pragma once
/// Strategies in FlexFlow's text format (its options --export and --import), written and read. See docs/formats.md.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/io/text/text.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/space/configuration.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::io {

/// What writing does with a configuration that the format has no words for.
enum class flexflow_losses : std::uint8_t {
    refuse, ///< throws `invalid_input`
    report  ///< writes what can be said and answers a sentence for each loss
};

/// What reading does with an operator of the graph that the file does not name.
enum class flexflow_missing : std::uint8_t {
    refuse,       ///< throws `invalid_input`
    data_parallel ///< splits its samples over all devices, as FlexFlow does
};

namespace detail {

// FlexFlow's arrays. Source: flexflow/FlexFlow, 2021, include/config.h (MAX_OPNAME, MAX_NUM_WORKERS) and its build option MAX_DIM.
inline constexpr std::size_t flexflow_name = 63, flexflow_axes = 5, flexflow_shards = 1024;

[[nodiscard]] constexpr bool is_blank(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// `name` as one word, without what a terminal would obey.
[[nodiscard]] inline std::string one_word(std::string name) {
    std::replace_if(
        name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; }, '_');
    return name;
}

/// A grid over the axes of an operator's first output, and the shard at each of its points.
class output_grid {
  public:
    output_grid(ops::operation const& op, space::configuration const& c);

    /// Into how many parts each axis is cut, and their product.
    [[nodiscard]] std::vector<std::int64_t> const& parts() const noexcept { return parts_; }
    [[nodiscard]] std::int64_t shards() const noexcept { return shards_; }
    /// True where axis `k` of the iteration space is split and no axis of the output tells so.
    [[nodiscard]] bool loses(std::uint32_t k) const noexcept {
        return c_.degree[k] > 1 && std::ranges::none_of(dims_, [&](auto const& dims) { return std::ranges::find(dims, k) != dims.end(); });
    }
    /// The number of the shard at point `n` of the grid, row major: the last axis, which FlexFlow counts first, varies fastest. It is part 0 of
    /// the dims that are lost.
    [[nodiscard]] std::int64_t shard(std::int64_t n) const noexcept;

  private:
    /// True where the parts of `dims` cut `a` into equal pieces in order.
    [[nodiscard]] bool cuts_evenly(ops::axis const& a, std::vector<std::uint32_t> const& dims) const;

    ops::operation const& op_;
    space::configuration const& c_;
    std::vector<std::vector<std::uint32_t>> dims_; ///< split dims of each axis, the slowest first
    std::vector<std::int64_t> parts_;
    std::int64_t shards_ = 1;
};

/// The words of a text file, each with its line.
class words {
  public:
    words(std::istream& in, std::string name) : name_(std::move(name)), text_(read_text(in, name_, std::size_t{64} << 20)) {}

    /// "plan.flexflow:12: " of the word that was read last.
    [[nodiscard]] std::string place() const { return text(name_, ':', position_of(text_, last_).line, ": "); }
    [[nodiscard]] std::string const& name() const noexcept { return name_; }
    [[nodiscard]] bool at_end() {
        while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
        return at_ == text_.size();
    }
    [[nodiscard]] std::string_view word(std::string_view what);
    [[nodiscard]] std::int32_t number(std::string_view what, std::int32_t least, std::int32_t most);

  private:
    std::string name_, text_;
    std::size_t at_ = 0, last_ = 0;
};

} // namespace detail

/// Writes a strategy of `g` on `devices` devices for FlexFlow: all operators but graph inputs, the degrees of the axes of each one's first output
/// from the innermost to the samples, and the device of each shard, the innermost axis fastest. What the format has no words for is
/// refused, or left out and answered, a sentence each: splits of dims that are no axis of that output (reductions), names of several
/// words (written with "_"), and what is larger than FlexFlow's arrays. FlexFlow itself looks for names with "_" and its number of the operator
/// behind. Throws `invalid_input` also where the strategy does not fit or two operators have one name.
/// Source: flexflow/FlexFlow, 2021, src/runtime/strategy.cc (save_strategies_to_file) and src/mapper/mapper.cc (slice_task).
template <Strategy<space::configuration> S>
std::vector<std::string> write_flexflow_strategy(std::ostream& out, graph::dense_graph const& g, std::size_t devices, S const& strategy,
                                                 flexflow_losses losses = flexflow_losses::refuse) {
    std::vector<std::string> lost;
    std::string body;
    std::map<std::string, std::size_t> written;
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto const& operation = g.operations[op];
        if (operation.work == ops::work_class::source) continue;
        space::configuration const c = configuration_of(strategy, op);
        space::validate(c, operation, devices, g.names[op]);
        auto const lose = [&](auto const&... what) {
            auto sentence = text("operator '", g.names[op], "' (", operation.kind, "): ", what...);
            if (losses == flexflow_losses::refuse) throw invalid_input(sentence);
            lost.push_back(std::move(sentence));
        };
        auto const word = detail::one_word(g.names[op]);
        if (word.empty()) throw invalid_input("operator ", op, " (", operation.kind, ") has no name: FlexFlow's format tells operators by name");
        if (word != g.names[op]) lose("FlexFlow's names are one word, it is written as '", word, "'");
        if (word.size() > detail::flexflow_name) lose("FlexFlow's names have at most ", detail::flexflow_name, " characters");
        if (auto const [at, fresh] = written.emplace(word, op); !fresh)
            throw invalid_input("operators ", at->second, " and ", op, " are both written as ", in_quotes(word),
                                ": FlexFlow's format tells operators by name");
        detail::output_grid const grid(operation, c);
        for (std::uint32_t k = 0; k < c.rank; ++k)
            if (grid.loses(k))
                lose("the split of dim '", operation.dims[k].name, "' by ", c.degree[k], " is of no axis of its output that FlexFlow could split");
        if (grid.parts().size() > detail::flexflow_axes)
            lose("its output has ", grid.parts().size(), " axes, FlexFlow's at most ", detail::flexflow_axes);
        if (grid.shards() > std::int64_t{detail::flexflow_shards})
            lose("it has ", grid.shards(), " shards, FlexFlow's at most ", detail::flexflow_shards);
        body += text(word, "\n0\n", grid.parts().size(), '\n');
        for (auto parts = grid.parts().rbegin(); parts != grid.parts().rend(); ++parts) body += text(*parts, '\t');
        body += text('\n', grid.shards(), '\n');
        for (std::int64_t n = 0; n < grid.shards(); ++n) body += text(c.device(grid.shard(n)), '\t');
        body += '\n';
    }
    body.insert(0, text(written.size(), '\n'));
    out.write(body.data(), static_cast<std::streamsize>(body.size()));
    if (!out) throw invalid_input("a FlexFlow strategy of ", body.size(), " bytes cannot be written: the stream has failed");
    return lost;
}

/// Reads a strategy that FlexFlow or `write_flexflow_strategy` wrote; `name` stands for the input in messages. The degrees of an output's axes
/// are those of the dims that the axes run along, all others are 1. Devices that are a grid become start and strides, others a list. An operator
/// is found by its name, by that with "_" for blanks, or by either before FlexFlow's "_" and number. Graph inputs are on device 0. Throws
/// `invalid_input` with line, value and rule on anything else.
[[nodiscard]] space::flat_strategy read_flexflow_strategy(std::istream& in, std::string name, graph::dense_graph const& g, std::size_t devices,
                                                          flexflow_missing missing = flexflow_missing::refuse);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/foreign/flexflow_strategy.ipp>
#endif
