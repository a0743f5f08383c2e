#include "joint.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <variant>

#include <parsearch/rewrite/joint/joint.hpp>
#include <parsearch/rewrite/rules/algebraic_rules.hpp>

namespace plan {

ps::parallelization problem_of(ps::parallelization const& problem, ps::graph::dense_graph const& g) {
    auto read = ps::graph::read_graph(g);
    auto const& like = *problem.workload();
    return {ps::sim::make_workload(std::move(read.graph), like.topology, like.oracle, like.options), problem};
}

namespace {

ps::rewrite::purpose purpose_of(request const& asked) {
    return asked.simulation.training ? ps::rewrite::purpose::training : ps::rewrite::purpose::inference;
}

// A graph whose operators are listed in topological order.
struct topological_order_of {
    ps::graph::dense_graph const& graph;

    [[nodiscard]] std::vector<std::uint32_t> const& operators() const { return graph.order; }
    [[nodiscard]] auto inputs(std::uint32_t op) const { return ps::inputs(graph, op); }
    [[nodiscard]] auto description(std::uint32_t op) const { return ps::description(graph, op); }
};

// Writes the configurations of `strategy`, of `from`, into `out`, of `to`, which has the same operators in another order. False where `from` lacks
// some of them: in inference, what only weights decide is folded into these.
bool reorder(ps::space::flat_strategy const& strategy, ps::graph::dense_graph const& from, ps::graph::dense_graph const& to,
             ps::space::flat_strategy& out) {
    std::map<std::string, std::queue<std::size_t>> places; // operators of one name in topological order
    for (auto const op : from.order) places[from.names[op]].push(op);
    bool all = true;
    for (auto const op : to.order) {
        auto& place = places[to.names[op]];
        if (place.empty() || from.operations[place.front()].dims != to.operations[op].dims) {
            all = false;
            continue;
        }
        out[op] = strategy[place.front()];
        place.pop();
    }
    return all;
}

} // namespace

std::size_t matching_rules(std::vector<ps::rewrite::rule> const& rules, ps::graph::dense_graph const& g) {
    auto const lifted = ps::rewrite::lift(g).graph;
    return static_cast<std::size_t>(
        std::count_if(rules.begin(), rules.end(), [&](auto const& r) { return !ps::rewrite::substitution_rule(r)(lifted).empty(); }));
}

joint_outcome rewrite_first(request const& asked, ps::parallelization const& problem, std::optional<std::chrono::nanoseconds> time,
                            std::stop_token const& stop) {
    // On one device what a segment gains is gained in a few steps: with 64 graphs a segment the same is found, in 3 to 5 times the time.
    auto found = ps::rewrite::rewritten_first(
        problem, {.rules = ps::rewrite::algebraic_rules(purpose_of(asked)), .time = time, .stop = stop, .segment_graphs = 8});
    if (!found.complete) throw ps::interrupted();
    joint_outcome out{.problem = problem, .applied = std::move(found.applied)};
    out.stats.evaluations = found.graphs;
    if (out.applied.empty()) return out;
    out.problem = ps::with_graph(problem, topological_order_of{found.problem.graph()});
    return out;
}

joint_outcome search_jointly(request const& asked, ps::parallelization const& problem, std::vector<ps::rewrite::rule> const* rules,
                             std::optional<std::uint64_t> evaluations, progress_display* progress) {
    auto options = std::get<ps::rewrite::joint_options>(*asked.search);
    if (evaluations) options.evaluations = evaluations;
    if (!rules) options.bound = false; // that of what is found with rules is told
    if (rules) {
        auto& all = options.rules;
        all = ps::rewrite::algebraic_rules(purpose_of(asked));
        for (auto const& r : *rules) all.push_back(ps::rewrite::substitution_rule(r));
    }
    std::mt19937_64 rng{asked.seed};
    std::vector<ps::rewrite::joint_plan> simulated;
    std::vector<rewritten_graph> others;
    auto const remember = [&](ps::rewrite::simulated_graph const& g) {
        simulated.push_back(g.plan);
        others.push_back({g.plan.operators, g.plan.strategy, g.plan.applied, g.cost});
    };
    auto const run = [&](auto&... observers) { return ps::rewrite::joint(problem, {}, rng, options, observers...); };
    auto found = progress ? run(*progress, remember) : run();
    if (auto const same = std::ranges::find(simulated, found.best.graph, &ps::rewrite::joint_plan::graph); same != simulated.end())
        others.erase(others.begin() + (same - simulated.begin()));
    for (auto& o : others) ps::rewrite::keep_names(o.operators, problem.graph());
    std::ranges::stable_sort(others, {}, &rewritten_graph::cost);
    joint_outcome out{.problem = problem,
                      .applied = std::move(found.best.applied),
                      .cost = found.cost,
                      .bound = found.best.bound,
                      .stats = found.stats,
                      .reason = found.ended,
                      .nothing_feasible = found.reason == ps::stop_reason::nothing_feasible,
                      .others = std::move(others)};
    auto const& operators = found.best.operators;
    if (out.applied.empty()) {
        out.strategy = problem.space().nearest(ps::data_parallel(problem));
        if (!reorder(found.best.strategy, operators, problem.graph(), out.strategy)) {
            out.cost = problem.evaluator()(out.strategy);
            out.bound.reset();
        }
        return out;
    }
    out.problem = problem_of(problem, operators);
    out.strategy = std::move(found.best.strategy);
    return out;
}

} // namespace plan
