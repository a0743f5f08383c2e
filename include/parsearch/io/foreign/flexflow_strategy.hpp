#pragma once
/// Strategies in FlexFlow's text format (its options --export and --import), written and read. See docs/formats.md.

#include <algorithm>
#include <array>
#include <charconv>
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
#include <parsearch/core/error.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/io/text/text.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/space/configuration.hpp>
#include <parsearch/space/strategy_space.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

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

/// The dims that index axis `a`, the one that moves farthest first. FlexFlow cuts an axis into equal parts in order, which is what splitting
/// these dims does as long as each is split wholly before the next is.
[[nodiscard]] inline std::vector<std::uint32_t> dims_of_axis(ops::axis const& a) {
    auto terms = a.terms;
    std::stable_sort(terms.begin(), terms.end(), [](auto const& x, auto const& y) { return x.stride > y.stride; });
    std::vector<std::uint32_t> dims;
    for (auto const& t : terms) dims.push_back(t.dim);
    return dims;
}

/// A grid over the axes of an operator's first output, and the shard at each of its points.
class output_grid {
  public:
    output_grid(ops::operation const& op, space::configuration const& c) : op_(op), c_(c) {
        auto const& axes = op.outputs.front().axes;
        std::array<int, ops::max_dims> uses{};
        for (auto const& a : axes)
            for (auto const k : dims_of_axis(a)) ++uses[k];
        for (auto const& a : axes) {
            auto dims = dims_of_axis(a);
            std::erase_if(dims, [&](auto k) { return c.degree[k] == 1; });
            bool const usable = std::ranges::all_of(dims, [&](auto k) { return uses[k] == 1; }) && cuts_evenly(a, dims);
            dims_.push_back(usable ? std::move(dims) : std::vector<std::uint32_t>{});
            std::int64_t parts = 1;
            for (auto const k : dims_.back()) parts *= c.degree[k];
            parts_.push_back(parts);
            shards_ *= parts;
        }
    }

    /// Into how many parts each axis is cut, and their product.
    [[nodiscard]] std::vector<std::int64_t> const& parts() const noexcept { return parts_; }
    [[nodiscard]] std::int64_t shards() const noexcept { return shards_; }
    /// True where axis `k` of the iteration space is split and no axis of the output tells so.
    [[nodiscard]] bool loses(std::uint32_t k) const noexcept {
        return c_.degree[k] > 1 && std::ranges::none_of(dims_, [&](auto const& dims) { return std::ranges::find(dims, k) != dims.end(); });
    }
    /// The number of the shard at point `n` of the grid, row major: the last axis, which FlexFlow counts first, varies fastest. It is part 0 of
    /// the dims that are lost.
    [[nodiscard]] std::int64_t shard(std::int64_t n) const noexcept {
        std::array<std::int64_t, ops::max_dims> index{};
        for (std::size_t a = dims_.size(); a-- > 0;)
            for (auto k = dims_[a].rbegin(); k != dims_[a].rend(); ++k) {
                index[*k] = n % c_.degree[*k];
                n /= c_.degree[*k];
            }
        std::int64_t number = 0;
        for (std::size_t k = 0; k < c_.rank; ++k) number = number * c_.degree[k] + index[k];
        return number;
    }

