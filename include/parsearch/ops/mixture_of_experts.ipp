#pragma once
// Mixtures of experts: the gate that keeps the best experts of each token, the dispatch of tokens to experts, the sum of what

#include <parsearch/ops/mixture_of_experts.hpp>

namespace parsearch::ops::detail {

/// Slots of an expert for the l tokens of a sample: ceil(experts_per_token * l / experts * factor), at least 1 and at most l.
[[nodiscard]] inline std::int64_t expert_capacity(std::int64_t tokens, std::int64_t experts, std::int64_t experts_per_token, double factor) {
    double const even = static_cast<double>(experts_per_token) * static_cast<double>(tokens) / static_cast<double>(experts);
    double const slots = std::ceil(even * factor);
    return slots >= static_cast<double>(tokens) ? tokens : std::max<std::int64_t>(1, static_cast<std::int64_t>(slots));
}

} // namespace parsearch::ops::detail

namespace parsearch::ops {

PARSEARCH_INLINE operation top_k_gate::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    kit::expect_least_rank(inputs, 0, 2);
    kit::expect_floating(inputs, 0, 0);
    auto const& x = inputs[0];
    auto const outer = x.extents.size() - 1;
    if (kit::checked("k", k) > x.extents.back())
        throw invalid_input("option k is ", k, ": must be at most the last extent of ", kit::shown(inputs, 0));
    operation op{.kind = text("top_", k, "_gate"), .work = work_class::softmax};
    kit::add_axis_dims(op, x, outer, outer + 1);
    kit::add_dim(op, "e", x.extents.back(), dim_kind::fixed);
    double const n = kit::elements(x), kept = n / static_cast<double>(x.extents.back()) * static_cast<double>(k);
    op.flops = n * static_cast<double>(k) + 2 * kept;                                             // k maxima; sum and division
    kit::add_input(op, "x", x.type, kit::along_dims(op, 0, outer + 1)).gradient_flops = 4 * kept; // as softmax
    kit::add_output(op, "y", x.type, kit::along_dims(op, 0, outer + 1)).saved = true;
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE operation moe_dispatch::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 2);
    kit::expect_rank(inputs, 0, 3);
    kit::expect_rank(inputs, 1, 3);
    kit::expect_floating(inputs, 0, 0);
    kit::expect_floating(inputs, 1, 1);
    auto const& x = inputs[0];
    auto const& gates = inputs[1];
    for (std::size_t a = 0; a < 2; ++a) kit::expect_extent(inputs, 1, a, x.extents[a], "that of input 0");
    auto const tokens = x.extents[1], experts = gates.extents[2];
    if (kit::checked("experts_per_token", experts_per_token) > experts)
        throw invalid_input("option experts_per_token is ", experts_per_token, ": must be at most the ", experts, " experts of ",
                            kit::shown(inputs, 1));
    if (!(capacity_factor > 0) || capacity_factor > 1e6)
        throw invalid_input("option capacity_factor is ", capacity_factor, ": must be above 0 and at most 1e6");
    operation op{.kind = std::string(kind), .work = work_class::memory};
    auto const s = kit::add_dim(op, "s", x.extents[0], dim_kind::sample);
    auto const e = kit::add_dim(op, "e", experts, dim_kind::attribute);
    kit::add_dim(op, "c", detail::expert_capacity(tokens, experts, experts_per_token, capacity_factor), dim_kind::fixed);
    auto const h = kit::add_dim(op, "h", x.extents[2], dim_kind::attribute);
    auto const& y = kit::add_output(op, "y", x.type, kit::along_dims(op, 0, 4));
    double const moved = kit::elements(tensor_of(y)), slots = moved / static_cast<double>(x.extents[2]);
    auto& in = kit::add_input(op, "x", x.type, {kit::along(op, s), kit::whole(tokens), kit::along(op, h)});
    in.touched_bytes = moved * static_cast<double>(size_of(x.type));
    in.gradient_flops = moved; // each slot's gradient is added to its token's
    kit::add_input(op, "gates", gates.type, {kit::along(op, s), kit::whole(tokens), kit::along(op, e)}).differentiable = false;
    op.flops = kit::elements(gates); // a running count of each expert's tokens
    op.saved_bytes = 4 * slots;
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE operation moe_combine::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 2);
    kit::expect_rank(inputs, 0, 4);
    kit::expect_rank(inputs, 1, 3);
    kit::expect_floating(inputs, 0, 0);
    kit::expect_floating(inputs, 1, 1);
    auto const& x = inputs[0];
    auto const& gates = inputs[1];
    kit::expect_extent(inputs, 1, 0, x.extents[0], "that of input 0");
    kit::expect_extent(inputs, 1, 2, x.extents[1], "the number of experts of input 0");
    operation op{.kind = std::string(kind), .work = work_class::memory};
    auto const s = kit::add_dim(op, "s", x.extents[0], dim_kind::sample);
    auto const l = kit::add_dim(op, "l", gates.extents[1], dim_kind::attribute);
    auto const h = kit::add_dim(op, "h", x.extents[3], dim_kind::attribute);
    auto const e = kit::add_dim(op, "e", x.extents[1], dim_kind::reduction);
    double const products = kit::elements(x);
    auto const slots = kit::whole(x.extents[2]);
    auto& in = kit::add_input(op, "x", x.type, {kit::along(op, s), kit::along(op, e), slots, kit::along(op, h)});
    in.saved = true;
    in.gradient_flops = products;
    in.touched_bytes = products * static_cast<double>(size_of(x.type)); // a part of the tokens reads its own slots
    auto& weights = kit::add_input(op, "gates", gates.type, {kit::along(op, s), kit::along(op, l), kit::along(op, e)});
    weights.saved = true;
    weights.gradient_flops = 2 * products;
    kit::add_output(op, "y", x.type, {kit::along(op, s), kit::along(op, l), kit::along(op, h)});
    op.flops = 2 * products;
    return kit::finished(std::move(op));
}

} // namespace parsearch::ops
