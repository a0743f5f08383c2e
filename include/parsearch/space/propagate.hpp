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
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::space {

/// The configuration for the other end of edge `e` under which the edge's tensor stays where `c` has it (but for the halos of
/// windows): degrees and strides go over axis by axis, other dims are not split. Nothing where an axis cannot be split alike, or `c`
/// lists its devices. `forward`: `c` is the producer's.
[[nodiscard]] std::optional<configuration> carried_over(graph::dense_graph const& g, graph::edge const& e, configuration const& c, bool forward);

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

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/propagate.ipp>
#endif
