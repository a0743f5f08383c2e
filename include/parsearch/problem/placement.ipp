#pragma once
// Several jobs on one cluster: what each would do with more devices or fewer, and which ones each gets.

#include <algorithm>
#include <limits>
#include <numeric>

#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/problem/placement.hpp>
#include <parsearch/sim/input/workload.hpp>
#include <parsearch/topology/neighbours.hpp>

namespace parsearch {

PARSEARCH_INLINE std::vector<front_point> device_front(parallelization const& problem, std::span<std::size_t const> counts,
                                                       job_search const& search) {
    auto const all = problem.topology().size();
    if (counts.empty()) throw invalid_input("device_front: no numbers of devices: there must be one at least");
    std::vector<front_point> out;
    for (std::size_t before = 0; auto const n : counts) {
        if (n < 1 || n > all) throw invalid_input("device_front: ", n, " devices: must be from 1 to the ", all, " of the problem");
        if (n <= before) throw invalid_input("device_front: ", n, " devices behind ", before, ": must be ascending");
        before = n;
        std::vector<bool> free(all, true);
        front_point best{
            .devices = topology::take_neighbours(problem.topology(), free, n), .strategy = {}, .cost = cost_traits<picoseconds>::infinity()};
        auto const part = on_devices_if_allowed(problem, best.devices);
        if (!part) {
            out.push_back(std::move(best));
            continue;
        }
        auto least = best.cost; // with what the memory policy adds
        auto simulate = part->simulator();
        auto starts = part->starts();
        if (!out.empty() && !out.back().strategy.empty()) starts.push_back(out.back().strategy);
        auto const take = [&](space::flat_strategy s) {
            if (auto const cost = simulate(s); best.strategy.empty() || cost < least) {
                least = cost;
                best.strategy = std::move(s);
            }
        };
        for (auto& s : starts) take(std::move(s));
        take(search(*part, best.strategy));
        if (part->feasible(best.strategy)) best.cost = simulate.simulate(best.strategy);
        out.push_back(std::move(best));
    }
    return out;
}

} // namespace parsearch

namespace parsearch::detail {

/// The graphs of several jobs as one, whose operators are named by the jobs as well, parameters by their numbers. Dims are cut as on the devices of
/// each job.
PARSEARCH_INLINE graph::dense_graph joined_graph(std::span<job const> jobs, std::span<placed_job const> placed) {
    graph::dense_graph all;
    for (auto const& j : jobs) {
        auto const part = on_devices(j.problem, placed[static_cast<std::size_t>(&j - jobs.data())].devices);
        auto const& g = part.graph();
        auto const first = static_cast<std::uint32_t>(all.names.size());
        auto const number = &j - jobs.data();
        for (std::size_t op = 0; op < g.size(); ++op) {
            all.names.push_back(text(j.name, "/", g.names[op]));
            all.operations.push_back(g.operations[op]);
            for (auto& w : all.operations.back().weights)
                if (!w.parameter.empty()) w.parameter = text(number, "/", w.parameter);
            all.first_in.push_back(static_cast<std::uint32_t>(all.edges.size()));
            for (auto const& e : g.in(op)) all.edges.push_back({first + e.producer, e.slot, first + e.consumer, e.input});
        }
    }
    all.first_in.push_back(static_cast<std::uint32_t>(all.edges.size()));
    return graph::read_graph(all).graph;
}

PARSEARCH_INLINE void time_together(std::span<job const> jobs, std::vector<placed_job>& placed) {
    auto const& like = *jobs.front().problem.workload();
    auto const w = sim::make_workload(joined_graph(jobs, placed), like.topology, like.oracle, like.options);
    space::flat_strategy s;
    std::vector<std::size_t> job_of;
    for (std::size_t n = 0; n < jobs.size(); ++n) {
        auto mine = with_devices(placed[n].strategy, placed[n].devices);
        job_of.insert(job_of.end(), mine.size(), n);
        s.insert(s.end(), std::make_move_iterator(mine.begin()), std::make_move_iterator(mine.end()));
    }
    sim::simulator simulate(w);
    (void)simulate.simulate(s);
    auto const& tasks = simulate.tasks();
    for (std::uint32_t t = 0; t < tasks.size(); ++t) {
        auto& time = placed[job_of[tasks.label[t].op]].together;
        time = std::max(time, picoseconds(simulate.schedule().end[t]));
    }
}

/// A number of devices for each job, at most `devices` in all: the least of `goal` over `fronts`, of these the one that leaves most devices. Nothing
/// where they can not all have some, or a job has no plan that fits. Complexity: O(jobs * devices * counts).
PARSEARCH_INLINE std::optional<std::vector<std::size_t>> divide_devices(std::span<job const> jobs, std::span<std::vector<front_point> const> fronts,
                                                                        std::size_t devices, placement_goal goal) {
    constexpr auto none = std::numeric_limits<double>::infinity();
    // By devices used: the least for the jobs so far, and the points that these have.
    std::vector<std::pair<double, std::vector<std::size_t>>> best(devices + 1, {none, {}});
    best[0].first = 0;
    for (std::size_t n = 0; n < jobs.size(); ++n) {
        std::vector<std::pair<double, std::vector<std::size_t>>> next(devices + 1, {none, {}});
        for (std::size_t used = 0; used <= devices; ++used) {
            if (best[used].first == none) continue;
            for (std::size_t i = 0; i < fronts[n].size(); ++i) {
                auto const& point = fronts[n][i];
                if (used + point.devices.size() > devices || point.cost == cost_traits<picoseconds>::infinity()) continue;
                auto const own = jobs[n].weight * static_cast<double>(point.cost.count());
                auto const sum = goal == placement_goal::longest ? std::max(best[used].first, own) : best[used].first + own;
                auto& to = next[used + point.devices.size()];
                if (sum >= to.first) continue;
                to = {sum, best[used].second};
                to.second.push_back(i);
            }
        }
        best = std::move(next);
    }
    auto const at = std::ranges::min_element(best, {}, [](auto const& b) { return b.first; });
    return at->first == none ? std::nullopt : std::optional(at->second);
}

PARSEARCH_INLINE std::string difference(topology::dense_topology const& a, topology::dense_topology const& b) {
    if (a.size() != b.size()) return text(a.size(), " devices and ", b.size());
    for (std::size_t d = 0; d < a.size(); ++d)
        if (a.devices[d].memory != b.devices[d].memory)
            return text("device number ", d, " may hold ", a.devices[d].memory, " bytes and ", b.devices[d].memory);
    return "kinds of devices, nodes, links or routes";
}

} // namespace parsearch::detail

