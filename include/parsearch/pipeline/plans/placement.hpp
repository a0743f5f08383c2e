#pragma once
/// Several jobs on one cluster: what each would do with more devices or fewer, and which ones each gets.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/problem/on_devices.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/space/strategy_space.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::pipeline {

namespace detail {
/// A search from a start of type `S`, which may be told its part of the effort.
template <class F, class S>
concept search_of = std::is_invocable_r_v<S, F const&, parallelization const&, S const&> ||
                    std::is_invocable_r_v<S, F const&, parallelization const&, S const&, double>;
} // namespace detail

/// A search as schedulers call it: answers a plan of a problem, or a strategy, from a start. Any search will do; of lambdas say the types of the
/// parameters, which tell the two apart:
///
///     job_search const plans = [](parallelization const& p, pipeline_plan const& start, double effort) {
///         std::mt19937_64 rng{1};
///         return partition(p, start, rng, {.time = std::chrono::nanoseconds(std::llround(effort * 1e10))}).best;
///     };
///     job_search const strategies = [](parallelization const& p, space::flat_strategy const& start) {
///         std::mt19937_64 rng{1};
///         return search::mcmc(p, start, rng, {.evaluations = 5000}).best;
///     };
///
/// The third argument, which may be left out, says which part of its effort the call is worth: above 0, at most 1. A search that ends by time should
/// take it.
class job_search {
  public:
    template <class F>
        requires detail::search_of<F, space::flat_strategy> || detail::search_of<F, pipeline_plan>
    job_search(F f) {
        if constexpr (detail::search_of<F, space::flat_strategy>)
            search_ = [f = std::move(f)](parallelization const& p, pipeline_plan const& start, double effort) {
                return pipeline_plan{.how = unpipelined(p.graph()), .strategy = call(f, p, start.strategy, effort)};
            };
        else search_ = [f = std::move(f)](parallelization const& p, pipeline_plan const& start, double effort) { return call(f, p, start, effort); };
    }

    [[nodiscard]] pipeline_plan operator()(parallelization const& problem, pipeline_plan const& start, double effort = 1) const {
        return search_(problem, start, effort);
    }

  private:
    template <class F, class S> static S call(F const& f, parallelization const& p, S const& start, double effort) {
        if constexpr (std::is_invocable_r_v<S, F const&, parallelization const&, S const&>) return f(p, start);
        else return f(p, start, effort);
    }

    std::function<pipeline_plan(parallelization const&, pipeline_plan const&, double)> search_;
};

/// What a job does on some devices.
struct front_point {
    std::vector<std::size_t> devices; ///< ascending
    pipeline_plan plan;               ///< of `on_devices(problem, devices)`
    picoseconds cost{};               ///< of an iteration; infinity where nothing that was found fits the memory
};

/// The iteration time of `problem` on as many of its devices as each of `counts` says: neighbours on as few and as full nodes as there are, on a
/// regular cluster the first ones. `search` is called once for each, the smallest first, from the best of the problem's starts, data parallelism
/// among them, and the plan found for fewer devices. So where devices and links are alike the cost never rises with the devices. A number on which
/// constraints leave an operator nothing has a plan without operators and an infinite cost. Throws `invalid_input` where `counts` is empty, not
/// ascending, or has 0 or more than all devices, and as `on_devices` and the simulators. Complexity: that of the searches. The largest number is
/// worth all of a search's effort, the others their share of its devices, and together no more than it: as an evaluation takes time in proportion to
/// devices, counts that double take about twice the time of the largest, whether evaluations end a search or time.
[[nodiscard]] std::vector<front_point> device_front(parallelization const& problem, std::span<std::size_t const> counts, job_search const& search);

/// A job that wants devices.
struct job {
    std::string name;
    parallelization problem;           ///< on all devices of the cluster
    double weight = 1;                 ///< of its time in the sum that is to be least: steps to do, or what a second costs
    std::vector<std::size_t> counts{}; ///< of devices that it may have, ascending; none: 1, 2, 4, ... as constraints allow, as many as now, and all
    std::vector<std::size_t> now{};    ///< devices that it has, ascending: it keeps them where it gets as many; none: it has none
};

/// What is to be least.
enum class placement_goal : std::uint8_t {
    weighted_sum, ///< of jobs' step times
    longest       ///< weighted step time of a job
};

/// Where a job runs.
struct placed_job {
    std::vector<std::size_t> devices; ///< of the cluster, ascending
    pipeline_plan plan;               ///< of `on_devices(problem, devices)`
    picoseconds alone{}, together{};  ///< time of its step, if the others do not run, and if all begin theirs at once
};

namespace detail {

/// A job on its devices.
struct job_there {
    placed_job placed;
    parallelization part; ///< of its problem
};
/// Sets `together`: the steps of all jobs simulated at once, with the links of `cluster` that they share. Jobs on whose routes no other has a link
/// take as long as alone.
void share_links(std::span<job_there> jobs, topology::dense_topology const& cluster);

/// What first differs.
[[nodiscard]] std::string difference(topology::dense_topology const& a, topology::dense_topology const& b);
} // namespace detail

/// What jobs do to each other that have devices already: the plan of each, on those that it has (`job::now`), alone and with all others, one step of
/// each. A short step that ends before the long one of another sends anything meets nothing of it. A plan may need more memory than there is. Throws
/// `invalid_input` where jobs are none for `place`, one has no devices, plans are not one for each, and as `on_devices` and the simulators.
/// Complexity: a simulation of each, and of all tasks of jobs that share links.
[[nodiscard]] std::vector<placed_job> time_together(std::span<job const> jobs, std::span<pipeline_plan const> plans);

/// The divisions that `place` simulates at most.
inline constexpr std::size_t most_divisions = 32;

/// Which devices each of `jobs` gets, and how it runs there, so that `goal` is least of the times `together`, in which each makes one step. Divisions
/// of the devices among the jobs' `counts` are simulated with the links that jobs share, in order of what the goal is on the fronts
/// (`device_front`), where none are shared, until the next is no better even so, or `most_divisions` were; of equal ones first where the sum is
/// least, and most devices are left. In each, jobs that get as many devices as they have keep these; then the largest takes its devices first,
/// neighbours where there are. Where a plan takes another time there than on those of the front, `search` is called again. All problems are of one
/// cluster: with the same devices, by kind, node, memory and links, whatever they are called. Each is simulated with its own oracle and options.
///
///     auto const placed = place({{{"big", big}, {"small", small, 0.5}}}, search);
///
/// Throws `invalid_input` where there are no jobs, names are empty or alike, a weight is not positive and at most 1e100, devices that jobs have are
/// not ascending, none of the cluster or another's, problems are of different clusters, transfers, or replicas, or of another discipline than fifo,
/// jobs can not all have devices on which they fit, and as `device_front`. Complexity: a search for each count of each job, and for each division a
/// simulation of all tasks of jobs that share links, and a search for each job whose plan takes another time on its devices.
[[nodiscard]] std::vector<placed_job> place(std::span<job const> jobs, job_search const& search, placement_goal goal = placement_goal::weighted_sum);

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/plans/placement.ipp>
#endif