  private:
    /// True where the parts of `dims` cut `a` into equal pieces in order.
    [[nodiscard]] bool cuts_evenly(ops::axis const& a, std::vector<std::uint32_t> const& dims) const {
        std::int64_t parts = 1;
        for (auto const k : dims) {
            if (ops::is_cut_by_speed(op_.dims[k], c_.degree[k])) return false;
            parts *= c_.degree[k];
        }
        if (a.extent % parts != 0) return false;
        ops::box box{};
        for (std::size_t k = 0; k < op_.dims.size(); ++k) box[k] = {0, op_.dims[k].extent};
        auto const piece = a.extent / parts;
        for (std::int64_t p = 0; p < parts; ++p) {
            auto rest = p;
            for (auto k = dims.rbegin(); k != dims.rend(); ++k) {
                auto const size = op_.dims[*k].extent / c_.degree[*k], i = rest % c_.degree[*k];
                rest /= c_.degree[*k];
                box[*k] = {i * size, (i + 1) * size};
            }
            if (parts > 1 && !(ops::axis_interval(a, box) == ops::interval{p * piece, (p + 1) * piece})) return false;
        }
        return true;
    }

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
    [[nodiscard]] std::string_view word(std::string_view what) {
        if (at_end()) throw invalid_input(name_, ": ends where ", what, " should be");
        last_ = at_;
        while (at_ < text_.size() && !is_blank(text_[at_])) ++at_;
        return std::string_view(text_).substr(last_, at_ - last_);
    }
    [[nodiscard]] std::int32_t number(std::string_view what, std::int32_t least, std::int32_t most) {
        auto const given = word(what);
        std::int32_t out = 0;
        auto const [end, error] = std::from_chars(given.data(), given.data() + given.size(), out);
        if (error != std::errc{} || end != given.data() + given.size() || out < least || out > most)
            throw invalid_input(place(), what, " is ", in_quotes(given), ": must be an integer from ", least, " to ", most);
        return out;
    }

  private:
    std::string name_, text_;
    std::size_t at_ = 0, last_ = 0;
};

class flexflow_reader {
  public:
    flexflow_reader(words& file, graph::dense_graph const& g, std::size_t devices) : file_(file), graph_(g), devices_(devices) {
        for (std::size_t op = 0; op < g.size(); ++op)
            if (!numbers_.emplace(g.names[op], op).second)
                throw invalid_input("the graph has two operators named ", in_quotes(g.names[op]), ": FlexFlow's format tells operators by name");
        for (std::size_t op = 0; op < g.size(); ++op) {
            auto const [at, fresh] = numbers_.emplace(one_word(g.names[op]), op);
            if (!fresh && at->second != op && (at->second == several || g.names[at->second] != at->first)) at->second = several;
        }
    }

    [[nodiscard]] space::flat_strategy read(flexflow_missing missing) {
        auto const otherwise = space::data_parallel(graph_, devices_);
        auto strategy = otherwise;
        std::vector<bool> given(graph_.size());
        auto const count = file_.number("the number of operators", 0, 1 << 24);
        for (std::int32_t i = 0; i < count; ++i) {
            auto const name = file_.word(text("the name of operator ", i, " of ", count));
            auto const op = find(name);
            if (given[op]) throw invalid_input(file_.place(), "operator ", in_quotes(name), " is there already: once is enough");
            given[op] = true;
            strategy[op] = read_configuration(op);
        }
        if (!file_.at_end()) throw invalid_input(file_.place(), "something follows the last of ", count, " operators: must be the end");
        for (std::size_t op = 0; op < graph_.size(); ++op)
            if (!given[op] && graph_.operations[op].work != ops::work_class::source && missing == flexflow_missing::refuse)
                throw invalid_input(file_.name(), ": operator ", in_quotes(graph_.names[op]), " is missing: all but graph inputs must be there");
        return strategy;
    }

  private:
    static constexpr std::size_t several = ~std::size_t{0};

    /// FlexFlow appends "_" and a number to the name that an operator was given.
    [[nodiscard]] std::size_t find(std::string_view name) const {
        auto at = numbers_.find(name);
        if (auto const bar = name.rfind('_'); at == numbers_.end() && bar != name.npos && bar + 1 < name.size() &&
                                              std::ranges::all_of(name.substr(bar + 1), [](char c) { return c >= '0' && c <= '9'; }))
            at = numbers_.find(name.substr(0, bar));
        if (at == numbers_.end()) throw invalid_input(file_.place(), "operator ", in_quotes(name), ": the graph has none of this name");
        if (at->second == several)
            throw invalid_input(file_.place(), "operator ", in_quotes(name), ": several operators of the graph are written so");
        return at->second;
    }

