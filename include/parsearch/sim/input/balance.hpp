#pragma once
/// Samples divided as devices are fast.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/any_oracle.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/device_shares.hpp>
#include <parsearch/ops/kit/samples.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::sim {

namespace detail {

/// What a device takes for all operators of `g` on a `part` of their samples, backward too where `training`; at least 1.
[[nodiscard]] inline double time_of_part(graph::dense_graph const& g, cost::any_oracle const& oracle, std::uint32_t device, double part,
                                         bool training) {
    double sum = 0;
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto const& operation = g.operations[op];
        if (operation.work == ops::work_class::source || operation.work == ops::work_class::view) continue;
        std::vector<std::int32_t> degrees(operation.dims.size(), 1);
        if (auto const k = ops::sample_dim(operation))
            degrees[*k] = static_cast<std::int32_t>(std::min(static_cast<double>(operation.dims[*k].extent), std::max(1.0, 1 / part + 0.5)));
        sum += to_seconds(oracle.shard_time(ops::work_of(operation, degrees, ops::pass::forward), device));
        if (training && g.trains[op])
            sum += to_seconds(oracle.shard_time(ops::work_of(operation, degrees, ops::pass::backward, g.input_gradients(op)), device));
    }
    return std::max(sum, 1e-12);
}

/// Whether any number of the samples of `op` can be by themselves.
[[nodiscard]] inline bool divides_anywhere(ops::operation const& op, std::uint32_t k) {
    try {
        (void)ops::on_samples(op, {.n = op.dims[k].extent}, {});
        return true;
    } catch (invalid_input const&) {
        return false;
    }
}
} // namespace detail

/// Gives the dims of samples of `g` shares for the devices of `t`: those under which all operators together, in data parallelism, take equally long
/// on every device, by `oracle`, which counts devices as `t`. Nothing where all are of one kind, and for operators whose samples are no consecutive
/// parts. Complexity: O(operators * kinds of devices) calls of the oracle, some times.
inline void balance_samples(graph::dense_graph& g, topology::dense_topology const& t, cost::any_oracle const& oracle, bool training) {
    auto const kinds = t.kind.empty() ? std::size_t{0} : std::size_t{1} + *std::ranges::max_element(t.kind);
    std::shared_ptr<ops::device_shares const> shares;
    if (kinds > 1) {
        std::vector<std::uint32_t> example(kinds, 0);
        for (std::uint32_t d = 0; d < t.size(); ++d) example[t.kind[d]] = d;
        std::vector<double> part(kinds, 1 / static_cast<double>(t.size())), rate(kinds, 0);
        for (int round = 0; round < 4; ++round) { // what a device takes is not quite in proportion to its samples
            double all = 0;
            for (std::size_t k = 0; k < kinds; ++k) rate[k] = part[k] / detail::time_of_part(g, oracle, example[k], part[k], training);
            for (auto const k : t.kind) all += rate[k];
            for (std::size_t k = 0; k < kinds; ++k) part[k] = rate[k] / all;
        }
        std::vector<double> of_device;
        for (auto const k : t.kind) of_device.push_back(part[k]);
        shares = std::make_shared<ops::device_shares const>(of_device);
    }
    for (auto& op : g.operations)
        if (auto const k = ops::sample_dim(op)) op.dims[*k].shares = shares && detail::divides_anywhere(op, *k) ? shares : nullptr;
}

} // namespace parsearch::sim
