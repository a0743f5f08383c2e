#pragma once
/// Schedules a task graph in blocks, again and again with some blocks replaced: what ran before the first of them is kept, what is sure
/// to end too late is not finished.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/sim/delta/block_graph.hpp>
#include <parsearch/sim/delta/blocks.hpp>
#include <parsearch/sim/delta/engine_state.hpp>
#include <parsearch/sim/schedule.hpp>

namespace parsearch::sim {

/// Holds the tasks of a `block_graph` under a current strategy with their schedule, and a proposal beside it.
/// `set_tasks` and `set_dependence` replace parts of the proposal, `run` schedules it, `commit` or `roll_back` ends it. What is set must
/// outlive its use. The sum of all durations must stay below 2^63.
class engine {
  public:
    engine(block_graph const& g, resource_numbers resources, discipline order)
        : graph_(&g), resources_(resources), order_(order), blocks_(g.blocks), tasks_(g.blocks), into_(g.arcs.size()), out_of_(g.arcs.size()),
          slot_in_(g.arcs.size()), slot_out_(g.arcs.size()), now_(g.blocks), least_ready_(g.blocks), most_ready_(g.blocks), least_end_(g.blocks),
          enabled_(g.blocks), changed_flag_(g.blocks), load_(resources.size()), left_(resources.size()), free_(resources.size()) {
        for (std::uint32_t k = 0; k < g.arcs.size(); ++k) {
            slot_in_[g.in[k]] = k;
            slot_out_[g.out[k]] = k;
            into_[k].block = g.arcs[g.in[k]].from;
            out_of_[k].block = g.arcs[g.out[k]].to;
        }
    }

    /// Whether the device tasks of a block count as work that a device must do before `after_device`. Before the first `set_tasks`.
    void count(std::uint32_t block, bool counts) { blocks_[block].counts = counts; }

    [[nodiscard]] task_list const* tasks(std::uint32_t block) const noexcept { return tasks_[block]; }

    void set_tasks(std::uint32_t block, task_list const* with) {
        undo_tasks_.push_back({block, tasks_[block]});
        add_load(block, -1);
        task_count_ -= tasks_[block] ? tasks_[block]->size() : 0;
        tasks_[block] = with;
        add_load(block, 1);
        task_count_ += with ? with->size() : 0;
        change(block);
    }
    void set_dependence(std::uint32_t arc, dependence const* with) {
        undo_waits_.push_back({arc, into_[slot_in_[arc]].all});
        set_arc(arc, with);
        change(graph_->arcs[arc].to);
    }

    /// Tasks of the proposal.
    [[nodiscard]] std::uint64_t size() const noexcept { return task_count_; }
    /// The most counted work of a device, and of a link: no schedule of the proposal is shorter.
    [[nodiscard]] std::pair<std::int64_t, std::int64_t> heaviest() const noexcept {
        auto const devices = load_.begin() + resources_.devices;
        auto const links = devices + resources_.links;
        return {*std::max_element(load_.begin(), devices), resources_.links == 0 ? 0 : *std::max_element(devices, links)};
    }

    /// The makespan of the proposal; nothing, as soon as it is sure to be above `limits.bound`. Complexity: fifo O(D + B log B) for
    /// B bundles of tasks that become ready together in a block and D dependences, in_order O(V + D), of the tasks V from the last
    /// checkpoint before the first change on.
    std::optional<std::int64_t> run(run_limits const& limits) {
        ++run_;
        limits_ = limits;
        drop_fresh();
        longest_ = 0;
        auto const done = order_ == discipline::fifo ? run_fifo() : run_in_order();
        complete_ = done;
        return done ? std::optional(longest_) : std::nullopt;
    }
    /// As `run` of a proposal of nothing, from the beginning.
    std::int64_t run_whole() {
        valid_ = false;
        return *run({});
    }

    /// Makes the proposal current. The schedule is kept where the last `run` since the first change was complete.
    void commit() {
        if (complete_) {
            for (auto const b : touched_) {
                auto& mine = blocks_[b];
                std::swap(now_[b], mine.next);
                if (order_ == discipline::fifo) summarise(b);
                else least_end_[b] = -1;
                enabled_[b] = mine.next_enabled;
            }
            keep_checkpoints();
            makespan_ = longest_;
            valid_ = true;
        } else if (!undo_tasks_.empty() || !undo_waits_.empty()) {
            valid_ = false;
        }
        finish();
    }

