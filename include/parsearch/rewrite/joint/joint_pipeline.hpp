#pragma once
/// Joint search and pipelines: which operators compute a network, how each is parallelized, and the stages and micro-batches in which they run.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/rewrite/joint/joint.hpp>
#include <parsearch/rewrite/rules/graph_rule.hpp>
#include <parsearch/search/kernel/events.hpp>
#include <parsearch/search/kernel/kernel.hpp>

namespace parsearch::rewrite {

/// Options of `joint_pipeline`. It always ends by itself.
struct joint_pipeline_options {
    joint_options joint{};
    pipeline::partition_options pipeline{}; ///< its budget is that of all graphs together; `starts` are of the problem's own operators
    std::uint64_t rewritten = 2;            ///< graphs that are partitioned beside the problem's own: those of least cost as `joint` simulated them
};

/// What `joint_pipeline` finds: operators, and a pipeline of them where that is faster than `joint.strategy`.
struct joint_pipeline_plan {
    using cost_type = picoseconds;
    joint_plan joint;
    std::optional<pipeline::pipeline_plan> pipeline; ///< in the numbers of `joint.operators`
};

/// A graph that was simulated, kept: see `simulated_graph`.
struct known_graph {
    joint_plan plan;
    picoseconds cost;
};

/// The best pipeline of several graphs; none where there is no graph, or no budget.
struct graphs_partitioned {
    struct found {
        std::size_t graph; ///< its place among them
        pipeline::pipeline_plan plan;
        picoseconds cost;
        bool feasible;
    };
    std::optional<found> best;
    search_stats stats;
    stop_reason reason = stop_reason::exhausted;
};

namespace detail {

/// The observer of the parts of a search: evaluations are counted on, and only what is better than all before is an improvement. Keeps the graphs
/// that are told.
class relay {
  public:
    using observer = search::listener<rewritten_graph, simulated_graph, pipeline::simulated_pipeline, search::improved<picoseconds>>;
    explicit relay(observer& to) : to_(to) {}

    search::verdict operator()(rewritten_graph event) { return priced(event); }
    search::verdict operator()(pipeline::simulated_pipeline event) { return priced(event); }
    search::verdict operator()(search::improved<picoseconds> event);
    search::verdict operator()(simulated_graph const& event) {
        graphs_.push_back({event.plan, event.cost});
        return told(to_(simulated_graph{event.evaluation + done_, event.rank, event.plan, event.cost}));
    }
    /// A part has ended with a cost.
    void done(search_stats const& stats, picoseconds cost) {
        done_ += stats.evaluations;
        best_ = std::min(best_, cost);
    }
    [[nodiscard]] picoseconds best() const noexcept { return best_; }
    [[nodiscard]] std::uint64_t improvements() const noexcept { return improved_; }
    [[nodiscard]] std::vector<known_graph>& graphs() noexcept { return graphs_; }
    /// `end` once an observer has said so: no further part begins.
    [[nodiscard]] search::verdict go_on() const noexcept { return verdict_; }

  private:
    template <class Event> search::verdict priced(Event& event) {
        event.evaluation += done_;
        event.best = best_;
        return told(to_(event));
    }
    search::verdict told(search::verdict answer) {
        if (answer == search::verdict::end) verdict_ = answer;
        return verdict_;
    }

    observer& to_;
    std::vector<known_graph> graphs_;
    picoseconds best_ = cost_traits<picoseconds>::infinity();
    std::uint64_t done_ = 0, improved_ = 0;
    search::verdict verdict_ = search::verdict::go_on;
};

} // namespace detail

/// `o` with what a part of the search that ended by itself has left of its budget, and with `bound` as one; none where it has left no evaluations.
[[nodiscard]] std::optional<pipeline::partition_options> left_of(pipeline::partition_options o, search_stats const& used, picoseconds bound);

/// The best of the pipelines that `pipeline::partition` finds for each of `graphs`, of operators of `problem` rewritten; each begins with the
/// strategy of its plan, and with `options.bound` and the costs of those before as bounds. `options.starts` are not used: they are of the problem's
/// own operators. The budget is that of all; when it is spent, the graphs that are left have no pipeline. Observers are told as by `partition`.
/// Deterministic but for the time. Throws as `partition`.
template <RandomBits R, class... Os>
[[nodiscard]] graphs_partitioned partition_graphs(parallelization const& problem, std::span<known_graph const> graphs, R& rng,
                                                  pipeline::partition_options options = {}, Os&&... observers) {
    validate(options);
    detail::relay::observer tell(observers...);
    detail::relay relay(tell);
    graphs_partitioned out;
    search::stopping limit(search::budget_of(options));
    auto const given = options;
    for (std::size_t n = 0; n < graphs.size(); ++n) {
        if (auto const ended = limit.due(out.stats.evaluations)) {
            out.reason = *ended;
            break;
        }
        if (given.evaluations) options.evaluations = *given.evaluations - out.stats.evaluations;
        if (given.time) options.time = std::max(*given.time - limit.elapsed(), std::chrono::nanoseconds{0});
        options.starts = {graphs[n].plan.strategy};
        auto part = pipeline::partition(with_graph(problem, graphs[n].plan.operators), {}, rng, options, relay);
        add_counts(out.stats, part.stats);
        out.stats.seconds += part.stats.seconds;
        relay.done(part.stats, part.cost);
        options.bound = std::min(options.bound.value_or(part.cost), part.cost);
        if (!out.best || part.cost < out.best->cost) out.best = {n, std::move(part.best), part.cost, part.reason != stop_reason::nothing_feasible};
        if (part.ended != stop_reason::exhausted) {
            out.reason = part.ended;
            break;
        }
    }
    out.stats.improved = relay.improvements();
    return out;
}

/// The result of `joint_pipeline`.
using joint_pipeline_result = search_result<joint_pipeline_plan, picoseconds>;

/// `joint_pipeline(problem, start, rng, options, observers...)`: operators, their strategy, stages and micro-batches, on a problem of `make_problem`.
/// `start` is a plan that is known from elsewhere, or `{}`; its parts are the starts of the parts of the search, and the answer is never worse.
///
/// 1. `pipeline::partition` of the problem's own operators, with all of `options.pipeline`.
/// 2. `joint`.
/// 3. Of the graphs that it simulated, the `options.rewritten` of least cost but for the original are partitioned as well (`partition_graphs`), with
///    what is left of the budget of pipelines.
///
/// The least cost wins, of equal ones what came first as `joint`, then step 1, then step 3. So it is never worse than `joint` and never worse than
/// `partition` with the same options. A cost of `joint` is that of the problem's evaluator, one of a pipeline that of `pipeline::pipeline_simulator`,
/// where devices run what they launch in order.
///
/// Reason `exhausted` where all parts ended by themselves, else that of the first that did not. Evaluations count those of the parts. Observers are
/// told what the parts tell: `rewritten_graph`, `simulated_graph`, `pipeline::simulated_pipeline`, and `search::improved<picoseconds>` of what is
/// better than all before; `stats.trajectory` is that of `joint`. Deterministic for a seed but for the time. No lower bound. Throws `invalid_input`
/// as the parts do.
struct joint_pipeline_fn {
    static constexpr search_traits traits{.rewrites = true};

