#pragma once
// Reductions over axes.

#include <parsearch/ops/reduce.hpp>

namespace parsearch::ops {

PARSEARCH_INLINE operation reduce::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    auto const& x = inputs[0];
    auto const rank = x.extents.size();
    if (axes.empty()) throw invalid_input("option axes is empty: must name at least one axis");
    std::vector<bool> reduced(rank);
    for (auto const a : axes) {
        auto const i = kit::axis_number("axes", a, rank);
        if (reduced[i]) throw invalid_input("option axes names axis ", a, " twice: must name each once");
        reduced[i] = true;
    }
    auto const& traits = reduction_table[static_cast<std::size_t>(mode)];
    if (mode == reduction_mode::mean) kit::expect_floating(inputs, 0, 0);
    operation op{.kind = text(kind, '_', name_of(mode)), .work = work_class::elementwise};
    std::vector<axis> left;
    for (std::size_t i = 0; i < rank; ++i) {
        auto const d = kit::add_dim(op, kit::axis_name(i, rank), x.extents[i], reduced[i] ? dim_kind::reduction : kit::axis_kind(i));
        if (!reduced[i]) left.push_back(kit::along(op, d));
        else if (keep) left.push_back(kit::whole(1));
    }
    op.flops = traits.forward * kit::elements(x);
    auto& in = kit::add_input(op, "x", x.type, kit::along_dims(op, 0, rank));
    in.saved = traits.keeps_input && in.differentiable;
    in.gradient_flops = in.differentiable ? traits.backward * kit::elements(x) : 0;
    kit::add_output(op, "y", x.type, std::move(left)).saved = traits.keeps_output && in.differentiable;
    return kit::finished(std::move(op));
}

} // namespace parsearch::ops
