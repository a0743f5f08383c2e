#pragma once
/// What the full simulator says of a strategy, where the delta simulator says something else, and whether a schedule is what
/// docs/simulation.md defines.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/sim/memory/memory_account.hpp>
#include <parsearch/sim/schedule/schedule.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>

namespace proof {

namespace ps = parsearch;

// A strategy under the full simulator, or a plan under that of plans.
struct reference {
    ps::picoseconds cost{};
    ps::sim::task_graph tasks;
    ps::sim::schedule schedule;
    std::vector<ps::sim::memory_use> memory;
    std::array<double, ps::sim::traffic_kinds> traffic{};
};

// `what`: a strategy, or how a plan runs and its strategy.
template <class Simulator, class... What> void refer(Simulator& simulator, reference& out, What const&... what) {
    out.cost = simulator(what...);
    // What does not fit is priced without a schedule.
    if (out.cost == ps::cost_traits<ps::picoseconds>::infinity()) (void)simulator.simulate(what...);
    out.tasks = simulator.tasks();
    out.schedule = simulator.schedule();
    out.memory = simulator.memory();
    out.traffic = simulator.traffic();
}

inline std::string name_of_task(ps::sim::task_graph const& g, std::size_t t) {
    return ps::text("task ", t, " (", name_of(g.kind[t]), " of operator ", g.label[t].op, ", number ", g.label[t].number, ", resource ",
                    g.resource[t], ')');
}

// The first task at which two arrays differ, as text; empty where they are equal.
template <class T>
std::string first_difference(char const* what, ps::sim::task_graph const& g, std::vector<T> const& wanted, std::vector<T> const& found) {
    if (wanted == found) return {};
    if (wanted.size() != found.size()) return ps::text(what, ": ", found.size(), " values instead of ", wanted.size());
    auto const t = static_cast<std::size_t>(std::mismatch(wanted.begin(), wanted.end(), found.begin()).first - wanted.begin());
    return ps::text(what, " of ", name_of_task(g, t), " is ", +found[t], ", not ", +wanted[t]);
}
template <>
inline std::string first_difference(char const* what, ps::sim::task_graph const& g, std::vector<ps::sim::task_kind> const& wanted,
                                    std::vector<ps::sim::task_kind> const& found) {
    if (wanted == found) return {};
    auto const t = static_cast<std::size_t>(std::mismatch(wanted.begin(), wanted.end(), found.begin(), found.end()).first - wanted.begin());
    return ps::text(what, " of ", name_of_task(g, t), " differs");
}

// Where what the delta simulator reads out differs from the reference; empty where nothing does.
template <class Delta> std::string difference(reference const& wanted, Delta& delta) {
    auto const& w = wanted.tasks;
    auto const& f = delta.tasks();
    if (w.size() != f.size()) return ps::text(f.size(), " tasks, not ", w.size());
    if (w.resources != f.resources) return ps::text(f.resources, " resources, not ", w.resources);
    std::string out;
    auto const same = [&](char const* what, auto const& a, auto const& b) { return !(out = first_difference(what, w, a, b)).empty(); };
    auto const& s = delta.schedule();
    // A wrong graph first: what follows from it says less.
    if (same("resource", w.resource, f.resource) || same("duration", w.duration, f.duration) || same("kind", w.kind, f.kind)) return out;
    if (w.first_predecessor != f.first_predecessor || w.predecessors != f.predecessors) return "what tasks wait for";
    if (same("ready time", wanted.schedule.ready, s.ready) || same("start", wanted.schedule.start, s.start) ||
        same("end", wanted.schedule.end, s.end))
        return out;
    if (wanted.schedule.makespan != s.makespan) return ps::text("the makespan is ", s.makespan, ", not ", wanted.schedule.makespan);
    for (std::uint32_t t = 0; t < w.size(); ++t) {
        auto const &a = w.label[t], &b = f.label[t];
        if (a.op != b.op || a.number != b.number || a.edge != b.edge || a.traffic != b.traffic) return "the label of " + name_of_task(w, t);
    }
    auto const& memory = delta.memory();
    if (memory.size() != wanted.memory.size()) return ps::text("the memory of ", memory.size(), " devices");
    for (std::size_t d = 0; d < memory.size(); ++d)
        if (memory[d] != wanted.memory[d])
            return ps::text("the memory of device ", d, ": ", memory[d].total(), " bytes, not ", wanted.memory[d].total());
    if (delta.traffic() != wanted.traffic) return "the traffic";
    return {};
}

// Where a schedule breaks the definition; empty where it is the one defined. Independent of schedulers: nothing is scheduled,
// every task is held against its equation. The first `in_turn` resources run their tasks in order whatever the discipline is.
class definition {
  public:
    std::string broken(ps::sim::task_graph const& g, ps::sim::schedule const& s, ps::sim::discipline order, std::uint32_t in_turn = 0) {
        auto const n = g.size();
        std::int64_t last = 0;
        first_.assign(g.resources + 1, 0);
        for (std::uint32_t t = 0; t < n; ++t) {
            std::int64_t ready = 0;
            for (auto const p : g.before(t)) {
                if (p >= t) return name_of_task(g, t) + " waits for a task after it";
                ready = std::max(ready, s.end[p]);
            }
            if (s.ready[t] != ready) return ps::text(name_of_task(g, t), " is ready at ", s.ready[t], ", what it waits for ends at ", ready);
            if (s.end[t] != ps::saturating_sum(s.start[t], g.duration[t])) return name_of_task(g, t) + " does not take its duration";
            last = std::max(last, s.end[t]);
            if (g.kind[t] != ps::sim::task_kind::barrier) ++first_[g.resource[t] + 1];
            else if (s.start[t] != ready) return name_of_task(g, t) + " does not start when it is ready";
        }
        if (last != s.makespan) return ps::text("the makespan is ", s.makespan, ", the last task ends at ", last);
        for (std::uint32_t r = 0; r < g.resources; ++r) first_[r + 1] += first_[r];
        at_.assign(first_.begin(), first_.end());
        turns_.resize(first_.back());
        for (std::uint32_t t = 0; t < n; ++t)
            if (g.kind[t] != ps::sim::task_kind::barrier)
                turns_[at_[g.resource[t]]++] = {order == ps::sim::discipline::fifo && g.resource[t] >= in_turn ? s.ready[t] : 0, t};
        for (std::uint32_t r = 0; r < g.resources; ++r) {
            auto const begin = turns_.begin() + first_[r], end = turns_.begin() + first_[r + 1];
            if (!std::is_sorted(begin, end)) std::sort(begin, end);
            std::int64_t free = 0;
            for (auto i = begin; i != end; ++i) {
                auto const t = i->second;
                if (s.start[t] != std::max(s.ready[t], free))
                    return ps::text(name_of_task(g, t), " starts at ", s.start[t], ", ready at ", s.ready[t], ", its resource free at ", free);
                free = s.end[t];
            }
        }
        return {};
    }

  private:
    std::vector<std::uint32_t> first_, at_;
    std::vector<std::pair<std::int64_t, std::uint32_t>> turns_; // of all resources, one after the other
};

} // namespace proof
