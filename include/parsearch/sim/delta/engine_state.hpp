#pragma once
/// What the passes of `engine` work on: tasks of all blocks in one place, what they wait for, resources, checkpoints.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/sim/delta/block_graph.hpp>
#include <parsearch/sim/delta/task_blocks.hpp>

namespace parsearch::sim {

/// When a task was ready and ended, in picoseconds.
struct moment {
    std::int64_t ready = 0, end = 0;
};

/// What a run may stop at: every task of block b is followed by tasks that take `after[b]` at least, and the last counted task of a
/// device by `after_device`.
struct run_limits {
    std::int64_t bound = std::numeric_limits<std::int64_t>::max();
    std::span<std::int64_t const> after{};
    std::int64_t after_device = 0;
};

/// A task, as a run needs it.
struct work_item {
    std::int64_t duration = 0;
    std::uint32_t resource = 0, predecessors = 0; ///< the latter: how many, where the block is not stale
};
/// A resource in a run: the time of its last end, and counted work to come.
struct resource_state {
    std::int64_t free = 0, left = 0;
};
/// What a block waits for, or what waits for it: pairs one to one below `aligned`, or those of `list`.
struct connection {
    std::uint32_t block = 0, aligned = 0;
    dependence const* list = nullptr;
};

/// A block of the proposal, and in a run.
struct block_state {
    std::uint32_t begin = 0, size = 0, capacity = 0; ///< where its tasks are
    std::uint32_t now_size = 0;                      ///< how many it has in the current schedule
    std::uint32_t into = 0, out_of = 0;              ///< connections that are not empty
    std::uint32_t first_resource = 0;                ///< where `consecutive`: task i is on first_resource + i
    bool consecutive = false;
    bool counts = true;
    bool changed = false; ///< in the proposal
    bool stale = true;    ///< predecessors are to be counted
    bool stale_into = true, stale_out_of = true;
    bool roots = false;           ///< some task has no predecessor
    bool inner = false;           ///< some task waits for another of the block
    bool instant = false;         ///< and some that is no barrier takes no time
    std::uint32_t open_last = 0;  ///< last task of the newest bundle
    std::int64_t open_ready = -1; ///< its time; -1: there is none to add to
    std::uint64_t touched_in = 0; ///< the run that wrote it last
    std::int64_t next_enabled = 0;
};
/// Of a block in the current schedule; `enabled`: when the predecessors of some task had all started.
struct block_summary {
    std::int64_t least_ready = 0, most_ready = 0, least_end = -1, enabled = 0;
};

/// The resources just before the tasks of (time, block) and later ones start; in_order: before `block`. `left`: counted work done so far.
struct checkpoint {
    std::int64_t time = -1;
    std::uint32_t block = 0;
    std::int64_t longest = 0;
    std::vector<resource_state> resources;
};

/// What waits for the tasks of a block: block and place in memory of each, as in `engine_state::key`. Made when it is needed.
struct followers {
    bool stale = true;
    std::vector<std::uint32_t> first{}; ///< of task i: all[first[i] ... first[i + 1])
    std::vector<std::uint64_t> all{};
};

/// Tasks of the proposal and their times beside those of the current schedule: task i of a block is at `begin + i` of each list.
class engine_state {
  public:
    engine_state(block_graph const& g, resource_numbers r)
        : graph(&g), numbers(r), blocks(g.blocks), summary(g.blocks), followers_(g.blocks), waits_(g.arcs.size()), into_(g.arcs.size()),
          out_of_(g.arcs.size()), resources(r.size()), load(r.size()) {}

    block_graph const* graph;
    resource_numbers numbers;
    std::vector<block_state> blocks;
    std::vector<block_summary> summary;
    std::vector<work_item> work;

  private:
    std::vector<moment> now_, next_;
    std::vector<followers> followers_;     ///< of each block
    std::vector<dependence const*> waits_; ///< of each arc
    std::vector<connection> into_, out_of_;
    std::uint64_t wasted_ = 0, moved_ = 0;

  public:
    std::vector<resource_state> resources; ///< in a run
    std::vector<std::int64_t> load;        ///< counted work of each resource in the proposal
    std::uint64_t task_count = 0;
    std::vector<std::uint32_t> changed, touched; ///< blocks: by the proposal, by the run
    bool valid = false;                          ///< the current schedule is known
    std::uint64_t run = 0;
    run_limits limits{};
    std::int64_t longest = 0;

    [[nodiscard]] moment const* now(std::uint32_t b) const noexcept { return now_.data() + blocks[b].begin; }
    [[nodiscard]] moment* next(std::uint32_t b) noexcept { return next_.data() + blocks[b].begin; }
    [[nodiscard]] moment* next_times() noexcept { return next_.data(); }
    /// The times of block `b` become current.
    void keep_times(std::uint32_t b) noexcept {
        std::copy_n(next(b), blocks[b].size, now_.data() + blocks[b].begin);
        blocks[b].now_size = blocks[b].size;
    }

