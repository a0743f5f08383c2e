#pragma once
// Linear (fully connected) layers and matrix products.

#include <parsearch/ops/kit/contraction.hpp>
#include <parsearch/ops/linear.hpp>

namespace parsearch::ops {

PARSEARCH_INLINE operation linear::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    kit::expect_least_rank(inputs, 0, 2);
    kit::expect_floating(inputs, 0, 0);
    kit::checked("out", out);
    auto const& x = inputs[0];
    auto const outer = x.extents.size() - 1;
    operation op{.kind = std::string(kind), .work = work_class::matmul};
    kit::add_axis_dims(op, x, outer, outer + 1);
    auto const o = kit::add_dim(op, "o", out, dim_kind::parameter);
    auto const k = kit::add_dim(op, "k", x.extents.back(), dim_kind::reduction);
    auto x_axes = kit::along_dims(op, 0, outer), y_axes = x_axes;
    x_axes.push_back(kit::along(op, k));
    y_axes.push_back(kit::along(op, o));
    kit::add_input(op, "x", x.type, std::move(x_axes));
    kit::add_weight(op, parameter, "weight", x.type, {kit::along(op, o), kit::along(op, k)}, 0);
    kit::add_output(op, "y", x.type, std::move(y_axes));
    kit::count_contraction(op);
    if (bias) {
        double const additions = kit::elements(tensor_of(op.outputs[0]));
        kit::add_weight(op, parameter, "bias", x.type, {kit::along(op, o)}, additions);
        op.flops += additions;
    }
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE operation batched_matmul::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 2);
    kit::expect_least_rank(inputs, 0, 2);
    auto const rank = inputs[0].extents.size(), outer = rank - 2;
    kit::expect_rank(inputs, 1, rank);
    kit::expect_floating(inputs, 0, 1);
    auto const& a = inputs[0].extents;
    auto const& b = inputs[1].extents;
    for (std::size_t i = 0; i < outer; ++i) kit::expect_extent(inputs, 1, i, a[i], "that of input 0");
    kit::expect_extent(inputs, 1, outer + (transpose_b ? 1 : 0), a[outer + (transpose_a ? 0 : 1)], "the extent of input 0 that is summed over");

    operation op{.kind = std::string(kind), .work = work_class::matmul};
    kit::add_axis_dims(op, inputs[0], outer, rank + 1);
    auto const m = kit::add_dim(op, outer ? "m" : "s", a[outer + (transpose_a ? 1 : 0)], kit::axis_kind(outer));
    auto const n = kit::add_dim(op, "n", b[outer + (transpose_b ? 0 : 1)], dim_kind::attribute);
    auto const k = kit::add_dim(op, "k", a[outer + (transpose_a ? 0 : 1)], dim_kind::reduction);
    auto const axes = [&](std::uint32_t row, std::uint32_t column, bool transposed) {
        auto all = kit::along_dims(op, 0, outer);
        all.push_back(kit::along(op, transposed ? column : row));
        all.push_back(kit::along(op, transposed ? row : column));
        return all;
    };
    kit::add_input(op, "a", inputs[0].type, axes(m, k, transpose_a));
    kit::add_input(op, "b", inputs[0].type, axes(k, n, transpose_b));
    kit::add_output(op, "y", inputs[0].type, axes(m, n, false));
    kit::count_contraction(op);
    return kit::finished(std::move(op));
}

} // namespace parsearch::ops
