#pragma once
// Strategies in FlexFlow's text format (its options --export and --import), written and read. See docs/formats.md.

#include <charconv>

#include <parsearch/io/foreign/flexflow_strategy.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

namespace parsearch::io::detail {

class flexflow_reader {
  public:
    flexflow_reader(words& file, graph::dense_graph const& g, std::size_t devices);

    [[nodiscard]] space::flat_strategy read(flexflow_missing missing);

  private:
    static constexpr std::size_t several = ~std::size_t{0};

    /// FlexFlow appends "_" and a number to the name that an operator was given.
    [[nodiscard]] std::size_t find(std::string_view name) const;

    [[nodiscard]] space::configuration read_configuration(std::size_t op);

    /// Splits the dims of an axis by `degree` in all, the slowest first; false where that cannot be done.
    [[nodiscard]] static bool split(ops::operation const& op, ops::axis const& a, std::int32_t degree, space::configuration& c);

    /// Start and strides where the devices of the shards are a grid, else the list.
    static void place(space::configuration& c, std::vector<std::int32_t> devices);

    words& file_;
    graph::dense_graph const& graph_;
    std::size_t devices_;
    std::map<std::string, std::size_t, std::less<>> numbers_;
};

} // namespace parsearch::io::detail

namespace parsearch::io::detail {

/// The dims that index axis `a`, the one that moves farthest first. FlexFlow cuts an axis into equal parts in order, which is what splitting
/// these dims does as long as each is split wholly before the next is.
PARSEARCH_IO_INLINE std::vector<std::uint32_t> dims_of_axis(ops::axis const& a) {
    auto terms = a.terms;
    std::stable_sort(terms.begin(), terms.end(), [](auto const& x, auto const& y) { return x.stride > y.stride; });
    std::vector<std::uint32_t> dims;
    for (auto const& t : terms) dims.push_back(t.dim);
    return dims;
}

PARSEARCH_IO_INLINE output_grid::output_grid(ops::operation const& op, space::configuration const& c) : op_(op), c_(c) {
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

PARSEARCH_IO_INLINE std::int64_t output_grid::shard(std::int64_t n) const noexcept {
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

PARSEARCH_IO_INLINE bool output_grid::cuts_evenly(ops::axis const& a, std::vector<std::uint32_t> const& dims) const {
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

PARSEARCH_IO_INLINE std::string_view words::word(std::string_view what) {
    if (at_end()) throw invalid_input(name_, ": ends where ", what, " should be");
    last_ = at_;
    while (at_ < text_.size() && !is_blank(text_[at_])) ++at_;
    return std::string_view(text_).substr(last_, at_ - last_);
}

PARSEARCH_IO_INLINE std::int32_t words::number(std::string_view what, std::int32_t least, std::int32_t most) {
    auto const given = word(what);
    std::int32_t out = 0;
    auto const [end, error] = std::from_chars(given.data(), given.data() + given.size(), out);
    if (error != std::errc{} || end != given.data() + given.size() || out < least || out > most)
        throw invalid_input(place(), what, " is ", in_quotes(given), ": must be an integer from ", least, " to ", most);
    return out;
}

PARSEARCH_IO_INLINE flexflow_reader::flexflow_reader(words& file, graph::dense_graph const& g, std::size_t devices)
    : file_(file), graph_(g), devices_(devices) {
    for (std::size_t op = 0; op < g.size(); ++op)
        if (!numbers_.emplace(g.names[op], op).second)
            throw invalid_input("the graph has two operators named ", in_quotes(g.names[op]), ": FlexFlow's format tells operators by name");
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto const [at, fresh] = numbers_.emplace(one_word(g.names[op]), op);
        if (!fresh && at->second != op && (at->second == several || g.names[at->second] != at->first)) at->second = several;
    }
}

PARSEARCH_IO_INLINE space::flat_strategy flexflow_reader::read(flexflow_missing missing) {
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

PARSEARCH_IO_INLINE std::size_t flexflow_reader::find(std::string_view name) const {
    auto at = numbers_.find(name);
    if (auto const bar = name.rfind('_'); at == numbers_.end() && bar != name.npos && bar + 1 < name.size() &&
                                          std::ranges::all_of(name.substr(bar + 1), [](char c) { return c >= '0' && c <= '9'; }))
        at = numbers_.find(name.substr(0, bar));
    if (at == numbers_.end()) throw invalid_input(file_.place(), "operator ", in_quotes(name), ": the graph has none of this name");
    if (at->second == several) throw invalid_input(file_.place(), "operator ", in_quotes(name), ": several operators of the graph are written so");
    return at->second;
}

PARSEARCH_IO_INLINE space::configuration flexflow_reader::read_configuration(std::size_t op) {
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
        if ((shards *= degree) > space::max_shards) throw invalid_input(file_.place(), what, "more than ", space::max_shards, " shards: too many");
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

PARSEARCH_IO_INLINE bool flexflow_reader::split(ops::operation const& op, ops::axis const& a, std::int32_t degree, space::configuration& c) {
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

PARSEARCH_IO_INLINE void flexflow_reader::place(space::configuration& c, std::vector<std::int32_t> devices) {
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

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE space::flat_strategy read_flexflow_strategy(std::istream& in, std::string name, graph::dense_graph const& g, std::size_t devices,
                                                                flexflow_missing missing) {
    if (devices < 1) throw invalid_input(name, ": a strategy for 0 devices: must be at least 1");
    detail::words file(in, std::move(name));
    return detail::flexflow_reader(file, g, devices).read(missing);
}

} // namespace parsearch::io
