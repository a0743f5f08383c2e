#pragma once
// Softmax, and the cross entropy that follows it.

#include <algorithm>

#include <parsearch/ops/softmax.hpp>

namespace parsearch::ops {

PARSEARCH_INLINE operation softmax::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    kit::expect_floating(inputs, 0, 0);
    auto const& x = inputs[0];
    auto const rank = x.extents.size(), along = kit::axis_number("axis", axis, rank);
    operation op{.kind = logarithm ? text("log_", kind) : std::string(kind), .work = work_class::softmax};
    for (std::size_t i = 0; i < rank; ++i) kit::add_dim(op, kit::axis_name(i, rank), x.extents[i], i == along ? dim_kind::fixed : kit::axis_kind(i));
    op.flops = 5 * kit::elements(x); // maximum, subtraction, exponential, sum, division
    kit::add_input(op, "x", x.type, kit::along_dims(op, 0, rank)).gradient_flops = 4 * kit::elements(x);
    kit::add_output(op, "y", x.type, kit::along_dims(op, 0, rank)).saved = true;
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE operation cross_entropy::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 2);
    kit::expect_least_rank(inputs, 0, 2);
    kit::expect_floating(inputs, 0, 0);
    kit::expect_indices(inputs, 1);
    auto const& logits = inputs[0];
    auto const outer = logits.extents.size() - 1;
    kit::expect_rank(inputs, 1, outer);
    for (std::size_t i = 0; i < outer; ++i) kit::expect_extent(inputs, 1, i, logits.extents[i], "that of input 0");
    operation op{.kind = std::string(kind), .work = work_class::softmax};
    kit::add_axis_dims(op, logits, outer, outer + 1);
    kit::add_dim(op, "v", logits.extents.back(), dim_kind::fixed);
    double const n = kit::elements(logits);
    op.flops = 5 * n;
    auto const wide = static_cast<double>(std::max(size_of(logits.type), size_of(dtype::f32)));
    op.saved_bytes = n * wide;
    if (size_of(logits.type) < size_of(dtype::f32)) op.intermediate_bytes = op.backward_intermediate_bytes = 2 * n * wide;
    kit::add_input(op, "logits", logits.type, kit::along_dims(op, 0, outer + 1)).gradient_flops = 3 * n; // exponential, subtraction, scaling
    kit::add_input(op, "labels", inputs[1].type, kit::along_dims(op, 0, outer)).saved = true;
    kit::add_output(op, "loss", logits.type, kit::along_dims(op, 0, outer));
    return kit::finished(std::move(op));
}

} // namespace parsearch::ops
