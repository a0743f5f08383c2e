#pragma once
/// The schedule of blocks whose resources run tasks in program order.

#include <algorithm>
#include <cstdint>

#include <parsearch/sim/delta/engine_state.hpp>

namespace parsearch::sim {

/// One sweep over the blocks from the last checkpoint before the first change on.
class in_order_pass {
  public:
    /// False as soon as the makespan is sure to be above the bound. Complexity: O(V + D), of tasks V and dependences D of the sweep.
    bool run(engine_state& s) const {
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

  private:
    static bool start_block(engine_state& s, std::uint32_t b, std::uint32_t begin) {
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
        auto const barrier = s.numbers.barrier();
        auto const devices = s.numbers.devices;
        std::int64_t last_end = 0, device_over = 0, link_over = 0;
        if (mine.consecutive && !inside) {
            auto* const on = s.resources.data() + mine.first_resource;
            std::int64_t over = 0;
            for (std::uint32_t i = 0; i < n; ++i) {
                auto const end = std::max(times[i].ready, on[i].free) + work[i].duration;
                times[i].end = on[i].free = end;
                last_end = std::max(last_end, end);
                if (!mine.counts) continue;
                on[i].left -= work[i].duration;
                over = std::max(over, end + on[i].left);
            }
            // Where the block has both kinds, no more is claimed than holds of links.
            (mine.first_resource + n <= devices ? device_over : link_over) = over;
        } else {
            for (std::uint32_t i = 0; i < n; ++i) {
                auto ready = times[i].ready;
                if (inside) {
                    for (auto const p : inside->predecessors(i)) ready = std::max(ready, times[p].end);
                    times[i].ready = ready;
                }
                auto const r = work[i].resource;
                if (r == barrier) {
                    times[i].end = ready;
                    last_end = std::max(last_end, ready);
                    continue;
                }
                auto& on = s.resources[r];
                auto const end = std::max(ready, on.free) + work[i].duration;
                times[i].end = on.free = end;
                last_end = std::max(last_end, end);
                if (!mine.counts) continue;
                on.left -= work[i].duration;
                auto& over = r < devices ? device_over : link_over;
                over = std::max(over, end + on.left);
            }
        }
        s.longest = std::max(s.longest, last_end);
        return s.within(b, last_end, device_over, link_over);
    }
};

} // namespace parsearch::sim
