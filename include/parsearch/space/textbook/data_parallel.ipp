#pragma once
// Data parallelism, and what differs from it in single operators.

#include <parsearch/space/layout.hpp>
#include <parsearch/space/textbook/data_parallel.hpp>

namespace parsearch::space {

PARSEARCH_INLINE configuration split_samples(ops::operation const& op, std::int64_t degree, std::int32_t stride, std::int32_t start, bool uneven) {
    auto c = whole(op, start);
    if (op.work == ops::work_class::source) return whole(op);
    if (auto const k = detail::first_dim(op, ops::dim_kind::sample)) c.degree[*k] = sample_parts(op.dims[*k].extent, degree, uneven);
    lay_out(c, inner_dims_first(op), stride);
    return c;
}

PARSEARCH_INLINE flat_strategy one_weird_trick(graph::dense_graph const& g, std::size_t devices, bool uneven) {
    auto s = data_parallel(g, devices, uneven);
    for (std::size_t i = 0; i < g.size(); ++i) {
        auto const& op = g.operations[i];
        if (op.work != ops::work_class::matmul || op.weights.empty()) continue;
        auto const k = detail::first_dim(op, ops::dim_kind::parameter);
        if (!k) continue;
        auto c = whole(op);
        c.degree[*k] = largest_divisor(op.dims[*k].extent, static_cast<std::int64_t>(devices));
        lay_out(c, inner_dims_first(op));
        s[i] = c;
    }
    return s;
}

} // namespace parsearch::space