    /// Drops the proposal.
    void roll_back() {
        for (auto i = undo_tasks_.size(); i-- > 0;) {
            auto const [block, old] = undo_tasks_[i];
            add_load(block, -1);
            task_count_ -= tasks_[block] ? tasks_[block]->size() : 0;
            tasks_[block] = old;
            add_load(block, 1);
            task_count_ += old ? old->size() : 0;
        }
        for (auto i = undo_waits_.size(); i-- > 0;) set_arc(undo_waits_[i].first, undo_waits_[i].second);
        finish();
    }

    /// The schedule of the current strategy is there.
    [[nodiscard]] bool valid() const noexcept { return valid_; }
    [[nodiscard]] std::int64_t makespan() const noexcept { return makespan_; }
    /// Of the current strategy: its tasks in one block.
    [[nodiscard]] std::vector<moment> const& moments(std::uint32_t block) const noexcept { return now_[block]; }
    /// When the first of them ends.
    [[nodiscard]] std::int64_t least_end(std::uint32_t block) noexcept {
        if (least_end_[block] < 0) summarise(block);
        return least_end_[block];
    }
    [[nodiscard]] std::int64_t load(std::uint32_t resource) const noexcept { return load_[resource]; }
    [[nodiscard]] std::int64_t device_load() const noexcept { return *std::max_element(load_.begin(), load_.begin() + resources_.devices); }

  private:
    static constexpr std::uint32_t none = block_graph::none;

    void set_arc(std::uint32_t arc, dependence const* with) noexcept {
        auto const* const some = with && !with->empty() ? with : nullptr;
        auto& in = into_[slot_in_[arc]];
        in.all = with;
        in.some = out_of_[slot_out_[arc]].some = some;
        blocks_[graph_->arcs[arc].to].stale = true;
    }
    [[nodiscard]] std::span<connection const> into(std::uint32_t b) const noexcept {
        return {into_.data() + graph_->first_in[b], into_.data() + graph_->first_in[b + 1]};
    }
    [[nodiscard]] std::span<connection const> out_of(std::uint32_t b) const noexcept {
        return {out_of_.data() + graph_->first_out[b], out_of_.data() + graph_->first_out[b + 1]};
    }

    void summarise(std::uint32_t b) noexcept {
        auto ready = std::numeric_limits<std::int64_t>::max(), end = ready;
        std::int64_t most = -1;
        for (auto const& m : now_[b]) {
            ready = std::min(ready, m.ready);
            most = std::max(most, m.ready);
            end = std::min(end, m.end);
        }
        least_ready_[b] = ready;
        most_ready_[b] = most;
        least_end_[b] = end;
    }

    void change(std::uint32_t block) {
        if (!changed_flag_[block]) changed_.push_back(block);
        changed_flag_[block] = true;
        blocks_[block].stale = true;
        complete_ = false;
    }
    // Wraps around where the sum of durations does not fit; then nothing is run.
    void add_load(std::uint32_t block, std::int64_t sign) noexcept {
        auto const* const list = tasks_[block];
        if (!list || !blocks_[block].counts) return;
        for (std::uint32_t i = 0; i < list->size(); ++i) {
            auto& load = load_[list->resource[i]];
            load = static_cast<std::int64_t>(static_cast<std::uint64_t>(load) + static_cast<std::uint64_t>(sign * list->duration[i]));
        }
    }
    void finish() noexcept {
        for (auto const b : changed_) {
            changed_flag_[b] = false;
            blocks_[b].stale = true;
        }
        changed_.clear();
        undo_tasks_.clear();
        undo_waits_.clear();
        touched_.clear();
        drop_fresh();
        complete_ = false;
    }

    // ---- checkpoints

    [[nodiscard]] std::uint64_t spacing() const noexcept { return std::max<std::uint64_t>(64, task_count_ / 64); }

