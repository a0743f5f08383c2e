#pragma once
// The schedule of blocks whose resources run tasks as they become ready.

#include <limits>

#include <parsearch/sim/delta/fifo_pass.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE bool fifo_pass::run(engine_state& s) {
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

PARSEARCH_INLINE std::int64_t fifo_pass::first_difference() {
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

PARSEARCH_INLINE void fifo_pass::count_predecessors(std::uint32_t b) noexcept {
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

PARSEARCH_INLINE void fifo_pass::enter(std::uint32_t b) {
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

PARSEARCH_INLINE bool fifo_pass::take_arrivals(std::uint32_t b) {
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

PARSEARCH_INLINE std::int64_t fifo_pass::enabled_at(std::uint32_t b, std::uint32_t i) {
    std::int64_t latest = 0;
    for (auto const& c : state_->into(b)) {
        auto const* const ended = state_->now(c.block);
        if (c.aligned) latest = i < c.aligned ? std::max(latest, ended[i].ready) : latest;
        else
            for (auto const p : c.list->predecessors(i)) latest = std::max(latest, ended[p].ready);
    }
    return latest;
}

PARSEARCH_INLINE void fifo_pass::keep_back(std::uint32_t b) {
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

PARSEARCH_INLINE std::uint32_t fifo_pass::start_one(bundle const top) {
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

PARSEARCH_INLINE std::uint32_t fifo_pass::start_bundle(bundle const top) {
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

} // namespace parsearch::sim