namespace parsearch {

PARSEARCH_INLINE std::vector<placed_job> place(std::span<job const> jobs, job_search const& search, placement_goal goal) {
    if (jobs.empty()) throw invalid_input("place: no jobs: there must be one at least");
    auto const& topology = jobs.front().problem.topology();
    for (std::size_t n = 0; n < jobs.size(); ++n) {
        auto const& j = jobs[n];
        if (j.name.empty()) throw invalid_input("place: job number ", n, " has no name: must have one of its own");
        for (std::size_t before = 0; before < n; ++before)
            if (jobs[before].name == j.name) throw invalid_input("place: jobs number ", before, " and ", n, " are both named '", j.name, "'");
        if (!(j.weight > 0) || j.weight > 1e100)
            throw invalid_input("place: job '", j.name, "' has weight ", j.weight, ": must be positive and at most 1e100");
        if (!(j.problem.topology() == topology))
            throw invalid_input("place: job '", j.name, "' and job '", jobs.front().name,
                                "' are on different clusters: ", detail::difference(j.problem.topology(), topology),
                                "; must be the same devices and links, with the same memory and the same devices left out");
        if (!(j.problem.options() == jobs.front().problem.options()))
            throw invalid_input("place: jobs '", j.name, "' and '", jobs.front().name, "' have other options of simulation: must be equal");
    }
    // In one simulation of all, whatever waits for all operators, or for its turn in the order of a program, would wait for other jobs.
    if (auto const& o = jobs.front().problem.options(); !o.overlap || o.discipline != sim::discipline::fifo)
        throw invalid_input("place: simulation option overlap is ", o.overlap, ", discipline ", name_of(o.discipline),
                            ": jobs that run together are simulated with overlap true and fifo");
    std::vector<std::vector<front_point>> fronts;
    for (auto const& j : jobs) {
        auto counts = j.counts;
        for (std::size_t n = 1; j.counts.empty() && n < topology.size(); n *= 2) counts.push_back(n);
        if (j.counts.empty()) counts.push_back(topology.size());
        fronts.push_back(device_front(j.problem, counts, search));
    }
    auto const chosen = detail::divide_devices(jobs, fronts, topology.size(), goal);
    if (!chosen)
        throw invalid_input("place: ", jobs.size(), " jobs on ", topology.size(),
                            " devices: there are no numbers of devices among their counts with "
                            "which all fit");
    std::vector<std::size_t> order(jobs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    auto const point = [&](std::size_t n) -> auto const& { return fronts[n][(*chosen)[n]]; };
    std::ranges::stable_sort(order, std::greater<>{}, [&](auto n) { return point(n).devices.size(); });
    std::vector<bool> free(topology.size(), true);
    std::vector<placed_job> out(jobs.size());
    for (auto const n : order) {
        auto& mine = out[n];
        mine.devices = topology::take_neighbours(topology, free, point(n).devices.size());
        mine.strategy = point(n).strategy;
        auto const part = on_devices(jobs[n].problem, mine.devices);
        auto simulate = part.simulator();
        if (simulate.simulate(mine.strategy) != point(n).cost || !part.feasible(mine.strategy))
            if (auto found = search(part, mine.strategy); simulate(found) < simulate(mine.strategy)) mine.strategy = std::move(found);
        mine.alone = simulate.simulate(mine.strategy);
        if (!part.feasible(mine.strategy))
            throw invalid_input("place: job '", jobs[n].name, "' found nothing that fits on its ", mine.devices.size(), " devices from ",
                                mine.devices.front(), ", as it did on others: its counts must be such as fit on any");
    }
    detail::time_together(jobs, out);
    return out;
}

} // namespace parsearch
