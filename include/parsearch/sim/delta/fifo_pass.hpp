#pragma once
/// The schedule of blocks whose resources run tasks as they become ready.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include <parsearch/sim/delta/engine_state.hpp>

namespace parsearch::sim {

/// List scheduling by (time, block, task). Where many tasks of a block become ready at one time, with one queue entry for such a *bundle*;
/// else with one per task, and what waits for a task in one list. The choice follows the last run.
class fifo_pass {
  public:
    /// False as soon as the makespan is sure to be above the bound. Complexity: O(D + B log B) for B bundles and D dependences from the
    /// last checkpoint before the first change on.
    bool run(engine_state& s) {
        state_ = &s;
        queue_.clear();
        waits_.resize(s.work.size());
        std::size_t kept = 0;
        if (s.valid) {
            auto const first = first_difference();
            kept = s.checkpoints_while([&](checkpoint const& c) { return c.time < first; });
        }
        auto const* const from = s.begin(kept);
        if (s.longest > s.limits.bound) return false;
        from_time_ = from ? from->time : -1;
        from_block_ = from ? from->block : 0;
        singly_ = most_singly * bundles_ > tasks_ && s.task_count <= most_tasks_singly;
        for (std::uint32_t b = 0; b < s.graph->blocks; ++b)
            if (!from || s.blocks[b].changed || ((singly_ || s.summary[b].enabled <= from_time_) && !all_before(b))) enter(b);
        tasks_ = bundles_ = 0;
        return singly_ ? start_all<true>(from) : start_all<false>(from);
    }

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
    [[nodiscard]] std::int64_t first_difference() {
        auto& s = *state_;
        constexpr auto most = std::numeric_limits<std::int64_t>::max();
        std::sort(s.changed.begin(), s.changed.end());
        least_.resize(s.graph->blocks);
        auto first = most;
        for (auto const b : s.changed) {
            // The block's tasks are ready no earlier than the predecessors that bind them all have ended.
            auto least = s.graph->any[b] ? most : std::int64_t{0};
            for (auto const arc : s.graph->into(b)) {
                auto const from = s.graph->arcs[arc].from;
                auto const* const d = s.waits(arc);
                if (from == b || !d) continue;
                auto const end = s.blocks[from].changed ? least_[from] : s.summary[from].least_end;
                if (s.graph->any[b]) {
                    if (!d->empty()) least = std::min(least, end);
                } else if (d->each && end != most) {
                    least = std::max(least, end);
                }
            }
            least_[b] = least;
            if (s.blocks[b].size > 0) first = std::min(first, least);
            first = std::min(first, s.summary[b].least_ready);
        }
        return first;
    }

    [[nodiscard]] bool before(std::int64_t ready, std::uint32_t block) const noexcept {
        return ready != from_time_ ? ready < from_time_ : block < from_block_;
    }
    [[nodiscard]] bool all_before(std::uint32_t b) const noexcept { return !state_->blocks[b].changed && before(state_->summary[b].most_ready, b); }
    [[nodiscard]] bool none_before(std::uint32_t b) const noexcept { return state_->blocks[b].changed || !before(state_->summary[b].least_ready, b); }

    void count_predecessors(std::uint32_t b) noexcept {
        auto& s = *state_;
        auto& mine = s.blocks[b];
        auto* const work = s.work.data() + mine.begin;
        for (std::uint32_t i = 0; i < mine.size; ++i) work[i].predecessors = 0;
        mine.inner = mine.instant = mine.roots = false;
        for (auto const& c : s.into(b)) {
            mine.inner = mine.inner || c.block == b;
            if (c.aligned)
                for (std::uint32_t i = 0; i < c.aligned; ++i) ++work[i].predecessors;
            else
                for (std::uint32_t i = 0; i < mine.size; ++i) work[i].predecessors += c.list->first_before[i + 1] - c.list->first_before[i];
        }
        for (std::uint32_t i = 0; i < mine.size; ++i) {
            mine.roots = mine.roots || work[i].predecessors == 0;
            mine.instant = mine.instant || (mine.inner && work[i].duration == 0 && work[i].resource != s.numbers.barrier());
        }
        mine.stale = false;
    }

