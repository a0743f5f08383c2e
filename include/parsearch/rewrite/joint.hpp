#pragma once
/// Joint search: the operators of a network and their parallelization decided together.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/rewrite/conversion.hpp>
#include <parsearch/rewrite/fold_weights.hpp>
#include <parsearch/rewrite/graph_pricer.hpp>
#include <parsearch/rewrite/graph_rule.hpp>
#include <parsearch/rewrite/graph_search.hpp>
#include <parsearch/rewrite/joint_cache.hpp>
#include <parsearch/rewrite/joint_options.hpp>
#include <parsearch/rewrite/names.hpp>
#include <parsearch/rewrite/operator_mapping.hpp>
#include <parsearch/rewrite/parallel_graph.hpp>
#include <parsearch/search/events.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/search/session.hpp>
#include <parsearch/search/telling.hpp>
#include <parsearch/space/experts.hpp>
#include <parsearch/space/replicas.hpp>

namespace parsearch::rewrite {

/// What `joint` finds: a graph that computes what the problem's does, and how to run it.
struct joint_plan {
    parallel_graph graph;            ///< in one task per operator
    graph::dense_graph operators;    ///< it as an operator graph, its weights folded, with the copies and partial sums of `replicas_of`; with the problem's names where it can be
    space::flat_strategy strategy;   ///< of these
    std::vector<std::string> applied; ///< the rules that led to it, in order: name, then operators
    bool mapped = false;              ///< the strategy is of machine mapping, or was refined from one that is
    std::string not_mapped{};         ///< of the graphs simulated, why the first was that was not mapped in all ways, or not with all views; empty where all were
};

/// What `joint` tells its observers of each graph that it simulated: the plan of its best strategy among those tried, before any is refined.
struct simulated_graph {
    std::uint64_t evaluation;
    std::uint64_t rank; ///< 0: the original, then the beam, last the graph that is best on one device
    joint_plan const& plan;
    picoseconds cost;
};

/// The operator graph of `g`, its weights folded: what is priced and simulated.
[[nodiscard]] inline graph::dense_graph folded_operators(parallel_graph const& g, purpose use = purpose::training) { return graph::read_graph(fold_weights(g, use)).graph; }

/// The options of the space of `problem`, with the copies and partial sums that any of its operators may have for all: operators are not the same ones when rules have been applied.
template <class P> [[nodiscard]] space::space_options replicas_of(P const& problem) {
    auto out = problem.space().options();
    for (auto const& op : problem.graph().operations)
        for (auto const& d : op.dims) {
            auto& most = d.kind == ops::dim_kind::copies ? out.copies : out.sums;
            if (!ops::repeats_work(d.kind) || d.extent > ops::max_replicas) continue;
            auto const both = std::lcm(most, d.extent);
            most = both <= ops::max_replicas ? both : std::max(most, d.extent);
        }
    return out;
}

namespace detail {

/// What a problem simulates.
template <class P> [[nodiscard]] purpose purpose_of(P const& problem) {
    return problem.workload()->options.training ? purpose::training : purpose::inference;
}
/// What is priced and simulated of `g` on the devices of `problem`.
template <class P> [[nodiscard]] graph::dense_graph operators_of(P const& problem, parallel_graph const& g) {
    return space::with_replicas(folded_operators(g, purpose_of(problem)), replicas_of(problem));
}

/// The best graph found from `original` with the price on the first device of the problem alone.
template <class Cache, class P, class Tell, class Ended>
[[nodiscard]] priced_graph optimised_alone(Cache& cache, P const& problem, parallel_graph const& original, std::vector<graph_rule> const& rules, joint_options const& options,
                                           Tell const& tell, Ended const& ended) {
    auto const price = [&](parallel_graph const& g) { return cache.one().price(folded_operators(g, purpose_of(problem))); };
    return graph_search(rules, options, price, tell, ended).run({original, price(original), {}});
}

} // namespace detail

/// The problem of the graph that is best on one device, rewritten by `rules` before anything is parallelized: what optimising in sequence starts from.
/// Options as of `joint`, of which the refinement and the memory limit do not count here. Throws `invalid_input` on options out of range.
template <class Oracle, class Device, class Operator>
[[nodiscard]] auto rewritten_first(parallelization<Oracle, Device, Operator> const& problem, std::vector<graph_rule> const& rules, joint_options const& options = {}) {
    validate(options);
    search::stopping limit(search::budget_of(options));
    std::uint64_t evaluations = 1;
    joint_cache cache(problem, options.pricing);
    auto const best = detail::optimised_alone(
        cache, problem, lift(problem.graph()).graph, rules, options, [&](std::size_t, std::size_t, picoseconds) { ++evaluations; }, [&] { return limit.due(evaluations).has_value(); });
    return with_graph(problem, folded_operators(best.graph, detail::purpose_of(problem)));
}

/// The result of `joint`.
using joint_result = search_result<joint_plan, picoseconds>;

/// `joint(problem, rules, rng, options, observers...)`: which operators compute the network and how each is parallelized, decided together (Unger et al.,
/// Unity, OSDI 2022, section 6), on a problem of `make_problem`.
///
/// 1. The graph is cut at operators that all ways pass into segments of at least `segment_operators`; segments of one shape change together.
/// 2. In each, best-first search over what `rules` make of it, in which no graph is priced twice (exact comparison); each rule is also applied as often as
///    it can be, at most once per node. What costs more than the best by `alpha` - 1 times the segment's share of the operators is not followed up.
/// 3. A graph's price is that of its best parallelization under the additive cost of `graph_pricer`, found exactly where its tables fit; tables are
///    kept from graph to graph.
/// 4. Before, the same search with the price on one device finds what optimising the graph before its parallelization would; it starts from there
///    where that is better than the original.
/// 5. The original, the `beam` best graphs and that of step 4 are simulated with the strategies that are best with each of `usual_countings` of
///    synchronisation, with data parallelism, and on one device alone, since additive costs do not know what overlaps.
/// 6. Then these graphs are mapped to parts of the machine (`map_operators`), so that branches can run side by side, again with each counting of
///    synchronisation; those that did best so far come first, and there are `mapping_effort` steps in all. What is found is simulated.
/// 7. The least simulated cost wins, and is refined by `refinement` evaluations of `search::mcmc`. So, unless a budget ends it before, it is at most what
///    parallelizing the original graph, or the graph optimised before, would give in the same way; and without refinement at most what it is without mapping.
///    Without rules it is the best of these parallelizations and mappings of the original graph.
///
/// Reason `exhausted`: sweeps over the segments found nothing more, each within its budget, or there were eight. Evaluations count graphs priced and strategies simulated,
/// but not those without which there is no answer once the search has ended: as many evaluations as a search took that time ended are a budget with which
/// it finds the same. `stats.trajectory` is the hash of the graph found;
/// `proposed` is told for each graph priced (`op`: the kind of segment, `move`: the rule, `cost`: additive), `improved` for simulated costs
/// (`op`: 0 for the original, then the beam, last the graph of step 4; `move`: 0, or 1 where the strategy is of machine mapping; 0 and 0 for what is refined), `simulated_graph` for each of these in the end. A budget may end the search in step 4. Deterministic for a seed but for the time. No lower bound: none is known over all graphs.
/// Throws `invalid_input` on options out of range.
struct joint_fn {
    template <class Oracle, class Device, class Operator, class R, class... Os>
        requires RandomBits<R>
    joint_result operator()(parallelization<Oracle, Device, Operator> const& problem, std::vector<graph_rule> const& rules, R& rng,
                            joint_options const& options = {}, Os&&... observers) const {
        validate(options);
        joint_cache cache(problem, options.pricing);
        return with(cache, problem, rules, rng, options, std::forward<Os>(observers)...);
    }

