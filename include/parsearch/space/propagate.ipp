#pragma once
// FlexFlow's propagation move: an operator's configuration spreads to its neighbours.

#include <parsearch/space/propagate.hpp>

namespace parsearch::space::detail {

/// Equal parts of the axis's dim are about equal parts of the axis: exactly where the dim runs along it, up to a halo where a window
/// slides along it. Not where the dim covers another stretch (concat, slice), nor where several dims share the axis.
[[nodiscard]] inline bool splits_evenly(ops::axis const& a, ops::operation const& op) noexcept {
    if (a.terms.size() != 1) return false;
    auto const& t = a.terms[0];
    return a.span > 1 || t.stride > 1 || (a.offset == 0 && op.dims[t.dim].extent == a.extent);
}

} // namespace parsearch::space::detail

namespace parsearch::space {

PARSEARCH_INLINE std::optional<configuration> carried_over(graph::dense_graph const& g, graph::edge const& e, configuration const& c, bool forward) {
    if (!c.listed.empty()) return std::nullopt;
    auto const& made = g.operations[e.producer].outputs[e.slot].axes;
    auto const& read = g.operations[e.consumer].inputs[e.input].axes;
    auto const& mine = forward ? made : read;
    auto const& theirs = forward ? read : made;
    auto const& own = g.operations[forward ? e.producer : e.consumer];
    auto const& other = g.operations[forward ? e.consumer : e.producer];
    auto out = whole(other, c.start);
    std::array<bool, ops::max_dims> met{};
    for (std::size_t a = 0; a < mine.size(); ++a) {
        if (std::all_of(mine[a].terms.begin(), mine[a].terms.end(), [&](auto const& t) { return c.degree[t.dim] == 1; })) continue;
        if (!detail::splits_evenly(mine[a], own) || !detail::splits_evenly(theirs[a], other)) return std::nullopt;
        auto const k = mine[a].terms[0].dim;
        if (std::exchange(met[k], true)) return std::nullopt; // a diagonal
        auto const to = theirs[a].terms[0].dim;
        if (!ops::can_be_in(other.dims[to], c.degree[k]) || out.degree[to] != 1) return std::nullopt;
        out.degree[to] = c.degree[k];
        out.stride[to] = c.stride[k];
    }
    return out;
}

} // namespace parsearch::space
