#pragma once
// Tensors that several inputs read: they are moved once for those that read the same parts on the same devices.

#include <parsearch/sim/input/shared_reads.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE shared_reads::shared_reads(graph::dense_graph const& g) : group_of_(g.edges.size(), none) {
    for (auto const& e : g.edges) consumer_.push_back(e.consumer);
    std::vector<std::uint32_t> place(g.size());
    for (std::uint32_t i = 0; i < g.size(); ++i) place[g.order[i]] = i;
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        if (g.operations[op].work == ops::work_class::source) continue;
        std::vector<std::uint32_t> out(g.out(op).begin(), g.out(op).end());
        auto const tensor = [&](std::uint32_t number) {
            auto const& e = g.edges[number];
            return std::tuple(e.slot, g.carries_gradient(e), g.operations[e.consumer].inputs[e.input].passed_on ? e.consumer : none);
        };
        std::sort(out.begin(), out.end(), [&](auto a, auto b) {
            if (tensor(a) != tensor(b)) return tensor(a) < tensor(b);
            return std::pair(place[g.edges[a].consumer], g.edges[a].input) < std::pair(place[g.edges[b].consumer], g.edges[b].input);
        });
        for (std::size_t first = 0, last = 0; first < out.size(); first = last) {
            while (last < out.size() && tensor(out[last]) == tensor(out[first])) ++last;
            if (last - first < 2) continue;
            for (auto i = first; i < last; ++i) group_of_[out[i]] = static_cast<std::uint32_t>(groups_.size());
            groups_.emplace_back(out.begin() + static_cast<std::ptrdiff_t>(first), out.begin() + static_cast<std::ptrdiff_t>(last));
        }
    }
}

} // namespace parsearch::sim