    /// The same with what earlier searches remembered in `cache`, and for later ones; graphs are priced by its options, not by `options.pricing`. Throws `invalid_input` where it is one
    /// of another topology.
    template <class Oracle, class Device, class Operator, class R, class... Os>
        requires RandomBits<R>
    joint_result with(joint_cache<Oracle, Device>& cache, parallelization<Oracle, Device, Operator> const& problem, std::vector<graph_rule> const& rules, R& rng,
                      joint_options const& options = {}, Os&&... observers) const {
        cache.require_like(problem);
        // One of simulated graphs alone handles an event, too.
        static_assert(search::observed<picoseconds, std::conditional_t<search::handles_any<Os, simulated_graph>, search::move_counts, std::remove_reference_t<Os>>...>::checked);
        validate(options);
        search::stopping limit(search::budget_of(options));
        search_stats stats;
        std::optional<stop_reason> ended;
        picoseconds best_cost = cost_traits<picoseconds>::infinity();
        auto const over = [&] {
            if (!ended) ended = limit.due(std::max<std::uint64_t>(stats.evaluations, 1));
            return ended.has_value();
        };
        auto const tell = [&](auto const& event) { search::tell(event, observers...); };
        auto const told = [&](std::size_t kind, std::size_t rule, picoseconds cost) {
            ++stats.evaluations;
            ++stats.proposals;
            tell(search::proposed<picoseconds>{stats.evaluations, kind, rule, cost, best_cost});
        };

        auto const original = lift(problem.graph()).graph;
        auto& pricer = cache.all();
        auto const price = [&](parallel_graph const& g) { return pricer.price(detail::operators_of(problem, g)); };
        auto const priced = [&](parallel_graph const& g, std::vector<std::string> applied) {
            if (!ended) ++stats.evaluations;
            return priced_graph{g, price(g), std::move(applied)};
        };
        priced_graph const plain = priced(original, {});
        std::vector<priced_graph> finalists{plain};
        if (!rules.empty()) {
            auto const first = detail::optimised_alone(cache, problem, original, rules, options, told, over);
            auto const sequential = priced(first.graph, first.applied);
            graph_search together(rules, options, price, told, over);
            static_cast<void>(together.run(sequential.price.cost < plain.price.cost ? sequential : plain));
            for (auto const& g : together.best()) finalists.push_back(g);
            finalists.push_back(sequential);
        }
        return simulated(problem, pricer, finalists, rng, options, stats, ended, limit, best_cost, over, tell);
    }

