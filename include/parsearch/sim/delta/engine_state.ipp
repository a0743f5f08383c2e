#pragma once
// What the passes of `engine` work on: tasks of all blocks in one place, what they wait for, resources, checkpoints.

#include <bit>

#include <parsearch/sim/delta/engine_state.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE followers const& engine_state::following(std::uint32_t b) {
    auto& mine = followers_[b];
    if (!mine.stale) return mine;
    mine.stale = false;
    mine.first.clear();
    mine.all.clear();
    auto const to = out_of(b);
    for (std::uint32_t i = 0; i < blocks[b].size; ++i) {
        mine.first.push_back(static_cast<std::uint32_t>(mine.all.size()));
        for (auto const& c : to) {
            auto const there = key(c.block, blocks[c.block].begin);
            if (c.aligned && i < c.aligned) mine.all.push_back(there + i);
            else if (!c.aligned)
                for (auto k = c.list->first_after[i]; k < c.list->first_after[i + 1]; ++k) mine.all.push_back(there + c.list->after[k]);
        }
    }
    mine.first.push_back(static_cast<std::uint32_t>(mine.all.size()));
    return mine;
}

PARSEARCH_INLINE std::span<connection const> engine_state::into(std::uint32_t b) noexcept {
    auto& mine = blocks[b];
    auto* const first = into_.data() + graph->first_in[b];
    if (std::exchange(mine.stale_into, false)) mine.into = collect(first, graph->into(b), [&](std::uint32_t arc) { return graph->arcs[arc].from; });
    return {first, mine.into};
}

PARSEARCH_INLINE std::span<connection const> engine_state::out_of(std::uint32_t b) noexcept {
    auto& mine = blocks[b];
    auto* const first = out_of_.data() + graph->first_out[b];
    if (std::exchange(mine.stale_out_of, false))
        mine.out_of = collect(first, graph->out_of(b), [&](std::uint32_t arc) { return graph->arcs[arc].to; });
    return {first, mine.out_of};
}

PARSEARCH_INLINE void engine_state::set_tasks(std::uint32_t b, task_list const* with) {
    auto& mine = blocks[b];
    count_load(b, -1);
    task_count -= mine.size;
    auto const n = with ? with->size() : 0;
    make_room(b, n);
    mine.size = n;
    mine.consecutive = n > 0 && with->resource[0] + std::uint64_t{n} <= numbers.barrier();
    if (n > 0) mine.first_resource = with->resource[0];
    auto* const to = work.data() + mine.begin;
    for (std::uint32_t i = 0; i < n; ++i) {
        to[i] = {with->duration[i], with->resource[i], 0};
        mine.consecutive = mine.consecutive && with->resource[i] == mine.first_resource + i;
    }
    task_count += n;
    count_load(b, 1);
    mine.stale = followers_[b].stale = true;
}

PARSEARCH_INLINE void engine_state::give_back(std::size_t kept) {
    if (work.size() <= kept || work.size() / 4 < task_count) return;
    for (auto& mine : blocks) mine.capacity = std::min(mine.capacity, std::bit_ceil(std::max({mine.size, mine.now_size, 4u})));
    lay_out();
    next_.shrink_to_fit();
}

PARSEARCH_INLINE checkpoint const* engine_state::begin(std::size_t kept) {
    resumed_ = kept;
    touched.clear();
    for (std::size_t r = 0; r < resources.size(); ++r) resources[r] = {0, load[r]};
    if (kept == 0) return nullptr;
    auto const& c = pool_[saved_[kept - 1]];
    for (std::size_t r = 0; r < resources.size(); ++r) resources[r] = {c.resources[r].free, load[r] - c.resources[r].left};
    longest = c.longest;
    return &c;
}

PARSEARCH_INLINE void engine_state::take_checkpoint(std::int64_t time, std::uint32_t block) {
    if (spare_.empty()) {
        spare_.push_back(static_cast<std::uint32_t>(pool_.size()));
        pool_.emplace_back();
    }
    fresh_.push_back(spare_.back());
    spare_.pop_back();
    auto& c = pool_[fresh_.back()];
    c.time = time;
    c.block = block;
    c.longest = longest;
    c.resources = resources;
    for (std::size_t r = 0; r < resources.size(); ++r) c.resources[r].left = load[r] - resources[r].left;
}

PARSEARCH_INLINE void engine_state::keep_checkpoints() {
    spare_.insert(spare_.end(), saved_.begin() + static_cast<std::ptrdiff_t>(resumed_), saved_.end());
    saved_.resize(resumed_);
    saved_.insert(saved_.end(), fresh_.begin(), fresh_.end());
    fresh_.clear();
}

PARSEARCH_INLINE void engine_state::make_room(std::uint32_t b, std::uint32_t n) {
    auto& mine = blocks[b];
    if (n <= mine.capacity) return;
    if (wasted_ > 4096 && wasted_ > work.size() / 2) lay_out();
    auto const at = static_cast<std::uint32_t>(work.size());
    auto const capacity = std::bit_ceil(std::max(n, 4u));
    work.resize(at + capacity);
    next_.resize(at + capacity);
    now_.resize(at + capacity);
    std::copy_n(now_.begin() + mine.begin, mine.now_size, now_.begin() + at);
    for (auto const arc : graph->into(b)) followers_[graph->arcs[arc].from].stale = true;
    wasted_ += mine.capacity;
    ++moved_;
    mine.begin = at;
    mine.capacity = capacity;
}

PARSEARCH_INLINE void engine_state::lay_out() {
    std::vector<work_item> items;
    std::vector<moment> times;
    for (auto& mine : blocks) {
        auto const at = static_cast<std::uint32_t>(items.size());
        auto const take = [&](auto& to, auto const& from) {
            to.insert(to.end(), from.begin() + mine.begin, from.begin() + mine.begin + mine.capacity);
        };
        take(items, work);
        take(times, now_);
        mine.begin = at;
    }
    for (auto& f : followers_) f.stale = true;
    work = std::move(items);
    now_ = std::move(times);
    next_.resize(now_.size());
    wasted_ = moved_ = 0;
}

} // namespace parsearch::sim
