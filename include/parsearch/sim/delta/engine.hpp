#pragma once
/// Schedules a task graph in blocks, again and again with some blocks replaced: what ran before the first of them is kept, what is sure
/// to end too late is not finished.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/sim/delta/engine_state.hpp>
#include <parsearch/sim/delta/fifo_pass.hpp>
#include <parsearch/sim/delta/in_order_pass.hpp>
#include <parsearch/sim/schedule/schedule.hpp>

namespace parsearch::sim {

/// Holds the tasks of a `block_graph` under a current strategy with their schedule, and a proposal beside it.
/// `set_tasks` and `set_dependence` replace parts of the proposal, `run` schedules it, `commit` or `roll_back` ends it. What is set must
/// outlive its use. The sum of all durations must stay below 2^63.
class engine {
  public:
    engine(block_graph const& g, resource_numbers resources, discipline order) : order_(order), state_(g, resources), tasks_(g.blocks) {}

    /// Whether the device tasks of a block count as work that a device must do before `after_device`. Before the first `set_tasks`.
    void count(std::uint32_t block, bool counts) { state_.blocks[block].counts = counts; }

    [[nodiscard]] task_list const* tasks(std::uint32_t block) const noexcept { return tasks_[block]; }

    /// Null: none. Complexity: O(tasks of the block, before and after).
    void set_tasks(std::uint32_t block, task_list const* with);
    void set_dependence(std::uint32_t arc, dependence const* with);

    /// Gives back memory that tasks now gone have taken, where it is most of it and more than `kept` tasks take. No proposal is open.
    void give_back(std::size_t kept = std::size_t{1} << 20) { state_.give_back(kept); }

    /// Tasks of the proposal.
    [[nodiscard]] std::uint64_t size() const noexcept { return state_.task_count; }
    /// The most counted work of a device, and of a link: no schedule of the proposal is shorter.
    [[nodiscard]] std::pair<std::int64_t, std::int64_t> heaviest() const noexcept {
        auto const links = state_.load.begin() + state_.numbers.devices;
        auto const end = links + state_.numbers.links;
        return {device_load(), links == end ? 0 : *std::max_element(links, end)};
    }

    /// The makespan of the proposal; nothing, as soon as it is sure to be above `limits.bound`. Complexity: see `fifo_pass`, `in_order_pass`.
    std::optional<std::int64_t> run(run_limits const& limits);
    /// Reschedules all tasks, from time 0.
    std::int64_t run_whole() {
        state_.valid = false;
        return *run({});
    }

    /// Makes the proposal current. The schedule is kept where the last `run` since the first change was complete.
    void commit();

    /// Drops the proposal.
    void roll_back() noexcept {
        for (auto i = undo_tasks_.size(); i-- > 0;) place(undo_tasks_[i].first, undo_tasks_[i].second);
        for (auto i = undo_waits_.size(); i-- > 0;) state_.set_waits(undo_waits_[i].first, undo_waits_[i].second);
        finish();
    }

    /// The schedule of the current strategy is there.
    [[nodiscard]] bool valid() const noexcept { return state_.valid; }
    [[nodiscard]] std::int64_t makespan() const noexcept { return makespan_; }
    /// Of the current strategy: its tasks in one block. Valid until the next change.
    [[nodiscard]] std::span<moment const> moments(std::uint32_t block) const noexcept { return {state_.now(block), state_.blocks[block].now_size}; }
    /// When the first of them ends.
    [[nodiscard]] std::int64_t least_end(std::uint32_t block) noexcept {
        if (state_.summary[block].least_end < 0) summarise(block);
        return state_.summary[block].least_end;
    }
    [[nodiscard]] std::int64_t load(std::uint32_t resource) const noexcept { return state_.load[resource]; }
    [[nodiscard]] std::int64_t device_load() const noexcept {
        return *std::max_element(state_.load.begin(), state_.load.begin() + state_.numbers.devices);
    }

  private:
    void place(std::uint32_t block, task_list const* with) {
        tasks_[block] = with;
        state_.set_tasks(block, with);
    }
    void change(std::uint32_t block) {
        state_.change(block);
        complete_ = false;
    }
    void summarise(std::uint32_t b) noexcept;
    void finish() noexcept;

    discipline order_;
    engine_state state_;
    fifo_pass fifo_;
    in_order_pass in_order_;
    std::vector<task_list const*> tasks_;
    std::vector<std::pair<std::uint32_t, task_list const*>> undo_tasks_;
    std::vector<std::pair<std::uint32_t, dependence const*>> undo_waits_;
    bool complete_ = false; ///< the last run is of the proposal as it is, and went to its end
    std::int64_t makespan_ = 0;
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/delta/engine.ipp>
#endif
