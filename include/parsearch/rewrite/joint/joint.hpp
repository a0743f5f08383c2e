#pragma once
/// Joint search: the operators of a network and their parallelization decided together.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/rewrite/joint/graph_pricer.hpp>
#include <parsearch/rewrite/joint/graph_search.hpp>
#include <parsearch/rewrite/joint/joint_cache.hpp>
#include <parsearch/rewrite/joint/joint_options.hpp>
#include <parsearch/rewrite/joint/operator_mapping.hpp>
#include <parsearch/rewrite/parallel/conversion.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>
#include <parsearch/rewrite/parallel/rewritten_names.hpp>
#include <parsearch/rewrite/rules/fold_weights.hpp>
#include <parsearch/rewrite/rules/graph_rule.hpp>
#include <parsearch/search/bounds/problem_bounds.hpp>
#include <parsearch/search/kernel/events.hpp>
#include <parsearch/search/kernel/kernel.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/space/replicated_operators.hpp>

namespace parsearch::rewrite {

/// What `joint` finds: a graph that computes what the problem's does, and how to run it.
struct joint_plan {
    using cost_type = picoseconds;
    parallel_graph graph;               ///< in one task per operator
    graph::dense_graph operators;       ///< it as an operator graph, its weights folded, with the copies and partial sums of `replicas_of`; with the
                                        ///< problem's names where it can be
    space::flat_strategy strategy;      ///< of these
    std::vector<std::string> applied;   ///< the rules that led to it, in order: name, then operators
    bool mapped = false;                ///< the strategy is of machine mapping, or was refined from one that is
    std::optional<picoseconds> bound{}; ///< neither `strategy` nor any other of the space of `operators` costs less; none where not asked for, where
                                        ///< a budget ended the search, or the oracle refuses one of these
    std::string
        not_mapped{}; ///< of the graphs simulated, why the first was that was not mapped in all ways, or not with all views; empty where all were
};

/// A rule made a graph, which was priced.
struct rewritten_graph {
    std::uint64_t evaluation;
    std::size_t segment; ///< number of the kind of segment that the rule changed
    std::size_t rule;    ///< its place among the options' rules
    picoseconds cost;    ///< additive: see `graph_pricer`
    picoseconds best;    ///< the least simulated cost before
};

/// A graph that `joint` simulated: the plan of its best strategy among those tried, before any is refined. Told in the order of `rank`.
struct simulated_graph {
    std::uint64_t evaluation;
    std::uint64_t rank; ///< 0: the original, then the beam, last the graph that is best on one device
    joint_plan const& plan;
    picoseconds cost;
};

/// The operator graph of `g`, its weights folded: what is priced and simulated.
[[nodiscard]] inline graph::dense_graph folded_operators(parallel_graph const& g, purpose use = purpose::training) {
    return read_operators(fold_weights(g, use)).graph;
}

/// The options of the space of `problem`, with the copies and partial sums that any of its operators may have for all: operators are not the same
/// ones when rules have been applied.
[[nodiscard]] space::space_options replicas_of(parallelization const& problem);

namespace detail {

/// What a problem simulates.
[[nodiscard]] inline purpose purpose_of(parallelization const& problem) {
    return problem.workload()->options.training ? purpose::training : purpose::inference;
}
/// What is priced and simulated of `g` on the devices of `problem`.
[[nodiscard]] inline graph::dense_graph operators_of(parallelization const& problem, parallel_graph const& g) {
    return space::with_replicas(folded_operators(g, purpose_of(problem)), replicas_of(problem));
}

/// One joint search: see `joint`.
class joint_run {
  public:
    using observer = search::listener<rewritten_graph, simulated_graph, search::improved<picoseconds>, search::bound_raised<picoseconds>,
                                      search::progress<picoseconds>, search::budget_spent<picoseconds>>;

    /// Refers to all of its arguments. Throws `invalid_input` where the cache is of another topology.
    joint_run(joint_cache& cache, parallelization const& problem, joint_options const& options, observer& tell)
        : cache_(cache), problem_(problem), options_(options), kernel_("joint", search::budget_of(options), {}, tell) {
        cache.require_like(problem);
    }

