#pragma once
// Judges solutions of instances: feasible or not, and what they cost, exactly. See docs/instances.md.

#include <utility>
#include <variant>

#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/io/files/plan_file.hpp>
#include <parsearch/io/instances/judgement.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/sim/memory/memory_penalty.hpp>

namespace parsearch::io::detail {

/// Simulates a plan of `problem` into `out`: its makespan, whatever memory it takes.
PARSEARCH_IO_INLINE picoseconds simulate_into(judgement& out, parallelization const& problem, pipeline::pipeline_plan const& plan) {
    if (plan.how.plain()) {
        auto simulator = problem.simulator();
        auto const makespan = simulator.simulate(plan.strategy);
        out.memory = simulator.memory();
        return makespan;
    }
    pipeline::pipeline_simulator simulator(problem);
    auto const makespan = simulator.simulate(plan.how, plan.strategy);
    out.memory = simulator.memory();
    return makespan;
}

PARSEARCH_IO_INLINE void judge_plan(judgement& out, network_instance const& n, parallelization const& problem, pipeline::pipeline_plan const& plan) {
    if (n.asks == instance_question::strategy) {
        if (!plan.how.plain())
            throw invalid_input(
                "the plan has stages, micro-batches, sharded states, or activations that are computed again or offloaded: the instance "
                "asks for a strategy, which has none");
        if (plan.strategy.size() != problem.size())
            throw invalid_input("the plan has ", plan.strategy.size(), " configurations: the graph has ", problem.size(), " operators");
        if (auto const op = problem.space().first_outside(plan.strategy))
            throw invalid_input("operator ", in_quotes(problem.graph().names[*op]), ": ",
                                space::to_string(plan.strategy[*op], problem.graph().operations[*op]), " is outside of the instance's space");
    }
    auto const makespan = simulate_into(out, problem, plan);
    for (auto const& d : problem.topology().devices) out.capacity.push_back(d.memory);
    auto const penalty =
        sim::memory_cost(problem.options(), sim::bytes_over_capacity(out.memory, problem.topology().devices), problem.topology().size());
    out.cost = sim::total_cost(makespan, penalty);
    if (penalty != cost_traits<picoseconds>::infinity()) return;
    std::size_t fullest = 0, over = 0;
    for (std::size_t d = 0; d < out.memory.size(); ++d) {
        auto const missing = [&](std::size_t of) { return out.memory[of].total() - out.capacity[of]; };
        if (missing(d) > missing(fullest)) fullest = d;
        over += missing(d) > 0;
    }
    throw invalid_input("device ", fullest, " needs ", out.memory[fullest].total(), " bytes of the ", out.capacity[fullest], " that it has",
                        over > 1 ? text("; ", over, " devices have too few") : std::string());
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE judgement judge(network_instance const& n, pipeline::pipeline_plan const& plan) {
    auto const problem = n.problem();
    judgement out;
    try {
        detail::judge_plan(out, n, problem, plan);
    } catch (invalid_input const& e) {
        out.reason = e.what();
    }
    return out;
}

PARSEARCH_IO_INLINE judgement judge(table_instance const& t, search::numbered_strategy const& choices) {
    judgement out;
    try {
        out.cost = t.costs.costs()(choices);
        for (std::size_t d = 0; d < t.memory.size(); ++d) out.table_memory += t.memory[d][choices[d]];
        if (out.cost == cost_traits<picoseconds>::infinity())
            throw invalid_input("the choices have an infinite cost: some of them do not go together, or the sum is too large");
        if (t.budget && out.table_memory > *t.budget)
            throw invalid_input("the choices take ", out.table_memory, " bytes of the ", *t.budget, " that there are");
    } catch (invalid_input const& e) {
        out.reason = e.what();
    }
    return out;
}

PARSEARCH_IO_INLINE judgement judge(instance const& i, std::istream& solution, std::string const& name) {
    judgement out;
    try {
        if (auto const* const t = std::get_if<table_instance>(&i.of)) {
            out = judge(*t, read_choices_json(solution, name));
        } else {
            auto const& n = std::get<network_instance>(i.of);
            auto const problem = n.problem();
            detail::judge_plan(out, n, problem, read_plan_json(solution, name, problem));
        }
    } catch (invalid_input const& e) {
        out.reason = e.what();
    }
    return out;
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

} // namespace parsearch::io
