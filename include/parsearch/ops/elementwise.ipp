#pragma once
// Elementwise operators: functions of one tensor, combinations of several with broadcast, dropout.

#include <algorithm>

#include <parsearch/ops/elementwise.hpp>

namespace parsearch::ops {

PARSEARCH_INLINE operation unary::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    auto const& traits = function_table[static_cast<std::size_t>(function)];
    if (!traits.any_type) kit::expect_floating(inputs, 0, 0);
    auto const& x = inputs[0];
    auto const rank = x.extents.size();
    operation op{.kind = std::string(traits.name), .work = work_class::elementwise};
    kit::add_axis_dims(op, x, rank, rank);
    op.flops = traits.forward * kit::elements(x);
    auto& in = kit::add_input(op, "x", x.type, kit::along_dims(op, 0, rank));
    in.saved = traits.keeps_input && in.differentiable;
    in.gradient_flops = in.differentiable ? traits.backward * kit::elements(x) : 0;
    kit::add_output(op, "y", x.type, kit::along_dims(op, 0, rank)).saved = traits.keeps_output;
    return kit::finished(std::move(op));
}

} // namespace parsearch::ops

namespace parsearch::ops::detail {

PARSEARCH_INLINE tensor broadcast(std::span<tensor const> inputs) {
    tensor y{.type = inputs[0].type};
    for (auto const& x : inputs) y.extents.resize(std::max(y.extents.size(), x.extents.size()), 1);
    for (std::size_t i = 0; i < inputs.size(); ++i)
        for (std::size_t a = inputs[i].extents.size(), b = y.extents.size(); a-- > 0;) {
            auto const extent = inputs[i].extents[a];
            auto& joined = y.extents[--b];
            if (extent != 1 && joined != 1 && extent != joined)
                throw invalid_input(shown(inputs, i), ": axis ", a, " must have extent ", joined, " or 1 to be combined with the inputs before it");
            joined = std::max(joined, extent);
        }
    return y;
}

/// The axes of a tensor of `extents` that is broadcast to the dims of `op`, which are those of the result.
PARSEARCH_INLINE std::vector<axis> broadcast_axes(operation const& op, std::vector<std::int64_t> const& extents) {
    std::vector<axis> axes;
    for (std::size_t a = 0; a < extents.size(); ++a) {
        auto const d = static_cast<std::uint32_t>(op.dims.size() - extents.size() + a);
        axes.push_back(extents[a] == op.dims[d].extent ? along(op, d) : whole(1));
    }
    return axes;
}

PARSEARCH_INLINE void add_broadcast_inputs(operation& op, std::span<tensor const> inputs, double steps, double results, bool saved) {
    for (auto const& x : inputs) {
        auto& in = add_input(op, text("x", op.inputs.size()), x.type, broadcast_axes(op, x.extents));
        in.saved = saved;
        if (in.differentiable) in.gradient_flops = steps + (elements(x) < results ? results : 0);
    }
}

} // namespace parsearch::ops::detail

namespace parsearch::ops {

PARSEARCH_INLINE operation nary::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 2, ~std::size_t{0});
    kit::expect_one_type(inputs);
    auto const& traits = combine_table[static_cast<std::size_t>(combine)];
    auto const y = detail::broadcast(inputs);
    operation op{.kind = std::string(traits.name), .work = work_class::elementwise};
    kit::add_axis_dims(op, y, y.extents.size(), y.extents.size());
    op.flops = kit::elements(y) * static_cast<double>(inputs.size() - 1);
    bool const backward = traits.differentiable && kit::is_floating(y.type);
    detail::add_broadcast_inputs(op, inputs, traits.sums ? 0 : op.flops, kit::elements(y), backward && !traits.sums);
    kit::add_output(op, "y", combine == ops::combine::compare ? dtype::i8 : y.type, kit::along_dims(op, 0, y.extents.size()));
    for (auto& in : op.inputs)
        if (!backward) {
            in.differentiable = false;
            in.gradient_flops = 0;
        }
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE operation select::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 3);
    if (inputs[0].type != dtype::i8) throw invalid_input(kit::shown(inputs, 0), ": truth values must have type i8");
    if (inputs[1].type != inputs[2].type) throw invalid_input(kit::shown(inputs, 2), ": must have the type of ", kit::shown(inputs, 1));
    auto const y = detail::broadcast(inputs);
    operation op{.kind = std::string(kind), .work = work_class::elementwise};
    kit::add_axis_dims(op, y, y.extents.size(), y.extents.size());
    op.flops = kit::elements(y);
    detail::add_broadcast_inputs(op, inputs, op.flops, op.flops, false);
    op.inputs[0].saved = true;
    kit::add_output(op, "y", inputs[1].type, kit::along_dims(op, 0, y.extents.size()));
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE operation cast::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    auto const& x = inputs[0];
    auto const rank = x.extents.size();
    operation op{.kind = std::string(kind), .work = work_class::elementwise};
    kit::add_axis_dims(op, x, rank, rank);
    op.flops = kit::elements(x);
    auto& in = kit::add_input(op, "x", x.type, kit::along_dims(op, 0, rank));
    in.differentiable = kit::is_floating(x.type) && kit::is_floating(type);
    in.gradient_flops = in.differentiable ? op.flops : 0;
    kit::add_output(op, "y", type, kit::along_dims(op, 0, rank));
    return kit::finished(std::move(op));
}

PARSEARCH_INLINE operation dropout::infer(std::span<tensor const> inputs) const {
    kit::expect_inputs(inputs, 1);
    kit::expect_floating(inputs, 0, 0);
    if (!(rate >= 0 && rate < 1)) throw invalid_input("option rate is ", rate, ": must be at least 0 and below 1");
    auto const& x = inputs[0];
    auto const rank = x.extents.size();
    operation op{.kind = std::string(kind), .work = work_class::elementwise};
    kit::add_axis_dims(op, x, rank, rank);
    op.flops = 2 * kit::elements(x);
    op.saved_bytes = kit::elements(x);
    kit::add_input(op, "x", x.type, kit::along_dims(op, 0, rank)).gradient_flops = 2 * kit::elements(x);
    kit::add_output(op, "y", x.type, kit::along_dims(op, 0, rank));
    return kit::finished(std::move(op));
}

} // namespace parsearch::ops