    template <class R> [[nodiscard]] search_result<joint_plan, picoseconds> result(joint_plan start, R& rng) {
        if (!start.strategy.empty()) {
            auto const given = with_graph(problem_, start.operators);
            count();
            auto const cost = given.evaluator()(start.strategy);
            start.bound.reset(); // that of another search
            offer(start, cost, given.feasible(start.strategy));
            static_cast<void>(over());
        }
        auto const graphs = finalists();
        static_cast<void>(over()); // what comes first is simulated in any case, and counts where the budget is not spent
        simulate_all(graphs);
        map_all(graphs);
        std::ranges::sort(simulated_, {}, &simulated::rank);
        for (auto const& g : simulated_) kernel_.tell(simulated_graph{kernel_.stats().evaluations, g.rank, *g.plan, g.least});
        if (options_.refinement > 0 && !over()) refine(rng);
        if (kernel_.observer_ends()) ended_ = stop_reason::observer;
        if (options_.bound && !ended_) find_bound();
        keep_names(kernel_.amend_best().operators, problem_.graph());
        kernel_.set_trajectory(kernel_.best().graph.hash());
        return kernel_.finish(ended_.value_or(stop_reason::exhausted), feasible_);
    }

  private:
    /// A graph that is simulated, and the best of it so far.
    struct simulated {
        std::size_t rank;
        parallelization candidate; ///< the problem of its operators
        std::vector<space::flat_strategy> found;
        std::optional<joint_plan> plan{}; ///< of the least cost
        picoseconds least = cost_traits<picoseconds>::infinity();
        bool refused = false; ///< to be mapped
    };

    [[nodiscard]] bool over() {
        if (!ended_) ended_ = kernel_.due();
        return ended_.has_value();
    }
    void count() {
        if (!ended_) kernel_.count_evaluation();
    }
    void offer(joint_plan const& plan, picoseconds cost, bool feasible) {
        if (kernel_.offer(plan, cost)) feasible_ = feasible;
    }

    /// The original, the best graphs, and that which is best on one device.
    [[nodiscard]] std::vector<priced_graph> finalists();

    template <class E>
    void simulate(std::vector<priced_graph> const& graphs, E& evaluate, simulated& g, space::flat_strategy const& strategy, bool mapped) {
        auto const cost = evaluate(strategy);
        count();
        if (!g.plan || cost < g.least) {
            g.least = cost;
            g.plan = joint_plan{graphs[g.rank].graph, g.candidate.graph(), strategy, graphs[g.rank].applied, mapped};
        }
        if (!kernel_.has_best() || cost < kernel_.best_cost()) offer(*g.plan, cost, g.candidate.feasible(strategy));
        if (!ended_) kernel_.report(options_.progress_interval, cost);
    }
    /// Each with the strategies that are best under several countings of synchronisation, and the experts'.
    void simulate_all(std::vector<priced_graph> const& graphs);
    /// To parts of the machine, those that did best first.
    void map_all(std::vector<priced_graph> const& graphs);
    template <class R> void refine(R& rng) {
        search::mcmc_options chain{.evaluations = options_.refinement, .stop = options_.stop};
        search::fix_derived(chain); // before a budget cuts it short
        if (auto const left = kernel_.time_left(); left < std::chrono::nanoseconds::max()) chain.time = left;
        chain.evaluations = std::min(options_.refinement, kernel_.evaluations_left());
        auto const problem = with_graph(problem_, kernel_.best().operators);
        auto refined = search::mcmc(problem, kernel_.best().strategy, rng, chain);
        search_stats part;
        part.evaluations = refined.stats.evaluations;
        kernel_.count(part);
        if (refined.ended != stop_reason::evaluation_budget || *chain.evaluations < options_.refinement) ended_ = refined.ended;
        if (!(refined.cost < kernel_.best_cost())) return;
        auto plan = kernel_.best();
        plan.strategy = std::move(refined.best);
        offer(plan, refined.cost, problem.feasible(plan.strategy));
    }

    void find_bound();

