#pragma once
// `plan_problem`: the plans of a problem as a problem, on which any search runs.

#include <algorithm>
#include <limits>

#include <parsearch/core/error.hpp>
#include <parsearch/pipeline/plans/plan_problem.hpp>

namespace parsearch::pipeline::detail {

PARSEARCH_INLINE plan_space planned_problem::make_space(bool tied) const {
    validate(options);
    stage_builder builder(problem, options.cuts_anywhere);
    if (builder.order().empty()) throw invalid_input("plan_problem: the graph has inputs only: at least one operator must have work");
    return {problem, builder, options, tied};
}

PARSEARCH_INLINE picoseconds plan_bounds::value() {
    constexpr auto infinity = cost_traits<picoseconds>::infinity();
    if (stages_fixed_ == space().first_of_operators() && !shop_->maker.why_not(chosen_).empty()) return infinity;
    auto const micro_batches = plan_space::number(plan_decision::micro_batches);
    auto least = infinity.count();
    for (std::uint32_t n = 0; n < parts_.size(); ++n) {
        if (is_fixed_[micro_batches] && chosen_[micro_batches] != n) continue;
        std::int64_t sum = 0;
        for (std::size_t g = 0; g < space().ties().size(); ++g)
            sum = saturating_sum(sum, parts_[n].work(g, chosen_[space().first_of_operators() + g]));
        sum /= static_cast<std::int64_t>(space().devices());
        auto const m = std::int64_t{space().micro_batches()[n]};
        least = std::min(least, sum > infinity.count() / m ? infinity.count() : m * sum);
    }
    return picoseconds{least};
}

PARSEARCH_INLINE plan_bounds::part::part(plan_space const& space, parallelization const& problem)
    : space_(&space), problem_(&problem), planner_(problem.workload()), least_(space.ties().size(), 0) {
    auto const each = sim::least_work(planner_, problem.space());
    for (std::size_t op = 0; op < each.size(); ++op) {
        auto& sum = least_[space.ties().group_of(op)];
        sum = saturating_sum(sum, each[op]);
    }
}

PARSEARCH_INLINE std::int64_t plan_bounds::part::work(std::size_t g, std::uint32_t choice) {
    auto const splits = space_->splits().size();
    if (choice <= splits) return least_[g];
    auto const [at, fresh] = known_.try_emplace({g, choice}, 0);
    for (auto const op : space_->ties().of(g)) {
        if (!fresh) break;
        auto const c = space_->strategies().of(op)[choice - 1 - splits];
        auto const fits = problem_->space().contains(op, c);
        at->second = fits ? saturating_sum(at->second, sim::work_of(planner_, op, c)) : std::numeric_limits<std::int64_t>::max();
    }
    return at->second;
}

} // namespace parsearch::pipeline::detail

namespace parsearch::pipeline {

PARSEARCH_INLINE std::optional<picoseconds> plan_evaluator::price(plan_decisions const& d, picoseconds bound) {
    constexpr auto infinity = cost_traits<picoseconds>::infinity();
    auto const answer = [&](picoseconds cost) { return cost > bound ? std::nullopt : std::optional(cost); };
    auto key = shop_->of->space.canonical(d);
    if (auto const at = known_.find(key); at != known_.end()) {
        if (at->second.exact) return answer(at->second.cost);
        if (at->second.cost >= bound) return {};
    }
    auto const c = shop_->maker.stages(d);
    if (!c) return answer(infinity);
    if (!shop_->maker.has_own_operators(d) && shop_->builder.least_time(*c) > bound.count()) return {};
    auto const plan = shop_->maker.plan(d, *c);
    if (!plan) return answer(infinity);
    auto cost = shop_->builder.simulator().within(plan->how, plan->strategy, bound);
    if (cost) cost = with_surcharge(shop_->of->options, *plan, *cost);
    if (cost && *cost > bound) cost.reset();
    if (known_.size() >= most_known) known_.clear();
    known_[std::move(key)] = {cost.value_or(bound), cost.has_value()};
    return cost;
}

PARSEARCH_INLINE bool plan_problem::feasible(plan_decisions const& d) const {
    detail::plan_workshop shop(of_, false);
    auto const plan = shop.plan(d);
    if (!plan) return false;
    (void)shop.builder.simulator()(plan->how, plan->strategy);
    return shop.builder.simulator().fits();
}

PARSEARCH_INLINE pipeline_plan plan_problem::plan(plan_decisions const& d) const {
    if (d.size() != space().size()) throw invalid_input("plan_problem: ", d.size(), " decisions: must be ", space().size());
    for (std::size_t n = 0; n < d.size(); ++n)
        if (auto const count = space()[n].size(); d[n] >= count)
            throw invalid_input("plan_problem: decision number ", n, " is ", d[n], ": must be less than ", count);
    detail::plan_workshop shop(of_, false);
    if (auto const why = shop.maker.why_not(d); !why.empty()) throw invalid_input("plan_problem: the decisions are no plan: ", why);
    auto out = shop.plan(d);
    if (!out)
        throw invalid_input("plan_problem: the decisions are no plan: an operator's configuration needs more devices than its group has, "
                            "or is not of the space of a micro-batch");
    return std::move(*out);
}

} // namespace parsearch::pipeline
