#pragma once
// Several jobs on one cluster: what each would do with more devices or fewer, and which ones each gets.

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>

#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/joined_sets.hpp>
#include <parsearch/pipeline/plans/placement.hpp>
#include <parsearch/pipeline/plans/plan_simulator.hpp>
#include <parsearch/sim/schedule/any_scheduler.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/topology/neighbours.hpp>

namespace parsearch::pipeline::detail {

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

} // namespace parsearch::pipeline::detail

namespace parsearch::pipeline {

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
        front_point best{.devices = topology::take_neighbours(problem.topology(), free, n), .plan = {}, .cost = cost_traits<picoseconds>::infinity()};
        auto const part = on_devices_if_allowed(problem, best.devices);
        if (!part) {
            out.push_back(std::move(best));
            continue;
        }
        auto least = best.cost; // with what the memory policy adds
        plan_simulator simulate(*part);
        auto const take = [&](pipeline_plan plan) {
            auto const makespan = simulate.simulate(plan), cost = sim::total_cost(makespan, simulate.penalty());
            if (!best.plan.strategy.empty() && cost >= least) return;
            least = cost;
            best.plan = std::move(plan);
            best.cost = simulate.fits() ? makespan : cost_traits<picoseconds>::infinity();
        };
        for (auto& s : part->starts()) take({.how = unpipelined(part->graph()), .strategy = std::move(s)});
        if (!out.empty() && !out.back().plan.strategy.empty()) take(out.back().plan);
        try {
            take(search(*part, best.plan, effort[out.size()]));
        } catch (invalid_input const& e) {
            throw invalid_input("device_front: the search on ", n, n == 1 ? " device: " : " devices: ", e.what());
        }
        out.push_back(std::move(best));
    }
    return out;
}

} // namespace parsearch::pipeline

