#pragma once
// Parallelism of the experts of mixtures, after GShard.

#include <algorithm>
#include <numeric>

#include <parsearch/core/error.hpp>
#include <parsearch/space/textbook/expert_parallel.hpp>
#include <parsearch/space/textbook/tensor_parallel.hpp>

namespace parsearch::space::detail {

/// The dim that numbers the experts of a product: a parameter dim of weights, input and output alike.
PARSEARCH_INLINE std::optional<std::uint32_t> expert_dim(ops::operation const& op) {
    if (op.work != ops::work_class::matmul || op.weights.empty() || op.inputs.empty()) return std::nullopt;
    for (std::uint32_t k = 0; k < op.dims.size(); ++k)
        if (op.dims[k].kind == ops::dim_kind::parameter && op.dims[k].extent > 1 && ops::is_indexed_by(op.inputs[0], k) &&
            ops::is_indexed_by(op.outputs[0], k) && std::ranges::all_of(op.weights, [&](auto const& w) { return ops::is_indexed_by(w, k); }))
            return k;
    return std::nullopt;
}

PARSEARCH_INLINE std::vector<std::optional<std::uint32_t>> expert_dims(graph::dense_graph const& g) {
    std::vector<std::optional<std::uint32_t>> dims(g.size());
    for (auto const i : g.order) {
        auto const& op = g.operations[i];
        dims[i] = expert_dim(op);
        if (dims[i] || !op.weights.empty() || g.in(i).empty()) continue;
        auto const& e = g.in(i).front();
        if (!dims[e.producer]) continue;
        auto const k = matching_dim(g.operations[e.producer].outputs[e.slot], op.inputs[e.input], *dims[e.producer]);
        if (k && op.dims[*k].kind == ops::dim_kind::attribute) dims[i] = k;
    }
    for (auto i = g.order.rbegin(); i != g.order.rend(); ++i) {
        auto const& op = g.operations[*i];
        if (op.work != ops::work_class::view || dims[*i] || g.out(*i).empty()) continue;
        bool only = true;
        for (auto const number : g.out(*i)) {
            auto const& e = g.edges[number];
            auto const& reader = g.operations[e.consumer];
            auto const k = dims[e.consumer] ? matching_dim(reader.inputs[e.input], op.outputs[e.slot], *dims[e.consumer]) : std::nullopt;
            only = only && k && (!dims[*i] || dims[*i] == k);
            dims[*i] = k;
        }
        if (!only) dims[*i].reset();
    }
    return dims;
}

} // namespace parsearch::space::detail

namespace parsearch::space {

PARSEARCH_INLINE std::int64_t experts_of(graph::dense_graph const& g) {
    std::int64_t out = 0;
    auto const dims = detail::expert_dims(g);
    for (std::size_t i = 0; i < g.size(); ++i)
        if (dims[i]) out = std::gcd(out, g.operations[i].dims[*dims[i]].extent);
    return std::max<std::int64_t>(out, 1);
}

PARSEARCH_INLINE flat_strategy with_experts_split(graph::dense_graph const& g, flat_strategy s, std::size_t devices, std::size_t degree,
                                                  bool uneven) {
    if (degree < 1 || devices % degree != 0)
        throw invalid_input("expert_parallel: degree is ", degree, ": must divide the number of devices, ", devices);
    auto const dims = detail::expert_dims(g);
    for (std::size_t i = 0; i < g.size(); ++i) {
        if (!dims[i]) continue;
        auto const group = std::gcd(g.operations[i].dims[*dims[i]].extent, static_cast<std::int64_t>(degree));
        s[i] =
            detail::split_in_groups(g.operations[i], *dims[i], static_cast<std::int32_t>(group), static_cast<std::int64_t>(devices) / group, uneven);
    }
    return s;
}

} // namespace parsearch::space