    void begin_at(checkpoint const* c) {
        if (!c) {
            std::fill(free_.begin(), free_.end(), 0);
            std::copy(load_.begin(), load_.end(), left_.begin());
            return;
        }
        std::copy(c->free.begin(), c->free.end(), free_.begin());
        for (std::size_t r = 0; r < left_.size(); ++r) left_[r] = load_[r] - c->done[r];
        longest_ = c->longest;
    }
    void take_checkpoint(std::int64_t time, std::uint32_t block) {
        if (spare_.empty()) {
            spare_.push_back(static_cast<std::uint32_t>(pool_.size()));
            pool_.emplace_back();
        }
        auto const at = spare_.back();
        spare_.pop_back();
        auto& c = pool_[at];
        c.time = time;
        c.block = block;
        c.longest = longest_;
        c.free.assign(free_.begin(), free_.end());
        c.done.resize(left_.size());
        for (std::size_t r = 0; r < left_.size(); ++r) c.done[r] = load_[r] - left_[r];
        fresh_.push_back(at);
    }
    void drop_fresh() {
        spare_.insert(spare_.end(), fresh_.begin(), fresh_.end());
        fresh_.clear();
    }
    void keep_checkpoints() {
        while (saved_.size() > resumed_) {
            spare_.push_back(saved_.back());
            saved_.pop_back();
        }
        saved_.insert(saved_.end(), fresh_.begin(), fresh_.end());
        fresh_.clear();
    }

    // ---- fifo

    /// No task of the proposal that differs from the current schedule, or is not in it, is ready before this time.
    [[nodiscard]] std::int64_t first_difference() {
        std::sort(changed_.begin(), changed_.end());
        least_.resize(graph_->blocks);
        auto first = std::numeric_limits<std::int64_t>::max();
        for (auto const b : changed_) {
            // The block's tasks are ready no earlier than the predecessors that bind them all have ended.
            auto least = graph_->any[b] ? std::numeric_limits<std::int64_t>::max() : std::int64_t{0};
            for (auto const& c : into(b)) {
                auto const from = c.block;
                auto const* const d = c.all;
                if (from == b || !d) continue;
                auto const end = changed_flag_[from] ? least_[from] : least_end_[from];
                if (graph_->any[b]) {
                    if (!d->empty()) least = std::min(least, end);
                } else if (d->each && end != std::numeric_limits<std::int64_t>::max()) {
                    least = std::max(least, end);
                }
            }
            least_[b] = least;
            if (tasks_[b] && tasks_[b]->size() > 0) first = std::min(first, least);
            first = std::min(first, least_ready_[b]);
        }
        return first;
    }

    [[nodiscard]] bool before(std::int64_t ready, std::uint32_t block) const noexcept {
        return ready != from_time_ ? ready < from_time_ : block < from_block_;
    }
    [[nodiscard]] bool all_before(std::uint32_t b) const noexcept { return !changed_flag_[b] && before(most_ready_[b], b); }
    [[nodiscard]] bool none_before(std::uint32_t b) const noexcept { return changed_flag_[b] || !before(least_ready_[b], b); }

    bool run_fifo() {
        queue_.clear();
        checkpoint const* from = nullptr;
        resumed_ = 0;
        if (valid_) {
            auto const first = first_difference();
            while (resumed_ < saved_.size() && pool_[saved_[resumed_]].time < first) ++resumed_;
            if (resumed_ > 0) from = &pool_[saved_[resumed_ - 1]];
        }
        from_time_ = from ? from->time : -1;
        from_block_ = from ? from->block : 0;
        begin_at(from);
        touched_.clear();
        if (longest_ > limits_.bound) return false;
        for (std::uint32_t b = 0; b < graph_->blocks; ++b)
            if (!from || changed_flag_[b] || (enabled_[b] <= from_time_ && !all_before(b))) enter(b);
        auto const every = spacing();
        std::uint64_t since = every;
        std::int64_t last_ready = from_time_;
        std::uint32_t last_block = from ? from_block_ : none;
        while (!queue_.empty()) {
            auto const top = queue_.front();
            if (since >= every && (top.ready != last_ready || top.block != last_block)) {
                if (!from || top.ready != from_time_ || top.block != from_block_) take_checkpoint(top.ready, top.block);
                since = 0;
            }
            last_ready = top.ready;
            last_block = top.block;
            auto const started = start_bundle(top);
            if (started == 0) {
                drop_fresh();
                return false;
            }
            since += started;
        }
        return true;
    }

