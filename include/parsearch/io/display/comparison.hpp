#pragma once
/// The figures by which strategies are compared: time, throughput, utilisation, traffic, memory.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/models/summary.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/memory/memory_penalty.hpp>
#include <parsearch/sim/report.hpp>
#include <parsearch/topology/device.hpp>

namespace parsearch::io {

/// The figures of one strategy.
struct compared {
    std::string name{};
    picoseconds time{};            ///< of an iteration, without any penalty for memory
    picoseconds cost{};            ///< what searches minimise: the time, and the penalty for memory that is missing
    double speed_up = 1;           ///< time of the baseline / time; 0 where one of them is endless: past what 64 bits of picoseconds hold
    double samples_per_second = 0; ///< throughput, in `throughput_unit`
    std::string_view throughput_unit = "samples"; ///< or "tokens"
    double flops_utilisation = 0; ///< least time that the peaks of all devices allow for the model's flops / time; 0 where no peak is known
    std::array<double, sim::traffic_kinds> moved{}; ///< bytes between devices in one iteration, by `traffic_kind`
    byte_count peak_memory = 0;                     ///< the most bytes on a device
    std::size_t fullest_device = 0;                 ///< the one with the largest share of its memory in use
    byte_count fullest_device_memory = 0;           ///< what that device has
    byte_count fullest_device_use = 0;              ///< bytes on it
    bool fits = true;                               ///< no device needs more than it has

    [[nodiscard]] double bytes_moved() const noexcept {
        double sum = 0;
        for (auto const b : moved) sum += b;
        return sum;
    }
};

/// What one iteration works off.
struct iteration_batch {
    double size = 1;
    std::string_view unit = "samples";
    std::int64_t samples = 1;
};

/// The batch of a model: the extent of the first axis of its first input. Where that is a matrix of integers, [batch, sequence], it is
/// counted in tokens, unless all that read it sum over the second axis: rows of tables, whose bags are no sequences. A model without inputs, or whose
/// first input is a scalar, has a batch of 1.
[[nodiscard]] iteration_batch batch_of(graph::dense_graph const& g);

/// Seconds that all flops of an iteration take on all devices at their peaks: of each operator the peak that a roofline takes, without
/// its efficiencies. 0 where no device has a peak for one of them. Complexity: linear in operators and devices.
template <topology::DescribesDeviceSpecs C> [[nodiscard]] double seconds_at_peak(graph::dense_graph const& g, C const& cluster, bool training) {
    std::array<std::array<double, ops::dtypes>, 2> peak{}; // of all devices, by whether it is for contractions, and type
    for (auto const& d : devices(cluster)) {
        topology::device_spec const spec = describe_device(cluster, d);
        for (std::size_t t = 0; t < ops::dtypes; ++t) {
            peak[0][t] += cost::peak_of(spec.elementwise, static_cast<ops::dtype>(t));
            peak[1][t] += cost::peak_of(spec.contraction, static_cast<ops::dtype>(t));
        }
    }
    double seconds = 0;
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto const& operation = g.operations[op];
        auto const flops = operation.flops + (training ? models::backward_flops(g, op) : 0);
        if (operation.work == ops::work_class::source || !(flops > 0)) continue;
        auto const rate = peak[cost::contracts(operation.work)][static_cast<std::size_t>(operation.outputs.front().type)];
        if (!(rate > 0)) return 0;
        seconds += flops / rate;
    }
    return seconds;
}

/// The device with the largest share of its memory in use.
struct fullest_device {
    std::size_t device = 0;
    byte_count use = 0, memory = 0; ///< bytes on it, and what it has
    bool fits = true;               ///< no device needs more than it has
};
[[nodiscard]] fullest_device fullest_of(std::span<sim::memory_use const> memory, std::span<device_description const> devices) noexcept;

/// What searches minimise: the makespan, and the penalty for memory that is missing.
[[nodiscard]] inline picoseconds cost_with_memory(parallelization const& p, picoseconds makespan, std::span<sim::memory_use const> memory) noexcept {
    auto const penalty = sim::memory_cost(p.options(), sim::bytes_over_capacity(memory, p.topology().devices), p.topology().size());
    return penalty == cost_traits<picoseconds>::infinity() ? penalty : sim::total_cost(makespan, penalty);
}

/// The figures of a strategy of `p` that is simulated already as `r`; `cluster` is the topology `p` was made of, that of all replicas together where
/// `p` is one of several. Throughput and bytes moved are of all.
template <topology::DescribesDeviceSpecs C>
[[nodiscard]] compared compare(parallelization const& p, C const& cluster, std::string name, sim::report const& r, picoseconds baseline) {
    compared out{.name = std::move(name),
                 .time = r.makespan,
                 .cost = cost_with_memory(p, r.makespan, r.memory),
                 .moved = r.traffic,
                 .peak_memory = r.peak_memory()};
    double const replicas = p.options().replicas;
    for (std::size_t k = 0; k < sim::traffic_kinds; ++k) // gradients of weights are those of all already
        if (k != static_cast<std::size_t>(sim::traffic_kind::weight_gradient)) out.moved[k] *= replicas;
    auto const seconds = to_seconds(r.makespan);
    auto const batch = batch_of(p.graph());
    out.throughput_unit = batch.unit;
    if (seconds > 0) {
        constexpr auto endless = cost_traits<picoseconds>::infinity();
        out.speed_up = baseline < endless && r.makespan < endless ? to_seconds(baseline) / seconds : 0;
        out.samples_per_second = replicas * batch.size / seconds;
        out.flops_utilisation = replicas * seconds_at_peak(p.graph(), cluster, p.options().training) / seconds;
    }
    auto const fullest = fullest_of(r.memory, p.topology().devices);
    out.fullest_device = fullest.device;
    out.fullest_device_memory = fullest.memory;
    out.fullest_device_use = fullest.use;
    out.fits = fullest.fits;
    return out;
}

/// The same of a strategy, which is simulated for it. Throws as `simulate` does.
template <topology::DescribesDeviceSpecs C, Strategy<space::configuration> S>
[[nodiscard]] compared compare(parallelization const& p, C const& cluster, std::string name, S const& s, picoseconds baseline) {
    return compare(p, cluster, std::move(name), simulate(p, s), baseline);
}

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/display/comparison.ipp>
#endif
