#pragma once
/// Joint search and pipelines: which operators compute a network, how each is parallelized, and the stages and micro-batches in which they run.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/rewrite/joint/joint.hpp>
#include <parsearch/rewrite/rules/graph_rule.hpp>
#include <parsearch/search/kernel/events.hpp>
#include <parsearch/search/kernel/notify.hpp>
#include <parsearch/search/kernel/session.hpp>

namespace parsearch::rewrite {

/// Options of `joint_pipeline`. It always ends by itself.
struct joint_pipeline_options {
    joint_options joint{};
    pipeline::partition_options pipeline{}; ///< its budget is that of all graphs together; `starts` are of the problem's own operators
    std::uint64_t rewritten = 2;            ///< graphs that are partitioned beside the problem's own: those of least cost as `joint` simulated them
};

/// What `joint_pipeline` finds: operators, and a pipeline of them where that is faster than `joint.strategy`.
struct joint_pipeline_plan {
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
    };
    std::optional<found> best;
    search_stats stats;
    stop_reason reason = stop_reason::exhausted;
};

namespace detail {

/// Tells observers of a search what its parts tell: evaluations are counted on, and only what is better than all before is an improvement. Keeps the graphs
/// that are told.
template <class... Os> class relay {
  public:
    explicit relay(Os&... observers) : observers_(observers...) {}

    void operator()(search::proposed<picoseconds> event) {
        event.evaluation += done_;
        event.best = best_;
        tell(event);
    }
    void operator()(search::improved<picoseconds> event) {
        if (!(event.cost < best_)) return;
        event.evaluation += done_;
        event.before = std::exchange(best_, event.cost);
        ++improved_;
        tell(event);
    }
    void operator()(simulated_graph const& event) {
        graphs_.push_back({event.plan, event.cost});
        tell(simulated_graph{event.evaluation + done_, event.rank, event.plan, event.cost});
    }
    /// A part has ended with a cost.
    void done(search_stats const& stats, picoseconds cost) {
        done_ += stats.evaluations;
        best_ = std::min(best_, cost);
    }
    [[nodiscard]] picoseconds best() const noexcept { return best_; }
    [[nodiscard]] std::uint64_t improvements() const noexcept { return improved_; }
    [[nodiscard]] std::vector<known_graph>& graphs() noexcept { return graphs_; }

  private:
    void tell(auto const& event) {
        std::apply([&](auto&... observers) { search::notify(event, observers...); }, observers_);
    }
    std::tuple<Os&...> observers_;
    std::vector<known_graph> graphs_;
    picoseconds best_ = cost_traits<picoseconds>::infinity();
    std::uint64_t done_ = 0, improved_ = 0;
};

} // namespace detail

/// `o` with what a part of the search that ended by itself has left of its budget, and with `bound` as one; none where it has left no evaluations.
[[nodiscard]] inline std::optional<pipeline::partition_options> left_of(pipeline::partition_options o, search_stats const& used, picoseconds bound) {
    o.bound = std::min(o.bound.value_or(bound), bound);
    if (o.evaluations) *o.evaluations -= std::min(*o.evaluations, used.evaluations);
    if (o.time) *o.time -= std::min(*o.time, std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(used.seconds)));
    if (o.evaluations == 0) return {};
    return o;
}

/// The best of the pipelines that `pipeline::partition` finds for each of `graphs`, of operators of `problem` rewritten; each begins with the strategy of its plan, and
/// with `options.bound` and the costs of those before as bounds. `options.starts` are not used: they are of the problem's own operators. The budget is that of all; when
/// it is spent, the graphs that are left have no pipeline. Observers are told as by `partition`. Deterministic but for the time. Throws as `partition`.
template <class... Os>
[[nodiscard]] graphs_partitioned partition_graphs(parallelization const& problem, std::span<known_graph const> graphs,
                                                  pipeline::partition_options options = {}, Os&&... observers) {
    validate(options);
    detail::relay<std::remove_reference_t<Os>...> relay(observers...);
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
        auto part = pipeline::partition(with_graph(problem, graphs[n].plan.operators), options, relay);
        add_counts(out.stats, part.stats);
        out.stats.seconds += part.stats.seconds;
        relay.done(part.stats, part.cost);
        options.bound = std::min(options.bound.value_or(part.cost), part.cost);
        if (!out.best || part.cost < out.best->cost) out.best = {n, std::move(part.best), part.cost};
        if (part.reason != stop_reason::exhausted) {
            out.reason = part.reason;
            break;
        }
    }
    out.stats.improved = relay.improvements();
    return out;
}

