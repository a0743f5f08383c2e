#pragma once
// How a network runs as a pipeline: its stages, micro-batches and their order.

#include <parsearch/core/error.hpp>
#include <parsearch/pipeline/pipelining.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE void validate(pipelining const& p, graph::dense_graph const& g) {
    validate(p.launching());
    if (p.stages > g.size()) throw invalid_input("pipeline: ", p.stages, " stages: the graph has ", g.size(), " operators, must be at most as many");
    if (p.stage.size() != g.size())
        throw invalid_input("pipeline: stages of ", p.stage.size(), " operators: the graph has ", g.size(), ", must be one each");
    if (!p.recompute.empty() && p.recompute.size() != p.stages)
        throw invalid_input("pipeline: 'recompute' has the size ", p.recompute.size(), ", stages are ", p.stages, ": must be as many, or empty");
    if (!p.segment.empty() && p.segment.size() != g.size())
        throw invalid_input("pipeline: segments of ", p.segment.size(), " operators: the graph has ", g.size(), ", must be one each, or empty");
    if (!p.kept.empty() && p.kept.size() != g.size())
        throw invalid_input("pipeline: 'kept' has the size ", p.kept.size(), ": the graph has ", g.size(), " operators, must be as many, or empty");
    if (p.sharded > all_sharded_states.back())
        throw invalid_input("pipeline: 'sharded' is number ", static_cast<int>(p.sharded), ": must be one of those declared");
    if (cuts_backward(p.order) && p.sharded >= sharded_states::gradients)
        throw invalid_input(
            "pipeline: order ", name_of(p.order), " with sharded ", p.sharded == sharded_states::gradients ? "gradients" : "parameters",
            ": gradients of weights are reduced block by block, right behind a whole backward pass; must be gpipe, 1f1b or eager-1f1b");
    if (!p.offloaded.empty() && p.offloaded.size() != g.size())
        throw invalid_input("pipeline: 'offloaded' has the size ", p.offloaded.size(), ": the graph has ", g.size(),
                            " operators, must be as many, or empty");
    if (cuts_backward(p.order) && p.offloads())
        throw invalid_input("pipeline: order ", name_of(p.order),
                            " with offloaded activations: gradients of weights need them once more, when they have left; must be gpipe, 1f1b or "
                            "eager-1f1b");
    if (!p.block.empty() && p.block.size() != g.size())
        throw invalid_input("pipeline: blocks of ", p.block.size(), " operators: the graph has ", g.size(), ", must be one each, or empty");
    for (std::size_t op = 0; op < g.size(); ++op)
        if (p.stage[op] >= p.stages && g.operations[op].work != ops::work_class::source)
            throw invalid_input("pipeline: operator '", g.names[op], "' is in stage ", p.stage[op], ": there are ", p.stages, ", counted from 0");
    for (auto const& e : g.edges) {
        if (g.operations[e.producer].work == ops::work_class::source) continue;
        auto const refuse = [&](std::string_view what, std::uint32_t to, std::uint32_t from) {
            throw invalid_input("pipeline: operator '", g.names[e.consumer], "' of ", what, ' ', to, " reads '", g.names[e.producer], "' of ", what,
                                ' ', from, ": data may not go back to an earlier ", what);
        };
        auto const from = p.stage[e.producer], to = p.stage[e.consumer];
        if (from > to) refuse("stage", to, from);
        if (from == to && p.segment_of(e.producer) > p.segment_of(e.consumer)) refuse("segment", p.segment_of(e.consumer), p.segment_of(e.producer));
    }
}

} // namespace parsearch::pipeline
