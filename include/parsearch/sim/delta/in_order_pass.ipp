#pragma once
// The schedule of blocks whose resources run tasks in program order.

#include <algorithm>

#include <parsearch/sim/delta/in_order_pass.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE bool in_order_pass::run(engine_state& s) const {
    std::size_t kept = 0;
    if (s.valid && !s.changed.empty()) {
        auto const first = *std::min_element(s.changed.begin(), s.changed.end());
        kept = s.checkpoints_while([&](checkpoint const& c) { return c.block <= first; });
    }
    auto const* const from = s.begin(kept);
    if (s.longest > s.limits.bound) return false;
    auto const begin = from ? from->block : 0;
    auto const every = s.spacing();
    std::uint64_t since = from ? 0 : every;
    for (auto b = begin; b < s.graph->blocks; ++b) {
        if (since >= every && b != begin) {
            s.take_checkpoint(0, b);
            since = 0;
        }
        s.touched.push_back(b);
        if (s.blocks[b].size > 0 && !start_block(s, b, begin)) return false;
        since += s.blocks[b].size;
    }
    return true;
}

PARSEARCH_INLINE bool in_order_pass::start_block(engine_state& s, std::uint32_t b, std::uint32_t begin) {
    auto const& mine = s.blocks[b];
    auto const n = mine.size;
    auto* const times = s.next(b);
    dependence const* inside = nullptr;
    bool fresh = true; // nothing is written yet
    for (auto const& c : s.into(b)) {
        if (c.block == b) {
            inside = c.list;
            continue;
        }
        auto const* const ended = c.block >= begin ? s.next(c.block) : s.now(c.block);
        if (fresh && c.aligned == n) {
            for (std::uint32_t i = 0; i < n; ++i) times[i].ready = ended[i].end;
            fresh = false;
            continue;
        }
        if (fresh)
            for (std::uint32_t i = 0; i < n; ++i) times[i].ready = 0;
        fresh = false;
        if (c.aligned) {
            for (std::uint32_t i = 0; i < c.aligned; ++i) times[i].ready = std::max(times[i].ready, ended[i].end);
        } else {
            auto const* const first = c.list->first_before.data();
            auto const* const list = c.list->before.data();
            for (std::uint32_t i = 0; i < n; ++i) {
                auto ready = times[i].ready;
                for (auto k = first[i]; k < first[i + 1]; ++k) ready = std::max(ready, ended[list[k]].end);
                times[i].ready = ready;
            }
        }
    }
    if (fresh)
        for (std::uint32_t i = 0; i < n; ++i) times[i].ready = 0;
    auto const* const work = s.work.data() + mine.begin;
    engine_state::ends all;
    if (mine.consecutive && !inside) { // as `start`, without asking where
        auto* const on = s.resources.data() + mine.first_resource;
        std::int64_t busy = 0;
        for (std::uint32_t i = 0; i < n; ++i) {
            auto const end = std::max(times[i].ready, on[i].free) + work[i].duration;
            times[i].end = on[i].free = end;
            all.last = std::max(all.last, end);
            if (!mine.counts) continue;
            on[i].left -= work[i].duration;
            busy = std::max(busy, end + on[i].left);
        }
        // Where the block has both kinds, no more is claimed than holds of links.
        (mine.first_resource + n <= s.numbers.devices ? all.device_busy : all.link_busy) = busy;
    } else {
        for (std::uint32_t i = 0; i < n; ++i) {
            if (inside)
                for (auto const p : inside->predecessors(i)) times[i].ready = std::max(times[i].ready, times[p].end);
            times[i].end = s.start(work[i], times[i].ready, mine.counts, all);
        }
    }
    return s.go_on(b, all);
}

} // namespace parsearch::sim