    /// Orders tasks as their numbers do: the block, then the place in memory.
    [[nodiscard]] static std::uint64_t key(std::uint32_t b, std::uint32_t place) noexcept { return std::uint64_t{b} << 32 | place; }
    /// Complexity: O(1), where the block or one that follows has changed or moved O(tasks * connections + dependences).
    [[nodiscard]] followers const& following(std::uint32_t b);
    [[nodiscard]] dependence const* waits(std::uint32_t arc) const noexcept { return waits_[arc]; }

    [[nodiscard]] std::span<connection const> into(std::uint32_t b) noexcept;
    [[nodiscard]] std::span<connection const> out_of(std::uint32_t b) noexcept;

    void set_tasks(std::uint32_t b, task_list const* with);
    void set_waits(std::uint32_t arc, dependence const* with) noexcept {
        waits_[arc] = with;
        auto const& a = graph->arcs[arc];
        blocks[a.to].stale = blocks[a.to].stale_into = blocks[a.from].stale_out_of = followers_[a.from].stale = true;
    }
    void change(std::uint32_t b) {
        if (!std::exchange(blocks[b].changed, true)) changed.push_back(b);
    }

    /// Program order in memory, where many blocks have moved. Before a run.
    void tidy() {
        if (moved_ > 16 + blocks.size() / 8) lay_out();
    }

    /// Gives back memory where blocks were once much larger than they are, but for that of `kept` tasks. No proposal is open.
    void give_back(std::size_t kept);

    /// When tasks of a block that were started together end: the last of them, and their resources with all counted work to come.
    struct ends {
        std::int64_t last = 0, device_busy = 0, link_busy = 0;
    };
    /// Starts a task of a block that counts or not; answers its end.
    std::int64_t start(work_item const& task, std::int64_t ready, bool counts, ends& all) noexcept {
        auto end = ready;
        if (task.resource != numbers.barrier()) {
            auto& on = resources[task.resource];
            end = on.free = std::max(ready, on.free) + task.duration;
            if (counts) {
                on.left -= task.duration;
                auto& busy = task.resource < numbers.devices ? all.device_busy : all.link_busy;
                busy = std::max(busy, end + on.left);
            }
        }
        all.last = std::max(all.last, end);
        return end;
    }
    /// After tasks of block b were started: whether the run may go on.
    [[nodiscard]] bool go_on(std::uint32_t b, ends const& all) noexcept {
        longest = std::max(longest, all.last);
        auto const after = limits.after.empty() ? 0 : limits.after[b];
        return all.last <= limits.bound - after && all.device_busy <= limits.bound - limits.after_device && all.link_busy <= limits.bound;
    }

    // ---- checkpoints

    /// After so many tasks the next one is due.
    [[nodiscard]] std::uint64_t spacing() const noexcept { return std::max<std::uint64_t>(64, task_count / 64); }
    /// Resumes after the first `kept` of the current schedule's.
    checkpoint const* begin(std::size_t kept);
    template <class Before> [[nodiscard]] std::size_t checkpoints_while(Before const& before) const {
        return static_cast<std::size_t>(std::find_if_not(saved_.begin(), saved_.end(), [&](std::uint32_t c) { return before(pool_[c]); }) -
                                        saved_.begin());
    }
    void take_checkpoint(std::int64_t time, std::uint32_t block);
    void drop_checkpoints() {
        spare_.insert(spare_.end(), fresh_.begin(), fresh_.end());
        fresh_.clear();
    }
    void keep_checkpoints();

  private:
    template <class Other> std::uint32_t collect(connection* to, std::span<std::uint32_t const> arcs, Other const& other) const noexcept {
        std::uint32_t n = 0;
        for (auto const arc : arcs)
            if (auto const* const d = waits_[arc]; d && !d->empty()) to[n++] = {other(arc), d->aligned, d};
        return n;
    }
    // Wraps around where the sum of durations does not fit; then nothing is run.
    void count_load(std::uint32_t b, std::int64_t sign) noexcept {
        auto const& mine = blocks[b];
        if (!mine.counts) return;
        for (auto const& w : std::span(work).subspan(mine.begin, mine.size)) {
            auto& sum = load[w.resource];
            sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) + static_cast<std::uint64_t>(sign * w.duration));
        }
    }
    void make_room(std::uint32_t b, std::uint32_t n);
    void lay_out();

    std::vector<checkpoint> pool_;
    std::vector<std::uint32_t> spare_, saved_, fresh_; ///< of `pool_`: unused, of the current schedule, of the run
    std::size_t resumed_ = 0;                          ///< saved checkpoints before the run
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/delta/engine_state.ipp>
#endif
