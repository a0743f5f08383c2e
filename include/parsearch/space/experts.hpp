#pragma once
/// Strategies that experts use, as starts and yardsticks for searches.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/layout.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::space {

namespace detail {

[[nodiscard]] inline std::optional<std::uint32_t> first_dim(ops::operation const& op, ops::dim_kind kind, std::int64_t divisible_by = 1) {
    for (std::uint32_t k = 0; k < op.dims.size(); ++k)
        if (op.dims[k].kind == kind && op.dims[k].extent % divisible_by == 0) return k;
    return std::nullopt;
}

/// Splits the sample dim as far as `degree` allows, on devices `stride` apart from `start`.
[[nodiscard]] inline configuration split_samples(ops::operation const& op, std::int64_t degree, std::int32_t stride = 1, std::int32_t start = 0) {
    auto c = whole(op, start);
    if (op.work == ops::work_class::source) return whole(op);
    if (auto const k = first_dim(op, ops::dim_kind::sample)) c.degree[*k] = largest_divisor(op.dims[*k].extent, degree);
    lay_out(c, inner_dims_first(op), stride);
    return c;
}

/// Degree of each dim of `op` that its first input already has, axis by axis, under the producer's configuration.
[[nodiscard]] inline std::vector<std::int32_t> inherited_degrees(graph::dense_graph const& g, std::size_t op, std::span<configuration const> done) {
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
} // namespace detail

/// Every operator splits its samples over all devices (over the largest divisor of the batch that is not more).
[[nodiscard]] inline flat_strategy data_parallel(graph::dense_graph const& g, std::size_t devices) {
    flat_strategy s;
    for (auto const& op : g.operations) s.push_back(detail::split_samples(op, static_cast<std::int64_t>(devices)));
    return s;
}

/// Data parallelism, but linear layers split their output features over all devices.
/// Source: Krizhevsky, One weird trick for parallelizing convolutional neural networks, 2014.
[[nodiscard]] inline flat_strategy one_weird_trick(graph::dense_graph const& g, std::size_t devices) {
    auto s = data_parallel(g, devices);
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

/// Layers on different devices of a node, samples split over the nodes: each set of operators that shares parameters, and each
/// other operator with weights, takes the next device of the node in turn; operators without weights follow their first input.
/// Source: Wu et al., Google's neural machine translation system, 2016, section 3.2 (layers over the GPUs of a replica).
/// `per_node` devices of a node are consecutive. Throws `invalid_input` where it does not divide `devices`.
[[nodiscard]] inline flat_strategy operation_parallel(graph::dense_graph const& g, std::size_t devices, std::size_t per_node) {
    if (per_node < 1 || devices % per_node != 0)
        throw invalid_input("operation_parallel: per_node is ", per_node, ": must divide the number of devices, ", devices);
    flat_strategy s(g.size());
    std::vector<std::int32_t> local(g.size(), 0);
    std::vector<bool> placed(g.size(), false);
    std::int32_t next = 0;
    for (auto const i : g.order) {
        auto const& op = g.operations[i];
        auto const root = g.sharing[i];
        if (!op.weights.empty()) {
            if (!placed[root]) {
                placed[root] = true;
                local[root] = next++ % static_cast<std::int32_t>(per_node);
            }
            local[i] = local[root];
        } else if (!g.in(i).empty()) {
            local[i] = local[g.in(i).front().producer];
        }
        s[i] = detail::split_samples(op, static_cast<std::int64_t>(devices / per_node), static_cast<std::int32_t>(per_node), local[i]);
    }
    return s;
}

/// Tensor parallelism among `degree` neighbouring devices, data parallelism over the rest: matrix products and convolutions split
/// by output features and, where the input is split by features already, by reduction; attention and recurrent layers by heads
/// or hidden units; embeddings by vocabulary; what lies between follows its input or is split along the sequence.
/// Source: Shoeybi et al., Megatron-LM, 2019, section 3; Korthikanti et al., 2022, section 4.2 (sequence parallelism).
/// Throws `invalid_input` where `degree` does not divide `devices`.
[[nodiscard]] inline flat_strategy tensor_parallel(graph::dense_graph const& g, std::size_t devices, std::size_t degree) {
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
        bool const is_lookup = op.work == work_class::memory && !op.weights.empty();
        if (is_lookup) {
            prefer(detail::first_dim(op, dim_kind::reduction, tensor));
        } else if (!op.weights.empty() && op.work != work_class::normalization) {
            prefer(inherits(dim_kind::reduction));
            prefer(detail::first_dim(op, dim_kind::parameter, tensor));
        } else {
            prefer(inherits(dim_kind::parameter));
            prefer(inherits(dim_kind::attribute));
            prefer(detail::first_dim(op, dim_kind::attribute, tensor));
        }
        if (degree == 1 || !split) {
            s[i] = detail::split_samples(op, static_cast<std::int64_t>(devices));
            continue;
        }
        s[i] = detail::split_samples(op, data);
        s[i].degree[*split] = tensor;
        // The tensor group is the inner one even where its dim is farther out in the usual order.
        std::vector<std::uint32_t> order{*split};
        for (auto const k : inner_dims_first(op))
            if (k != *split) order.push_back(k);
        lay_out(s[i], order);
    }
    return s;
}

} // namespace parsearch::space
