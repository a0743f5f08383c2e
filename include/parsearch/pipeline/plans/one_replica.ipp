#pragma once
// Large clusters of like nodes, told by a part of them: replicas that do the same on other samples are planned once.

#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/ops/kit/samples.hpp>
#include <parsearch/pipeline/micro_batch.hpp>
#include <parsearch/pipeline/plans/one_replica.hpp>
#include <parsearch/topology/group.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE std::string not_replicated(parallelization const& problem, std::uint32_t replicas) {
    auto const& t = problem.topology();
    auto const& g = problem.graph();
    auto const nodes = t.routes.groups();
    if (replicas == 0) return "0 replicas: must be at least 1";
    auto options = problem.options();
    options.replicas = replicas;
    try {
        topology::require_like_nodes(t);
        sim::validate(options);
    } catch (invalid_input const& e) {
        return e.what();
    }
    if (nodes % replicas != 0 || nodes / replicas < 2)
        return text(replicas, " replicas on ", nodes, " nodes: must divide them, and leave each replica two at least");
    if (auto const samples = samples_of(g); samples % replicas != 0)
        return text(samples, " samples over ", replicas, " replicas: these must divide them");
    for (std::size_t op = 0; op < g.size(); ++op)
        if (g.operations[op].work != ops::work_class::source && !ops::sample_dim(g.operations[op]))
            return text("operator '", g.names[op], "' (", g.operations[op].kind, ") has no samples: no replica does a part of it");
    if (problem.space().options().allows || problem.space().options().admits)
        return "constraints say how operators are split: they are of all devices, not of those of a replica";
    if (problem.space().options().uneven) return "space option uneven is true: the larger parts would be those of the first replica";
    try {
        (void)micro_batch(g, replicas);
    } catch (invalid_input const& e) {
        return e.what();
    }
    return {};
}

PARSEARCH_INLINE parallelization one_replica(parallelization const& problem, std::uint32_t replicas) {
    if (auto const why = not_replicated(problem, replicas); !why.empty()) throw invalid_input("one_replica: ", why);
    auto const& w = *problem.workload();
    auto options = w.options;
    options.replicas *= replicas;
    parallelization out(
        sim::make_workload(micro_batch(w.graph, replicas), topology::first_devices(w.topology, w.topology.size() / replicas), w.oracle, options),
        problem.space().options());
    out.tie(problem.ties());
    return out.until(problem.stop());
}

PARSEARCH_INLINE pipeline_plan on_all_replicas(parallelization const& problem, pipeline_plan plan, std::uint32_t replicas) {
    if (auto const why = not_replicated(problem, replicas); !why.empty()) throw invalid_input("on_all_replicas: ", why);
    auto const& t = problem.topology();
    auto const& g = problem.graph();
    if (plan.strategy.size() != g.size())
        throw invalid_input("on_all_replicas: a strategy of ", plan.strategy.size(), " configurations: the graph has ", g.size(), " operators");
    validate(plan.how, g);
    if (replicas == 1) return plan;
    auto const devices = t.size() / replicas, per_node = topology::devices_per_node(t);
    // Neighbours that stay so. Where operators of several stages share weights, the order of their all-reduces is that of whole replicas.
    auto together = devices / plan.how.launching().groups();
    for (std::size_t op = 0; op < g.size(); ++op)
        if (together % per_node != 0 || (!g.operations[op].weights.empty() && plan.how.stage[op] != plan.how.stage[g.sharing[op]]))
            together = devices;
    auto const count = static_cast<std::int32_t>(replicas);
    for (std::size_t op = 0; op < g.size(); ++op) {
        if (g.operations[op].work == ops::work_class::source) continue;
        auto const& c = plan.strategy[op];
        space::validate(c, g.operations[op], devices, g.names[op]);
        auto const k = ops::sample_dim(g.operations[op]);
        auto const samples = g.operations[op].dims[*k].extent, parts_of_all = std::int64_t{count} * plan.how.micro_batches * c.degree[*k];
        if (samples % parts_of_all != 0)
            throw invalid_input("on_all_replicas: operator '", g.names[op], "' in ", c.degree[*k],
                                " parts of the samples of each micro-batch: ", parts_of_all, " parts of ", samples,
                                " samples in all, must divide them");
        if (c.shards() > space::max_shards / count)
            throw invalid_input("on_all_replicas: operator '", g.names[op], "' in ", c.shards(), " shards on each of ", replicas,
                                " replicas: more than ", space::max_shards, " in all");
        // Shards are numbered row by row: those of a part of the samples are `inner` in a row, in `outer` rows.
        std::int64_t outer = 1;
        for (std::uint32_t d = 0; d < *k; ++d) outer *= c.degree[d];
        auto const parts = c.degree[*k];
        auto const inner = c.shards() / outer / parts;
        space::configuration all{.rank = c.rank, .degree = c.degree};
        all.degree[*k] *= count;
        for (std::int64_t row = 0; row < outer; ++row)
            for (std::int32_t r = 0; r < count; ++r)
                for (std::int64_t n = row * parts * inner; n < (row + 1) * parts * inner; ++n) {
                    auto const d = static_cast<std::size_t>(c.device(n));
                    all.listed.push_back(
                        static_cast<std::int32_t>((d / together * replicas + static_cast<std::size_t>(r)) * together + d % together));
                }
        // The same by strides, where there are such.
        space::configuration strided{.rank = c.rank, .degree = all.degree, .stride = c.stride, .start = all.listed.front()};
        if (parts == 1) strided.stride[*k] = static_cast<std::int32_t>(together);
        bool as_listed = c.listed.empty();
        for (std::size_t n = 0; as_listed && n < all.listed.size(); ++n) as_listed = strided.place(static_cast<std::int64_t>(n)) == all.listed[n];
        plan.strategy[op] = as_listed ? strided : std::move(all);
    }
    return plan;
}

} // namespace parsearch::pipeline
