#pragma once
// Interpolation to other extents.

#include <numeric>

#include <parsearch/ops/resize.hpp>

namespace parsearch::ops {

PARSEARCH_INLINE operation resize::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    auto const& x = inputs[0];
    auto const rank = x.extents.size();
    if (shape.size() != rank) throw invalid_input("option shape has ", shape.size(), " extents: must have one per axis of ", kit::shown(inputs, 0));
    if (mode != interpolation::nearest) kit::expect_floating(inputs, 0, 0);
    auto const halo = static_cast<std::int64_t>(mode);
    operation op{.kind = text(kind, '_', name_of(mode)), .work = mode == interpolation::nearest ? work_class::memory : work_class::elementwise};
    std::vector<axis> from, to;
    double taps = 1;
    for (std::size_t i = 0; i < rank; ++i) {
        auto const extent = x.extents[i], wanted = kit::checked("shape", shape[i]), common = std::gcd(extent, wanted);
        auto const d = kit::add_dim(op, kit::axis_name(i, rank), common, kit::axis_kind(i));
        from.push_back(kit::along(op, d, extent / common));
        to.push_back(kit::along(op, d, wanted / common));
        if (extent == wanted) continue;
        taps *= static_cast<double>(2 * halo);
        from.back().offset = -halo;
        from.back().span += 2 * halo;
    }
    auto& in = kit::add_input(op, "x", x.type, std::move(from));
    kit::add_output(op, "y", x.type, std::move(to));
    double const n = kit::elements(tensor_of(op.outputs[0]));
    if (mode != interpolation::nearest) op.flops = 2 * taps * n; // each tap is weighted and added
    if (in.differentiable) in.gradient_flops = mode == interpolation::nearest ? n : op.flops;
    return kit::finished(std::move(op));
}

} // namespace parsearch::ops
