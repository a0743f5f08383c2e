#pragma once
// Judges solutions of instances: feasible or not, and what they cost, exactly. See docs/instances.md.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/io/files/plan_file.hpp>
#include <parsearch/io/instances/judgement.hpp>
#include <parsearch/pipeline/plans/plan_simulator.hpp>
#include <parsearch/sim/memory/memory_penalty.hpp>

namespace parsearch::io::detail {

/// What `f(judgement)` makes; what it refuses is the reason.
template <class F> [[nodiscard]] judgement judged(F const& f) {
    judgement out;
    try {
        f(out);
    } catch (invalid_input const& e) {
        out.reason = e.what();
    }
    return out;
}

} // namespace parsearch::io::detail

namespace parsearch::io::detail {

/// What a plan has that a strategy has not; empty where there is nothing.
PARSEARCH_IO_INLINE std::string beyond_a_strategy(pipeline::pipelining const& how) {
    if (how.stages > 1) return text(how.stages, " stages");
    if (how.micro_batches > 1) return text(how.micro_batches, " micro-batches");
    if (how.sharded != pipeline::sharded_states::none) return text("sharded states (", listed(how.sharded), ')');
    if (how.offloads()) return "activations on hosts";
    if (how.recomputes(0)) return "activations that are computed again";
    if (!how.plain()) return text("order ", in_quotes(name_of(how.order)));
    return {};
}

/// `c` as the space of its operator writes a configuration with the same shards on the same devices. Throws where it has none.
PARSEARCH_IO_INLINE space::configuration of_space(parallelization const& problem, std::size_t op, space::configuration const& c) {
    if (problem.space().contains(op, c)) return c;
    auto const& operation = problem.graph().operations[op];
    bool splits = false;
    for (auto const& other : problem.space()[op]) {
        if (!std::ranges::equal(other.degrees(), c.degrees())) continue;
        splits = true;
        bool same = true;
        for (std::int64_t n = 0; same && n < c.shards(); ++n) same = other.device(n) == c.device(n);
        if (same) return other;
    }
    throw invalid_input("operator ", in_quotes(problem.graph().names[op]), ": ", space::to_string(c, operation),
                        " is outside of the instance's space, which ", splits ? "splits it so, but not on these devices" : "does not split it so");
}

PARSEARCH_IO_INLINE void judge_plan(judgement& out, network_instance const& n, parallelization const& problem, pipeline::pipeline_plan plan) {
    if (n.asks == instance_question::strategy) {
        if (auto const more = beyond_a_strategy(plan.how); !more.empty())
            throw invalid_input("the plan has ", more, ": the instance asks for a strategy, which has none");
        if (plan.strategy.size() != problem.size())
            throw invalid_input("the plan has ", plan.strategy.size(), " configurations: the graph has ", problem.size(), " operators");
        for (std::size_t op = 0; op < problem.size(); ++op) {
            if (problem.graph().operations[op].work == ops::work_class::source) continue; // it has no tasks
            space::validate(plan.strategy[op], problem.graph().operations[op], problem.topology().size(), problem.graph().names[op]);
            plan.strategy[op] = of_space(problem, op, plan.strategy[op]);
        }
    }
    pipeline::plan_simulator simulator(problem);
    auto const makespan = simulator.simulate(plan);
    out.memory = simulator.memory();
    for (auto const& d : problem.topology().devices) out.capacity.push_back(d.memory);
    out.penalty = simulator.penalty();
    out.cost = sim::total_cost(makespan, out.penalty);
    if (out.penalty != cost_traits<picoseconds>::infinity()) return;
    std::size_t fullest = 0, over = 0;
    for (std::size_t d = 0; d < out.memory.size(); ++d) {
        auto const missing = [&](std::size_t of) { return out.memory[of].total() - out.capacity[of]; };
        if (missing(d) > missing(fullest)) fullest = d;
        over += missing(d) > 0;
    }
    throw invalid_input("device ", fullest, " needs ", out.memory[fullest].total(), " bytes of the ", out.capacity[fullest], " that it has",
                        over > 1 ? text("; ", over, " devices have too few") : std::string());
}

/// What a document says of a network, and the problem of the graph of its choices.
struct read_solution {
    rewritten_plan of;
    parallelization problem;
};
PARSEARCH_IO_INLINE read_solution solution_from_json(json_document const& document, parallelization const& problem, graph_rewriter const& rewriter) {
    auto const plan_of = [](json_value const& plan, parallelization const& on) { return plan_from_json(plan, on.graph(), on.topology().size()); };
    if (!document.is_of(rewritten_format)) return {{rewriter.none(), plan_of(document.root(), problem)}, problem};
    auto const root = document.object(rewritten_format, rewritten_version, {"rewritings", "plan"});
    auto const list = root.at("rewritings");
    auto const& places = rewriter.places();
    if (list.size() != places.size()) list.refuse("must have ", places.size(), " choices, one for each place");
    rewriting_choices choices;
    for (std::size_t p = 0; p < places.size(); ++p)
        choices.push_back(list[p].integer<std::uint32_t>(0, static_cast<std::uint32_t>(places[p].by.size())));
    auto rewritten = placed(list, [&] { return with_graph(problem, rewriter(choices)); });
    auto plan = plan_of(root.at("plan"), rewritten);
    return {{std::move(choices), std::move(plan)}, std::move(rewritten)};
}

PARSEARCH_IO_INLINE judgement judge_choices(table_instance const& t, search::numbered_strategy const& choices) {
    auto const& costs = t.costs.costs();
    if (choices.size() != costs.size()) throw invalid_input(choices.size(), " choices: there are ", costs.size(), " decisions, must be one each");
    auto const name = [&](std::size_t d) { return text("decision ", d, " (", in_quotes(t.names[d]), ')'); };
    constexpr auto never = cost_traits<picoseconds>::infinity();
    for (std::size_t d = 0; d < choices.size(); ++d) {
        auto const count = costs.operator_costs(d).size();
        if (choices[d] >= count) throw invalid_input("choice ", choices[d], " of ", name(d), ": it has ", count, ", numbered from 0");
        if (costs.operator_cost(d, choices[d]) == never) throw invalid_input("choice ", choices[d], " of ", name(d), ": may not be made");
    }
    for (std::size_t e = 0; e < costs.edges().size(); ++e)
        if (auto const [from, to] = costs.edges()[e]; costs.edge_cost(e, choices[from], choices[to]) == never)
            throw invalid_input("choice ", choices[from], " of ", name(from), " and choice ", choices[to], " of ", name(to),
                                ": do not go together, as pair ", e, " says");
    judgement out{.cost = costs(choices)};
    if (out.cost == never) throw invalid_input("the sum of the costs is too large: must be below 2^63 - 1 picoseconds");
    out.table_memory = t.memory_of(choices);
    if (t.budget && out.table_memory > *t.budget)
        throw invalid_input("the choices take ", out.table_memory, " bytes of the ", *t.budget, " that there are");
    return out;
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE judgement judge(network_instance const& n, pipeline::pipeline_plan const& plan) {
    auto const problem = n.problem();
    return detail::judged([&](judgement& out) { detail::judge_plan(out, n, problem, plan); });
}

PARSEARCH_IO_INLINE judgement judge(network_instance const& n, rewritten_plan const& plan) {
    auto const problem = n.problem();
    graph_rewriter const rewriter(n.graph, n.rewritings);
    return detail::judged([&](judgement& out) { detail::judge_plan(out, n, with_graph(problem, rewriter(plan.choices)), plan.plan); });
}

PARSEARCH_IO_INLINE judgement judge(table_instance const& t, search::numbered_strategy const& choices) {
    validate(t);
    return detail::judged([&](judgement& out) { out = detail::judge_choices(t, choices); });
}

PARSEARCH_IO_INLINE judgement judge(instance const& i, std::istream& solution, std::string const& name) {
    if (auto const* const t = std::get_if<table_instance>(&i.of)) {
        validate(*t);
        return detail::judged([&](judgement& out) { out = detail::judge_choices(*t, read_choices_json(solution, name)); });
    }
    auto const& n = std::get<network_instance>(i.of);
    auto const problem = n.problem();
    graph_rewriter const rewriter(n.graph, n.rewritings);
    return detail::judged([&](judgement& out) {
        auto const said = detail::solution_from_json(json_document(solution, name), problem, rewriter);
        detail::judge_plan(out, n, said.problem, said.of.plan);
    });
}

PARSEARCH_IO_INLINE void write_choices_json(std::ostream& out, search::numbered_strategy const& choices) {
    write_json(out, ordered_json{{"format", choices_format}, {"version", choices_version}, {"choices", choices}});
}

PARSEARCH_IO_INLINE search::numbered_strategy read_choices_json(std::istream& in, std::string name, json_limits const& limits) {
    json_document const document(in, std::move(name), limits);
    auto const list = document.object(choices_format, choices_version, {"choices"}).at("choices");
    search::numbered_strategy out;
    for (std::size_t i = 0, n = list.size(); i < n; ++i) out.push_back(list[i].integer<std::uint32_t>());
    return out;
}

PARSEARCH_IO_INLINE void write_rewritten_json(std::ostream& out, network_instance const& n, rewritten_plan const& plan) {
    auto const problem = n.problem_of(n.graph_of(plan.choices));
    write_json(out, ordered_json{{"format", rewritten_format},
                                 {"version", rewritten_version},
                                 {"rewritings", plan.choices},
                                 {"plan", detail::plan_to_json(problem.graph(), problem.topology().size(), plan.plan)}});
}

PARSEARCH_IO_INLINE rewritten_plan read_rewritten_json(std::istream& in, std::string name, network_instance const& n) {
    return detail::solution_from_json(json_document(in, std::move(name)), n.problem(), graph_rewriter(n.graph, n.rewritings)).of;
}

} // namespace parsearch::io
