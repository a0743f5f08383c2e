#pragma once
/// Schedules of task graphs in which all messages and collectives that are on their way share the links at max-min fair rates.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <queue>
#include <span>
#include <stop_token>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/core/interruption.hpp>
#include <parsearch/core/portable_math.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/sim/schedule/schedule.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>

namespace parsearch::sim {

/// Flows at max-min fair rates. A flow holds a part of each of its links; raising all rates alike, those on a link that is full stay as they are (D.
/// Bertsekas, R. Gallager, Data Networks, 1992, section 6.5.2).
class fair_rates {
  public:
    /// What a flow takes of a link: its time per byte.
    struct use {
        std::uint32_t link = 0;
        double time_per_byte = 0; ///< picoseconds
    };

    /// For links 0 to `links` - 1.
    explicit fair_rates(std::size_t links) : load_(links), first_load_(links), used_(links), rising_(links), version_(links), on_(links) {}

    /// The rate of each flow, in bytes per picosecond; infinite for one that takes nothing of any link. The time per byte of all that flow over a
    /// link is 1 where the link bounds some flow, else less. Complexity: O(uses * log uses).
    void find(std::span<std::vector<use> const> flows, std::vector<double>& rate) {
        rate.assign(flows.size(), std::numeric_limits<double>::infinity());
        links_.clear();
        for (std::uint32_t f = 0; f < flows.size(); ++f)
            for (auto const& u : flows[f]) {
                if (!(u.time_per_byte > 0)) continue;
                if (on_[u.link].empty()) {
                    links_.push_back(u.link);
                    load_[u.link] = used_[u.link] = 0;
                    rising_[u.link] = 0;
                }
                on_[u.link].push_back(f);
                load_[u.link] += u.time_per_byte;
                ++rising_[u.link];
            }
        next_ = {};
        least_ = 0;
        for (auto const l : links_) {
            first_load_[l] = load_[l];
            push(l, flows, rate);
        }
        while (!next_.empty()) {
            auto const [level, link, version] = next_.top();
            next_.pop();
            if (version != version_[link]) continue;
            least_ = level;
            for (auto const f : on_[link]) {
                if (rate[f] != std::numeric_limits<double>::infinity()) continue;
                rate[f] = level;
                for (auto const& u : flows[f]) {
                    if (!(u.time_per_byte > 0)) continue;
                    used_[u.link] += unfused(level * u.time_per_byte);
                    load_[u.link] -= u.time_per_byte;
                    --rising_[u.link];
                    ++version_[u.link];
                    touched_.push_back(u.link);
                }
            }
            for (auto const l : touched_) push(l, flows, rate);
            touched_.clear();
        }
        for (auto const l : links_) on_[l].clear();
    }

  private:
    void push(std::uint32_t l, std::span<std::vector<use> const> flows, std::vector<double> const& rate) {
        if (rising_[l] == 0) return;
        if (load_[l] < first_load_[l] * 0x1p-20) { // most of the digits are gone
            load_[l] = 0;
            for (auto const f : on_[l])
                if (rate[f] == std::numeric_limits<double>::infinity())
                    for (auto const& u : flows[f])
                        if (u.link == l) load_[l] += u.time_per_byte;
            first_load_[l] = load_[l];
        }
        // Rates only rise, but for rounding.
        next_.push({std::max(least_, (1 - used_[l]) / load_[l]), l, version_[l]});
    }

    struct entry {
        double level = 0;
        std::uint32_t link = 0, version = 0;
        bool operator<(entry const& other) const noexcept {
            return std::tie(level, link, version) > std::tie(other.level, other.link, other.version);
        } // least on top
    };
    std::vector<double> load_, first_load_,
        used_;         ///< of each link: time per byte of the flows that still rise, that when it was last summed, what the others take
    double least_ = 0; ///< rate of the flows that were the last to stop rising
    std::vector<std::uint32_t> rising_, version_; ///< of each link: flows that still rise; changes of its load
    std::vector<std::vector<std::uint32_t>> on_;  ///< flows on each link
    std::vector<std::uint32_t> links_, touched_;
    std::priority_queue<entry> next_;
};

/// Simulates task graphs under `transfer_model::fair_sharing`; keeps its buffers from one to the next.
///
/// Devices run tasks as `scheduler` has it. Tasks on links that are tied to one another flow together: ready when their predecessors have ended, they
/// start (in `schedule`) when their latency has passed, and end together when their bytes have arrived, a task on a link taking its duration of that
/// link's time. At every moment the rates of all flows are max-min fair in bytes per second; a flow has the most bytes that its durations could put
/// on one of its links. Ends are rounded up to whole picoseconds; times past 64 bits stay at the largest value, as those of `scheduler`. Complexity:
/// O((flows that start or end) * uses of links by flows on their way * log) and O(E + V log V).
class fair_scheduler {
  public:
    /// `links` in the order of the resources that come after `devices` devices.
    fair_scheduler(std::size_t devices, std::span<link_description const> links) : devices_(devices), rates_(links.size()) {
        for (auto const& l : links) bytes_per_picosecond_.push_back(unfused(l.rate.bytes_per_second * 1e-12));
    }

