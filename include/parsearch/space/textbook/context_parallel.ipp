#pragma once
// Context parallelism: positions of sequences split among devices.

#include <algorithm>
#include <numeric>

#include <parsearch/core/error.hpp>
#include <parsearch/space/layout.hpp>
#include <parsearch/space/textbook/context_parallel.hpp>
#include <parsearch/space/textbook/expert_parallel.hpp>
#include <parsearch/space/textbook/tensor_parallel.hpp>

namespace parsearch::space::detail {

/// The dim of an attention's queries: an axis of them and of the result, none of keys and values.
PARSEARCH_INLINE std::optional<std::uint32_t> query_dim(ops::operation const& op) {
    if (op.work != ops::work_class::attention || op.inputs.size() < 3) return std::nullopt;
    for (std::uint32_t k = 0; k < op.dims.size(); ++k)
        if (op.dims[k].kind == ops::dim_kind::attribute && ops::is_indexed_by(op.inputs[0], k) && ops::is_indexed_by(op.outputs[0], k) &&
            !ops::is_indexed_by(op.inputs[1], k) && !ops::is_indexed_by(op.inputs[2], k))
            return k;
    return std::nullopt;
}

/// The dim of an attention without parameters that splits queries, keys, values and result alike.
PARSEARCH_INLINE std::optional<std::uint32_t> heads_dim(ops::operation const& op) {
    if (op.work != ops::work_class::attention || op.inputs.size() < 3 || ops::has_parameters(op)) return std::nullopt;
    for (std::uint32_t k = 0; k < op.dims.size(); ++k) {
        bool of_all = op.dims[k].kind == ops::dim_kind::attribute && ops::is_indexed_by(op.outputs[0], k);
        for (std::size_t i = 0; i < 3; ++i) of_all = of_all && ops::is_indexed_by(op.inputs[i], k);
        if (of_all) return k;
    }
    return std::nullopt;
}

} // namespace parsearch::space::detail

namespace parsearch::space {

PARSEARCH_INLINE std::vector<std::optional<std::uint32_t>> position_dims(graph::dense_graph const& g) {
    std::vector<std::optional<std::uint32_t>> dims(g.size());
    std::vector<std::uint32_t> fresh;
    for (auto const op : g.order)
        if ((dims[op] = detail::query_dim(g.operations[op]))) fresh.push_back(op);
    while (!fresh.empty()) {
        auto const op = fresh.back();
        fresh.pop_back();
        auto const spread = [&](ops::operand const& from, ops::operand const& to, std::uint32_t other) {
            auto const& there = g.operations[other];
            if (dims[other] || there.work == ops::work_class::source) return;
            auto const k = detail::matching_dim(from, to, *dims[op]);
            if (!k || there.dims[*k].kind != ops::dim_kind::attribute || there.dims[*k].extent != g.operations[op].dims[*dims[op]].extent) return;
            dims[other] = k;
            fresh.push_back(other);
        };
        for (auto const& e : g.in(op)) spread(g.operations[op].inputs[e.input], g.operations[e.producer].outputs[e.slot], e.producer);
        for (auto const number : g.out(op)) {
            auto const& e = g.edges[number];
            spread(g.operations[op].outputs[e.slot], g.operations[e.consumer].inputs[e.input], e.consumer);
        }
    }
    return dims;
}

PARSEARCH_INLINE std::int64_t positions_of(graph::dense_graph const& g) {
    std::int64_t out = 0;
    double all = 0, with_positions = 0;
    auto const dims = position_dims(g);
    for (std::size_t i = 0; i < g.size(); ++i) {
        auto const& op = g.operations[i];
        if (op.work != ops::work_class::matmul && op.work != ops::work_class::attention && op.work != ops::work_class::recurrent) continue;
        all += op.flops;
        if (!dims[i]) continue;
        with_positions += op.flops;
        if (op.work == ops::work_class::attention) out = std::gcd(out, op.dims[*dims[i]].extent);
    }
    return out > 0 && with_positions >= 0.9 * all ? out : 1;
}

PARSEARCH_INLINE std::int64_t splittable_heads(graph::dense_graph const& g) {
    std::int64_t out = 0;
    for (auto const& op : g.operations)
        if (op.work == ops::work_class::attention) {
            auto const k = detail::heads_dim(op);
            out = std::gcd(out, k ? op.dims[*k].extent : 1);
        }
    return std::max<std::int64_t>(out, 1);
}

PARSEARCH_INLINE flat_strategy context_parallel(graph::dense_graph const& g, std::size_t devices, std::size_t context, std::size_t tensor,
                                                std::size_t heads, bool uneven) {
    if (context < 1 || devices % context != 0)
        throw invalid_input("context_parallel: degree is ", context, ": must divide the number of devices, ", devices);
    if (tensor < 1 || devices / context % tensor != 0)
        throw invalid_input("context_parallel: degree of tensor parallelism is ", tensor, ": must divide the ", devices / context,
                            " devices that have the same positions");
    if (heads < 1 || context % heads != 0)
        throw invalid_input("context_parallel: heads are split over ", heads, ": must divide the degree, ", context);
    if (heads > 1 && tensor > 1)
        throw invalid_input("context_parallel: heads are split over ", heads, ", and degree of tensor parallelism is ", tensor,
                            ": one must be 1, both split heads");
    auto s = tensor_parallel(g, devices, tensor, uneven);
    if (context == 1) return s;
    auto const of_part = tensor_parallel(g, devices / context, tensor, uneven);
    auto const positions = position_dims(g);
    for (std::size_t i = 0; i < g.size(); ++i) {
        if (!positions[i]) continue;
        auto const& op = g.operations[i];
        auto c = of_part[i];
        std::vector<std::uint32_t> order; // neighbours share what tensor parallelism or heads split, then positions, then samples
        for (std::uint32_t k = 0; k < op.dims.size(); ++k)
            if (k != *positions[i] && c.degree[k] > 1 && op.dims[k].kind != ops::dim_kind::sample) order.push_back(k);
        auto parts = static_cast<std::int32_t>(context);
        auto const h = heads > 1 ? detail::heads_dim(op) : std::nullopt;
        if (auto const over = static_cast<std::int32_t>(heads); h && op.dims[*h].extent % over == 0) {
            c.degree[*h] = over;
            parts /= over;
            order.push_back(*h);
        }
        order.push_back(*positions[i]);
        c.degree[*positions[i]] *= parts;
        if (op.dims[*positions[i]].extent % c.degree[*positions[i]] != 0) continue;
        for (auto const k : inner_dims_first(op))
            if (std::ranges::find(order, k) == order.end()) order.push_back(k);
        lay_out(c, order);
        s[i] = c;
    }
    return s;
}

} // namespace parsearch::space