  private:
    template <class P, class Pricer, class R, class Over, class Tell>
    static joint_result simulated(P const& problem, Pricer& pricer, std::vector<priced_graph> const& finalists, R& rng, joint_options const& options,
                                  search_stats& stats, std::optional<stop_reason>& ended, search::stopping& limit, picoseconds& best_cost, Over const& over,
                                  Tell const& tell) {
        std::optional<joint_plan> best;
        auto const improved = [&](std::size_t rank, std::size_t move, picoseconds cost) {
            ++stats.improved;
            tell(search::improved<picoseconds>{stats.evaluations, rank, move, cost, best_cost});
        };
        struct to_map {
            std::size_t rank;
            decltype(with_graph(problem, std::declval<graph::dense_graph const&>())) candidate; ///< the problem of its operators
            std::vector<space::flat_strategy> found;
            std::optional<joint_plan> plan; ///< of the least cost
            picoseconds least = cost_traits<picoseconds>::infinity();
            bool refused = false;
        };
        std::vector<to_map> simulated_graphs;
        auto const simulate = [&](auto& evaluate, to_map& g, space::flat_strategy const& strategy, bool mapped) {
            auto const cost = evaluate(strategy);
            if (!ended) ++stats.evaluations;
            if (!g.plan || cost < g.least) {
                g.least = cost;
                g.plan = joint_plan{finalists[g.rank].graph, g.candidate.graph(), strategy, finalists[g.rank].applied, mapped};
            }
            if (best && !(cost < best_cost)) return;
            if (best) improved(g.rank, mapped, cost);
            best_cost = cost;
            best = g.plan;
        };
        static_cast<void>(over()); // what comes first is simulated in any case, and counts where the budget is not spent
        for (std::size_t rank = 0; rank < finalists.size(); ++rank) {
            if (best && over()) break;
            auto const& f = finalists[rank];
            bool const known = std::any_of(finalists.begin(), finalists.begin() + static_cast<std::ptrdiff_t>(rank), [&](auto const& g) { return g.graph == f.graph; });
            if (known) continue;
            auto& g = simulated_graphs.emplace_back(to_map{rank, with_graph(problem, detail::operators_of(problem, f.graph)), {f.price.strategy}, {}});
            auto evaluate = g.candidate.evaluator();
            simulate(evaluate, g, f.price.strategy, false);
            if (!over()) simulate(evaluate, g, data_parallel(g.candidate), false);
            if (!over()) simulate(evaluate, g, space::one_device(g.candidate.graph()), false);
            for (auto const& counting : usual_countings)
                if (!over()) simulate(evaluate, g, g.found.emplace_back(pricer.price(g.candidate.graph(), counting).strategy), false);
        }
        std::ranges::stable_sort(simulated_graphs, {}, &to_map::least);
        std::string not_mapped;
        auto views = static_cast<std::size_t>(options.mapping_views); // those that sufficed for the last graph: the next is much like it
        auto effort = options.mapping_effort;
        auto const keep_first = [&](std::string why) {
            if (not_mapped.empty()) not_mapped = std::move(why);
        };
        for (auto const& counting : usual_countings)
            for (auto& g : simulated_graphs) {
                if (g.refused) continue;
                if (views == 0 || effort == 0 || over()) {
                    keep_first(views == 0 ? "option 'mapping_views' is 0" : effort == 0 ? text("option 'mapping_effort', ", options.mapping_effort, " steps for all graphs, is used up") : "the search ended before");
                    continue;
                }
                operator_mapping_options asked{.views = views, .synchronisation = counting};
                asked.limits.effort = std::min(asked.limits.effort, effort);
                asked.limits.stopped = over;
                auto const made = map_operators(pricer, g.candidate.graph(), asked, g.found);
                effort -= std::min(effort, made.steps);
                if (!made.refused.empty()) keep_first(made.refused);
                g.refused = made.strategy.empty();
                if (g.refused || over()) continue;
                views = made.views;
                auto evaluate = g.candidate.evaluator();
                simulate(evaluate, g, made.strategy, true);
            }
        best->not_mapped = std::move(not_mapped);
        std::ranges::sort(simulated_graphs, {}, &to_map::rank);
        for (auto const& g : simulated_graphs) tell(simulated_graph{stats.evaluations, g.rank, *g.plan, g.least});
        if (options.refinement > 0 && !over()) {
            search::mcmc_options chain{.evaluations = options.refinement, .stop = options.stop};
            search::fix_derived(chain); // before a budget cuts it short
            if (options.time) chain.time = std::max(*options.time - limit.elapsed(), std::chrono::nanoseconds{0});
            if (options.evaluations) chain.evaluations = std::min(options.refinement, *options.evaluations - stats.evaluations);
            auto refined = search::mcmc(with_graph(problem, best->operators), best->strategy, rng, chain);
            stats.evaluations += refined.stats.evaluations;
            if (refined.reason != stop_reason::evaluation_budget || *chain.evaluations < options.refinement) ended = refined.reason;
            if (refined.cost < best_cost) {
                improved(0, 0, refined.cost);
                best_cost = refined.cost;
                best->strategy = std::move(refined.best);
            }
        }
        keep_names(best->operators, problem.graph());
        stats.trajectory = best->graph.hash();
        stats.seconds = std::chrono::duration<double>(limit.elapsed()).count();
        return {.best = *std::move(best), .cost = best_cost, .lower_bound = {}, .stats = stats, .reason = ended.value_or(stop_reason::exhausted)};
    }
};
inline constexpr joint_fn joint{};

} // namespace parsearch::rewrite
