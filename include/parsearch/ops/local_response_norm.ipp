#pragma once
// Normalization over neighbouring channels.

#include <parsearch/ops/local_response_norm.hpp>

namespace parsearch::ops {

PARSEARCH_INLINE operation local_response_norm::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    kit::expect_least_rank(inputs, 0, 2);
    kit::expect_floating(inputs, 0, 0);
    kit::checked("size", size);
    auto const& x = inputs[0];
    auto const rank = x.extents.size();
    operation op{.kind = std::string(kind), .work = work_class::normalization};
    kit::add_axis_dims(op, x, rank, rank);
    double const n = kit::elements(x);
    // A square, the sum, scale and shift of it, its power, a division; backward sums again, over the outputs that an input is part of.
    op.flops = (static_cast<double>(size) + 4) * n;
    op.saved_bytes = n * static_cast<double>(size_of(x.type));
    auto axes = kit::along_dims(op, 0, rank);
    axes[1] = kit::window_axis(x.extents[1], 1, {.kernel = size, .padding = (size - 1) / 2});
    auto& in = kit::add_input(op, "x", x.type, std::move(axes));
    in.saved = true;
    in.gradient_flops = (static_cast<double>(size) + 6) * n;
    kit::add_output(op, "y", x.type, kit::along_dims(op, 0, rank)).saved = true;
    return kit::finished(std::move(op));
}

} // namespace parsearch::ops