    void count_predecessors(std::uint32_t b) {
        auto& mine = blocks_[b];
        auto const n = tasks_[b] ? tasks_[b]->size() : 0;
        mine.predecessors.assign(n, 0);
        mine.inner = mine.instant = false;
        for (auto const& c : into(b)) {
            if (!c.some) continue;
            mine.inner = mine.inner || c.block == b;
            auto const& d = *c.some;
            if (d.aligned) for (std::uint32_t i = 0; i < d.aligned; ++i) ++mine.predecessors[i];
            else for (std::uint32_t i = 0; i < n; ++i) mine.predecessors[i] += d.first_before[i + 1] - d.first_before[i];
        }
        for (std::uint32_t i = 0; mine.inner && i < n; ++i)
            mine.instant = mine.instant || (tasks_[b]->duration[i] == 0 && tasks_[b]->resource[i] != resources_.barrier());
        mine.roots = std::find(mine.predecessors.begin(), mine.predecessors.end(), 0u) != mine.predecessors.end();
        mine.stale = false;
    }

    /// Starts block `b` in this run: what of it ran before the run began is kept, and what waits only for that is queued.
    void enter(std::uint32_t b) {
        auto& mine = blocks_[b];
        if (mine.touched_in == run_) return;
        mine.touched_in = run_;
        mine.open_ready = -1;
        touched_.push_back(b);
        if (mine.stale) count_predecessors(b);
        auto const n = static_cast<std::uint32_t>(mine.predecessors.size());
        mine.next.resize(n);
        mine.next_enabled = std::numeric_limits<std::int64_t>::max();
        for (std::uint32_t i = 0; i < n; ++i) mine.next[i] = {0, 0, mine.predecessors[i], none};
        bool const fresh = none_before(b);
        bool pending = false; // some predecessors have ended
        if (from_time_ >= 0) pending = take_arrivals(b);
        if (!fresh)
            for (std::uint32_t i = 0; i < n; ++i)
                if (before(now_[b][i].ready, b)) {
                    mine.next[i] = now_[b][i];
                    mine.next[i].waits = none; // has run
                }
        if (pending || mine.roots)
            for (std::uint32_t i = 0; i < n; ++i)
                if (mine.next[i].waits == 0) {
                    make_ready(b, i);
                    mine.next_enabled = pending ? std::min(mine.next_enabled, enabled_at(b, i)) : 0;
                }
        if (!fresh || (!changed_flag_[b] && enabled_[b] <= from_time_)) mine.next_enabled = enabled_[b];
    }
    /// Counts what ended before the run began; whether anything did.
    bool take_arrivals(std::uint32_t b) {
        auto& next = blocks_[b].next;
        bool some = false;
        for (auto const& c : into(b)) {
            if (!c.some || none_before(c.block)) continue;
            some = true;
            auto const& d = *c.some;
            auto const& ended = now_[c.block];
            auto const arrive = [&](std::uint32_t i, std::uint32_t p) {
                if (!before(ended[p].ready, c.block)) return;
                next[i].ready = std::max(next[i].ready, ended[p].end);
                --next[i].waits;
            };
            if (d.aligned) for (std::uint32_t i = 0; i < d.aligned; ++i) arrive(i, i);
            else for (std::uint32_t i = 0; i < next.size(); ++i) for (auto const p : d.predecessors(i)) arrive(i, p);
        }
        return some;
    }
    /// The latest time at which a predecessor of a task that waits for nothing became ready.
    [[nodiscard]] std::int64_t enabled_at(std::uint32_t b, std::uint32_t i) const {
        std::int64_t latest = 0;
        for (auto const& c : into(b)) {
            if (!c.some) continue;
            auto const& ended = now_[c.block];
            if (c.some->aligned) latest = i < c.some->aligned ? std::max(latest, ended[i].ready) : latest;
            else for (auto const p : c.some->predecessors(i)) latest = std::max(latest, ended[p].ready);
        }
        return latest;
    }

    void make_ready(std::uint32_t b, std::uint32_t i) {
        auto& mine = blocks_[b];
        auto const at = mine.next[i].ready;
        if (mine.open_ready == at) {
            mine.next[mine.open_last].chain = i;
        } else {
            queue_.push_back({at, b, i});
            std::push_heap(queue_.begin(), queue_.end(), std::greater<>{});
            mine.open_ready = at;
        }
        mine.open_last = i;
    }