/// The result of `joint_pipeline`.
using joint_pipeline_result = search_result<joint_pipeline_plan, picoseconds>;

/// `joint_pipeline(problem, rules, rng, options, observers...)`: operators, their strategy, stages and micro-batches, on a problem of `make_problem`.
///
/// 1. `pipeline::partition` of the problem's own operators, with all of `options.pipeline`.
/// 2. `joint`.
/// 3. Of the graphs that it simulated, the `options.rewritten` of least cost but for the original are partitioned as well (`partition_graphs`), with what is left of the
///    budget of pipelines.
///
/// The least cost wins, of equal ones what came first as `joint`, then step 1, then step 3. So it is never worse than `joint` and never worse than `partition` with the same options.
/// A cost of `joint` is that of the problem's evaluator, one of a pipeline that of `pipeline::pipeline_simulator`, where devices run what they launch in order.
///
/// Reason `exhausted` where all parts ended by themselves, else that of the first that did not. Evaluations count those of the parts. Observers are told what the parts
/// tell, `improved` of what is better than all before; `stats.trajectory` is that of `joint`. Deterministic for a seed but for the time. No lower bound. Throws `invalid_input` as the parts do.
struct joint_pipeline_fn {
    template <class R, class... Os>
        requires RandomBits<R>
    joint_pipeline_result operator()(parallelization const& problem, std::vector<graph_rule> const& rules, R& rng,
                                     joint_pipeline_options const& options = {}, Os&&... observers) const {
        validate(options.joint);
        detail::relay<std::remove_reference_t<Os>...> relay(observers...);
        search_stats stats;
        auto reason = stop_reason::exhausted;
        auto const ended = [&](search_stats const& part, picoseconds cost, stop_reason why) {
            add_counts(stats, part);
            stats.seconds += part.seconds;
            relay.done(part, cost);
            if (reason == stop_reason::exhausted) reason = why;
        };

        auto own = pipeline::partition(problem, options.pipeline, relay);
        ended(own.stats, own.cost, own.reason);
        auto joined = joint(problem, rules, rng, options.joint, relay);
        ended(joined.stats, joined.cost, joined.reason);
        auto graphs = std::move(relay.graphs());
        auto const original = std::move(graphs.front()); // has the rank 0
        graphs.erase(graphs.begin());
        std::ranges::stable_sort(graphs, {}, &known_graph::cost);
        if (graphs.size() > options.rewritten) graphs.resize(static_cast<std::size_t>(options.rewritten), original);

        joint_pipeline_result out{.best = {.joint = std::move(joined.best), .pipeline = {}}, .cost = joined.cost, .lower_bound = {}, .stats = {}, .reason = {}};
        if (own.cost < out.cost) {
            out.cost = own.cost;
            out.best = {in_own_numbers(original.plan, problem), std::move(own.best)};
        }
        auto const left = left_of(options.pipeline, own.stats, relay.best());
        if (own.reason == stop_reason::exhausted && !left && !graphs.empty()) {
            if (reason == stop_reason::exhausted) reason = stop_reason::evaluation_budget;
        } else if (own.reason == stop_reason::exhausted && left) {
            auto rest = partition_graphs(problem, graphs, *left, relay);
            ended(rest.stats, rest.best ? rest.best->cost : relay.best(), rest.reason);
            if (rest.best && rest.best->cost < out.cost) {
                out.cost = rest.best->cost;
                out.best = {std::move(graphs[rest.best->graph].plan), std::move(rest.best->plan)};
                keep_names(out.best.joint.operators, problem.graph());
            }
        }
        stats.improved = relay.improvements();
        stats.trajectory = joined.stats.trajectory;
        out.stats = stats;
        out.reason = reason;
        return out;
    }

  private:
    /// The plan of the original with the operators of `problem` as they are: lifted, they are in topological order. Where some of them were folded into
    /// weights, or have not all the copies and partial sums that others have, the strategy is data parallelism.
    static joint_plan in_own_numbers(joint_plan plan, parallelization const& problem) {
        auto const& g = problem.graph();
        bool same = plan.strategy.size() == g.size();
        for (std::size_t k = 0; k < g.size() && same; ++k) same = plan.operators.operations[k].dims == g.operations[g.order[k]].dims;
        auto strategy = data_parallel(problem);
        for (std::size_t k = 0; k < g.size() && same; ++k) strategy[g.order[k]] = plan.strategy[k];
        plan.operators = g;
        plan.strategy = std::move(strategy);
        return plan;
    }
};
inline constexpr joint_pipeline_fn joint_pipeline{};

} // namespace parsearch::rewrite
