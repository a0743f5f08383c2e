#pragma once
// What a pipeline moves between devices.

#include <set>

#include <parsearch/pipeline/pipeline_traffic.hpp>
#include <parsearch/pipeline/recomputation.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE std::array<double, sim::traffic_kinds> pipeline_traffic(graph::dense_graph const& g, pipelining const& how,
                                                                         sim::iteration_plan const& one, sharing_plan const& sharing,
                                                                         transfer_counts const& transfers, bool training) {
    constexpr auto gradient = static_cast<std::size_t>(sim::traffic_kind::gradient);
    constexpr auto partial = static_cast<std::size_t>(sim::traffic_kind::partial_sum);
    constexpr auto weights = static_cast<std::size_t>(sim::traffic_kind::weight_gradient);
    std::array<double, sim::traffic_kinds> sum{};
    auto const again = detail::computed_again(g, how);
    auto const passes = [&](std::size_t op) { return training && again[op] ? 2.0 : 1.0; }; // forward ones of one micro-batch
    for (std::uint32_t e = 0; e < one.edges.size(); ++e) {
        auto const forward = detail::enters(g, how, g.edges[e]) ? 1.0 : passes(g.edges[e].consumer);
        for (std::size_t k = 0; k < sim::traffic_kinds; ++k) sum[k] += one.edges[e].bytes[k] * (k == gradient ? 1 : forward);
    }
    for (std::size_t op = 0; op < one.operators.size(); ++op) sum[partial] += one.operators[op].partial_bytes * passes(op);
    for (auto& s : sum) s *= how.micro_batches;
    sum[weights] = sim::traffic_of(one, training)[weights];
    if (training && how.sharded == sharded_states::optimizer) // what is gathered is weights
        for (auto const& c : one.classes)
            for (auto const& group : c.sync.groups)
                sum[weights] -= static_cast<double>(group.holders() - 1) * static_cast<double>(group.gradients - group.bytes);
    if (!training || sharing.empty()) return sum;
    std::map<std::pair<std::uint32_t, block_transfer>, double> volume; // of one transfer
    for (std::size_t k = 0; k < one.classes.size(); ++k) {
        auto const& c = one.classes[k];
        double gather = 0, reduce = 0, across = 0;
        for (std::size_t i = 0; i < c.sync.groups.size(); ++i) {
            auto const& group = c.sync.groups[i];
            auto const parts = static_cast<double>(sharing[k][i].parts), copies = static_cast<double>(group.holders()) / parts;
            gather += copies * (parts - 1) * static_cast<double>(group.bytes);
            reduce += copies * (parts - 1) * static_cast<double>(group.gradients);
            across += sim::collective_volume(collective_kind::all_reduce, static_cast<double>(group.gradients), copies);
        }
        auto const home = how.block_of(c.members.front());
        std::set<std::uint32_t> readers{home};
        if (how.sharded >= sharded_states::parameters)
            for (auto const op : c.members) readers.insert(how.block_of(op));
        for (auto const b : readers) volume[{b, block_transfer::gather}] += gather;
        volume[{home, block_transfer::reduce}] += reduce;
        volume[{home, block_transfer::all_reduce}] += across;
    }
    sum[weights] = 0;
    for (auto const& [what, times] : transfers) sum[weights] += volume.at(what) * static_cast<double>(times);
    return sum;
}

} // namespace parsearch::pipeline
