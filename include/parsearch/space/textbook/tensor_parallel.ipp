#pragma once
// Tensor parallelism, after Megatron-LM.

#include <parsearch/core/error.hpp>
#include <parsearch/space/layout.hpp>
#include <parsearch/space/textbook/data_parallel.hpp>
#include <parsearch/space/textbook/tensor_parallel.hpp>

namespace parsearch::space::detail {

PARSEARCH_INLINE configuration split_in_groups(ops::operation const& op, std::uint32_t k, std::int32_t group, std::int64_t data, bool uneven) {
    auto c = split_samples(op, data, 1, 0, uneven);
    c.degree[k] = group;
    // The group is the inner one even where its dim is farther out in the usual order.
    std::vector<std::uint32_t> order{k};
    for (auto const other : inner_dims_first(op))
        if (other != k) order.push_back(other);
    lay_out(c, order);
    return c;
}

/// Degree of each dim of `op` that its first input already has, axis by axis, under the producer's configuration.
PARSEARCH_INLINE std::vector<std::int32_t> inherited_degrees(graph::dense_graph const& g, std::size_t op, std::span<configuration const> done) {
    auto const& operation = g.operations[op];
    std::vector<std::int32_t> degrees(operation.dims.size(), 1);
    if (g.in(op).empty()) return degrees;
    auto const& e = g.in(op).front();
    auto const& made = g.operations[e.producer].outputs[e.slot].axes;
    auto const& read = operation.inputs[e.input].axes;
    for (std::size_t a = 0; a < made.size(); ++a)
        if (made[a].terms.size() == 1 && read[a].terms.size() == 1) {
            auto const degree = done[e.producer].degree[made[a].terms[0].dim];
            auto const k = read[a].terms[0].dim;
            if (operation.dims[k].kind != ops::dim_kind::fixed && operation.dims[k].extent % degree == 0) degrees[k] = degree;
        }
    return degrees;
}

} // namespace parsearch::space::detail

namespace parsearch::space {

PARSEARCH_INLINE flat_strategy tensor_parallel(graph::dense_graph const& g, std::size_t devices, std::size_t degree, bool uneven) {
    if (degree < 1 || devices % degree != 0)
        throw invalid_input("tensor_parallel: degree is ", degree, ": must divide the number of devices, ", devices);
    using ops::dim_kind, ops::work_class;
    auto const tensor = static_cast<std::int32_t>(degree);
    auto const data = static_cast<std::int64_t>(devices / degree);
    flat_strategy s(g.size());
    for (auto const i : g.order) {
        auto const& op = g.operations[i];
        auto const inherited = detail::inherited_degrees(g, i, s);
        auto const inherits = [&](dim_kind kind) -> std::optional<std::uint32_t> {
            for (std::uint32_t k = 0; k < op.dims.size(); ++k)
                if (op.dims[k].kind == kind && inherited[k] == tensor) return k;
            return std::nullopt;
        };
        std::optional<std::uint32_t> split;
        auto const prefer = [&](std::optional<std::uint32_t> k) {
            if (!split) split = k;
        };
        bool const is_product = op.work == work_class::matmul || op.work == work_class::convolution || op.work == work_class::attention ||
                                op.work == work_class::recurrent;
        if (ops::looks_up(op)) {
            prefer(detail::first_dim(op, dim_kind::reduction, tensor));
        } else if (ops::has_parameters(op) && is_product) {
            prefer(inherits(dim_kind::reduction));
            prefer(detail::first_dim(op, dim_kind::parameter, tensor));
        } else {
            prefer(inherits(dim_kind::parameter));
            prefer(inherits(dim_kind::attribute));
            prefer(detail::first_dim(op, dim_kind::attribute, tensor));
            // What is added or joined to a table: the axes that both have are parameter dims.
            if (!op.weights.empty() && op.work != work_class::normalization) prefer(detail::first_dim(op, dim_kind::parameter, tensor));
        }
        if (ops::keeps_cache(op)) prefer(detail::first_dim(op, dim_kind::reduction, tensor)); // fewer heads of keys than devices: positions
        if (degree == 1 || !split) {
            s[i] = split_samples(op, static_cast<std::int64_t>(devices), 1, 0, uneven);
            continue;
        }
        s[i] = detail::split_in_groups(op, *split, tensor, data, uneven);
    }
    return s;
}

} // namespace parsearch::space
