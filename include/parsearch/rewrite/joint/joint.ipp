#pragma once
// Joint search: the operators of a network and their parallelization decided together.

#include <numeric>

#include <parsearch/rewrite/joint/joint.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

namespace parsearch::rewrite::detail {

/// The best graph found from `original` with the price on the first device of the problem alone.
[[nodiscard]] inline priced_graph optimised_alone(joint_cache& cache, parallelization const& problem, parallel_graph const& original,
                                                  joint_options const& options, graph_search::told const& tell, std::function<bool()> const& ended) {
    auto const price = [&](parallel_graph const& g) { return cache.one().price(folded_operators(g, purpose_of(problem))); };
    return graph_search(options.rules, options, price, tell, ended).run({original, price(original), {}});
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE space::space_options replicas_of(parallelization const& problem) {
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

} // namespace parsearch::rewrite

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE std::vector<priced_graph> joint_run::finalists() {
    auto const price = [&](parallel_graph const& g) { return cache_.all().price(operators_of(problem_, g)); };
    auto const priced = [&](parallel_graph const& g, std::vector<std::string> applied) {
        count();
        return priced_graph{g, price(g), std::move(applied)};
    };
    auto const told = [&](std::size_t kind, std::size_t rule, picoseconds cost) {
        kernel_.count_evaluation();
        kernel_.count_proposal();
        kernel_.tell(rewritten_graph{kernel_.stats().evaluations, kind, rule, cost, kernel_.best_cost()});
        kernel_.report(options_.progress_interval, cost);
    };
    auto const ended = [&] { return over(); };
    auto const original = lift(problem_.graph()).graph;
    std::vector<priced_graph> out{priced(original, {})};
    if (options_.rules.empty()) return out;
    auto const first = optimised_alone(cache_, problem_, original, options_, told, ended);
    auto const sequential = priced(first.graph, first.applied);
    graph_search together(options_.rules, options_, price, told, ended);
    static_cast<void>(together.run(sequential.price.cost < out[0].price.cost ? sequential : out[0]));
    out.insert(out.end(), together.best().begin(), together.best().end());
    out.push_back(sequential);
    return out;
}

PARSEARCH_INLINE void joint_run::simulate_all(std::vector<priced_graph> const& graphs) {
    for (std::size_t rank = 0; rank < graphs.size(); ++rank) {
        if (!simulated_.empty() && over()) return;
        auto const& f = graphs[rank];
        if (std::any_of(graphs.begin(), graphs.begin() + static_cast<std::ptrdiff_t>(rank), [&](auto const& g) { return g.graph == f.graph; }))
            continue;
        auto& g = simulated_.emplace_back(simulated{rank, with_graph(problem_, operators_of(problem_, f.graph)), {f.price.strategy}});
        auto evaluate = g.candidate.evaluator();
        simulate(graphs, evaluate, g, f.price.strategy, false);
        for (auto& expert : g.candidate.starts())
            if (!over()) simulate(graphs, evaluate, g, std::move(expert), false);
        for (auto const& counting : usual_countings)
            if (!over()) simulate(graphs, evaluate, g, g.found.emplace_back(cache_.all().price(g.candidate.graph(), counting).strategy), false);
    }
}

PARSEARCH_INLINE void joint_run::map_all(std::vector<priced_graph> const& graphs) {
    std::ranges::stable_sort(simulated_, {}, &simulated::least);
    std::string not_mapped;
    auto views = static_cast<std::size_t>(options_.mapping_views); // those that sufficed for the last graph: the next is much like it
    auto effort = options_.mapping_effort;
    auto const keep_first = [&](std::string why) {
        if (not_mapped.empty()) not_mapped = std::move(why);
    };
    for (auto const& counting : usual_countings)
        for (auto& g : simulated_) {
            if (g.refused) continue;
            if (views == 0 || effort == 0 || over()) {
                keep_first(views == 0    ? "option 'mapping_views' is 0"
                           : effort == 0 ? text("option 'mapping_effort', ", options_.mapping_effort, " steps for all graphs, is used up")
                                         : "the search ended before");
                continue;
            }
            operator_mapping_options asked{.views = views, .synchronisation = counting};
            asked.limits.effort = std::min(asked.limits.effort, effort);
            asked.limits.stopped = [&] { return over(); };
            auto const made = map_operators(cache_.all(), g.candidate.graph(), asked, g.found);
            effort -= std::min(effort, made.steps);
            if (!made.refused.empty()) keep_first(made.refused);
            g.refused = made.strategy.empty();
            if (g.refused || over()) continue;
            views = made.views;
            auto evaluate = g.candidate.evaluator();
            simulate(graphs, evaluate, g, made.strategy, true);
        }
    kernel_.amend_best().not_mapped = std::move(not_mapped);
}

PARSEARCH_INLINE void joint_run::find_bound() {
    auto& best = kernel_.amend_best();
    try {
        if (auto const least = search::root_bound<space::flat_strategy>(with_graph(problem_, best.operators)))
            best.bound = std::min(*least, kernel_.best_cost());
    } catch (invalid_input const&) { // of a configuration that the search did not need: what it found stands
    }
    if (best.bound && options_.rules.empty() && best.graph == lift(problem_.graph()).graph) kernel_.raise_bound(*best.bound);
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE rewritten_problem rewritten_first(parallelization const& problem, joint_options const& options) {
    validate(options);
    search::stopping limit(search::budget_of(options));
    std::uint64_t graphs = 1;
    bool complete = true;
    joint_cache cache(problem, options.pricing);
    auto best = detail::optimised_alone(
        cache, problem, lift(problem.graph()).graph, options, [&](std::size_t, std::size_t, picoseconds) { ++graphs; },
        [&] {
            complete = complete && !limit.due(graphs);
            return !complete;
        });
    if (best.applied.empty()) return {problem, {}, graphs, complete};
    auto operators = detail::operators_of(problem, best.graph);
    keep_names(operators, problem.graph());
    return {with_graph(problem, operators), std::move(best.applied), graphs, complete};
}

} // namespace parsearch::rewrite
