#pragma once
/// Translators of operators that move or rename data.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <parsearch/io/onnx/translators/translation.hpp>
#include <parsearch/io/onnx/translators/translator_registry.hpp>
#include <parsearch/ops/broadcast.hpp>
#include <parsearch/ops/shape.hpp>

namespace parsearch::io::onnx {

namespace detail {

using integer_list = std::vector<std::int64_t>;

/// The list `integers(name, i)`, which must be there.
inline integer_list required(translation const& t, std::string_view name, std::size_t i = ~std::size_t{0}) {
    if (auto list = t.integers(name, i)) return *std::move(list);
    throw invalid_input("has no ", name, i < 64 ? text(", attribute or input ", i) : "", ": must have them");
}

/// The numbers of axes, each between -rank and rank - 1, as numbers from 0.
inline std::vector<std::size_t> axes_of(integer_list const& axes, std::size_t rank) {
    std::vector<std::size_t> numbers;
    for (auto const a : axes) {
        numbers.push_back(ops::kit::axis_number("axes", a, rank));
        if (std::count(numbers.begin(), numbers.end(), numbers.back()) > 1) throw invalid_input("axis ", a, " is named twice: must be named once");
    }
    return numbers;
}

inline std::int64_t product(integer_list const& extents, std::size_t first, std::size_t last) {
    std::int64_t n = 1;
    for (std::size_t i = first; i < last; ++i) n = ops::kit::checked_product("the product of extents", n, extents[i]);
    return n;
}

inline void translate_reshape(translation& t) {
    auto const& x = t.extents(0);
    integer_list shape;
    if (auto const* const known = t.known_output(0); known && t.has_input(1) && !integers_of(t.net(), t.node().inputs[1]))
        shape = known->extents; // computed, but the network says what it is
    else {
        shape = required(t, "shape", 1);
        bool const zeros = t.integer("allowzero", 0) != 0;
        for (std::size_t i = 0; i < shape.size(); ++i)
            if (shape[i] == 0 && !zeros) {
                if (i >= x.size()) throw invalid_input("shape has 0 at place ", i, ": input 0 has only ", x.size(), " axes");
                shape[i] = x[i];
            }
    }
    t.emit(ops::reshape{.shape = std::move(shape)}, t.input(0));
}

/// To two axes: those before `axis` and the others.
inline void translate_flatten(translation& t) {
    auto const& x = t.extents(0);
    auto const rank = static_cast<std::int64_t>(x.size()), axis = t.integer("axis", 1);
    if (axis < -rank || axis > rank) throw invalid_input("attribute axis is ", axis, ": must be between ", -rank, " and ", rank);
    auto const at = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
    t.emit(ops::reshape{.shape = {product(x, 0, at), product(x, at, x.size())}}, t.input(0));
}

inline void translate_squeeze(translation& t) {
    auto const& x = t.extents(0);
    std::vector<bool> gone(x.size());
    if (auto const list = t.integers("axes", 1)) {
        for (auto const a : axes_of(*list, x.size())) {
            if (x[a] != 1)
                throw invalid_input("axis ", a, " of input 0 of shape ", ops::to_string(t.shape(0)), ": must have extent 1 to be squeezed");
            gone[a] = true;
        }
    } else
        for (std::size_t a = 0; a < x.size(); ++a) gone[a] = x[a] == 1;
    integer_list shape;
    for (std::size_t a = 0; a < x.size(); ++a)
        if (!gone[a]) shape.push_back(x[a]);
    t.emit(ops::reshape{.shape = std::move(shape)}, t.input(0));
}

inline void translate_unsqueeze(translation& t) {
    auto const& x = t.extents(0);
    auto const list = required(t, "axes", 1);
    auto const rank = x.size() + list.size();
    std::vector<bool> fresh(rank);
    for (auto const a : axes_of(list, rank)) fresh[a] = true;
    integer_list shape;
    for (std::size_t a = 0, from = 0; a < rank; ++a) shape.push_back(fresh[a] ? 1 : x[from++]);
    t.emit(ops::reshape{.shape = std::move(shape)}, t.input(0));
}

inline void translate_transpose(translation& t) {
    integer_list reversed(t.rank(0));
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    t.emit(ops::transpose{t.attribute("perm", reversed)}, t.input(0));
}

inline void translate_split(translation& t) {
    auto const at = ops::kit::axis_number("axis", t.integer("axis", 0), t.rank(0));
    auto const extent = t.extents(0)[at];
    integer_list sizes;
    if (auto const given = t.integers("split", 1)) sizes = *given;
    else {
        auto const parts = ops::kit::checked("outputs", static_cast<std::int64_t>(t.outputs()));
        if (auto const wanted = t.integer("num_outputs", parts); wanted != parts)
            throw invalid_input("attribute num_outputs is ", wanted, ": has ", parts, " outputs");
        auto const each = (extent + parts - 1) / parts;
        for (auto left = extent; left > 0; left -= each) sizes.push_back(std::min(each, left));
    }
    if (sizes.size() != t.outputs()) throw invalid_input("has ", sizes.size(), " sizes and ", t.outputs(), " outputs: must be as many");
    if (sizes.size() == 1 && sizes[0] == extent) return t.output(0, t.input(0));
    t.emit(ops::split{.axis = static_cast<std::int64_t>(at), .sizes = std::move(sizes)}, t.input(0));
}

inline void translate_slice(translation& t) {
    auto const begins = required(t, "starts", 1), ends = required(t, "ends", 2);
    if (begins.size() != ends.size()) throw invalid_input("has ", begins.size(), " starts and ", ends.size(), " ends: must be as many");
    integer_list all(begins.size());
    std::iota(all.begin(), all.end(), 0);
    auto const axes = axes_of(t.integers("axes", 3).value_or(all), t.rank(0));
    auto const steps = t.integers("steps", 4).value_or(integer_list(begins.size(), 1));
    if (axes.size() != begins.size() || steps.size() != begins.size())
        throw invalid_input("has ", begins.size(), " starts, ", axes.size(), " axes and ", steps.size(), " steps: must be as many");
    argument x = t.input(0);
    for (std::size_t i = 0; i < axes.size(); ++i) {
        auto const extent = t.extents(0)[axes[i]], step = steps[i], axis = static_cast<std::int64_t>(axes[i]);
        if (step == 0 || step < -ops::kit::largest_extent) throw invalid_input("step ", step, " of axis ", axis, ": must not be 0, nor below -2^40");
        // Out of range positions are clamped; a negative end has been counted from the end by then.
        auto const place = [&](std::int64_t p, std::int64_t least, std::int64_t most) { return std::clamp(p < 0 ? p + extent : p, least, most); };
        auto begin = step > 0 ? place(begins[i], 0, extent) : place(begins[i], 0, extent - 1);
        auto end = step > 0 ? place(ends[i], 0, extent) : place(ends[i], -1, extent - 1);
        bool const backward = step < 0;
        if (backward) { // the same positions in ascending order, then turned round
            auto const count = (begin - end - step - 1) / -step;
            std::tie(begin, end) = std::pair(begin + (count - 1) * step, begin + 1);
        }
        if (begin >= end)
            throw invalid_input("slice [", begins[i], ", ", ends[i], ") of axis ", axis, " of extent ", extent, ": must hold something");
        auto const stride = std::min(std::abs(step), extent);
        if (begin != 0 || end != extent || stride != 1) x = t.emit(ops::slice{.axis = axis, .begin = begin, .end = end, .step = stride}, x);
        if (backward) x = t.emit(ops::flip{.axis = axis}, x);
    }
    t.output(0, x);
}

inline void translate_expand(translation& t) {
    ops::expand const op{.shape = required(t, "shape", 1)};
    auto const inferred = t.infer(op, {t.input(0)});
    if (ops::tensor_of(inferred.outputs[0]) == t.shape(0)) return t.output(0, t.input(0));
    t.insert(inferred, {t.input(0)});
}

inline void translate_tile(translation& t) {
    ops::tile const op{.repeats = required(t, "repeats", 1)};
    if (std::all_of(op.repeats.begin(), op.repeats.end(), [](auto n) { return n == 1; })) return t.output(0, t.input(0));
    t.emit(op, t.input(0));
}

inline void translate_pad(translation& t) {
    auto const rank = t.rank(0);
    auto const pads = required(t, "pads", 1);
    integer_list all(rank);
    std::iota(all.begin(), all.end(), 0);
    auto const axes = axes_of(t.integers("axes", 3).value_or(all), rank);
    if (pads.size() != 2 * axes.size()) throw invalid_input("has ", pads.size(), " pads for ", axes.size(), " axes: must have two each");
    ops::pad op{.before = integer_list(rank), .after = integer_list(rank)};
    for (std::size_t i = 0; i < axes.size(); ++i) {
        op.before[axes[i]] = pads[i];
        op.after[axes[i]] = pads[axes.size() + i];
    }
    if (std::all_of(pads.begin(), pads.end(), [](auto n) { return n == 0; })) return t.output(0, t.input(0));
    t.emit(op, t.input(0));
}

/// Blocks of b x b positions to channels, or back: a reshape to six axes, a transpose, and a reshape.
inline void translate_blocks(translation& t, bool to_depth) {
    auto const b = ops::kit::checked("blocksize", t.integer("blocksize", 0));
    auto const& x = t.extents(0);
    if (x.size() != 4) throw invalid_input("input 0 of shape ", ops::to_string(t.shape(0)), ": must have four axes");
    auto const s = x[0], c = x[1], h = x[2], w = x[3], area = ops::kit::checked_product("the block", b, b);
    if (to_depth ? h % b || w % b : c % area)
        throw invalid_input("input 0 of shape ", ops::to_string(t.shape(0)), ": must consist of blocks of ", b, " by ", b);
    bool const columns_last = t.word("mode", "DCR") == "CRD";
    integer_list const blocks = to_depth       ? integer_list{s, c, h / b, b, w / b, b}
                                : columns_last ? integer_list{s, c / area, b, b, h, w}
                                               : integer_list{s, b, b, c / area, h, w};
    integer_list const order = to_depth       ? integer_list{0, 3, 5, 1, 2, 4}
                               : columns_last ? integer_list{0, 1, 4, 2, 5, 3}
                                              : integer_list{0, 3, 4, 1, 5, 2};
    integer_list const result = to_depth ? integer_list{s, c * area, h / b, w / b} : integer_list{s, c / area, h * b, w * b};
    t.output(0, t.as("join").emit(ops::reshape{result}, t.emit(ops::transpose{order}, t.as("split").emit(ops::reshape{blocks}, t.input(0)))));
}
} // namespace detail

/// Reshape, Flatten, Squeeze, Unsqueeze, Transpose, Concat, Split, Slice, Expand, Tile, Pad, DepthToSpace, SpaceToDepth, ReverseSequence.
inline void add_shape(operators& known) {
    known.add("", "Reshape", detail::translate_reshape);
    known.add("", "Flatten", detail::translate_flatten);
    known.add("", "Squeeze", detail::translate_squeeze);
    known.add("", "Unsqueeze", detail::translate_unsqueeze);
    known.add("", "Transpose", detail::translate_transpose);
    known.add("", "Concat", [](translation& t) {
        if (t.inputs() == 1) t.output(0, t.input(0));
        else t.emit(ops::concat{.axis = t.integer("axis", 1)}, t.all_inputs());
    });
    known.add("", "Split", detail::translate_split);
    known.add("", "Slice", detail::translate_slice);
    known.add("", "Expand", detail::translate_expand);
    known.add("", "Tile", detail::translate_tile);
    known.add("", "Pad", detail::translate_pad);
    known.add("", "SpaceToDepth", [](translation& t) { detail::translate_blocks(t, true); });
    known.add("", "DepthToSpace", [](translation& t) { detail::translate_blocks(t, false); });
    known.add("", "ReverseSequence", [](translation& t) { t.emit(ops::flip{.axis = t.integer("time_axis", 0)}, t.input(0)); });
}

} // namespace parsearch::io::onnx