namespace parsearch::pipeline::detail {

/// Adds the tasks of a job on the devices with the numbers `on`, of a cluster of `devices` devices and `links` links, to those of the cluster.
PARSEARCH_INLINE void add_tasks(sim::task_graph& all, sim::task_graph const& tasks, std::span<std::size_t const> on, std::uint32_t devices,
                                std::uint32_t links) {
    auto const mine = static_cast<std::uint32_t>(on.size()), first = all.size();
    auto const of_cluster = [&](std::uint32_t r) { // see `task_graph` for how resources are numbered
        if (r + 1 == tasks.resources) return all.resources - 1;
        if (r < mine) return static_cast<std::uint32_t>(on[r]);
        r -= mine;
        if (r < links) return devices + r;
        r -= links;
        return devices + links + 2 * static_cast<std::uint32_t>(on[r / 2]) + r % 2;
    };
    for (std::uint32_t t = 0; t < tasks.size(); ++t) {
        for (auto const before : tasks.before(t)) all.after(first + before);
        (void)all.add(of_cluster(tasks.resource[t]), tasks.duration[t], tasks.kind[t], tasks.label[t]);
        if (tasks.ties.empty()) continue;
        auto tie = tasks.ties[t];
        if (tie.task != sim::task_tie::none) tie.task += first;
        all.ties.push_back(tie);
    }
}

PARSEARCH_INLINE void share_links(std::span<job_there> jobs, topology::dense_topology const& cluster) {
    constexpr auto nobody = std::numeric_limits<std::uint32_t>::max();
    auto const devices = static_cast<std::uint32_t>(cluster.size()), links = static_cast<std::uint32_t>(cluster.links.size());
    std::vector<std::uint32_t> user(links, nobody);
    joined_sets share(jobs.size());
    for (std::uint32_t n = 0; n < jobs.size(); ++n)
        jobs[n].part.topology().routes.for_each_link([&](auto link) {
            if (user[link] == nobody) user[link] = n;
            else share.join(user[link], n);
        });
    std::map<std::uint32_t, std::vector<std::size_t>> groups;
    for (std::uint32_t n = 0; n < jobs.size(); ++n) groups[share.root(n)].push_back(n);
    for (auto const& [root, group] : groups) {
        if (group.size() == 1) {
            jobs[root].placed.together = jobs[root].placed.alone;
            continue;
        }
        sim::task_graph all;
        all.clear(3 * devices + links + 1);
        std::vector<std::uint32_t> first;
        for (auto const n : group) {
            auto const& [placed, part] = jobs[n];
            plan_simulator simulate(part);
            (void)simulate.simulate(placed.plan);
            first.push_back(all.size());
            add_tasks(all, simulate.tasks(), placed.devices, devices, links);
        }
        first.push_back(all.size());
        sim::schedule when;
        sim::any_scheduler(cluster, jobs[root].part.options()).run(all, when);
        for (std::size_t i = 0; i < group.size(); ++i) {
            std::int64_t last = 0;
            for (auto t = first[i]; t < first[i + 1]; ++t) last = std::max(last, when.end[t]);
            jobs[group[i]].placed.together = picoseconds(last);
        }
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

/// The numbers of devices that a job may have.
PARSEARCH_INLINE std::vector<std::size_t> counts_of(job const& j) {
    if (!j.counts.empty()) return j.counts;
    auto const all = j.problem.topology().size();
    std::vector<std::size_t> out{all};
    if (!j.now.empty()) out.push_back(j.now.size());
    for (std::size_t n = 1; n < all; n *= 2) out.push_back(n);
    std::ranges::sort(out);
    out.erase(std::ranges::unique(out).begin(), out.end());
    return out;
}

/// Throws `invalid_input`, in the name of `who`, where the jobs can not be on one cluster: see `place`.
PARSEARCH_INLINE void require_one_cluster(std::string_view who, std::span<job const> jobs) {
    if (jobs.empty()) throw invalid_input(who, ": no jobs: there must be one at least");
    auto const& topology = jobs.front().problem.topology();
    std::map<std::size_t, std::size_t> has; // the job that has a device
    for (std::size_t n = 0; n < jobs.size(); ++n) {
        auto const& j = jobs[n];
        if (j.name.empty()) throw invalid_input(who, ": job number ", n, " has no name: must have one of its own");
        for (std::size_t before = 0; before < n; ++before)
            if (jobs[before].name == j.name) throw invalid_input(who, ": jobs number ", before, " and ", n, " are both named '", j.name, "'");
        if (!(j.weight > 0) || j.weight > 1e100)
            throw invalid_input(who, ": job '", j.name, "' has weight ", j.weight, ": must be positive and at most 1e100");
        if (!(j.problem.topology() == topology))
            throw invalid_input(who, ": job '", j.name, "' and job '", jobs.front().name,
                                "' are on different clusters: ", difference(j.problem.topology(), topology),
                                "; must be the same devices and links, with the same memory and the same devices left out");
        for (std::size_t i = 0; i < j.now.size(); ++i)
            if (j.now[i] >= topology.size() || (i > 0 && j.now[i] <= j.now[i - 1]))
                throw invalid_input(who, ": job '", j.name, "' has device number ", j.now[i], ": must be less than ", topology.size(),
                                    ", and above that before it");
        for (auto const d : j.now)
            if (auto const [at, fresh] = has.emplace(d, n); !fresh)
                throw invalid_input(who, ": jobs '", jobs[at->second].name, "' and '", j.name, "' both have device number ", d);
        auto const& o = j.problem.options();
        auto const& like = jobs.front().problem.options();
        auto const refuse = [&](auto const& what, auto const& is, auto const& others) {
            throw invalid_input(who, ": job '", j.name, "' has simulation option ", what, ' ', is, ", job '", jobs.front().name, "' ", others,
                                ": jobs on one cluster must have the same");
        };
        if (o.transfers != like.transfers) refuse("transfers", name_of(o.transfers), name_of(like.transfers));
        if (o.replicas != like.replicas) refuse("replicas", o.replicas, like.replicas);
        if (o.discipline != sim::discipline::fifo) // whatever waits for its turn in the order of a program would wait for other jobs
            throw invalid_input(who, ": job '", j.name, "' has discipline ", name_of(o.discipline), ": must be fifo");
    }
}

} // namespace parsearch::pipeline::detail

namespace parsearch::pipeline {

PARSEARCH_INLINE std::vector<placed_job> time_together(std::span<job const> jobs, std::span<pipeline_plan const> plans) {
    detail::require_one_cluster("time_together", jobs);
    if (plans.size() != jobs.size()) throw invalid_input("time_together: ", plans.size(), " plans of ", jobs.size(), " jobs: must be one each");
    std::vector<detail::job_there> there;
    for (std::size_t n = 0; n < jobs.size(); ++n) {
        if (jobs[n].now.empty()) throw invalid_input("time_together: job '", jobs[n].name, "' has no devices: 'now' must name one at least");
        try {
            auto part = on_devices(jobs[n].problem, jobs[n].now);
            auto const alone = plan_simulator(part).simulate(plans[n]);
            there.push_back({{.devices = jobs[n].now, .plan = plans[n], .alone = alone}, std::move(part)});
        } catch (invalid_input const& e) {
            throw invalid_input("time_together: job '", jobs[n].name, "': ", e.what());
        }
    }
    detail::share_links(there, jobs.front().problem.topology());
    std::vector<placed_job> out;
    for (auto& j : there) out.push_back(std::move(j.placed));
    return out;
}

PARSEARCH_INLINE std::vector<placed_job> place(std::span<job const> jobs, job_search const& search, placement_goal goal) {
    detail::require_one_cluster("place", jobs);
    auto const& topology = jobs.front().problem.topology();
    std::vector<std::vector<front_point>> fronts;
    std::size_t fewest = 0; // devices with which something of each fits
    for (auto const& j : jobs) {
        auto const counts = detail::counts_of(j);
        try {
            fronts.push_back(device_front(j.problem, counts, search));
        } catch (invalid_input const& e) {
            throw invalid_input("place: job '", j.name, "': ", e.what());
        }
        auto const fits = std::ranges::find_if(fronts.back(), [](auto const& p) { return p.cost < cost_traits<picoseconds>::infinity(); });
        if (fits == fronts.back().end()) {
            std::string tried;
            for (auto const n : counts) tried += text(tried.empty() ? "" : ", ", n);
            throw invalid_input("place: job '", j.name,
                                "' has no plan that fits the memory and keeps the constraints, by number of devices: ", tried);
        }
        fewest += fits->devices.size();
    }
    if (fewest > topology.size())
        throw invalid_input("place: ", jobs.size(), " jobs need ", fewest, " devices by the fewest of their counts on which they fit: there are ",
                            topology.size());
    detail::divisions in_order(jobs, fronts, topology.size(), goal);
    std::map<std::pair<std::size_t, std::vector<std::size_t>>, std::optional<detail::job_there>> known; // nothing where none fits
    std::string did_not_fit;
    auto const run_on = [&](std::size_t n, front_point const& point, std::vector<std::size_t> const& on) -> std::optional<detail::job_there> const& {
        auto const [at, fresh] = known.try_emplace({n, on});
        if (!fresh) return at->second;
        if (auto const part = on_devices_if_allowed(jobs[n].problem, on)) {
            plan_simulator simulate(*part);
            auto plan = point.plan;
            auto cost = simulate(plan);
            auto const share = static_cast<double>(on.size()) / static_cast<double>(topology.size());
            if (cost != point.cost || !simulate.fits()) {
                try {
                    if (auto found = search(*part, plan, share); simulate(found) < cost) plan = std::move(found);
                } catch (invalid_input const& e) {
                    throw invalid_input("place: job '", jobs[n].name, "': the search on ", on.size(),
                                        on.size() == 1 ? " device: " : " devices: ", e.what());
                }
            }
            auto const alone = simulate.simulate(plan);
            if (simulate.fits()) at->second = {{.devices = on, .plan = std::move(plan), .alone = alone}, *part};
        }
        if (!at->second)
            did_not_fit = text("job '", jobs[n].name, "' has no plan that fits the memory and keeps the constraints on its devices from number ",
                               on.front(), " to ", on.back(), ", as it has on others: its counts must be such as have one on any");
        return at->second;
    };
    auto const place_all = [&](std::vector<std::size_t> const& points) -> std::vector<detail::job_there> {
        std::vector<std::size_t> order(jobs.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        auto const count = [&](std::size_t n) { return fronts[n][points[n]].devices.size(); };
        std::vector<bool> free(topology.size(), true);
        auto const stays = [&](std::size_t n) {
            return jobs[n].now.size() == count(n) && std::ranges::all_of(jobs[n].now, [&](auto d) { return free[d]; });
        };
        std::ranges::stable_sort(order, std::greater<>{}, [&](auto n) { return std::pair(jobs[n].now.size() == count(n), count(n)); });
        std::vector<std::optional<detail::job_there>> there(jobs.size());
        for (auto const n : order) {
            auto on = stays(n) ? jobs[n].now : topology::take_neighbours(topology, free, count(n));
            for (auto const d : on) free[d] = false;
            there[n] = run_on(n, fronts[n][points[n]], on);
            if (!there[n]) return {};
        }
        std::vector<detail::job_there> out;
        for (auto& j : there) out.push_back(std::move(*j));
        detail::share_links(out, topology);
        return out;
    };
    std::vector<placed_job> best;
    auto least = std::numeric_limits<double>::infinity();
    for (std::size_t tried = 0; tried < most_divisions; ++tried) {
        auto const division = in_order.next();
        if (!division || division->goal >= least) break;
        auto const there = place_all(division->points);
        if (there.empty()) continue;
        detail::goal_sum sum{goal};
        for (std::size_t n = 0; n < jobs.size(); ++n) sum.add(jobs[n].weight * static_cast<double>(there[n].placed.together.count()));
        if (sum.value >= least) continue;
        least = sum.value;
        best.clear();
        for (auto const& j : there) best.push_back(j.placed);
    }
    if (best.empty()) throw invalid_input("place: ", did_not_fit); // with fewest devices there is a division
    return best;
}

} // namespace parsearch::pipeline
