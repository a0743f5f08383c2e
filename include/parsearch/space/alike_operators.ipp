#pragma once
// Operators that compute the same: the blocks of a deep network, the steps of an unrolled layer.

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <parsearch/space/alike_operators.hpp>

namespace parsearch::space::detail {

[[nodiscard]] inline bool computes_the_same(ops::operation const& a, ops::operation const& b) {
    auto const alike = [](std::vector<ops::operand> const& x, std::vector<ops::operand> const& y) {
        return std::ranges::equal(x, y, [](auto const& p, auto const& q) { return p.type == q.type && p.axes == q.axes; });
    };
    return a.kind == b.kind && a.dims == b.dims && a.flops == b.flops && alike(a.inputs, b.inputs) && alike(a.weights, b.weights) &&
           alike(a.outputs, b.outputs);
}

} // namespace parsearch::space::detail

namespace parsearch::space {

PARSEARCH_INLINE std::vector<std::uint32_t> first_alike(graph::dense_graph const& g) {
    std::map<std::pair<std::string_view, decltype(ops::operation::flops)>, std::vector<std::uint32_t>> firsts;
    std::vector<std::uint32_t> out;
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        auto const& o = g.operations[op];
        auto& known = firsts[{o.kind, o.flops}];
        auto const same = std::ranges::find_if(known, [&](auto first) { return detail::computes_the_same(g.operations[first], o); });
        out.push_back(same == known.end() ? op : *same);
        if (same == known.end()) known.push_back(op);
    }
    return out;
}

} // namespace parsearch::space
