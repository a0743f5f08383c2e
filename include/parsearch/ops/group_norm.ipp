#pragma once
// Normalizations of a sample over groups of channels, or over each channel.

#include <parsearch/ops/group_norm.hpp>

namespace parsearch::ops {

PARSEARCH_INLINE operation group_norm::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    kit::expect_least_rank(inputs, 0, 2);
    kit::expect_floating(inputs, 0, 0);
    kit::checked("groups", groups);
    auto const& x = inputs[0];
    auto const rank = x.extents.size();
    if (x.extents[1] % groups) throw invalid_input(kit::shown(inputs, 0), ": option groups is ", groups, ": must divide the channels");
    operation op{.kind = std::string(kind), .work = work_class::normalization};
    auto const s = kit::add_dim(op, "s", x.extents[0], dim_kind::sample);
    auto const g = kit::add_dim(op, "g", groups, dim_kind::parameter);
    auto const block = x.extents[1] / groups;
    std::vector<axis> axes{kit::along(op, s), kit::along(op, g, block)};
    for (std::size_t i = 2; i < rank; ++i) axes.push_back(kit::along(op, kit::add_dim(op, kit::axis_name(i, rank), x.extents[i], dim_kind::fixed)));
    double const n = kit::elements(x);
    op.flops = detail::standardize.forward * n;
    double const normalised = static_cast<double>(x.extents[0]) * static_cast<double>(groups); // each on its own
    op.saved_bytes = detail::standardize.statistics * normalised * static_cast<double>(size_of(dtype::f32));
    auto& in = kit::add_input(op, "x", x.type, axes);
    in.saved = true;
    in.gradient_flops = detail::standardize.backward * n;
    if (affine) {
        kit::add_weight(op, parameter, "weight", x.type, {axes[1]}, 2 * n);
        kit::add_weight(op, parameter, "bias", x.type, {axes[1]}, n);
    }
    kit::add_output(op, "y", x.type, std::move(axes));
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE operation instance_norm::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    kit::expect_least_rank(inputs, 0, 3);
    kit::checked("channels", inputs[0].extents[1]);
    auto op = group_norm{.groups = inputs[0].extents[1], .parameter = parameter}.infer(inputs);
    op.kind = kind;
    return op;
}

} // namespace parsearch::ops
