#pragma once
// Functions of single elements and transposes before or behind what only moves elements, and moves that join or cancel.

#include <algorithm>

#include <parsearch/ops/shape.hpp>
#include <parsearch/rewrite/algebra/attributes.hpp>
#include <parsearch/rewrite/algebra/reorder.hpp>

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE bool only_moves(ops::operation const& op) {
    using namespace std::string_view_literals;
    constexpr std::array kinds{"concat"sv, "split"sv, "slice"sv, "strided_slice"sv, "transpose"sv, "flip"sv, "expand"sv, "tile"sv};
    return op.weights.empty() &&
           (is_reshape(op) || (op.work == ops::work_class::memory && std::find(kinds.begin(), kinds.end(), op.kind) != kinds.end()));
}

/// The unary `function` for a tensor of the shape of `o`.
PARSEARCH_INLINE ops::operation function_on(ops::operation const& function, ops::operand const& o) {
    auto out = function;
    auto const shape = ops::tensor_of(o);
    out.dims.clear();
    ops::kit::add_axis_dims(out, shape, shape.extents.size(), shape.extents.size());
    for (auto* operand : {&out.inputs[0], &out.outputs[0]}) operand->axes = ops::kit::along_dims(out, 0, shape.extents.size());
    auto const before = static_cast<double>(ops::elements_of(function.inputs[0])), after = static_cast<double>(ops::elements_of(o));
    for (auto* amount : ops::amounts_of(out)) *amount = *amount / before * after;
    out.inputs[0].gradient_flops = out.inputs[0].gradient_flops / before * after;
    return out;
}

