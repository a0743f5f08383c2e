#pragma once
// Nodes of a parallel graph in the vocabulary of rules: their type and parameters, and nodes made from these.

#include <parsearch/core/error.hpp>
#include <parsearch/rewrite/algebra/attributes.hpp>
#include <parsearch/rewrite/algebra/fuse.hpp>
#include <parsearch/rewrite/rules/typed_node.hpp>

namespace parsearch::rewrite::detail {

inline constexpr named_type plain_types[]{{"relu", op_type::relu}, {"add", op_type::ew_add}, {"multiply", op_type::ew_mul}};

inline constexpr std::string_view resharding_types[]{op_type::partition, op_type::combine,  op_type::replicate,
                                                     op_type::reduce,    op_type::pipeline, op_type::batch};

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE std::optional<typed_node> typed(parallel_graph const& g, std::uint32_t n) {
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

PARSEARCH_INLINE std::uint32_t add_typed(parallel_graph& g, typed_node const& t, std::vector<tensor_ref> operands,
                                         std::span<std::int64_t const> parts) {
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