    /// From now on runs throw `interrupted` once `stop` is requested.
    void stop_at(std::stop_token stop) noexcept { stop_ = std::move(stop); }

    /// False, with `out` unfinished, as soon as the makespan is sure to be above `bound`. Precondition: `g` has ties.
    bool run(task_graph const& g, discipline order, schedule& out, std::int64_t bound = std::numeric_limits<std::int64_t>::max()) {
        begin(g, out);
        if (order == discipline::in_order) sort_by_device();
        for (;;) {
            require_running(stop_);
            auto const arrival = next_arrival(), start = next_start(), ready = ready_.empty() ? never : ready_.top().time;
            now_ = std::min({arrival, start, ready});
            if (now_ == never) break;
            if (now_ > bound) return false;
            advance();
            // What ends comes first, then what begins to flow, so that all that is ready now is known before one of it is taken.
            if (arrival == now_) end_flows();
            else if (start == now_) start_flows();
            else if (!take(order, bound)) return false;
        }
        for (std::uint32_t t = 0; t < g.size(); ++t)
            if (out.end[t] == unknown) out.ready[t] = out.start[t] = out.end[t] = out.makespan = never;
        return out.makespan <= bound;
    }

  private:
    static constexpr std::int64_t unknown = -1; // end of a task that has not ended
    static constexpr auto never = std::numeric_limits<std::int64_t>::max();

    struct moment {
        std::int64_t time = 0;
        std::uint32_t task = 0;
        bool operator<(moment const& other) const noexcept { return std::tie(time, task) > std::tie(other.time, other.task); } // earliest on top
    };
    using moments = std::priority_queue<moment>;

    struct flow {
        std::uint32_t first = 0; ///< task
        double bytes_left = 0;
        std::int64_t arrives = never;
    };

    [[nodiscard]] bool flows(std::uint32_t t) const noexcept { return graph_->ties[t].task != task_tie::none; }
    /// The end of the tasks that flow with `first`.
    [[nodiscard]] std::uint32_t last_of(std::uint32_t first) const noexcept {
        auto t = first;
        while (t < graph_->size() && graph_->ties[t].task == first) ++t;
        return t;
    }

    void begin(task_graph const& g, schedule& out) {
        graph_ = &g;
        out_ = &out;
        auto const n = g.size();
        out.ready.assign(n, 0);
        out.start.assign(n, 0);
        out.end.assign(n, unknown);
        out.makespan = 0;
        free_at_.assign(g.resources, 0);
        waits_for_.resize(n);
        first_successor_.assign(n + std::size_t{2}, 0);
        for (auto const p : g.predecessors) ++first_successor_[p + 2];
        for (std::uint32_t t = 0; t < n; ++t) first_successor_[t + 2] += first_successor_[t + 1];
        successors_.resize(g.predecessors.size());
        for (std::uint32_t t = 0; t < n; ++t) {
            waits_for_[t] = g.first_predecessor[t + 1] - g.first_predecessor[t];
            for (auto const p : g.before(t)) successors_[first_successor_[p + 1]++] = t;
        }
        ready_ = {};
        starts_ = {};
        active_.clear();
        uses_.clear();
        last_ = 0;
        for (std::uint32_t t = 0; t < n; ++t)
            if (waits_for_[t] == 0) ready_.push({0, t});
    }
    void sort_by_device() {
        program_.assign(devices_, {});
        next_in_program_.assign(devices_, 0);
        is_ready_.assign(graph_->size(), false);
        for (std::uint32_t t = 0; t < graph_->size(); ++t)
            if (!flows(t) && graph_->kind[t] != task_kind::barrier) program_[graph_->resource[t]].push_back(t);
    }

    [[nodiscard]] std::int64_t next_start() const { return starts_.empty() ? never : starts_.top().time; }
    [[nodiscard]] std::int64_t next_arrival() const {
        auto first = never;
        for (auto const& f : active_) first = std::min(first, f.arrives);
        return first;
    }

