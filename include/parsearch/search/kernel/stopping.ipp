#pragma once
// When a search ends: its budget, and its patience with a search that no longer improves.

#include <parsearch/search/kernel/stopping.hpp>

namespace parsearch::search {

PARSEARCH_INLINE std::optional<stop_reason> stopping::due(std::uint64_t evaluations) {
    if (stop_.stop_requested()) return stop_reason::stop_requested;
    if (evaluations >= evaluations_) return stop_reason::evaluation_budget;
    bool const patient = evaluations < patience_.min_evaluations;
    if (patience_.of_evaluations > 0 && !patient &&
        static_cast<double>(evaluations - improved_at_) >= patience_.of_evaluations * static_cast<double>(evaluations))
        return stop_reason::no_improvement;
    if (timed_ && --steps_left_ == 0) {
        auto const now = look();
        if (now >= time_) return stop_reason::time_budget;
        if (patience_.of_time > 0 && !patient &&
            static_cast<double>((now - improved_after_).count()) >= patience_.of_time * static_cast<double>(now.count()))
            return stop_reason::no_improvement;
    }
    return {};
}

PARSEARCH_INLINE void stopping::extend(extension const& more) {
    auto const raised = [](auto now, auto by, auto most) { return by > most - now ? most : now + by; };
    if (more.evaluations) evaluations_ = raised(evaluations_, *more.evaluations, std::numeric_limits<std::uint64_t>::max());
    if (more.time) time_ = raised(elapsed(), std::max(*more.time, std::chrono::nanoseconds::zero()), std::chrono::nanoseconds::max());
    timed_ = timed_ || more.time;
    steps_left_ = 1;
}

PARSEARCH_INLINE std::chrono::nanoseconds stopping::look() {
    using namespace std::chrono_literals;
    auto const now = elapsed();
    auto const since = now - looked_after_;
    if (since < 100us) steps_ = steps_ < most_steps ? steps_ * 2 : most_steps;
    else if (since > 1ms) steps_ = 1;
    steps_left_ = steps_;
    looked_after_ = now;
    return now;
}

} // namespace parsearch::search
