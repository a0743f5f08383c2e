#pragma once
/// Strategies that experts use, as starts and yardsticks for searches.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/layout.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::space {

/// A strategy and what it is called.
struct named_strategy {
    std::string name{};
    flat_strategy strategy{};
    friend bool operator==(named_strategy const&, named_strategy const&) = default;
};

namespace detail {

[[nodiscard]] inline std::optional<std::uint32_t> first_dim(ops::operation const& op, ops::dim_kind kind, std::int64_t divisible_by = 1) {
    for (std::uint32_t k = 0; k < op.dims.size(); ++k)
        if (op.dims[k].kind == kind && op.dims[k].extent % divisible_by == 0) return k;
    return std::nullopt;
}

} // namespace detail

/// Splits the sample dim as far as `degree` allows, on devices `stride` apart from `start`.
[[nodiscard]] inline configuration split_samples(ops::operation const& op, std::int64_t degree, std::int32_t stride = 1, std::int32_t start = 0) {
    auto c = whole(op, start);
    if (op.work == ops::work_class::source) return whole(op);
    if (auto const k = detail::first_dim(op, ops::dim_kind::sample)) c.degree[*k] = largest_divisor(op.dims[*k].extent, degree);
    lay_out(c, inner_dims_first(op), stride);
    return c;
}

namespace detail {

/// Dim `k` split among `group` neighbouring devices, samples over `data` such groups.
[[nodiscard]] inline configuration split_in_groups(ops::operation const& op, std::uint32_t k, std::int32_t group, std::int64_t data) {
    auto c = split_samples(op, data);
    c.degree[k] = group;
    // The group is the inner one even where its dim is farther out in the usual order.
    std::vector<std::uint32_t> order{k};
    for (auto const other : inner_dims_first(op))
        if (other != k) order.push_back(other);
    lay_out(c, order);
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
    for (auto const& op : g.operations) s.push_back(split_samples(op, static_cast<std::int64_t>(devices)));
    return s;
}

/// Everything on the first device: what a network on slow links may come to.
[[nodiscard]] inline flat_strategy one_device(graph::dense_graph const& g) {
    flat_strategy s;
    for (auto const& op : g.operations) s.push_back(whole(op));
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
        s[i] = split_samples(op, static_cast<std::int64_t>(devices / per_node), static_cast<std::int32_t>(per_node), local[i]);
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
        bool const is_lookup = !op.weights.empty() && op.weights[0].touched_bytes >= 0;
        bool const is_product = op.work == work_class::matmul || op.work == work_class::convolution || op.work == work_class::attention ||
                                op.work == work_class::recurrent;
        if (is_lookup) {
            prefer(detail::first_dim(op, dim_kind::reduction, tensor));
        } else if (!op.weights.empty() && is_product) {
            prefer(inherits(dim_kind::reduction));
            prefer(detail::first_dim(op, dim_kind::parameter, tensor));
        } else {
            prefer(inherits(dim_kind::parameter));
            prefer(inherits(dim_kind::attribute));
            prefer(detail::first_dim(op, dim_kind::attribute, tensor));
            // What is added or joined to a table: the axes that both have are parameter dims.
            if (!op.weights.empty() && op.work != work_class::normalization) prefer(detail::first_dim(op, dim_kind::parameter, tensor));
        }
        if (degree == 1 || !split) {
            s[i] = split_samples(op, static_cast<std::int64_t>(devices));
            continue;
        }
        s[i] = detail::split_in_groups(op, *split, tensor, data);
    }
    return s;
}

namespace detail {

/// The dim that numbers the experts of a product: a parameter dim of weights, input and output alike.
[[nodiscard]] inline std::optional<std::uint32_t> expert_dim(ops::operation const& op) {
    if (op.work != ops::work_class::matmul || op.weights.empty() || op.inputs.empty()) return std::nullopt;
    for (std::uint32_t k = 0; k < op.dims.size(); ++k)
        if (op.dims[k].kind == ops::dim_kind::parameter && op.dims[k].extent > 1 && ops::is_indexed_by(op.inputs[0], k) &&
            ops::is_indexed_by(op.outputs[0], k) && std::ranges::all_of(op.weights, [&](auto const& w) { return ops::is_indexed_by(w, k); }))
            return k;
    return std::nullopt;
}

/// Two operators name the axes of one tensor by dims of their own: the other's dim along the axis of dim `k`.
[[nodiscard]] inline std::optional<std::uint32_t> matching_dim(ops::operand const& from, ops::operand const& to, std::uint32_t k) {
    for (std::size_t a = 0; a < from.axes.size(); ++a)
        if (auto const &x = from.axes[a].terms, &y = to.axes[a].terms; x.size() == 1 && y.size() == 1 && x[0].dim == k) return y[0].dim;
    return std::nullopt;
}

/// The experts' dim of each operator of a mixture's experts: the products, what follows their outputs elementwise, and views that
/// only they read.
[[nodiscard]] inline std::vector<std::optional<std::uint32_t>> expert_dims(graph::dense_graph const& g) {
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
} // namespace detail

/// Data parallelism, but the experts of each mixture are split over `degree` neighbouring devices (over the largest common divisor of their
/// number and `degree`), so that tokens travel to their experts and back, and only devices with the same experts exchange their gradients.
/// Source: Lepikhin et al., GShard, ICLR 2021, section 3.2. Throws `invalid_input` where `degree` does not divide `devices`.
[[nodiscard]] inline flat_strategy expert_parallel(graph::dense_graph const& g, std::size_t devices, std::size_t degree) {
    if (degree < 1 || devices % degree != 0)
        throw invalid_input("expert_parallel: degree is ", degree, ": must divide the number of devices, ", devices);
    auto s = data_parallel(g, devices);
    auto const dims = detail::expert_dims(g);
    for (std::size_t i = 0; i < g.size(); ++i) {
        if (!dims[i]) continue;
        auto const group = std::gcd(g.operations[i].dims[*dims[i]].extent, static_cast<std::int64_t>(degree));
        s[i] = detail::split_in_groups(g.operations[i], *dims[i], static_cast<std::int32_t>(group), static_cast<std::int64_t>(devices) / group);
    }
    return s;
}

/// Data parallelism, but each table that is looked up is whole on one device: the one that holds the fewest bytes of tables so far, in graph order.
/// Source: Naumov et al., Deep learning recommendation model for personalization and recommendation systems, 2019, section 3.
[[nodiscard]] inline flat_strategy table_parallel(graph::dense_graph const& g, std::size_t devices) {
    auto s = data_parallel(g, devices);
    std::vector<double> load(devices, 0);
    std::vector<std::optional<std::int32_t>> place(g.size());
    for (auto const i : g.order) {
        auto const& op = g.operations[i];
        if (op.weights.empty() || op.weights[0].touched_bytes < 0) continue;
        auto& device = place[g.sharing[i]];
        if (!device) {
            device = static_cast<std::int32_t>(std::min_element(load.begin(), load.end()) - load.begin());
            load[static_cast<std::size_t>(*device)] += static_cast<double>(ops::bytes_of(op.weights[0]));
        }
        s[i] = whole(op, *device);
    }
    return s;
}

} // namespace parsearch::space
