#pragma once
/// What the computation of a plan rests on: measurements, estimates made of them, published runs, data sheets, or another oracle.

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
#include <parsearch/cost/cost_source.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/input/workload.hpp>
#include <parsearch/sim/task/planner.hpp>
#include <parsearch/space/configuration.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch {

/// The computing time of one iteration, summed over all devices, by what it rests on.
struct source_times {
    std::array<double, cost::cost_sources> seconds{};

    [[nodiscard]] double total() const noexcept { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }
    /// The part of the total, from 0 to 1; 0 where nothing is computed.
    [[nodiscard]] double share(cost::cost_source s) const noexcept {
        auto const sum = total();
        return sum > 0 ? seconds[static_cast<std::size_t>(s)] / sum : 0;
    }
};

namespace detail {
template <class Oracle, class Device, class S>
[[nodiscard]] source_times compute_time_by_source(parallelization const& p, std::vector<Device> const& handles, Oracle const& oracle, S const& s,
                                                  double passes) {
    auto const& configurations = space::flat(s, p.size());
    std::array<bool, cost::cost_sources> seen{};
    // Where only the answers of one source take time, the sum of all shards and updates is that of this source.
    auto const computed = [&](auto const& counts) {
        auto only = [&oracle, &counts, &seen](ops::shard_work const& work, Device const& d) {
            auto const [time, source] = oracle.answer(work, d);
            if (time > picoseconds{0}) seen[static_cast<std::size_t>(source)] = true;
            return counts(source) ? time : picoseconds{0};
        };
        auto const w = sim::make_workload(p.graph(), p.topology(), cost::any_oracle(std::move(only), handles), p.options());
        sim::planner planner(w);
        std::vector<sim::operator_plan> plans(p.size());
        double once = 0, each = 0;
        auto const add = [](double& sum, std::int64_t time) { sum += unfused(to_seconds(picoseconds{time})); };
        for (std::uint32_t op = 0; op < p.size(); ++op) {
            planner.plan_operator(op, configurations[op], plans[op]);
            for (auto const d : plans[op].devices) {
                add(each, plans[op].forward[w->topology.kind[d]]);
                add(each, plans[op].backward[w->topology.kind[d]]);
            }
        }
        for (auto const& members : w->classes) {
            sim::class_plan c{.members = members};
            planner.plan_class([&](std::uint32_t op) -> space::configuration const& { return configurations[op]; },
                               [&](std::uint32_t op) -> sim::operator_plan const& { return plans[op]; }, c);
            for (auto const t : c.update)
                if (t != sim::class_plan::no_update) add(once, t);
        }
        return once + passes * each;
    };
    source_times out;
    (void)computed([](cost::cost_source) { return false; });
    auto const found = seen;
    for (std::size_t i = 0; i < cost::cost_sources; ++i)
        if (found[i]) out.seconds[i] = computed([i](cost::cost_source source) { return static_cast<std::size_t>(source) == i; });
    return out;
}
} // namespace detail

/// The times of all forward, backward and update tasks of strategy `s` of `p`, as `oracle` prices them: `oracle.answer(work, device)` is a
/// `cost::cost_answer`, as that of a `cost::measured_table` or a `cost::roofline`. Forward and backward count `passes` times: micro-batches, of which
/// `p` is one; what is computed again does not count. Messages and collectives are left out. Throws what the oracle throws. Complexity: for each
/// source that occurs, and once more, that of planning operators and weights.
template <class Operator, class Device, class Oracle, Strategy<space::configuration> S>
[[nodiscard]] source_times compute_time_by_source(parallelization_of<Operator, Device> const& p, Oracle const& oracle, S const& s,
                                                  double passes = 1) {
    return detail::compute_time_by_source(p, *p.device_handles(), oracle, s, passes);
}
/// The same, where the oracle counts devices as the topology does.
template <class Oracle, Strategy<space::configuration> S>
[[nodiscard]] source_times compute_time_by_source(parallelization const& p, Oracle const& oracle, S const& s, double passes = 1) {
    std::vector<std::uint32_t> numbers(p.topology().size());
    std::iota(numbers.begin(), numbers.end(), std::uint32_t{0});
    return detail::compute_time_by_source(p, numbers, oracle, s, passes);
}

} // namespace parsearch
