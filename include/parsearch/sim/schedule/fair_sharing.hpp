#pragma once
/// Schedules of task graphs in which all messages and collectives that are on their way share the links at max-min fair rates.

#include <algorithm>
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
#include <parsearch/core/compiled.hpp>
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
    void find(std::span<std::vector<use> const> flows, std::vector<double>& rate);

  private:
    void push(std::uint32_t l, std::span<std::vector<use> const> flows, std::vector<double> const& rate);

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
    bool run(task_graph const& g, discipline order, schedule& out, std::int64_t bound = std::numeric_limits<std::int64_t>::max());

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

    void begin(task_graph const& g, schedule& out);
    void sort_by_device();

    [[nodiscard]] std::int64_t next_start() const { return starts_.empty() ? never : starts_.top().time; }
    [[nodiscard]] std::int64_t next_arrival() const {
        auto first = never;
        for (auto const& f : active_) first = std::min(first, f.arrives);
        return first;
    }

    /// Lets what flows go on until now.
    void advance();
    void end_task(std::uint32_t t, std::int64_t at);

    void end_flows();
    void start_flows();
    /// New rates, and with them arrivals.
    void share();

    /// Takes the first of what is ready; false where it ends after `bound`.
    bool take(discipline order, std::int64_t bound);
    bool compute(std::uint32_t t, std::int64_t bound);

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

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/schedule/fair_sharing.ipp>
#endif
