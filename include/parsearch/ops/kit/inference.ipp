#pragma once
// What the built-in operators share when they infer their operation: checks of inputs and options, dims, axes, weights.

#include <parsearch/ops/kit/inference.hpp>

namespace parsearch::ops::kit {

PARSEARCH_INLINE void expect_inputs(std::span<tensor const> inputs, std::size_t least, std::size_t most) {
    if (inputs.size() < least || inputs.size() > most)
        throw invalid_input(inputs.size(), " inputs: must have ", least == most ? std::to_string(least) : text("at least ", least));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        for (auto const e : inputs[i].extents)
            if (e < 1 || e > largest_extent) throw invalid_input(shown(inputs, i), ": each extent must be between 1 and 2^40");
        if (elements(inputs[i]) > most_elements) throw invalid_input(shown(inputs, i), ": has more than 5e17 elements");
    }
}

PARSEARCH_INLINE void expect_rank(std::span<tensor const> inputs, std::size_t i, std::size_t least, std::size_t most) {
    auto const rank = inputs[i].extents.size();
    if (rank < least || rank > most)
        throw invalid_input(shown(inputs, i), ": must have ",
                            least == most  ? ""
                            : rank < least ? "at least "
                                           : "at most ",
                            rank < least ? least : most, (rank < least ? least : most) == 1 ? " axis" : " axes");
}

PARSEARCH_INLINE void expect_floating(std::span<tensor const> inputs, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i <= last; ++i) {
        if (!is_floating(inputs[i].type)) throw invalid_input(shown(inputs, i), ": must have a floating-point type");
        if (inputs[i].type != inputs[first].type) throw invalid_input(shown(inputs, i), ": must have the type of ", shown(inputs, first));
    }
}

PARSEARCH_INLINE std::size_t axis_number(std::string_view option, std::int64_t axis, std::size_t rank) {
    auto const n = static_cast<std::int64_t>(rank);
    if (axis < -n || axis >= n)
        throw invalid_input("option ", option, " is axis ", axis, ": must be between ", -n, " and ", n - 1, " for a tensor of ", rank,
                            rank == 1 ? " axis" : " axes");
    return static_cast<std::size_t>(axis < 0 ? axis + n : axis);
}

PARSEARCH_INLINE operand& add_weight(operation& op, std::string_view parameter, std::string_view name, dtype type, std::vector<axis> axes,
                                     flop_count gradient_flops) {
    op.weights.push_back({.name = std::string(name),
                          .type = type,
                          .axes = std::move(axes),
                          .gradient_flops = gradient_flops,
                          .parameter = parameter.empty() ? std::string() : text(parameter, '.', name)});
    return op.weights.back();
}

PARSEARCH_INLINE operation finished(operation op) {
    if (op.dims.size() > max_dims) throw invalid_input("needs ", op.dims.size(), " iteration dims: at most ", max_dims, " are supported");
    for (auto const* operands : {&op.inputs, &op.weights, &op.outputs})
        for (auto const& o : *operands)
            if (double const n = elements(tensor_of(o)); n > most_elements)
                throw invalid_input("operand '", o.name, "' of shape ", to_string(tensor_of(o)), ": has more than 5e17 elements");
    return op;
}

} // namespace parsearch::ops::kit
