#pragma once
// Operators along an axis in which order counts: the largest entries, the place of the largest, running sums.

#include <bit>

#include <parsearch/ops/order.hpp>

namespace parsearch::ops::detail {

/// The beginning of an operator along axis `at` of x, which is not divisible.
PARSEARCH_INLINE operation along_axis(tensor const& x, std::string_view kind, std::size_t at) {
    operation op{.kind = std::string(kind), .work = work_class::elementwise};
    add_axis_dims(op, x, x.extents.size(), x.extents.size());
    op.dims[at].kind = dim_kind::fixed;
    add_input(op, "x", x.type, along_dims(op, 0, x.extents.size()));
    return op;
}

} // namespace parsearch::ops::detail

namespace parsearch::ops {

PARSEARCH_INLINE operation top_k::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    auto const& x = inputs[0];
    auto const rank = x.extents.size(), at = kit::axis_number("axis", axis, rank);
    if (kit::checked("k", k) > x.extents[at]) throw invalid_input("option k is ", k, ": must be at most axis ", at, " of ", kit::shown(inputs, 0));
    auto op = detail::along_axis(x, kind, at);
    // A heap of k: a comparison per level that an entry may sink.
    op.flops = kit::elements(x) * static_cast<double>(std::bit_width(static_cast<std::uint64_t>(k)));
    auto axes = kit::along_dims(op, 0, rank);
    axes[at] = kit::whole(k);
    kit::add_output(op, "values", x.type, axes);
    kit::add_output(op, "indices", dtype::i64, std::move(axes)).saved = true;
    if (auto& in = op.inputs[0]; in.differentiable) in.gradient_flops = kit::elements(tensor_of(op.outputs[0]));
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE operation arg_max::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    auto const& x = inputs[0];
    auto const rank = x.extents.size(), at = kit::axis_number("axis", axis, rank);
    auto op = detail::along_axis(x, kind, at);
    op.inputs[0].differentiable = false;
    op.flops = kit::elements(x);
    auto axes = kit::along_dims(op, 0, rank);
    if (keep) axes[at] = kit::whole(1);
    else axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(at));
    kit::add_output(op, "y", dtype::i64, std::move(axes));
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE operation cumulative_sum::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    auto const& x = inputs[0];
    auto const rank = x.extents.size();
    auto op = detail::along_axis(x, kind, kit::axis_number("axis", axis, rank));
    op.flops = kit::elements(x);
    if (op.inputs[0].differentiable) op.inputs[0].gradient_flops = op.flops;
    kit::add_output(op, "y", x.type, kit::along_dims(op, 0, rank));
    return kit::finished(std::move(op));
}

} // namespace parsearch::ops