    /// Starts block `b` in this run: what of it ran before the run began is kept, and what waits only for that is queued.
    void enter(std::uint32_t b) {
        auto& s = *state_;
        auto& mine = s.blocks[b];
        if (mine.touched_in == s.run) return;
        mine.touched_in = s.run;
        mine.open_ready = -1;
        s.touched.push_back(b);
        if (mine.stale) count_predecessors(b);
        auto const n = mine.size;
        auto const* const work = s.work.data() + mine.begin;
        auto* const times = s.next(b);
        auto* const waiting_here = waits(b);
        mine.next_enabled = std::numeric_limits<std::int64_t>::max();
        for (std::uint32_t i = 0; i < n; ++i) {
            times[i].ready = 0;
            waiting_here[i] = {work[i].predecessors, none};
        }
        bool const fresh = from_time_ < 0 || none_before(b);
        bool const pending = from_time_ >= 0 && take_arrivals(b); // some predecessors have ended
        if (!fresh)
            for (std::uint32_t i = 0; i < n; ++i)
                if (auto const& was = s.now(b)[i]; before(was.ready, b)) {
                    times[i] = was;
                    waiting_here[i].count = none; // has run
                }
        if (pending || mine.roots)
            for (std::uint32_t i = 0; i < n; ++i)
                if (waiting_here[i].count == 0) {
                    make_ready(b, i);
                    mine.next_enabled = pending ? std::min(mine.next_enabled, enabled_at(b, i)) : 0;
                }
        if (!fresh || (from_time_ >= 0 && !mine.changed && s.summary[b].enabled <= from_time_)) mine.next_enabled = s.summary[b].enabled;
    }
    /// Counts what ended before the run began; whether anything did.
    bool take_arrivals(std::uint32_t b) {
        auto& s = *state_;
        auto* const times = s.next(b);
        auto* const waiting_here = waits(b);
        bool some = false;
        for (auto const& c : s.into(b)) {
            if (none_before(c.block)) continue;
            some = true;
            auto const* const ended = s.now(c.block);
            auto const arrive = [&](std::uint32_t i, std::uint32_t p) {
                if (!before(ended[p].ready, c.block)) return;
                times[i].ready = std::max(times[i].ready, ended[p].end);
                --waiting_here[i].count;
            };
            if (c.aligned)
                for (std::uint32_t i = 0; i < c.aligned; ++i) arrive(i, i);
            else
                for (std::uint32_t i = 0; i < s.blocks[b].size; ++i)
                    for (auto const p : c.list->predecessors(i)) arrive(i, p);
        }
        return some;
    }
    /// The latest time at which a predecessor of a task that waits for nothing became ready.
    [[nodiscard]] std::int64_t enabled_at(std::uint32_t b, std::uint32_t i) {
        std::int64_t latest = 0;
        for (auto const& c : state_->into(b)) {
            auto const* const ended = state_->now(c.block);
            if (c.aligned) latest = i < c.aligned ? std::max(latest, ended[i].ready) : latest;
            else
                for (auto const p : c.list->predecessors(i)) latest = std::max(latest, ended[p].ready);
        }
        return latest;
    }

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
    void keep_back(std::uint32_t b) {
        auto const* const work = state_->work.data() + state_->blocks[b].begin;
        auto rest = std::partition(started_.begin(), started_.end(), [&](std::uint32_t i) { return work[i].resource == state_->numbers.barrier(); });
        std::sort(started_.begin(), rest);
        if (rest == started_.begin()) {
            std::sort(started_.begin(), started_.end());
            if (!state_->blocks[b].instant) return;
            rest = std::find_if(started_.begin(), started_.end(), [&](std::uint32_t i) { return work[i].duration == 0; });
            if (rest != started_.end()) ++rest;
        }
        for (auto i = rest; i != started_.end(); ++i) {
            waits(b)[*i].chain = none;
            make_ready(b, *i);
        }
        started_.erase(rest, started_.end());
    }

    /// Starts one task; answers 1, 0 where the bound is passed.
    std::uint32_t start_one(bundle const top) {
        auto& s = *state_;
        auto const b = top.block(), at = top.place();
        std::pop_heap(queue_.begin(), queue_.end(), std::greater<>{});
        queue_.pop_back();
        auto const& mine = s.blocks[b];
        engine_state::ends all;
        auto* const times = s.next_times();
        auto const end = times[at].end = s.start(s.work[at], top.ready, mine.counts, all);
        if (!s.go_on(b, all)) return 0;
        auto const& after = s.following(b);
        auto const i = at - mine.begin;
        for (auto k = after.first[i]; k < after.first[i + 1]; ++k) {
            auto const next = after.all[k];
            auto const place = static_cast<std::uint32_t>(next);
            auto& ready = times[place].ready;
            ready = std::max(ready, end);
            if (--waits_[place].count > 0) continue;
            auto& enabled = s.blocks[next >> 32].next_enabled;
            enabled = std::min(enabled, top.ready);
            push(ready, next);
        }
        return 1;
    }

    /// Starts all tasks that are ready in the block of `top` at its time; answers their number, 0 where the bound is passed.
    std::uint32_t start_bundle(bundle const top) {
        auto& s = *state_;
        auto const b = top.block();
        auto& mine = s.blocks[b];
        auto const* const chains = waits(b);
        started_.clear();
        bool sorted = true;
        while (!queue_.empty() && queue_.front().ready == top.ready && queue_.front().block() == b) {
            for (auto i = queue_.front().place() - mine.begin; i != none; i = chains[i].chain) {
                sorted = sorted && (started_.empty() || started_.back() < i);
                started_.push_back(i);
            }
            std::pop_heap(queue_.begin(), queue_.end(), std::greater<>{});
            queue_.pop_back();
        }
        if (mine.open_ready == top.ready) mine.open_ready = -1;
        if (mine.inner && started_.size() > 1) keep_back(b);
        else if (!sorted) std::sort(started_.begin(), started_.end());
        auto const* const work = s.work.data() + mine.begin;
        auto* const times = s.next(b);
        engine_state::ends all;
        for (auto const i : started_) times[i].end = s.start(work[i], top.ready, mine.counts, all);
        if (!s.go_on(b, all)) return 0;
        for (auto const& c : s.out_of(b)) {
            auto const to = c.block;
            auto& next = s.blocks[to];
            if (next.touched_in != s.run) enter(to);
            auto* const theirs = s.next(to);
            auto* const waiting_there = waits(to);
            auto const arrive = [&](std::uint32_t i, std::int64_t end) {
                theirs[i].ready = std::max(theirs[i].ready, end);
                if (--waiting_there[i].count == 0) {
                    next.next_enabled = std::min(next.next_enabled, top.ready);
                    make_ready(to, i);
                }
            };
            if (c.aligned) {
                for (auto const i : started_)
                    if (i < c.aligned) arrive(i, times[i].end);
            } else {
                auto const* const first = c.list->first_after.data();
                auto const* const after = c.list->after.data();
                for (auto const i : started_)
                    for (auto k = first[i]; k < first[i + 1]; ++k) arrive(after[k], times[i].end);
            }
        }
        return static_cast<std::uint32_t>(started_.size());
    }

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
