#pragma once
// Several jobs on one cluster: what each would do with more devices or fewer, and which ones each gets.

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/problem/placement.hpp>
#include <parsearch/sim/input/workload.hpp>
#include <parsearch/topology/neighbours.hpp>

namespace parsearch::detail {

/// Which part of a search's effort each number of devices is worth: the last all of it, the others their share of its devices, together at most all.
PARSEARCH_INLINE std::vector<double> efforts(std::span<std::size_t const> counts) {
    double others = 0;
    for (auto const n : counts.first(counts.size() - 1)) others += static_cast<double>(n);
    auto const most = static_cast<double>(counts.back());
    std::vector<double> out;
    for (auto const n : counts.first(counts.size() - 1)) out.push_back(static_cast<double>(n) / std::max(others, most));
    out.push_back(1);
    return out;
}

} // namespace parsearch::detail

namespace parsearch {

PARSEARCH_INLINE std::vector<front_point> device_front(parallelization const& problem, std::span<std::size_t const> counts,
                                                       job_search const& search) {
    auto const all = problem.topology().size();
    if (counts.empty()) throw invalid_input("device_front: no numbers of devices: there must be one at least");
    auto const effort = detail::efforts(counts);
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
        take(search(*part, best.strategy, effort[out.size()]));
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

/// What `goal` is, job by job.
struct goal_sum {
    placement_goal goal;
    double value = 0;
    void add(double own) noexcept { value = goal == placement_goal::longest ? std::max(value, own) : value + own; }
};

/// The numbers of devices that jobs may have, at most `devices` in all, in order of `goal` over `fronts`; of equal ones first where the sum is least,
/// then where most devices are left. Points without a plan that fits are left out.
class divisions {
  public:
    struct division {
        double goal = 0, sum = 0;
        std::size_t used = 0;              ///< devices
        std::vector<std::size_t> points{}; ///< of each job, one of its front
    };

    divisions(std::span<job const> jobs, std::span<std::vector<front_point> const> fronts, std::size_t devices, placement_goal goal)
        : jobs_(jobs), fronts_(fronts), devices_(devices), goal_(goal) {
        choices all;
        for (auto const& front : fronts) all.push_back(std::vector<bool>(front.size(), true));
        push(std::move(all));
    }

    /// Nothing where there is no other. Complexity: for each job O(jobs^2 * devices * points); the first time for one (Lawler, A procedure for
    /// computing the k best solutions to discrete optimization problems, Management Science 1972: what is left falls into parts, by the first job
    /// that differs).
    [[nodiscard]] std::optional<division> next() {
        if (last_) {
            auto const& [from, was] = *last_;
            auto rest = from;
            for (std::size_t n = 0; n < jobs_.size(); ++n) {
                auto part = rest;
                part[n][was.points[n]] = false;
                push(std::move(part));
                rest[n].assign(rest[n].size(), false);
                rest[n][was.points[n]] = true;
            }
            last_.reset();
        }
        if (open_.empty()) return {};
        last_ = std::move(open_.begin()->second);
        open_.erase(open_.begin());
        return last_->second;
    }

  private:
    using choices = std::vector<std::vector<bool>>; // of each job, which points it may have
    static constexpr auto none = std::numeric_limits<double>::infinity();

    [[nodiscard]] double own(std::size_t n, std::size_t i) const noexcept {
        auto const& point = fronts_[n][i];
        return point.cost == cost_traits<picoseconds>::infinity() ? none : jobs_[n].weight * static_cast<double>(point.cost.count());
    }
    /// The least of `goal`, none of whose jobs takes more than `most`.
    [[nodiscard]] std::optional<division> least(choices const& may, placement_goal goal, double most) const {
        // By devices used: the least for the jobs so far, and the points that these have.
        std::vector<std::pair<double, std::vector<std::size_t>>> best(devices_ + 1, {none, {}});
        best[0].first = 0;
        for (std::size_t n = 0; n < jobs_.size(); ++n) {
            std::vector<std::pair<double, std::vector<std::size_t>>> more(devices_ + 1, {none, {}});
            for (std::size_t used = 0; used <= devices_; ++used) {
                if (best[used].first == none) continue;
                for (std::size_t i = 0; i < fronts_[n].size(); ++i) {
                    auto const together = used + fronts_[n][i].devices.size();
                    if (!may[n][i] || together > devices_ || own(n, i) == none || own(n, i) > most) continue;
                    goal_sum sum{goal, best[used].first};
                    sum.add(own(n, i));
                    if (sum.value >= more[together].first) continue;
                    more[together] = {sum.value, best[used].second};
                    more[together].second.push_back(i);
                }
            }
            best = std::move(more);
        }
        auto const at = std::ranges::min_element(best, {}, [](auto const& b) { return b.first; });
        return at->first == none ? std::nullopt
                                 : std::optional(division{at->first, at->first, static_cast<std::size_t>(at - best.begin()), at->second});
    }
    void push(choices may) {
        auto found = least(may, goal_, none);
        if (found && goal_ == placement_goal::longest) {
            auto const longest = found->goal;
            found = least(may, placement_goal::weighted_sum, longest);
            found->goal = longest;
        }
        if (found) open_.emplace(std::tuple(found->goal, found->sum, found->used), std::pair(std::move(may), *found));
    }

    std::span<job const> jobs_;
    std::span<std::vector<front_point> const> fronts_;
    std::size_t devices_;
    placement_goal goal_;
    std::multimap<std::tuple<double, double, std::size_t>, std::pair<choices, division>> open_{}; ///< parts of what is left, by the least of each
    std::optional<std::pair<choices, division>> last_{};
};

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
    std::map<std::size_t, std::size_t> has; // the job that has a device
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
        for (std::size_t i = 0; i < j.now.size(); ++i)
            if (j.now[i] >= topology.size() || (i > 0 && j.now[i] <= j.now[i - 1]))
                throw invalid_input("place: job '", j.name, "' has device number ", j.now[i], ": must be less than ", topology.size(),
                                    ", and above that before it");
        for (auto const d : j.now)
            if (auto const [at, fresh] = has.emplace(d, n); !fresh)
                throw invalid_input("place: jobs '", jobs[at->second].name, "' and '", j.name, "' both have device number ", d);
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
    detail::divisions in_order(jobs, fronts, topology.size(), goal);
    std::map<std::pair<std::size_t, std::vector<std::size_t>>, std::optional<placed_job>> known; // by job and devices; nothing where none fits
    std::string did_not_fit;
    auto const run_on = [&](std::size_t n, front_point const& point, std::vector<std::size_t> const& on) -> std::optional<placed_job> const& {
        auto const [at, fresh] = known.try_emplace({n, on});
        if (!fresh) return at->second;
        placed_job mine{.devices = on, .strategy = point.strategy};
        auto const part = on_devices_if_allowed(jobs[n].problem, on);
        if (part) {
            auto simulate = part->simulator();
            auto const share = static_cast<double>(on.size()) / static_cast<double>(topology.size());
            if (simulate.simulate(mine.strategy) != point.cost || !part->feasible(mine.strategy))
                if (auto found = search(*part, mine.strategy, share); simulate(found) < simulate(mine.strategy)) mine.strategy = std::move(found);
            mine.alone = simulate.simulate(mine.strategy);
        }
        if (part && part->feasible(mine.strategy)) at->second = std::move(mine);
        else
            did_not_fit = text("job '", jobs[n].name, "' found nothing that fits on its ", on.size(), " devices from ", on.front(),
                               ", as it did on others: its counts must be such as fit on any");
        return at->second;
    };
    auto const place_all = [&](std::vector<std::size_t> const& points) -> std::optional<std::vector<placed_job>> {
        std::vector<std::size_t> order(jobs.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        auto const count = [&](std::size_t n) { return fronts[n][points[n]].devices.size(); };
        std::vector<bool> free(topology.size(), true);
        auto const stays = [&](std::size_t n) {
            return jobs[n].now.size() == count(n) && std::ranges::all_of(jobs[n].now, [&](auto d) { return free[d]; });
        };
        std::ranges::stable_sort(order, std::greater<>{}, [&](auto n) { return std::pair(jobs[n].now.size() == count(n), count(n)); });
        std::vector<placed_job> out(jobs.size());
        for (auto const n : order) {
            auto on = stays(n) ? jobs[n].now : topology::take_neighbours(topology, free, count(n));
            for (auto const d : on) free[d] = false;
            auto const& placed = run_on(n, fronts[n][points[n]], on);
            if (!placed) return {};
            out[n] = *placed;
        }
        detail::time_together(jobs, out);
        return out;
    };
    std::vector<placed_job> best;
    auto least = std::numeric_limits<double>::infinity();
    for (std::size_t tried = 0; tried < most_divisions; ++tried) {
        auto const division = in_order.next();
        if (!division || division->goal >= least) break;
        auto placed = place_all(division->points);
        if (!placed) continue;
        detail::goal_sum sum{goal};
        for (std::size_t n = 0; n < jobs.size(); ++n) sum.add(jobs[n].weight * static_cast<double>((*placed)[n].together.count()));
        if (sum.value >= least) continue;
        least = sum.value;
        best = std::move(*placed);
    }
    if (best.empty() && !did_not_fit.empty()) throw invalid_input("place: ", did_not_fit);
    if (best.empty())
        throw invalid_input("place: ", jobs.size(), " jobs on ", topology.size(),
                            " devices: there are no numbers of devices among their counts with which all fit");
    return best;
}

} // namespace parsearch
