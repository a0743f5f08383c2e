#pragma once
// A queue of tasks by (ready time, number), for schedules that never go back in time.

#include <parsearch/sim/schedule/ready_queue.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE std::uint32_t ready_queue::pop() {
    if (now_.empty()) advance();
    std::pop_heap(now_.begin(), now_.end(), std::greater<>());
    auto const task = now_.back();
    now_.pop_back();
    return task;
}

PARSEARCH_INLINE void ready_queue::advance() {
    auto const bit = static_cast<std::size_t>(std::countr_zero(filled_));
    auto& first = later_[bit];
    filled_ &= filled_ - 1;
    last_ = std::min_element(first.begin(), first.end(), [](entry const& a, entry const& b) { return a.ready < b.ready; })->ready;
    for (auto const& e : first) {
        if (e.ready == last_) now_.push_back(e.task);
        else put(e); // below `bit`
    }
    first.clear();
    std::make_heap(now_.begin(), now_.end(), std::greater<>());
}

} // namespace parsearch::sim
