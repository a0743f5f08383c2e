#pragma once
/// The schedule of blocks whose resources run tasks as they become ready.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/sim/delta/engine_state.hpp>

namespace parsearch::sim {

/// List scheduling by (time, block, task). Where many tasks of a block become ready at one time, with one queue entry for such a *bundle*;
/// else with one per task, and what waits for a task in one list. The choice follows the last run.
class fifo_pass {
  public:
    /// False as soon as the makespan is sure to be above the bound. Complexity: O(D + B log B) for B bundles and D dependences from the
    /// last checkpoint before the first change on.
    bool run(engine_state& s);

  private:
    static constexpr std::uint32_t none = block_graph::none;

    /// A task, or tasks of a block that become ready at one time: a chain from the first.
    struct bundle {
        std::int64_t ready = 0;
        std::uint64_t key = 0; ///< of the first
        [[nodiscard]] std::uint32_t block() const noexcept { return static_cast<std::uint32_t>(key >> 32); }
        [[nodiscard]] std::uint32_t place() const noexcept { return static_cast<std::uint32_t>(key); }
        friend bool operator>(bundle const& a, bundle const& b) noexcept { return (a.ready > b.ready) | ((a.ready == b.ready) & (a.key > b.key)); }
    };
    /// Of a task: predecessors that have not started; the task that became ready with it before. `none`: it has run.
    struct waiting {
        std::uint32_t count = 0, chain = 0;
    };

    /// Starts what is queued and what it makes ready.
    template <bool Singly> bool start_all(checkpoint const* from) {
        auto& s = *state_;
        auto const every = s.spacing();
        std::uint64_t since = every;
        std::int64_t last_ready = from_time_;
        std::uint32_t last_block = from ? from_block_ : none;
        while (!queue_.empty()) {
            auto const top = queue_.front();
            if (top.ready != last_ready || top.block() != last_block) {
                ++bundles_;
                if (since >= every) {
                    if (!from || top.ready != from_time_ || top.block() != from_block_) s.take_checkpoint(top.ready, top.block());
                    since = 0;
                }
            }
            last_ready = top.ready;
            last_block = top.block();
            auto const started = Singly ? start_one(top) : start_bundle(top);
            if (started == 0) return false;
            since += started;
            tasks_ += started;
        }
        return true;
    }

    [[nodiscard]] waiting* waits(std::uint32_t b) noexcept { return waits_.data() + state_->blocks[b].begin; }

    /// No task of the proposal that differs from the current schedule, or is not in it, is ready before this time.
    [[nodiscard]] std::int64_t first_difference();

    [[nodiscard]] bool before(std::int64_t ready, std::uint32_t block) const noexcept {
        return ready != from_time_ ? ready < from_time_ : block < from_block_;
    }
    [[nodiscard]] bool all_before(std::uint32_t b) const noexcept { return !state_->blocks[b].changed && before(state_->summary[b].most_ready, b); }
    [[nodiscard]] bool none_before(std::uint32_t b) const noexcept { return state_->blocks[b].changed || !before(state_->summary[b].least_ready, b); }

    void count_predecessors(std::uint32_t b) noexcept;

    /// Starts block `b` in this run: what of it ran before the run began is kept, and what waits only for that is queued.
    void enter(std::uint32_t b);
    /// Counts what ended before the run began; whether anything did.
    bool take_arrivals(std::uint32_t b);
    /// The latest time at which a predecessor of a task that waits for nothing became ready.
    [[nodiscard]] std::int64_t enabled_at(std::uint32_t b, std::uint32_t i);

    void make_ready(std::uint32_t b, std::uint32_t i) {
        auto& mine = state_->blocks[b];
        auto const at = state_->next(b)[i].ready;
        if (!singly_ && mine.open_ready == at) {
            waits(b)[mine.open_last].chain = i;
        } else {
            push(at, engine_state::key(b, mine.begin + i));
            mine.open_ready = at;
        }
        mine.open_last = i;
    }
    void push(std::int64_t ready, std::uint64_t key) {
        queue_.push_back({ready, key});
        std::push_heap(queue_.begin(), queue_.end(), std::greater<>{});
    }

    /// Puts back of `started_` what a task that they make ready at the same instant may precede: where there are barriers, all others (a
    /// barrier may start before any of them); else what follows the first task of no duration.
    void keep_back(std::uint32_t b);

    /// Starts one task; answers 1, 0 where the bound is passed.
    std::uint32_t start_one(bundle const top);

    /// Starts all tasks that are ready in the block of `top` at its time; answers their number, 0 where the bound is passed.
    std::uint32_t start_bundle(bundle const top);

    engine_state* state_ = nullptr; ///< in a run
    std::vector<bundle> queue_;
    std::vector<waiting> waits_; ///< beside `work` of the state
    std::vector<std::uint32_t> started_;
    std::vector<std::int64_t> least_;
    static constexpr std::uint64_t most_singly = 3;             ///< tasks per bundle, where they are started one by one,
    static constexpr std::uint64_t most_tasks_singly = 1 << 15; ///< and of the graph: lists of single tasks outgrow the caches sooner
    std::uint64_t tasks_ = 0, bundles_ = 1;                     ///< in the last run
    bool singly_ = false;
    std::int64_t from_time_ = -1; ///< the run begins with the tasks of (time, block)
    std::uint32_t from_block_ = 0;
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/delta/fifo_pass.ipp>
#endif
