#pragma once
/// Between plans and decisions.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/pipeline/launch_order.hpp>
#include <parsearch/pipeline/partition_options.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/pipeline/plans/plan_space.hpp>
#include <parsearch/pipeline/stage_builder.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/space/configuration.hpp>
#include <parsearch/space/operator_space.hpp>
#include <parsearch/space/textbook/neighbour_split.hpp>

namespace parsearch::pipeline {

/// Makes plans of decisions, and tells the decisions of plans. Refers to what it is made of; keeps what it has learnt, so one object serves one
/// thread.
class plan_maker {
  public:
    /// `builder`: of `problem`, as is `space`.
    plan_maker(parallelization const& problem, partition_options const& options, plan_space const& space, detail::stage_builder& builder)
        : problem_(&problem), rules_(problem, options), space_(&space), builder_(&builder) {}

    /// Why decisions are no plan; empty where they are one, or where operators alone may keep them from being one.
    [[nodiscard]] std::string_view why_not(plan_decisions const& d) {
        detail::candidate unused;
        return read(d, unused);
    }
    /// The stages that `d` says, and how they run; nothing where that is no plan. Decisions of operators do not matter.
    [[nodiscard]] std::optional<detail::candidate> stages(plan_decisions const& d) {
        detail::candidate c;
        return read(d, c).empty() ? std::optional(std::move(c)) : std::nullopt;
    }
    /// Whether some operator differs from what its stage says.
    [[nodiscard]] bool has_own_operators(plan_decisions const& d) const {
        return std::any_of(d.begin() + static_cast<std::ptrdiff_t>(space_->first_of_operators()), d.end(), [](auto n) { return n != 0; });
    }
    /// The plan of `c`, stages that `d` says, with what operators have of their own; nothing where these do not go with it. Complexity: linear in
    /// operators, beside what the first plan of as many micro-batches, and split, takes.
    [[nodiscard]] std::optional<pipeline_plan> plan(plan_decisions const& d, detail::candidate const& c);

    /// Decisions that `plan` makes a plan of equal tasks of. Throws `invalid_input` naming what is not of the space: as `validate`, a number that is
    /// none of those to choose from, stages of operators that are not neighbours in topological order, or begin elsewhere than the space lets them,
    /// an operator whose configuration is not of the space, or differs from that of one that it is tied to. Complexity: as `plan_maker::plan` for
    /// each way to split and each number of segments, and where segments are the plan's, for each number of those kept, times each of those
    /// offloaded where some are (64 times 64 at most).
    [[nodiscard]] plan_decisions decisions(pipeline_plan const& plan);

  private:
    static constexpr std::string_view not_allowed =
        "the space of strategies does not allow operators to be split so, or a group has no room for them";

    /// Reads the stages; answers why they are no plan, or nothing.
    [[nodiscard]] std::string_view read(plan_decisions const& d, detail::candidate& c);

    [[nodiscard]] detail::candidate const& balanced(std::uint32_t stages, std::uint32_t rounds, std::uint32_t micro_batches,
                                                    space::neighbour_split by);
    /// The first device of the group that runs `op`.
    [[nodiscard]] std::int32_t first_device(pipelining const& how, std::size_t op) const {
        auto const groups = how.launching().groups();
        return static_cast<std::int32_t>(how.stage[op] % groups * (builder_->devices() / groups));
    }
    [[nodiscard]] std::optional<space::configuration> of_split(std::uint32_t micro_batches, std::size_t group, space::neighbour_split by,
                                                               std::size_t op) {
        if (!space_->has(by, group)) return {};
        return builder_->strategy(micro_batches, group, by)[op];
    }
    [[nodiscard]] std::optional<space::configuration> of_space(std::uint32_t micro_batches, space::configuration c, std::size_t op) {
        if (!builder_->simulator().micro_batches(micro_batches).space().contains(op, c)) return {};
        return c;
    }
    /// `plan` where the problem's space admits all operators where they are.
    [[nodiscard]] std::optional<pipeline_plan> admitted(pipeline_plan plan) const {
        auto const& options = problem_->space().options();
        if (options.admits && space::first_not_allowed(options, problem_->graph(), plan.strategy)) return {};
        return plan;
    }
    /// Whether the first `group` devices hold operator `op` of a micro-batch under `c`, and it may be split so.
    [[nodiscard]] bool has_room(space::configuration const& c, std::size_t group, std::uint32_t micro_batches, std::size_t op) {
        auto const& part = builder_->simulator().micro_batches(micro_batches);
        auto const& g = part.graph();
        return c.place(c.shards() - 1) < static_cast<std::int64_t>(group) && space::allows(part.space().options(), g.names[op], g.operations[op], c);
    }
    /// That of operator `op` counted from the first device of its group.
    [[nodiscard]] space::configuration relative(pipeline_plan const& plan, std::size_t op) const {
        auto c = plan.strategy[op];
        c.start -= first_device(plan.how, op);
        return c;
    }

    /// What the plan says; else the way as which most operators are, of all and of each stage.
    void set_split(plan_decisions& d, pipeline_plan const& plan);

    void set_beginnings(plan_decisions& d, pipelining const& how);

    void set_recomputation(plan_decisions& d, pipelining const& how);
    [[nodiscard]] bool same_segments(pipelining const& a, pipelining const& b) const {
        return std::ranges::all_of(builder_->order(),
                                   [&](auto op) { return (!a.recomputes(a.stage[op]) && !a.offloads()) || a.segment_of(op) == b.segment_of(op); });
    }

    void set_joined(plan_decisions& d, pipelining const& how);

    void set_operators(plan_decisions& d, pipeline_plan const& plan);

    parallelization const* problem_;
    plan_rules rules_;
    plan_space const* space_;
    detail::stage_builder* builder_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, space::neighbour_split>, detail::candidate> balanced_{};
};

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/plans/plan_maker.ipp>
#endif
