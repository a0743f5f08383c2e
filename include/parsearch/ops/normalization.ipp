#pragma once
// Normalizations: layer, root mean square, batch.

#include <parsearch/ops/normalization.hpp>

namespace parsearch::ops::detail {

PARSEARCH_INLINE void add_normalization(operation& op, tensor const& x, normalization_cost cost, double groups, std::string_view parameter,
                                        bool weight, bool bias, std::size_t first, std::size_t count) {
    double const n = elements(x);
    op.work = work_class::normalization;
    op.flops = cost.forward * n;
    op.saved_bytes = cost.statistics * groups * static_cast<double>(size_of(dtype::f32));
    auto& in = add_input(op, "x", x.type, along_dims(op, 0, x.extents.size()));
    in.saved = true;
    in.gradient_flops = cost.backward * n;
    if (weight) add_weight(op, parameter, "weight", x.type, along_dims(op, first, count), 2 * n);
    if (bias) add_weight(op, parameter, "bias", x.type, along_dims(op, first, count), n);
    add_output(op, "y", x.type, along_dims(op, 0, x.extents.size()));
}

PARSEARCH_INLINE operation trailing_normalization(std::span<tensor const> inputs, std::string_view kind, std::int64_t axes, normalization_cost cost,
                                                  std::string_view parameter, bool weight, bool bias) {
    expect_inputs(inputs, 1);
    expect_least_rank(inputs, 0, 2);
    expect_floating(inputs, 0, 0);
    auto const& x = inputs[0];
    auto const rank = x.extents.size();
    if (axes < 1 || axes >= static_cast<std::int64_t>(rank))
        throw invalid_input("option axes is ", axes, ": must be between 1 and ", rank - 1, " for ", shown(inputs, 0));
    auto const first = rank - static_cast<std::size_t>(axes);
    operation op{.kind = std::string(kind)};
    double groups = 1;
    for (std::size_t i = 0; i < rank; ++i) {
        add_dim(op, axis_name(i, rank), x.extents[i], i < first ? axis_kind(i) : dim_kind::fixed);
        if (i < first) groups *= static_cast<double>(x.extents[i]);
    }
    add_normalization(op, x, cost, groups, parameter, weight, bias, first, rank - first);
    return finished(std::move(op));
}

} // namespace parsearch::ops::detail

namespace parsearch::ops {

PARSEARCH_INLINE operation batch_norm::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    kit::expect_least_rank(inputs, 0, 2);
    kit::expect_floating(inputs, 0, 0);
    auto const& x = inputs[0];
    auto const rank = x.extents.size();
    operation op{.kind = relu ? text(kind, "_relu") : std::string(kind)};
    for (std::size_t i = 0; i < rank; ++i)
        kit::add_dim(op,
                     i == 1                ? "c"
                     : i == 2 && rank == 3 ? "l"
                                           : kit::axis_name(i, rank),
                     x.extents[i], i == 1 ? dim_kind::parameter : kit::axis_kind(i));
    detail::add_normalization(op, x, detail::standardize, static_cast<double>(x.extents[1]), parameter, true, true, 1, 1);
    if (relu) {
        op.flops += kit::elements(x);
        op.inputs[0].gradient_flops += kit::elements(x);
        op.outputs[0].saved = true;
    }
    return kit::finished(std::move(op));
}

} // namespace parsearch::ops