    joint_cache& cache_;
    parallelization const& problem_;
    joint_options const& options_;
    search::kernel<joint_plan, picoseconds, observer> kernel_;
    std::optional<stop_reason> ended_;
    std::vector<simulated> simulated_;
    bool feasible_ = false; ///< the best
};

} // namespace detail

/// The problem of other operators that compute the same.
struct rewritten_problem {
    parallelization problem;          ///< its operators have names of their own, made of the model's
    std::vector<std::string> applied; ///< the rules that led to it, in order: name, then operators; empty: the operators are the model's
    std::uint64_t graphs = 0;         ///< priced, the model's among them
    bool complete = true;             ///< no budget ended it; else blocks that repeat may differ
};

/// The problem of the graph that is best on one device, rewritten by the options' rules before anything is parallelized: what optimising in sequence
/// starts from. Options as of `joint`, of which the refinement and the memory limit do not count here; a budget that ends it leaves the best so far.
/// Throws `invalid_input` on options out of range.
[[nodiscard]] rewritten_problem rewritten_first(parallelization const& problem, joint_options const& options);

/// The result of `joint`.
using joint_result = search_result<joint_plan, picoseconds>;

/// `joint(problem, start, rng, options, observers...)`: which operators compute the network and how each is parallelized, decided together (Unger et
/// al., Unity, OSDI 2022, section 6), on a problem of `make_problem`. `start` is a plan that is known from elsewhere, or `{}`; it is priced, and the
/// answer is never worse.
///
/// 1. The graph is cut at operators that all ways pass into segments of at least `segment_operators`; segments of one shape change together.
/// 2. In each, best-first search over what `options.rules` make of it, in which no graph is priced twice (exact comparison); each rule is also
///    applied as often as it can be, at most once per node. What costs more than the best by `alpha` - 1 times the segment's share of the operators
///    is not followed up.
/// 3. A graph's price is that of its best parallelization under the additive cost of `graph_pricer`, found exactly where its tables fit; tables are
///    kept from graph to graph.
/// 4. Before, the same search with the price on one device finds what optimising the graph before its parallelization would; it starts from there
///    where that is better than the original.
/// 5. The original, the `beam` best graphs and that of step 4 are simulated with the strategies that are best with each of `usual_countings` of
///    synchronisation, with data parallelism, and on one device alone, since additive costs do not know what overlaps.
/// 6. Then these graphs are mapped to parts of the machine (`map_operators`), so that branches can run side by side, again with each counting of
///    synchronisation; those that did best so far come first, and there are `mapping_effort` steps in all. What is found is simulated.
/// 7. The least simulated cost wins, and is refined by `refinement` evaluations of `search::mcmc`. So, unless a budget ends it before, it is at most
///    what parallelizing the original graph, or the graph optimised before, would give in the same way; and without refinement at most what it is
///    without mapping. Without rules it is the best of these parallelizations and mappings of the original graph.
/// 8. What parallelizing the graph found can cost at least is told by `search::root_bound` (`joint_plan::bound`), in up to some seconds.
///
/// Reason `exhausted`: sweeps over the segments found nothing more, each within its budget, or there were eight. Evaluations count graphs priced and
/// strategies simulated, but not those without which there is no answer once the search has ended: as many evaluations as a search took that time
/// ended are a budget with which it finds the same. `stats.trajectory` is the hash of the graph found. Observers are told `rewritten_graph`,
/// `simulated_graph`, and of picoseconds `search::improved`, `bound_raised`, `progress` and `budget_spent`. A budget may end the search in step 4.
/// Deterministic for a seed but for the time. `lower_bound` is the plan's `bound` where there are no rules; over all graphs that rules make none is
/// known. Throws `invalid_input` on options out of range, where the cache is of another topology, and where the problem's space has `allows` or
/// `admits`: rules make operators of other names.
struct joint_fn {
    static constexpr search_traits traits{.rewrites = true};

    template <RandomBits R, class... Os>
    joint_result operator()(parallelization const& problem, joint_plan start, R& rng, joint_options const& options = {}, Os&&... observers) const {
        static_assert(
            search::tells<rewritten_graph, simulated_graph, search::improved<picoseconds>, search::bound_raised<picoseconds>,
                          search::progress<picoseconds>, search::budget_spent<picoseconds>>::template all<std::remove_reference_t<Os>...>());
        validate(options);
        if (auto const& o = problem.space().options(); o.allows || o.admits)
            throw invalid_input("joint: the problem's space has '", o.allows ? "allows" : "admits",
                                "', which knows operators by name: must be empty, as rules make others");
        if (problem.options().balanced)
            throw invalid_input(
                "joint: option 'balanced' of the simulation is true: prices of operators are kept for other graphs, and so would be divided "
                "otherwise");
        std::optional<joint_cache> own;
        if (!options.cache) own.emplace(problem, options.pricing);
        detail::joint_run::observer tell(observers...);
        return detail::joint_run(options.cache ? *options.cache : *own, problem, options, tell).result(std::move(start), rng);
    }
};
inline constexpr joint_fn joint{};

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/joint/joint.ipp>
#endif