    /// Lets what flows go on until now.
    void advance() {
        auto const passed = static_cast<double>(now_ - last_);
        for (std::size_t f = 0; f < active_.size() && now_ > last_; ++f)
            active_[f].bytes_left = std::max(0.0, active_[f].bytes_left - unfused(rate_[f] * passed));
        last_ = now_;
    }
    void end_task(std::uint32_t t, std::int64_t at) {
        out_->end[t] = at;
        out_->makespan = std::max(out_->makespan, at);
        for (auto i = first_successor_[t]; i < first_successor_[t + 1]; ++i) {
            auto const s = successors_[i];
            out_->ready[s] = std::max(out_->ready[s], at);
            if (--waits_for_[s] == 0) ready_.push({out_->ready[s], s});
        }
    }

    void end_flows() {
        std::size_t kept = 0;
        for (std::size_t f = 0; f < active_.size(); ++f) {
            if (active_[f].arrives == now_) {
                for (auto t = active_[f].first, last = last_of(t); t < last; ++t) end_task(t, now_);
                continue;
            }
            if (kept != f) {
                active_[kept] = active_[f];
                uses_[kept] = std::move(uses_[f]);
            }
            ++kept;
        }
        active_.resize(kept);
        uses_.resize(kept);
        share();
    }
    void start_flows() {
        for (; !starts_.empty() && starts_.top().time == now_; starts_.pop()) {
            auto const first = starts_.top().task;
            flow f{.first = first};
            std::vector<fair_rates::use> uses;
            for (auto t = first, last = last_of(first); t < last; ++t) {
                out_->start[t] = now_;
                auto const link = graph_->resource[t] - static_cast<std::uint32_t>(devices_);
                f.bytes_left = std::max(f.bytes_left, unfused(static_cast<double>(graph_->duration[t]) * bytes_per_picosecond_[link]));
                uses.push_back({link, static_cast<double>(graph_->duration[t])});
            }
            for (auto& u : uses) u.time_per_byte = f.bytes_left > 0 ? u.time_per_byte / f.bytes_left : 0;
            active_.push_back(f);
            uses_.push_back(std::move(uses));
        }
        share();
    }
    /// New rates, and with them arrivals.
    void share() {
        rates_.find(uses_, rate_);
        for (std::size_t f = 0; f < active_.size(); ++f) {
            double const exact = active_[f].bytes_left / rate_[f];
            // Less what rounding may have added: a flow that is alone takes the time of its longest task.
            double const left = std::ceil(exact - unfused(exact * 0x1p-50) - 0x1p-20);
            active_[f].arrives = left < 0x1p62 ? saturating_sum(now_, static_cast<std::int64_t>(std::max(0.0, left))) : never;
        }
    }

    /// Takes the first of what is ready; false where it ends after `bound`.
    bool take(discipline order, std::int64_t bound) {
        auto const t = ready_.top().task;
        ready_.pop();
        if (flows(t)) {
            // The others are ready too: their predecessors are the same.
            if (graph_->ties[t].task == t) starts_.push({saturating_sum(now_, graph_->ties[t].latency), t});
            return true;
        }
        if (graph_->kind[t] == task_kind::barrier) {
            out_->start[t] = now_;
            end_task(t, now_);
            return true;
        }
        if (order == discipline::fifo) return compute(t, bound);
        is_ready_[t] = true;
        auto const device = graph_->resource[t];
        auto const& program = program_[device];
        for (auto& next = next_in_program_[device]; next < program.size() && is_ready_[program[next]]; ++next)
            if (!compute(program[next], bound)) return false;
        return true;
    }
    bool compute(std::uint32_t t, std::int64_t bound) {
        auto& free_at = free_at_[graph_->resource[t]];
        out_->start[t] = std::max(out_->ready[t], free_at);
        free_at = saturating_sum(out_->start[t], graph_->duration[t]);
        end_task(t, free_at);
        return free_at <= bound;
    }

    std::size_t devices_;
    std::vector<double> bytes_per_picosecond_; ///< of each link
    fair_rates rates_;
    task_graph const* graph_ = nullptr;
    schedule* out_ = nullptr;
    std::int64_t now_ = 0, last_ = 0;
    std::vector<std::int64_t> free_at_;
    std::vector<std::uint32_t> waits_for_, first_successor_, successors_;
    moments ready_, starts_; ///< tasks; first tasks of flows
    std::vector<flow> active_;
    std::vector<std::vector<fair_rates::use>> uses_; ///< of each active flow
    std::vector<double> rate_;
    std::vector<std::vector<std::uint32_t>> program_; ///< tasks of each device by number, under `in_order`
    std::vector<std::size_t> next_in_program_;
    std::vector<bool> is_ready_;
    std::stop_token stop_;
};

} // namespace parsearch::sim
