#pragma once
/// Nodes of a parallel graph in the vocabulary of rules: their type and parameters, and nodes made from these.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/rewrite/algebra/attributes.hpp>
#include <parsearch/rewrite/algebra/fuse.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>
#include <parsearch/rewrite/rules/rule.hpp>

namespace parsearch::rewrite {

/// A node as rules name it: a type of `op_type` and the value of each of its parameters. Axes are counted from 0, the outermost.
struct typed_node {
    std::string_view type;
    std::vector<std::pair<std::string_view, std::int64_t>> parameters{};
    /// The value of `key`, none where the type has no such parameter.
    [[nodiscard]] std::optional<std::int64_t> get(std::string_view key) const {
        for (auto const& [k, v] : parameters)
            if (k == key) return v;
        return {};
    }
};

/// Keys whose values are axes: rules may count these from the end, -1 being the innermost.
[[nodiscard]] inline bool is_axis(std::string_view key) noexcept { return key == op_key::parallel_dim || key == op_key::axis; }

namespace detail {
struct named_type {
    std::string_view kind, type;
};
inline constexpr named_type plain_types[]{{"relu", op_type::relu}, {"add", op_type::ew_add}, {"multiply", op_type::ew_mul}};
inline constexpr std::string_view resharding_types[]{op_type::partition, op_type::combine,  op_type::replicate,
                                                     op_type::reduce,    op_type::pipeline, op_type::batch};

} // namespace detail

/// Node `n` of `g` in the vocabulary of rules; none where it has no word for it. A linear layer and a convolution are of their type with any
/// number of operands: a bias is the third. Sums and products are of tensors of one shape.
[[nodiscard]] inline std::optional<typed_node> typed(parallel_graph const& g, std::uint32_t n) {
    auto const& c = *g[n].content;
    if (c.kind == node_kind::reshard) {
        typed_node t{detail::resharding_types[static_cast<std::size_t>(c.how)]};
        if (has_axis(c.how)) t.parameters.emplace_back(op_key::parallel_dim, c.axis);
        t.parameters.emplace_back(op_key::parallel_degree, c.degree);
        return t;
    }
    if (c.kind != node_kind::compute) return {};
    auto const& op = c.operation;
    if (op.kind == "linear") return typed_node{op_type::linear, {{op_key::activation, 0}}};
    if (op.kind == "linear+relu") return typed_node{op_type::linear, {{op_key::activation, 2}}};
    if (auto const joins = read_concat(op))
        return typed_node{op_type::concat,
                          {{op_key::axis, static_cast<std::int64_t>(joins->axis)},
                           {op_key::num_inputs, static_cast<std::int64_t>(op.inputs.size())},
                           {op_key::num_dim, static_cast<std::int64_t>(op.dims.size())}}};
    if (auto const cuts = read_split(op))
        return typed_node{
            op_type::split,
            {{op_key::axis, static_cast<std::int64_t>(cuts->axis)}, {op_key::num_outputs, static_cast<std::int64_t>(op.outputs.size())}}};
    for (auto const& [kind, type] : detail::plain_types)
        if (op.kind == kind) {
            for (std::size_t i = 0; i < operands_of(op); ++i)
                if (!(ops::tensor_of(operand_of(op, i)) == ops::tensor_of(op.outputs[0]))) return {};
            return typed_node{type};
        }
    return {};
}

/// Adds to `g` a node of `type` that reads `operands`; answers its number. `parts`: the extents of the outputs of a split along its axis. Throws
/// `invalid_input` where a parameter is missing, there is no such type, or operands do not fit.
inline std::uint32_t add_typed(parallel_graph& g, typed_node const& t, std::vector<tensor_ref> operands, std::span<std::int64_t const> parts = {}) {
    auto const need = [&](std::string_view key) {
        if (auto const v = t.get(key)) return *v;
        throw invalid_input(t.type, ": parameter ", key, " is missing");
    };
    auto const take = [&](std::size_t count) {
        if (operands.size() != count) throw invalid_input(t.type, ": ", operands.size(), " inputs: must be ", count);
    };
    for (std::size_t r = 0; r < std::size(detail::resharding_types); ++r)
        if (t.type == detail::resharding_types[r]) {
            take(1);
            auto const how = static_cast<resharding>(r);
            auto const axis = has_axis(how) ? need(op_key::parallel_dim) : 0, degree = need(op_key::parallel_degree);
            if (degree < 2 || degree > max_parts)
                throw invalid_input(t.type, ": parameter ", op_key::parallel_degree, " is ", degree, ": must be from 2 to ", max_parts);
            return g.reshard(operands[0], how, static_cast<std::size_t>(axis), static_cast<std::int32_t>(degree)).producer;
        }
    std::vector<ops::tensor> shapes;
    for (auto const& o : operands) shapes.push_back(g.tensor(o).whole);
    auto const add = [&](std::string_view name, ops::operation op) { return g.add_operator(std::string(name), std::move(op), std::move(operands)); };
    if (t.type == op_type::linear) {
        take(2);
        if (shapes[1].extents.size() != 2) throw invalid_input(t.type, ": weight of shape ", ops::to_string(shapes[1]), ": must have two axes");
        auto const op = ops::linear{.out = shapes[1].extents[0], .bias = false}.infer(std::span(shapes).first(1));
        auto const activation = need(op_key::activation);
        if (activation == 0) return add("linear", op);
        if (activation != 2) throw invalid_input(t.type, ": parameter ", op_key::activation, " is ", activation, ": must be 0 (none) or 2 (relu)");
        return add("linear", *fused(op, ops::relu{}.infer(std::vector{ops::tensor_of(op.outputs[0])})));
    }
    if (t.type == op_type::relu) return add("relu", ops::relu{}.infer(shapes));
    if (t.type == op_type::ew_add) return add("add", ops::add{}.infer(shapes));
    if (t.type == op_type::ew_mul) return add("multiply", ops::multiply{}.infer(shapes));
    if (t.type == op_type::concat) return add("concat", ops::concat{.axis = need(op_key::axis)}.infer(shapes));
    if (t.type == op_type::split) return add("split", ops::split{.axis = need(op_key::axis), .sizes = {parts.begin(), parts.end()}}.infer(shapes));
    throw invalid_input(t.type, ": no operator of this type can be made");
}

} // namespace parsearch::rewrite
