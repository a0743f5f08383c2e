#pragma once
// Simulates any plan: a network as it is like a strategy, others as pipelines.

#include <parsearch/pipeline/plans/plan_simulator.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE picoseconds plan_simulator::simulate(pipelining const& how, space::flat_strategy const& strategy) {
    if (how.plain()) {
        if (!plain_) plain_.emplace(problem_.simulator());
        auto const time = plain_->simulate(strategy);
        plain_now_ = true;
        return time;
    }
    if (!staged_) staged_.emplace(problem_);
    auto const time = staged_->simulate(how, strategy);
    plain_now_ = false;
    return time;
}

PARSEARCH_INLINE picoseconds plan_simulator::penalty() const noexcept {
    auto const& t = problem_.topology();
    return sim::memory_cost(problem_.options(), sim::bytes_over_capacity(memory(), t.devices), t.size());
}

PARSEARCH_INLINE bool plan_simulator::fits() const noexcept {
    return problem_.options().memory == sim::memory_policy::ignore || sim::bytes_over_capacity(memory(), problem_.topology().devices) == 0;
}

} // namespace parsearch::pipeline