    template <RandomBits R, class... Os>
    joint_pipeline_result operator()(parallelization const& problem, joint_pipeline_plan start, R& rng, joint_pipeline_options const& options = {},
                                     Os&&... observers) const {
        static_assert(search::tells<rewritten_graph, simulated_graph, pipeline::simulated_pipeline,
                                    search::improved<picoseconds>>::template all<std::remove_reference_t<Os>...>());
        validate(options.joint);
        detail::relay::observer tell(observers...);
        detail::relay relay(tell);
        search::kernel<joint_pipeline_plan, picoseconds> run("joint_pipeline", {}, {});
        auto reason = stop_reason::exhausted;
        bool feasible = false;
        auto const take = [&](auto&& plan, picoseconds cost, bool fits) {
            if (run.has_best() && !(cost < run.best_cost())) return;
            run.begin(std::forward<decltype(plan)>(plan), cost);
            feasible = fits;
        };
        auto const ended = [&](search_stats const& part, picoseconds cost, stop_reason why) {
            run.count(part);
            relay.done(part, cost);
            if (reason == stop_reason::exhausted) reason = why;
        };

        if (start.pipeline && !start.joint.strategy.empty()) { // in the numbers of its own operators
            pipeline::pipeline_simulator simulate(with_graph(problem, start.joint.operators));
            run.count_evaluation();
            auto const cost = simulate(start.pipeline->how, start.pipeline->strategy);
            take(start, cost, simulate.fits() && cost < cost_traits<picoseconds>::infinity());
            start.pipeline.reset();
            relay.done(run.stats(), cost);
        }
        auto own =
            pipeline::partition(problem, start.pipeline ? *std::move(start.pipeline) : pipeline::pipeline_plan{}, rng, options.pipeline, relay);
        ended(own.stats, own.cost, own.ended);
        auto rest_options = options.joint;
        if (relay.go_on() == search::verdict::end) rest_options.evaluations = 1; // no answer is without it
        auto joined = joint(problem, std::move(start.joint), rng, rest_options, relay);
        ended(joined.stats, joined.cost, joined.ended);
        auto graphs = std::move(relay.graphs());
        auto const original = std::move(graphs.front()); // has the rank 0
        graphs.erase(graphs.begin());
        std::ranges::stable_sort(graphs, {}, &known_graph::cost);
        if (graphs.size() > options.rewritten) graphs.resize(static_cast<std::size_t>(options.rewritten), original);

        take(joint_pipeline_plan{.joint = std::move(joined.best), .pipeline = {}}, joined.cost, joined.reason != stop_reason::nothing_feasible);
        if (own.cost < run.best_cost())
            take(joint_pipeline_plan{in_own_numbers(original.plan, problem), std::move(own.best)}, own.cost,
                 own.reason != stop_reason::nothing_feasible);
        auto const left = left_of(options.pipeline, own.stats, relay.best());
        if (relay.go_on() == search::verdict::end) {
            reason = stop_reason::observer;
        } else if (own.ended == stop_reason::exhausted && !left && !graphs.empty()) {
            if (reason == stop_reason::exhausted) reason = stop_reason::evaluation_budget;
        } else if (own.ended == stop_reason::exhausted && left) {
            auto rest = partition_graphs(problem, graphs, rng, *left, relay);
            ended(rest.stats, rest.best ? rest.best->cost : relay.best(), rest.reason);
            if (rest.best && rest.best->cost < run.best_cost()) {
                auto plan = joint_pipeline_plan{std::move(graphs[rest.best->graph].plan), std::move(rest.best->plan)};
                keep_names(plan.joint.operators, problem.graph());
                take(std::move(plan), rest.best->cost, rest.best->feasible);
            }
        }
        run.count_improvements(relay.improvements());
        run.set_trajectory(joined.stats.trajectory);
        return run.finish(reason, feasible);
    }

  private:
    /// The plan of the original with the operators of `problem` as they are: lifted, they are in topological order. Where some of them were folded
    /// into weights, or have not all the copies and partial sums that others have, the strategy is what the space has nearest to data parallelism.
    static joint_plan in_own_numbers(joint_plan plan, parallelization const& problem);
};
inline constexpr joint_pipeline_fn joint_pipeline{};

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/joint/joint_pipeline.ipp>
#endif
