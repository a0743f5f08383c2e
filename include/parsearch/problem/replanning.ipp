#pragma once
// Searches that weigh what it takes to change to a plan against what the plan gains.

#include <parsearch/problem/replanning.hpp>

namespace parsearch {

PARSEARCH_INLINE picoseconds replanning::evaluator_type::reset(space::flat_strategy const& s) {
    restore();
    std::vector<std::int64_t> times;
    for (auto const& of_one : moves_.by_class(s)) times.push_back(of_one.time.count());
    auto next = s;
    auto const cost = simulator_.reset(s);
    now_ = std::move(next);
    time_ = std::move(times);
    return with(cost, iterations_.share(sum_of(time_)));
}

PARSEARCH_INLINE std::optional<picoseconds> replanning::evaluator_type::propose(std::span<change<space::configuration> const> changes,
                                                                                picoseconds bound) {
    restore();
    for (auto const& c : changes) { // what the simulator refuses must not be asked about
        if (c.op >= now_.size()) return simulator_.propose(changes, bound);
        auto const& g = work_->graph;
        if (g.operations[c.op].work != ops::work_class::source)
            space::validate(c.configuration, g.operations[c.op], work_->topology.size(), g.names[c.op]);
    }
    for (auto const& c : changes) before_.push_back({c.op, std::exchange(now_[c.op], c.configuration)});
    changed_.clear();
    for (auto const& c : changes)
        if (auto const n = work_->class_of[c.op]; n != no_class) changed_.push_back(n);
    make_set(changed_);
    try {
        next_time_ = time_;
        for (auto const n : changed_) next_time_[n] = time_of(n);
        auto const mine = iterations_.share(sum_of(next_time_));
        auto const rest = bound == cost_traits<picoseconds>::infinity() ? bound : bound - picoseconds(mine);
        auto const cost = simulator_.propose(changes, rest);
        return cost ? std::optional(with(*cost, mine)) : std::nullopt;
    } catch (...) {
        restore();
        throw;
    }
}

PARSEARCH_INLINE void replanning::evaluator_type::commit() {
    simulator_.commit();
    for (auto const n : changed_) time_[n] = next_time_[n];
    changed_.clear();
    before_.clear();
}

} // namespace parsearch