    /// Puts back of `started_` what a task that they make ready at the same instant may precede: where there are barriers, all others (a
    /// barrier may start before any of them); else what follows the first task of no duration.
    void keep_back(std::uint32_t b) {
        auto const& list = *tasks_[b];
        auto rest = std::partition(started_.begin(), started_.end(), [&](std::uint32_t i) { return list.resource[i] == resources_.barrier(); });
        if (rest == started_.begin() && blocks_[b].instant) {
            std::sort(started_.begin(), started_.end());
            rest = std::find_if(started_.begin(), started_.end(), [&](std::uint32_t i) { return list.duration[i] == 0; });
            if (rest != started_.end()) ++rest;
        }
        if (rest == started_.begin()) return;
        for (auto i = rest; i != started_.end(); ++i) {
            blocks_[b].next[*i].chain = none;
            make_ready(b, *i);
        }
        started_.erase(rest, started_.end());
    }

    /// Starts all tasks that are ready in the block of `top` at its time; answers their number, 0 where the bound is passed.
    std::uint32_t start_bundle(bundle const& top) {
        auto const b = top.block;
        auto& mine = blocks_[b];
        started_.clear();
        bool sorted = true;
        while (!queue_.empty() && queue_.front().ready == top.ready && queue_.front().block == b) {
            for (auto i = queue_.front().first; i != none; i = mine.next[i].chain) {
                sorted = sorted && (started_.empty() || started_.back() < i);
                started_.push_back(i);
            }
            std::pop_heap(queue_.begin(), queue_.end(), std::greater<>{});
            queue_.pop_back();
        }
        if (mine.open_ready == top.ready) mine.open_ready = -1;
        if (mine.inner) {
            keep_back(b);
            sorted = false;
        }
        if (!sorted) std::sort(started_.begin(), started_.end());
        auto const& list = *tasks_[b];
        auto const* const resource = list.resource.data();
        auto const* const duration = list.duration.data();
        auto* const moments = mine.next.data();
        auto const barrier = resources_.barrier();
        auto const bound = limits_.bound;
        std::int64_t last_end = 0, device_over = 0, link_over = 0;
        for (auto const i : started_) {
            auto const r = resource[i];
            auto start = top.ready;
            if (r == barrier) {
                moments[i].end = start;
                last_end = std::max(last_end, start);
                continue;
            }
            start = std::max(start, free_[r]);
            auto const end = start + duration[i];
            moments[i].end = free_[r] = end;
            last_end = std::max(last_end, end);
            if (mine.counts) {
                left_[r] -= duration[i];
                auto& over = r < resources_.devices ? device_over : link_over;
                over = std::max(over, end + left_[r]);
            }
        }
        longest_ = std::max(longest_, last_end);
        auto const after = limits_.after.empty() ? 0 : limits_.after[b];
        if (last_end > bound - after || device_over > bound - limits_.after_device || link_over > bound) return 0;
        for (auto const& c : out_of(b)) {
            if (!c.some) continue;
            auto const& d = *c.some;
            auto const to = c.block;
            auto& next = blocks_[to];
            if (next.touched_in != run_) enter(to);
            auto* const theirs = next.next.data();
            auto const arrive = [&](std::uint32_t i, std::int64_t end) {
                auto& m = theirs[i];
                m.ready = std::max(m.ready, end);
                if (--m.waits == 0) {
                    next.next_enabled = std::min(next.next_enabled, top.ready);
                    make_ready(to, i);
                }
            };
            if (d.aligned) {
                for (auto const i : started_)
                    if (i < d.aligned) arrive(i, moments[i].end);
            } else {
                auto const* const first = d.first_after.data();
                auto const* const after_of = d.after.data();
                for (auto const i : started_)
                    for (auto k = first[i]; k < first[i + 1]; ++k) arrive(after_of[k], moments[i].end);
            }
        }
        return static_cast<std::uint32_t>(started_.size());
    }

    // ---- in_order

    bool run_in_order() {
        checkpoint const* from = nullptr;
        resumed_ = 0;
        if (valid_ && !changed_.empty()) {
            auto const first = *std::min_element(changed_.begin(), changed_.end());
            while (resumed_ < saved_.size() && pool_[saved_[resumed_]].block <= first) ++resumed_;
            if (resumed_ > 0) from = &pool_[saved_[resumed_ - 1]];
        }
        begin_at(from);
        touched_.clear();
        if (longest_ > limits_.bound) return false;
        auto const begin = from ? from->block : 0;
        auto const every = spacing();
        std::uint64_t since = from ? 0 : every;
        for (auto b = begin; b < graph_->blocks; ++b) {
            if (since >= every && b != begin) {
                take_checkpoint(0, b);
                since = 0;
            }
            touched_.push_back(b);
            if (!start_block(b, begin)) {
                drop_fresh();
                return false;
            }
            since += blocks_[b].next.size();
        }
        return true;
    }

