#pragma once
/// Tensors that cross into a stage once, however many of its operators read them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/sim/task/shard_layout.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::pipeline {

namespace detail {

/// Whether two edges bring the same parts of one tensor to the same devices: shard by shard.
[[nodiscard]] inline bool bring_the_same(graph::dense_graph const& g, graph::edge const& a, space::configuration const& by_a, graph::edge const& b,
                                         space::configuration const& by_b) {
    auto const &x = g.operations[a.consumer], &y = g.operations[b.consumer];
    if (by_a.shards() != by_b.shards()) return false;
    for (std::int64_t n = 0; n < by_a.shards(); ++n)
        if (by_a.device(n) != by_b.device(n)) return false;
    return sim::layout_of_input(x, x.inputs[a.input], by_a.degrees()) == sim::layout_of_input(y, y.inputs[b.input], by_b.degrees());
}
} // namespace detail

/// By edge of `g`, the edge whose data are its own: the first, in the order of their consumers, that brings the same parts of the tensor to the same
/// devices of another stage than that which made it. What stages send each other is sent once (a residual that an operator of the next stage
/// normalizes and another adds), and its gradients are added up before they go back. An edge within a stage, or that is alone, is its own.
/// Complexity: linear in edges and their shards, for tensors that several operators of a stage read.
template <Strategy<space::configuration> S>
[[nodiscard]] std::vector<std::uint32_t> shared_transfers(graph::dense_graph const& g, pipelining const& how, S const& strategy) {
    std::vector<std::uint32_t> out(g.edges.size()), place(g.size());
    for (std::uint32_t i = 0; i < g.size(); ++i) place[g.order[i]] = i;
    for (std::uint32_t e = 0; e < out.size(); ++e) out[e] = e;
    std::vector<std::uint32_t> crossing;
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        if (g.operations[op].work == ops::work_class::source) continue;
        crossing.clear();
        for (auto const e : g.out(op))
            if (how.stage[g.edges[e].consumer] != how.stage[op]) crossing.push_back(e);
        std::sort(crossing.begin(), crossing.end(), [&](auto a, auto b) {
            return std::pair(place[g.edges[a].consumer], g.edges[a].input) < std::pair(place[g.edges[b].consumer], g.edges[b].input);
        });
        for (std::size_t i = 1; i < crossing.size(); ++i)
            for (std::size_t j = 0; j < i; ++j) {
                auto const &a = g.edges[crossing[j]], &b = g.edges[crossing[i]];
                bool const together = a.slot == b.slot && how.stage[a.consumer] == how.stage[b.consumer] && out[crossing[j]] == crossing[j];
                if (!together || !detail::bring_the_same(g, a, configuration_of(strategy, a.consumer), b, configuration_of(strategy, b.consumer)))
                    continue;
                out[crossing[i]] = crossing[j];
                break;
            }
    }
    return out;
}

} // namespace parsearch::pipeline
