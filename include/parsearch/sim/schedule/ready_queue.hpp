#pragma once
/// A queue of tasks by (ready time, number), for schedules that never go back in time.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <parsearch/core/compiled.hpp>

namespace parsearch::sim {

/// A radix heap (Ahuja, Mehlhorn, Orlin, Tarjan, J. ACM 37, 1990): no task that is pushed may be ready before the last one popped. Entries are kept
/// by the highest bit in which they differ from it, so that each moves at most once per bit, and not to its place in an order that nobody asks for
/// yet. Times are not negative. Complexity: amortised O(bits in which ready times differ + log n) for n tasks that are ready at once.
class ready_queue {
  public:
    [[nodiscard]] bool empty() const noexcept { return now_.empty() && filled_ == 0; }
    void clear() noexcept {
        now_.clear();
        for (; filled_ != 0; filled_ &= filled_ - 1) later_[static_cast<std::size_t>(std::countr_zero(filled_))].clear();
        last_ = 0;
    }
    void push(std::int64_t ready, std::uint32_t task) {
        if (auto const at = static_cast<std::uint64_t>(ready); at != last_) return put({at, task});
        now_.push_back(task);
        std::push_heap(now_.begin(), now_.end(), std::greater<>());
    }
    /// Takes out the least task; there must be one.
    std::uint32_t pop();

  private:
    struct entry {
        std::uint64_t ready = 0;
        std::uint32_t task = 0;
    };
    void put(entry e) {
        auto const bit = static_cast<std::size_t>(std::bit_width(e.ready ^ last_)) - 1;
        later_[bit].push_back(e);
        filled_ |= std::uint64_t{1} << bit;
    }
    /// Those that are ready first become `now_`.
    void advance();

    std::uint64_t last_ = 0;                     ///< when those of `now_` are ready
    std::uint64_t filled_ = 0;                   ///< a bit per list below that is not empty
    std::vector<std::uint32_t> now_;             ///< a heap, the least number first
    std::array<std::vector<entry>, 63> later_{}; ///< by the highest bit that differs from `last_`
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/schedule/ready_queue.ipp>
#endif
