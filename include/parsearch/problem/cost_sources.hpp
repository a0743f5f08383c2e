#pragma once
/// What the computation of a plan rests on: measurements, estimates made of them, or another oracle.

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/portable_math.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/any_oracle.hpp>
#include <parsearch/cost/interpolation.hpp>
#include <parsearch/cost/measured_table.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/sim/simulator.hpp>

namespace parsearch {

/// The computing time of one iteration, summed over all devices, by what it rests on.
struct source_times {
    std::array<double, cost::cost_sources> seconds{};

    [[nodiscard]] double total() const noexcept { return seconds[0] + seconds[1] + seconds[2] + seconds[3]; }
    /// The part of the total, from 0 to 1; 0 where nothing is computed.
    [[nodiscard]] double share(cost::cost_source s) const noexcept {
        auto const sum = total();
        return sum > 0 ? seconds[static_cast<std::size_t>(s)] / sum : 0;
    }
};

namespace detail {
template <class Oracle, class Device, class S>
[[nodiscard]] source_times compute_time_by_source(parallelization const& p, std::vector<Device> const& handles, Oracle const& oracle, S const& s) {
    std::array<bool, cost::cost_sources> seen{};
    // Where only the answers of one source take time, the sum of all tasks is that of this source.
    auto const simulated = [&](auto const& counts) {
        auto only = [&oracle, &counts, &seen](ops::shard_work const& work, Device const& d) {
            auto const [time, source] = oracle.answer(work, d);
            seen[static_cast<std::size_t>(source)] = true;
            return counts(source) ? time : picoseconds{0};
        };
        auto w = sim::make_workload(p.graph(), p.topology(), cost::any_oracle(std::move(only), handles), p.options());
        sim::simulator simulator(std::move(w));
        (void)simulator.simulate(s);
        auto const& tasks = simulator.tasks();
        double sum = 0;
        for (std::uint32_t t = 0; t < tasks.size(); ++t)
            if (tasks.kind[t] <= sim::task_kind::update) sum += unfused(to_seconds(picoseconds{tasks.duration[t]}));
        return sum;
    };
    source_times out;
    (void)simulated([](cost::cost_source) { return false; });
    auto const found = seen;
    for (std::size_t i = 0; i < cost::cost_sources; ++i)
        if (found[i]) out.seconds[i] = simulated([i](cost::cost_source source) { return static_cast<std::size_t>(source) == i; });
    return out;
}
} // namespace detail

/// The times of all forward, backward and update tasks of strategy `s` of `p`, as `oracle` prices them: `oracle.answer(work, device)` is a
/// `cost::cost_answer`, as that of a `cost::measured_table`. Messages and collectives are left out. Throws what the oracle throws. Complexity: a
/// simulation for each source that occurs, and one more.
template <class Operator, class Device, class Oracle, Strategy<space::configuration> S>
[[nodiscard]] source_times compute_time_by_source(parallelization_of<Operator, Device> const& p, Oracle const& oracle, S const& s) {
    return detail::compute_time_by_source(p, *p.device_handles(), oracle, s);
}
/// The same, where the oracle counts devices as the topology does.
template <class Oracle, Strategy<space::configuration> S>
[[nodiscard]] source_times compute_time_by_source(parallelization const& p, Oracle const& oracle, S const& s) {
    std::vector<std::uint32_t> numbers(p.topology().size());
    std::iota(numbers.begin(), numbers.end(), std::uint32_t{0});
    return detail::compute_time_by_source(p, numbers, oracle, s);
}

} // namespace parsearch