PARSEARCH_INLINE std::string immovable(ops::operation const& function, ops::operation const& move, std::span<ops::operand const> touched) {
    if (!only_moves(move)) return text(move.kind, " does more than to move elements");
    if (!is_unary(function)) return text(function.kind, " is no function of single elements of one tensor");
    if (function.inputs[0].type != function.outputs[0].type) return text(function.kind, " changes the type");
    auto const known = knowledge_of(function.kind);
    if (known == knowledge::positional) return text(function.kind, " depends on more than its element");
    if (known == knowledge::numbers && touched.size() > 1)
        return text("'", function.kind, "' does not tell its function, and there are ", touched.size());
    auto const shape = ops::tensor_of(function.inputs[0]);
    if (std::none_of(touched.begin(), touched.end(), [&](auto const& o) { return ops::tensor_of(o) == shape; }))
        return text(function.kind, " of ", ops::to_string(shape), " is not next to ", move.kind, ": no operand has this shape");
    return {};
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE outcome<reordering> hoisted(ops::operation const& move, ops::operation const& function) {
    if (auto why = detail::immovable(function, move, move.outputs); !why.empty()) return refusal{std::move(why)};
    reordering out{.move = move};
    for (auto const& in : move.inputs) out.others.push_back(detail::function_on(function, in));
    return out;
}

PARSEARCH_INLINE outcome<reordering> sunk(ops::operation const& function, ops::operation const& move) {
    if (auto why = detail::immovable(function, move, move.inputs); !why.empty()) return refusal{std::move(why)};
    reordering out{.move = move};
    for (auto const& y : move.outputs) out.others.push_back(detail::function_on(function, y));
    return out;
}

PARSEARCH_INLINE outcome<reordering> sunk_transpose(ops::operation const& transposition, ops::operation const& move) {
    auto const order = read_transpose(transposition);
    if (!order) return refused(transposition.kind, " is no transpose");
    auto const joins = read_concat(move), parts = read_split(move);
    if (!joins && !parts) return refused(move.kind, " is no concat or split");
    auto const made = ops::tensor_of(transposition.outputs[0]);
    auto shapes = detail::tensors_of(move.inputs);
    if (std::find(shapes.begin(), shapes.end(), made) == shapes.end())
        return refused("the transpose makes ", ops::to_string(made), ": ", move.kind, " reads no such tensor");
    for (auto& s : shapes) { // as they were before
        auto before = s;
        for (std::size_t i = 0; i < order->size(); ++i) before.extents[static_cast<std::size_t>((*order)[i])] = s.extents[i];
        s = std::move(before);
    }
    auto const at = (*order)[(joins ? joins : parts)->axis];
    reordering out{.move = joins ? ops::concat{.axis = at}.infer(shapes) : ops::split{.axis = at, .sizes = parts->sizes}.infer(shapes)};
    for (auto const& y : out.move.outputs) {
        std::vector<ops::tensor> const shape{ops::tensor_of(y)};
        out.others.push_back(ops::transpose{.permutation = *order}.infer(shape));
    }
    return out;
}

PARSEARCH_INLINE outcome<ops::operation> flattened_concat(ops::operation const& inner, ops::operation const& outer, std::size_t slot) {
    auto const a = read_concat(inner), b = read_concat(outer);
    if (!a || !b) return refused(!a ? inner.kind : outer.kind, " is no concat of inputs alone");
    if (slot >= outer.inputs.size()) return refused("a concat of ", outer.inputs.size(), " inputs has no input ", slot);
    if (!(ops::tensor_of(inner.outputs[0]) == ops::tensor_of(outer.inputs[slot])))
        return refused("the inner concat makes ", ops::to_string(ops::tensor_of(inner.outputs[0])), ": the outer reads ",
                       ops::to_string(ops::tensor_of(outer.inputs[slot])));
    if (a->axis != b->axis && a->sizes.size() > 1 && b->sizes.size() > 1) return refused("the concats join axes ", a->axis, " and ", b->axis);
    auto shapes = detail::tensors_of(outer.inputs);
    auto const more = detail::tensors_of(inner.inputs);
    auto const place = shapes.begin() + static_cast<std::ptrdiff_t>(slot);
    shapes.insert(shapes.erase(place), more.begin(), more.end());
    return ops::concat{.axis = static_cast<std::int64_t>((a->sizes.size() > 1 ? a : b)->axis)}.infer(shapes);
}

PARSEARCH_INLINE outcome<ops::operation> flattened_split(ops::operation const& outer, std::size_t slot, ops::operation const& inner) {
    auto const a = read_split(outer), b = read_split(inner);
    if (!a || !b) return refused(!a ? outer.kind : inner.kind, " is no split");
    if (slot >= outer.outputs.size()) return refused("a split into ", outer.outputs.size(), " has no output ", slot);
    if (!(ops::tensor_of(outer.outputs[slot]) == ops::tensor_of(inner.inputs[0])))
        return refused("the outer split makes ", ops::to_string(ops::tensor_of(outer.outputs[slot])), ": the inner reads ",
                       ops::to_string(ops::tensor_of(inner.inputs[0])));
    if (a->axis != b->axis && a->sizes.size() > 1 && b->sizes.size() > 1) return refused("the splits cut axes ", a->axis, " and ", b->axis);
    auto const axis = (a->sizes.size() > 1 ? a : b)->axis;
    auto sizes = a->sizes.size() > 1 ? a->sizes : std::vector<std::int64_t>{outer.inputs[0].axes[axis].extent};
    auto const more = b->sizes.size() > 1 ? b->sizes : std::vector<std::int64_t>{inner.inputs[0].axes[axis].extent};
    auto const place = sizes.begin() + static_cast<std::ptrdiff_t>(slot);
    sizes.insert(sizes.erase(place), more.begin(), more.end());
    auto const whole = detail::tensors_of(outer.inputs);
    return ops::split{.axis = static_cast<std::int64_t>(axis), .sizes = std::move(sizes)}.infer(whole);
}

PARSEARCH_INLINE bool cancel(ops::operation const& first, ops::operation const& second) {
    if (detail::tensors_of(first.outputs) != detail::tensors_of(second.inputs) ||
        detail::tensors_of(first.inputs) != detail::tensors_of(second.outputs))
        return false;
    if (is_reshape(first) && is_reshape(second)) return true;
    if (auto const a = read_split(first), b = read_concat(second); a && b) return *a == *b;
    if (auto const a = read_concat(first), b = read_split(second); a && b) return *a == *b;
    auto const a = read_transpose(first), b = read_transpose(second);
    if (!a || !b) return false;
    for (std::size_t i = 0; i < b->size(); ++i)
        if ((*a)[static_cast<std::size_t>((*b)[i])] != static_cast<std::int64_t>(i)) return false;
    return true;
}

PARSEARCH_INLINE outcome<ops::operation> composed(ops::operation const& first, ops::operation const& second) {
    if (first.outputs.size() != 1 || second.inputs.size() != 1 || !(ops::tensor_of(first.outputs[0]) == ops::tensor_of(second.inputs[0])))
        return refused(second.kind, " does not read what ", first.kind, " makes");
    auto const from = detail::tensors_of(first.inputs);
    if (is_reshape(first) && is_reshape(second)) return ops::reshape{.shape = ops::tensor_of(second.outputs[0]).extents}.infer(from);
    auto const a = read_transpose(first), b = read_transpose(second);
    if (!a || !b) return refused(first.kind, " and ", second.kind, " are neither two transposes nor two views");
    ops::transpose both;
    for (auto const i : *b) both.permutation.push_back((*a)[static_cast<std::size_t>(i)]);
    if (std::ranges::is_sorted(both.permutation)) return refused("the two transposes cancel");
    return both.infer(from);
}

} // namespace parsearch::rewrite
