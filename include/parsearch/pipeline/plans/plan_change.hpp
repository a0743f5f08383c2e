#pragma once
/// From a plan with stages and micro-batches to another: the nearest plan on the devices that there are, what a change takes, and searches that weigh
/// it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/problem/adapted.hpp>
#include <parsearch/problem/on_devices.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/problem/state_moves.hpp>

namespace parsearch::pipeline {

namespace detail {
/// Throws `invalid_input` that begins with `who` where the plan has another number of operators than `problem`, or is on devices that are none of it.
void validate(std::string_view who, parallelization const& problem, placed_plan const& plan);
/// The new number of each device of a plan, which has `device_now` of those before, or -1; of one that is gone that of a new device between its
/// neighbours, where there is one.
[[nodiscard]] std::vector<std::int32_t> with_new_devices(std::span<std::size_t const> before, std::span<std::int32_t const> device_now,
                                                         std::size_t devices_now);
/// See `adapted`; nothing where the plan is none that it can say.
[[nodiscard]] std::optional<placed_plan> smaller_groups(placed_plan const& plan, parallelization const& from, parallelization const& to,
                                                        std::span<std::int32_t const> device_now);
} // namespace detail

/// The plan of `to` nearest to `plan`, which is one of `from`; devices as in `adapted` of strategies. Stages, their operators, and how they run stay.
///
/// - Where all devices are left, in the same order, so does the rest.
/// - Of a textbook plan, neighbours stay together that share samples in some stage, or exchange tokens. Where one of them has failed they go, and all
///   stages keep as many of these as each has left and as divide the samples, with the fewest micro-batches of which a device has no more samples
///   than before. A device that is new takes the place of one that is gone, where it is numbered between its neighbours. Stages are in the order of
///   the devices of `to`: where these are numbered in another order than before, more moves than has to.
/// - A strategy of its own, of one stage and micro-batch, is adapted as such.
///
/// Nothing where some stage has none of these neighbours left, or the problem does not allow the plan. It may not fit the memory: fewer devices
/// share states. Throws `invalid_input` where the problems have other operators. Complexity: that of `on_devices`, and of a `stage_builder`.
template <class Operator, class Device, class OtherDevice, class Name = std::identity>
[[nodiscard]] std::optional<placed_plan> adapted(parallelization_of<Operator, Device> const& from, placed_plan const& plan,
                                                 parallelization_of<Operator, OtherDevice> const& to, Name const& name = {}) {
    bool same = from.size() == to.size();
    for (std::size_t op = 0; same && op < from.size(); ++op) same = from.handle(op) == to.handle(op);
    if (!same) throw invalid_input("adapted: a plan with stages of a problem of ", from.size(), " operators, for one with others: must be the same");
    detail::validate("adapted: the plan before", from, plan);
    if (!plan.plan.tensor_parallel.empty() || !plan.plan.how.runs_once())
        return detail::smaller_groups(plan, from, to, device_numbers(from, to, name));
    auto out = plan.plan;
    out.strategy = parsearch::adapted(from, plan.devices.empty() ? out.strategy : with_devices(out.strategy, plan.devices), to, name).strategy;
    return placed_plan{std::move(out)};
}

/// Which states of weights are where under `plan`.
[[nodiscard]] state_layout states_of(placed_plan const& plan);

/// A change from a plan to another, that the next iterations are to pay for:
///
///     pipeline::plan_change const change(problem, plan, left, 10'000);
///     auto const again = pipeline::partition_part(left, change.start(), rng, {.time = 5s, .surcharge = change.surcharge()});
///     change.to(again.plan()); // bytes that move, that are lost, and the time
///
/// Then the cost found is an iteration, and a 10,000th of the change. Cheap to copy; several threads may use one.
class plan_change {
  public:
    /// `plan` is one of `from`, on any of its devices. Throws `invalid_input` where `iterations` is 0, where `simulation_options::replicas` are
    /// several, and as `adapted` and `state_moves`.
    template <class Operator, class Device, class OtherDevice, class Name = std::identity>
    plan_change(parallelization_of<Operator, Device> const& from, placed_plan const& plan, parallelization_of<Operator, OtherDevice> const& to,
                std::uint64_t iterations, Name const& name = {})
        : start_(adapted(from, plan, to, name).value_or(placed_plan{})), to_(to),
          moves_(std::make_shared<state_moves const>(from, states_of(plan), to, name)), iterations_(iterations, "plan_change") {
        if (auto const n = to.options().replicas; n > 1)
            throw invalid_input("plan_change: one of ", n, " replicas, among which states may be shared: must be a problem of all devices");
    }

    /// The plan nearest to that before: see `adapted`. Without operators where there is none.
    [[nodiscard]] placed_plan const& start() const noexcept { return start_; }
    /// What it takes to change to `plan`. Throws `invalid_input` where that is none of the other problem. Complexity: as `state_moves`.
    [[nodiscard]] moved_states to(placed_plan const& plan) const;
    /// A `partition_options::surcharge`: the time of the change, divided by the iterations.
    [[nodiscard]] std::function<picoseconds(pipeline_plan const&, std::span<std::size_t const>)> surcharge() const;

  private:
    placed_plan start_;
    parallelization to_;
    std::shared_ptr<state_moves const> moves_;
    paying_iterations iterations_;
};

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/plans/plan_change.ipp>
#endif
