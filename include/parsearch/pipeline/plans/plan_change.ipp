#pragma once
// From a plan with stages and micro-batches to another: the nearest plan on the devices that there are, what a change takes.

#include <algorithm>
#include <numeric>

#include <parsearch/pipeline/micro_batch.hpp>
#include <parsearch/pipeline/partition_options.hpp>
#include <parsearch/pipeline/plans/plan_change.hpp>
#include <parsearch/pipeline/stage_builder.hpp>

namespace parsearch::pipeline {

namespace detail {

PARSEARCH_INLINE void validate(std::string_view who, parallelization const& problem, placed_plan const& plan) {
    auto const& g = problem.graph();
    if (plan.plan.strategy.size() != g.size())
        throw invalid_input(who, ": has a strategy of ", plan.plan.strategy.size(), " configurations: the graph has ", g.size(), " operators");
    pipeline::validate(plan.plan.how, g);
    auto const all = problem.topology().size();
    for (std::size_t n = 0; n < plan.devices.size(); ++n) {
        if (plan.devices[n] >= all) throw invalid_input(who, ": is on device number ", plan.devices[n], ": the problem has ", all);
        if (n > 0 && plan.devices[n] <= plan.devices[n - 1])
            throw invalid_input(who, ": is on device number ", plan.devices[n], " behind ", plan.devices[n - 1], ": must be ascending");
    }
}

PARSEARCH_INLINE std::vector<std::int32_t> with_new_devices(std::span<std::size_t const> before, std::span<std::int32_t const> device_now,
                                                            std::size_t devices_now) {
    std::vector<bool> is_new(devices_now, true);
    for (auto const d : device_now)
        if (d >= 0) is_new[static_cast<std::size_t>(d)] = false;
    std::vector<std::int32_t> out;
    for (auto const d : before) out.push_back(device_now[d]);
    std::int32_t after = 0; // the number behind that of the last device that is there
    for (std::size_t n = 0; n < out.size(); ++n) {
        if (out[n] >= 0) {
            after = out[n] + 1;
            continue;
        }
        auto const next = std::find_if(out.begin() + static_cast<std::ptrdiff_t>(n), out.end(), [](auto d) { return d >= 0; });
        auto const end = next == out.end() ? static_cast<std::int32_t>(devices_now) : *next;
        for (auto d = after; d < end; ++d)
            if (is_new[static_cast<std::size_t>(d)]) {
                out[n] = d;
                after = d + 1;
                break;
            }
    }
    return out;
}

PARSEARCH_INLINE std::optional<placed_plan> smaller_groups(placed_plan const& plan, parallelization const& from, parallelization const& to,
                                                           std::span<std::int32_t const> device_now) {
    auto const& was = plan.plan;
    auto const before = plan.numbers(from.topology().size());
    auto const groups = was.how.launching().groups();
    auto const now = with_new_devices(before, device_now, to.topology().size());
    auto const samples = static_cast<std::size_t>(divisible_samples(to.graph()));
    auto const part_on = [&](std::vector<std::size_t> const& devices) {
        return devices.size() == to.topology().size() ? std::optional(to) : on_devices_if_allowed(to, devices);
    };
    auto const if_allowed = [&](pipeline_plan p, std::vector<std::size_t> devices, parallelization const& part) -> std::optional<placed_plan> {
        if (samples % p.how.micro_batches != 0 || space::first_not_allowed(part.space().options(), part.graph(), p.strategy)) return {};
        return placed_plan{std::move(p), devices.size() == to.topology().size() ? std::vector<std::size_t>{} : std::move(devices)};
    };
    if (std::ranges::none_of(now, [](auto d) { return d < 0; }) && std::ranges::is_sorted(now)) {
        std::vector<std::size_t> devices(now.begin(), now.end());
        auto const part = part_on(devices);
        return part ? if_allowed(was, std::move(devices), *part) : std::nullopt;
    }
    if (was.tensor_parallel.size() != was.how.stages || before.size() % groups != 0) return {};
    auto const group = before.size() / groups;

    auto const split = [&](std::size_t s) {
        return space::neighbour_split{was.tensor_parallel[s], was.expert_parallel, was.context_parallel, was.context_heads};
    };
    std::size_t unit = 1, least_shared = group; // neighbours that stay together, and that have the same samples
    for (std::size_t s = 0; s < was.how.stages; ++s) {
        unit = std::lcm(unit, std::size_t{split(s).replica()});
        least_shared = std::min(least_shared, std::size_t{split(s).same_samples()});
    }
    if (group % unit != 0) return {};
    std::vector<std::vector<std::size_t>> left(groups); // devices of each group, by whole units
    for (std::size_t first = 0; first < before.size(); first += unit) {
        auto const of_unit = std::span(now).subspan(first, unit);
        if (std::ranges::none_of(of_unit, [](auto d) { return d < 0; }))
            for (auto const d : of_unit) left[first / group].push_back(static_cast<std::size_t>(d));
    }
    auto units = std::ranges::min(left, {}, &std::vector<std::size_t>::size).size() / unit;
    auto const most_samples = [&](std::size_t m, std::size_t n) { return samples * least_shared / (m * n); }; // of a micro-batch, on one of n devices
    auto const divides = [&](std::size_t m, std::size_t n) {
        if (was.how.interleaved > 1 && was.how.order != launch_order::gpipe && m % groups != 0) return false;
        for (std::size_t s = 0; s < was.how.stages; ++s) {
            auto const replicas = n / split(s).same_samples();
            if (samples % (m * replicas) != 0 || (was.context_parallel > 1 && samples != m * replicas)) return false;
        }
        return true;
    };
    std::size_t micro_batches = 0;
    for (; units > 0; --units) {
        for (std::size_t m = 1; m <= samples; ++m) {
            if (!divides(m, units * unit)) continue;
            micro_batches = m;
            if (most_samples(m, units * unit) <= most_samples(was.how.micro_batches, group)) break;
        }
        if (micro_batches > 0) break;
    }
    if (micro_batches == 0) return {};
    std::vector<std::size_t> devices;
    for (auto const& of_group : left) devices.insert(devices.end(), of_group.begin(), of_group.begin() + static_cast<std::ptrdiff_t>(units * unit));
    std::ranges::sort(devices); // they may be numbered in another order now

    auto const part = part_on(devices);
    if (!part) return {};
    stage_builder builder(*part);
    partition_options const anything;
    plan_rules const rules(*part, anything);
    auto const m = static_cast<std::uint32_t>(micro_batches);
    auto out = was;
    out.how.micro_batches = m;
    if (!rules.may_shard(out.how.sharded, units * unit, builder.may_share_within_nodes(units * unit)))
        out.how.sharded = rules.may_shard(sharded_states::parameters, units * unit, false) ? sharded_states::parameters : sharded_states::none;
    for (std::size_t s = 0; s < was.how.stages; ++s)
        if (!builder.allows(m, units * unit, split(s))) return {};
    for (auto const op : builder.order()) {
        auto const s = out.how.stage[op];
        out.strategy[op] = builder.strategy(m, units * unit, split(s))[op];
        out.strategy[op].start += static_cast<std::int32_t>(s % groups * units * unit);
    }
    return if_allowed(std::move(out), std::move(devices), *part);
}

} // namespace detail

PARSEARCH_INLINE state_layout states_of(placed_plan const& plan) {
    auto const sharded = plan.plan.how.sharded;
    return {.strategy = plan.plan.strategy,
            .devices = plan.devices,
            .shares_optimizer = sharded >= sharded_states::optimizer,
            .shares_parameters = sharded >= sharded_states::parameters,
            .within_nodes = sharded == sharded_states::parameters_within_nodes};
}

PARSEARCH_INLINE moved_states plan_change::to(placed_plan const& plan) const {
    detail::validate("plan_change: the plan to change to", to_, plan);
    auto moves = *moves_;
    return moves(states_of(plan), plan.plan.how.stages > 1 ? std::span<std::uint32_t const>(plan.plan.how.stage) : std::span<std::uint32_t const>());
}

PARSEARCH_INLINE std::function<picoseconds(pipeline_plan const&, std::span<std::size_t const>)> plan_change::surcharge() const {
    return [self = *this](pipeline_plan const& plan, std::span<std::size_t const> devices) {
        auto const time = self.to({plan, {devices.begin(), devices.end()}}).time.count();
        return picoseconds(self.iterations_.share(time));
    };
}

} // namespace parsearch::pipeline
