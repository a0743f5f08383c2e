#pragma once
// Operators that compute the same: the blocks of a deep network, the steps of an unrolled layer.

#include <algorithm>

#include <parsearch/space/alike_operators.hpp>

namespace parsearch::space::detail {

[[nodiscard]] inline bool computes_the_same(ops::operation const& a, ops::operation const& b) {
    auto const alike = [](std::vector<ops::operand> const& x, std::vector<ops::operand> const& y) {
        return std::ranges::equal(x, y, [](auto const& p, auto const& q) { return p.type == q.type && p.axes == q.axes; });
    };
    return a.flops == b.flops && a.kind == b.kind && a.dims == b.dims && alike(a.inputs, b.inputs) && alike(a.weights, b.weights) &&
           alike(a.outputs, b.outputs);
}

} // namespace parsearch::space::detail

namespace parsearch::space {

PARSEARCH_INLINE std::vector<std::uint32_t> first_alike(graph::dense_graph const& g) {
    std::vector<std::uint32_t> out, firsts;
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        std::size_t n = 0;
        while (n < firsts.size() && !detail::computes_the_same(g.operations[firsts[n]], g.operations[op])) ++n;
        if (n == firsts.size()) firsts.push_back(op);
        out.push_back(firsts[n]);
    }
    return out;
}

} // namespace parsearch::space