    [[nodiscard]] space::configuration read_configuration(std::size_t op) {
        auto const& operation = graph_.operations[op];
        auto const& axes = operation.outputs.front().axes;
        auto const what = text("operator '", graph_.names[op], "' (", operation.kind, "): ");
        if (auto const type = file_.number(text(what, "the device type"), 0, 1); type != 0)
            throw invalid_input(file_.place(), what, "the device type is ", type, " (CPU): must be 0 (GPU)");
        if (auto const rank = file_.number(text(what, "the number of dims"), 0, 64); static_cast<std::size_t>(rank) != axes.size())
            throw invalid_input(file_.place(), what, "the number of dims is ", rank, ": its output has ", axes.size(), " axes");
        auto c = space::whole(operation);
        std::int64_t shards = 1;
        for (std::size_t a = axes.size(); a-- > 0;) {
            auto const degree = file_.number(text(what, "a degree"), 1, static_cast<std::int32_t>(space::max_shards));
            if ((shards *= degree) > space::max_shards)
                throw invalid_input(file_.place(), what, "more than ", space::max_shards, " shards: too many");
            if (!split(operation, axes[a], degree, c))
                throw invalid_input(file_.place(), what, "axis ", a, " of its output is split by ", degree,
                                    ": must be a divisor of dims that the axis runs along");
        }
        output_grid const grid(operation, c);
        if (grid.shards() != shards) throw invalid_input(file_.place(), what, "the dims of an axis of its output do not cut it into equal parts");
        if (auto const count = file_.number(text(what, "the number of devices"), 0, static_cast<std::int32_t>(space::max_shards)); count != shards)
            throw invalid_input(file_.place(), what, "lists ", count, " devices for ", shards, " shards: must be one each");
        std::vector<std::int32_t> devices(static_cast<std::size_t>(shards));
        auto const last = static_cast<std::int32_t>(std::min(devices_, std::size_t{1} << 30)) - 1;
        for (std::int64_t n = 0; n < shards; ++n) devices[static_cast<std::size_t>(grid.shard(n))] = file_.number(text(what, "a device"), 0, last);
        place(c, std::move(devices));
        try {
            space::validate(c, operation, devices_, graph_.names[op]);
        } catch (invalid_input const& e) {
            throw invalid_input(file_.place(), e.what());
        }
        return c;
    }

    /// Splits the dims of an axis by `degree` in all, the slowest first; false where that cannot be done.
    [[nodiscard]] static bool split(ops::operation const& op, ops::axis const& a, std::int32_t degree, space::configuration& c) {
        for (auto const k : dims_of_axis(a)) {
            if (degree == 1) break;
            auto const extent = op.dims[k].extent;
            if (c.degree[k] > 1) return false; // another axis has split it
            if (extent % degree == 0) c.degree[k] = std::exchange(degree, 1);
            else if (degree % extent == 0) degree /= c.degree[k] = static_cast<std::int32_t>(extent);
            else return false;
        }
        return degree == 1;
    }

    /// Start and strides where the devices of the shards are a grid, else the list.
    static void place(space::configuration& c, std::vector<std::int32_t> devices) {
        c.start = devices.front();
        std::size_t step = 1;
        for (std::size_t k = c.rank; k-- > 0; step *= static_cast<std::size_t>(c.degree[k]))
            if (c.degree[k] > 1) c.stride[k] = devices[step] - c.start;
        for (std::size_t n = 0; n < devices.size(); ++n)
            if (c.device(static_cast<std::int64_t>(n)) != devices[n]) {
                c.start = 0;
                c.stride = {};
                c.listed = std::move(devices);
                return;
            }
    }

    words& file_;
    graph::dense_graph const& graph_;
    std::size_t devices_;
    std::map<std::string, std::size_t, std::less<>> numbers_;
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
[[nodiscard]] inline space::flat_strategy read_flexflow_strategy(std::istream& in, std::string name, graph::dense_graph const& g, std::size_t devices,
                                                                 flexflow_missing missing = flexflow_missing::refuse) {
    if (devices < 1) throw invalid_input(name, ": a strategy for 0 devices: must be at least 1");
    detail::words file(in, std::move(name));
    return detail::flexflow_reader(file, g, devices).read(missing);
}

} // namespace parsearch::io
