#pragma once
// The library's own operator graph: infers shapes as operators are added.

#include <parsearch/graph/vector_graph.hpp>

namespace parsearch::graph {

PARSEARCH_INLINE added operator_graph::input(std::string name, ops::tensor shape) {
    for (auto const extent : shape.extents)
        if (extent < 1) throw invalid_input("input '", name, "' of shape ", ops::to_string(shape), ": extents must be at least 1");
    ops::operation op{.kind = "input", .work = ops::work_class::source};
    op.outputs.push_back({.name = "out", .type = shape.type, .differentiable = false});
    for (auto const extent : shape.extents) op.outputs.back().axes.push_back({.extent = extent});
    return insert(std::move(name), std::move(op), {});
}

PARSEARCH_INLINE added operator_graph::insert(std::string name, ops::operation op, std::span<tensor_ref const> in) {
    for (auto const& t : in) (void)shape(t, name);
    if (!names_.insert(name).second) throw invalid_input("operator '", name, "': the graph has one of this name already");
    nodes_.push_back({std::move(name), std::move(op)});
    inputs_.emplace_back(in.begin(), in.end());
    return {nodes_.size() - 1};
}

} // namespace parsearch::graph
