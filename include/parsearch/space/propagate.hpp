#pragma once
/// FlexFlow's propagation move: an operator's configuration spreads to its neighbours.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::space {

namespace detail {

/// Equal parts of the axis's dim are about equal parts of the axis: exactly where the dim runs along it, up to a halo where a window
/// slides along it. Not where the dim covers another stretch (concat, slice), nor where several dims share the axis.
[[nodiscard]] inline bool splits_evenly(ops::axis const& a, ops::operation const& op) noexcept {
    if (a.terms.size() != 1) return false;
    auto const& t = a.terms[0];
    return a.span > 1 || t.stride > 1 || (a.offset == 0 && op.dims[t.dim].extent == a.extent);
}
} // namespace detail

/// The configuration for the other end of edge `e` under which the edge's tensor stays where `c` has it (but for the halos of
/// windows): degrees and strides go over axis by axis, other dims are not split. Nothing where an axis cannot be split alike, or `c`
/// lists its devices. `forward`: `c` is the producer's.
[[nodiscard]] inline std::optional<configuration> carried_over(graph::dense_graph const& g, graph::edge const& e, configuration const& c,
                                                               bool forward) {
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

/// From a uniform operator, a neighbour along an edge drawn in proportion to its bytes takes over the operator's
/// configuration; with probability `continuation` the walk goes on from there. A move for `mcmc`.
/// Source: FlexFlow release 21.09, `--enable-propagation` (weight 0.25, continuation 0.75).
class propagate_move {
  public:
    static constexpr std::string_view name = "propagate";
    double weight = 0.25;
    double continuation = 0.75;

    /// `g` must outlive the move.
    explicit propagate_move(graph::dense_graph const& g) : graph_(&g) {}

    template <Strategy<configuration> S, RandomBits R>
    std::optional<std::uint64_t> operator()(strategy_space const& space, S const& strategy, R& rng, std::vector<change<configuration>>& out) const {
        auto const& g = *graph_;
        auto at = static_cast<std::size_t>(uniform_index(rng, g.size()));
        configuration here = configuration_of(strategy, at);
        auto const first = at;
        std::uint64_t walk = 0; // tells the operators met apart, for the trajectory
        do {
            auto const e = draw_edge(at, rng);
            if (!e) break;
            bool const forward = e->producer == at;
            auto const next = forward ? e->consumer : e->producer;
            if (next == first || std::ranges::any_of(out, [&](auto const& c) { return c.op == next; })) break;
            auto const carried = carried_over(g, *e, here, forward);
            if (!carried || !space.of(next).contains(*carried)) break;
            out.push_back({next, *carried});
            walk = walk * 1099511628211U + next + 1;
            at = next;
            here = *carried;
        } while (bernoulli(rng, continuation));
        if (out.empty()) return std::nullopt;
        return walk;
    }

  private:
    /// An edge at `op` to an operator with tasks, in proportion to its bytes.
    template <class R> std::optional<graph::edge> draw_edge(std::size_t op, R& rng) const {
        auto const& g = *graph_;
        auto const weight_of = [&](graph::edge const& e) -> std::uint64_t {
            if (g.operations[e.producer].work == ops::work_class::source) return 0;
            return static_cast<std::uint64_t>(ops::bytes_of(g.operations[e.producer].outputs[e.slot]));
        };
        std::uint64_t total = 0;
        for (auto const& e : g.in(op)) total += weight_of(e);
        for (auto const e : g.out(op)) total += weight_of(g.edges[e]);
        if (total == 0) return std::nullopt;
        auto at = uniform_index(rng, total);
        for (auto const& e : g.in(op)) {
            if (at < weight_of(e)) return e;
            at -= weight_of(e);
        }
        for (auto const number : g.out(op)) {
            auto const& e = g.edges[number];
            if (at < weight_of(e)) return e;
            at -= weight_of(e);
        }
        return std::nullopt;
    }

    graph::dense_graph const* graph_;
};

} // namespace parsearch::space