    bool start_block(std::uint32_t b, std::uint32_t begin) {
        auto& mine = blocks_[b];
        auto const n = tasks_[b] ? tasks_[b]->size() : 0;
        mine.next.resize(n);
        if (n == 0) return true;
        auto* const moments = mine.next.data();
        for (std::uint32_t i = 0; i < n; ++i) moments[i].ready = 0;
        dependence const* inside = nullptr;
        for (auto const& c : into(b)) {
            auto const* const d = c.some;
            if (!d) continue;
            auto const from = c.block;
            if (from == b) {
                inside = d;
                continue;
            }
            auto const* const ended = (from >= begin ? blocks_[from].next : now_[from]).data();
            if (d->aligned) {
                for (std::uint32_t i = 0; i < d->aligned; ++i) moments[i].ready = std::max(moments[i].ready, ended[i].end);
            } else {
                auto const* const first = d->first_before.data();
                auto const* const list = d->before.data();
                for (std::uint32_t i = 0; i < n; ++i) {
                    auto ready = moments[i].ready;
                    for (auto k = first[i]; k < first[i + 1]; ++k) ready = std::max(ready, ended[list[k]].end);
                    moments[i].ready = ready;
                }
            }
        }
        auto const* const resource = tasks_[b]->resource.data();
        auto const* const duration = tasks_[b]->duration.data();
        auto const barrier = resources_.barrier();
        std::int64_t last_end = 0, device_over = 0, link_over = 0;
        for (std::uint32_t i = 0; i < n; ++i) {
            auto ready = moments[i].ready;
            if (inside)
                for (auto const p : inside->predecessors(i)) ready = std::max(ready, moments[p].end);
            moments[i].ready = ready;
            auto const r = resource[i];
            if (r == barrier) {
                moments[i].end = ready;
                last_end = std::max(last_end, ready);
                continue;
            }
            auto const end = std::max(ready, free_[r]) + duration[i];
            moments[i].end = free_[r] = end;
            last_end = std::max(last_end, end);
            if (mine.counts) {
                left_[r] -= duration[i];
                auto& over = r < resources_.devices ? device_over : link_over;
                over = std::max(over, end + left_[r]);
            }
        }
        longest_ = std::max(longest_, last_end);
        auto const after = limits_.after.empty() ? 0 : limits_.after[b];
        return !(last_end > limits_.bound - after || device_over > limits_.bound - limits_.after_device || link_over > limits_.bound);
    }

    block_graph const* graph_;
    resource_numbers resources_;
    discipline order_;
    std::vector<block_state> blocks_;
    std::vector<task_list const*> tasks_;
    std::vector<connection> into_, out_of_; ///< by block
    std::vector<std::uint32_t> slot_in_, slot_out_; ///< of each arc
    std::vector<std::vector<moment>> now_; ///< the current schedule
    // Of it, by block: and the time at which the predecessors of some task had all started.
    std::vector<std::int64_t> least_ready_, most_ready_, least_end_, enabled_;
    std::vector<char> changed_flag_;
    std::vector<std::int64_t> load_;       ///< counted work of each resource in the proposal
    std::vector<std::int64_t> left_, free_; ///< of each resource in a run: counted work to come, time of its last end
    std::uint64_t task_count_ = 0, run_ = 0;
    std::vector<std::pair<std::uint32_t, task_list const*>> undo_tasks_;
    std::vector<std::pair<std::uint32_t, dependence const*>> undo_waits_;
    std::vector<std::uint32_t> changed_, touched_;
    bool complete_ = false; ///< the last run is of the proposal as it is, and went to its end
    bool valid_ = false;
    std::int64_t makespan_ = 0, longest_ = 0;
    run_limits limits_{};
    std::vector<bundle> queue_;
    std::vector<std::uint32_t> started_;
    std::vector<std::int64_t> least_;
    std::int64_t from_time_ = -1; ///< the run begins with the tasks of (time, block)
    std::uint32_t from_block_ = 0;
    std::vector<checkpoint> pool_;
    std::vector<std::uint32_t> spare_, saved_, fresh_; ///< of `pool_`: unused, of the current schedule, of the run
    std::size_t resumed_ = 0; ///< saved checkpoints before the run
};

} // namespace parsearch::sim
