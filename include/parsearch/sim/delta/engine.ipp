#pragma once
// Schedules a task graph in blocks, again and again with some blocks replaced: what ran before the first of them is kept, what is sure

#include <limits>

#include <parsearch/sim/delta/engine.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE void engine::set_tasks(std::uint32_t block, task_list const* with) {
    if (!with && !tasks_[block]) return;
    undo_tasks_.push_back({block, tasks_[block]});
    place(block, with);
    change(block);
}

PARSEARCH_INLINE void engine::set_dependence(std::uint32_t arc, dependence const* with) {
    if (!with && !state_.waits(arc)) return;
    undo_waits_.push_back({arc, state_.waits(arc)});
    state_.set_waits(arc, with);
    change(state_.graph->arcs[arc].to);
}

PARSEARCH_INLINE std::optional<std::int64_t> engine::run(run_limits const& limits) {
    state_.tidy();
    ++state_.run;
    state_.limits = limits;
    state_.longest = 0;
    state_.drop_checkpoints();
    complete_ = order_ == discipline::fifo ? fifo_.run(state_) : in_order_.run(state_);
    if (!complete_) state_.drop_checkpoints();
    return complete_ ? std::optional(state_.longest) : std::nullopt;
}

PARSEARCH_INLINE void engine::commit() {
    if (complete_) {
        for (auto const b : state_.touched) {
            state_.keep_times(b);
            state_.summary[b].enabled = state_.blocks[b].next_enabled;
            if (order_ == discipline::fifo) summarise(b);
            else state_.summary[b].least_end = -1;
        }
        state_.keep_checkpoints();
        makespan_ = state_.longest;
        state_.valid = true;
    } else if (!undo_tasks_.empty() || !undo_waits_.empty()) {
        state_.valid = false;
    }
    finish();
}

PARSEARCH_INLINE void engine::summarise(std::uint32_t b) noexcept {
    auto ready = std::numeric_limits<std::int64_t>::max(), end = ready;
    std::int64_t most = -1;
    for (auto const& m : moments(b)) {
        ready = std::min(ready, m.ready);
        most = std::max(most, m.ready);
        end = std::min(end, m.end);
    }
    auto& mine = state_.summary[b];
    mine.least_ready = ready;
    mine.most_ready = most;
    mine.least_end = end;
}

PARSEARCH_INLINE void engine::finish() noexcept {
    for (auto const b : state_.changed) state_.blocks[b].changed = false;
    state_.changed.clear();
    state_.touched.clear();
    undo_tasks_.clear();
    undo_waits_.clear();
    state_.drop_checkpoints();
    complete_ = false;
}

} // namespace parsearch::sim
