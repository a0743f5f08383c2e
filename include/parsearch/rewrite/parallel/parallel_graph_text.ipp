#pragma once
// A parallel computation graph for people to read.

#include <parsearch/core/error.hpp>
#include <parsearch/rewrite/parallel/parallel_graph_text.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE std::string to_string(operator_split const& s, ops::operation const& op) {
    std::string out;
    auto const add = [&](auto const&... what) { out += text(out.empty() ? "" : " ", what...); };
    for (std::size_t d = 0; d < s.degree.size() && d < op.dims.size(); ++d)
        if (s.degree[d] > 1) add(op.dims[d].name, s.degree[d]);
    if (s.copies > 1) add("copies", s.copies);
    if (s.sums > 1) add("sums", s.sums);
    if (s.micro_batches > 1) add(s.micro_batches, " micro-batches");
    return out.empty() ? "whole" : out;
}

PARSEARCH_INLINE std::string to_string(parallel_graph const& g) {
    auto const order = g.order();
    if (order.empty() && g.size() > 0) throw invalid_input("a parallel graph that goes round in a cycle is not to be read");
    auto const tensor = [](tensor_ref t) { return t.slot == 0 ? text(t.producer) : text(t.producer, '.', t.slot); };
    std::string out;
    for (auto const n : order) {
        auto const& c = *g[n].content;
        out += text(n, ": ");
        switch (c.kind) {
        case node_kind::compute: out += text(c.name, ", ", c.operation.kind, ", ", to_string(c.split, c.operation)); break;
        case node_kind::reshard: out += text(name_of(c.how), has_axis(c.how) ? text(" of axis ", c.axis) : std::string(), " by ", c.degree); break;
        default: out += text(name_of(c.kind), ' ', c.name);
        }
        for (std::size_t i = 0; i < g[n].inputs.size(); ++i) out += text(i == 0 ? ", of " : " ", tensor(g[n].inputs[i]));
        for (std::size_t i = 0; i < c.outputs.size(); ++i) out += text(i == 0 ? " -> " : ", ", to_string(c.outputs[i]));
        out += '\n';
    }
    out += "results:";
    for (auto const t : g.results()) out += text(' ', tensor(t));
    return out + '\n';
}

} // namespace parsearch::rewrite
