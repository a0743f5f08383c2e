#pragma once
// A move that gives one configuration to an operator and all its repeats.

#include <map>

#include <parsearch/space/repeat.hpp>

namespace parsearch::space {

PARSEARCH_INLINE repeat_move::repeat_move(graph::dense_graph const& g) : family_of_(2, std::vector<std::uint32_t>(g.size())), families_(2) {
    std::map<std::uint32_t, std::uint32_t> by_parameters;
    std::vector<std::uint32_t> representatives; // of the second kind of family: the first operator of each
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        join(0, op, by_parameters.try_emplace(g.sharing[op], static_cast<std::uint32_t>(families_[0].size())).first->second);
        std::uint32_t same = 0;
        while (same < representatives.size() && !computes_the_same(g.operations[representatives[same]], g.operations[op])) ++same;
        if (same == representatives.size()) representatives.push_back(op);
        join(1, op, same);
    }
}

PARSEARCH_INLINE bool repeat_move::computes_the_same(ops::operation const& a, ops::operation const& b) {
    auto const shapes_of = [](std::vector<ops::operand> const& operands) {
        std::vector<std::pair<ops::dtype, std::vector<ops::axis>>> out;
        for (auto const& o : operands) out.emplace_back(o.type, o.axes);
        return out;
    };
    return a.kind == b.kind && a.dims == b.dims && a.flops == b.flops && shapes_of(a.inputs) == shapes_of(b.inputs) &&
           shapes_of(a.weights) == shapes_of(b.weights) && shapes_of(a.outputs) == shapes_of(b.outputs);
}

} // namespace parsearch::space
