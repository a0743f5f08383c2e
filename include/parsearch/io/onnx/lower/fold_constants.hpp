#pragma once
/// Evaluates nodes whose inputs are small constants: the shape arithmetic that exporters leave in a graph.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <parsearch/io/onnx/file/proto.hpp>
#include <parsearch/io/onnx/lower/fold_arithmetic.hpp>
#include <parsearch/io/onnx/lower/fold_tensors.hpp>
#include <parsearch/io/onnx/network/onnx_network.hpp>

namespace parsearch::io::onnx {

namespace folding {

/// Input 0 under another shape of as many elements.
[[nodiscard]] inline typed_tensor reshaped(arguments const& a, extent_list extents) {
    auto const& x = a[0];
    if (a.elements(extents) != a.elements(x.shape.extents))
        a.fail("shape ", ops::to_string(x.shape), " does not fit ", ops::to_string({.extents = extents, .type = x.shape.type}));
    return {.shape = {.extents = std::move(extents), .type = x.shape.type}, .element = x.element, .contents = x.contents};
}

/// Input 0 read at `positions(n)` under a shape.
template <class Positions> [[nodiscard]] typed_tensor moved(arguments const& a, extent_list extents, Positions positions) {
    return result(a, std::move(extents), a[0].element, [&](std::size_t) { return taken(*a[0].contents, positions()); });
}

/// Which of `rank` axes are among `axes`.
[[nodiscard]] inline std::vector<bool> marked(arguments const& a, integers const& axes, std::size_t rank) {
    std::vector<bool> out(rank);
    for (auto const x : axes) {
        auto const i = a.axis(x, rank);
        if (out[i]) a.fail("axis ", x, " is given twice");
        out[i] = true;
    }
    return out;
}

[[nodiscard]] inline typed_tensor reshape(arguments const& a) {
    auto const& from = a[0].shape.extents;
    auto extents = a.ints(1);
    bool const keep_zeros = attribute_of(a.n, "allowzero", std::int64_t{0}) != 0;
    std::optional<std::size_t> open;
    for (std::size_t i = 0; i < extents.size(); ++i) {
        if (extents[i] == 0 && !keep_zeros) {
            if (i >= from.size()) a.fail("the target takes axis ", i, " from an input of ", from.size(), " axes");
            extents[i] = from[i];
        } else if (extents[i] == -1) {
            if (open) a.fail("the target has two extents of -1");
            open = i;
        }
    }
    if (open) {
        extents[*open] = 1;
        auto const rest = a.elements(extents), all = a.elements(from);
        if (rest == 0 || all % rest != 0) a.fail("the extent of -1 in the target cannot be found for ", all, " elements");
        extents[*open] = all / rest;
    }
    return reshaped(a, std::move(extents));
}

[[nodiscard]] inline typed_tensor squeeze(arguments const& a) {
    auto const& from = a[0].shape.extents;
    auto const axes = a.axes(1);
    auto const out = marked(a, axes, from.size());
    extent_list to;
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (out[i] && from[i] != 1) a.fail("axis ", i, " of extent ", from[i], " cannot be squeezed");
        if (axes.empty() ? from[i] != 1 : !out[i]) to.push_back(from[i]);
    }
    return reshaped(a, std::move(to));
}

[[nodiscard]] inline typed_tensor unsqueeze(arguments const& a) {
    auto const axes = a.axes(1);
    auto const rank = a[0].shape.extents.size() + axes.size();
    if (rank > max_rank) a.fail("has more than ", max_rank, " axes");
    auto const fresh = marked(a, axes, rank);
    extent_list to;
    for (std::size_t i = 0, next = 0; i < rank; ++i) to.push_back(fresh[i] ? 1 : a[0].shape.extents[next++]);
    return reshaped(a, std::move(to));
}

[[nodiscard]] inline typed_tensor flatten(arguments const& a) {
    auto const& from = a[0].shape.extents;
    auto const axis = attribute_of(a.n, "axis", std::int64_t{1});
    auto const at = axis == static_cast<std::int64_t>(from.size()) ? from.size() : from.empty() && axis == 0 ? 0 : a.axis(axis, from.size());
    extent_list to{1, 1};
    for (std::size_t i = 0; i < from.size(); ++i) to[i < at ? 0 : 1] *= from[i];
    return reshaped(a, std::move(to));
}

[[nodiscard]] inline typed_tensor transpose(arguments const& a) {
    auto const& from = a[0].shape.extents;
    auto perm = attribute_of(a.n, "perm", integers{});
    if (perm.empty())
        for (std::size_t i = from.size(); i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
    if (perm.size() != from.size()) a.fail("perm has ", perm.size(), " entries for ", from.size(), " axes");
    (void)marked(a, perm, from.size());
    auto const own = strides_of(from);
    extent_list to;
    integers strides;
    for (auto const p : perm) {
        to.push_back(from[a.axis(p, from.size())]);
        strides.push_back(own[a.axis(p, from.size())]);
    }
    return moved(a, to, [&] { return strided(to, strides); });
}

[[nodiscard]] inline typed_tensor expand(arguments const& a) {
    auto const& from = a[0].shape.extents;
    for (auto const e : a.ints(1))
        if (e < 0) a.fail("the target has an extent of ", e);
    auto const to = broadcast(a, from, a.ints(1));
    return moved(a, to, [&] { return broadcast_positions(from, to); });
}

[[nodiscard]] inline typed_tensor tile(arguments const& a) {
    auto const& from = a[0].shape.extents;
    auto const& repeats = a.ints(1);
    if (repeats.size() != from.size()) a.fail(repeats.size(), " repeats for ", from.size(), " axes");
    extent_list to;
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (repeats[i] < 0 || repeats[i] > max_extent) a.fail("repeats axis ", i, ' ', repeats[i], " times");
        to.push_back(from[i] != 0 && repeats[i] > max_extent / from[i] ? max_extent + 1 : from[i] * repeats[i]);
    }
    return moved(a, to, [&] {
        auto const own = strides_of(from);
        auto const across = strides_of(to);
        std::vector<std::size_t> out(static_cast<std::size_t>(a.elements(to)));
        for (std::size_t i = 0; i < out.size(); ++i)
            for (std::size_t d = 0; d < to.size(); ++d)
                out[i] += static_cast<std::size_t>(static_cast<std::int64_t>(i) / across[d] % to[d] % from[d] * own[d]);
        return out;
    });
}

[[nodiscard]] inline typed_tensor slice(arguments const& a) {
    auto to = a[0].shape.extents;
    bool const by_attribute = has_attribute(a.n, "starts");
    auto const starts = by_attribute ? attribute_of(a.n, "starts", integers{}) : a.ints(1);
    auto const ends = by_attribute ? attribute_of(a.n, "ends", integers{}) : a.ints(2);
    auto axes = by_attribute ? attribute_of(a.n, "axes", integers{}) : a.has(3) ? a.ints(3) : integers{};
    auto const steps = !by_attribute && a.has(4) ? a.ints(4) : integers(starts.size(), 1);
    if (axes.empty())
        for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
    if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
        a.fail("has ", starts.size(), " starts, ", ends.size(), " ends, ", axes.size(), " axes and ", steps.size(), " steps: must be as many");
    (void)marked(a, axes, to.size());
    auto const own = strides_of(to);
    auto strides = own;
    std::int64_t offset = 0;
    for (std::size_t k = 0; k < starts.size(); ++k) {
        auto const i = a.axis(axes[k], to.size());
        auto const n = to[i], step = steps[k];
        if (step == 0 || step == std::numeric_limits<std::int64_t>::min()) a.fail("a step is ", step);
        auto const within = [&](std::int64_t x) { // counted from the end where negative, then clamped to where a slice may begin or end
            if (x < 0) x = x < -n ? -1 : x + n;
            return step > 0 ? std::clamp(x, std::int64_t{0}, n) : std::clamp(x, std::int64_t{-1}, n - 1);
        };
        auto const first = step < 0 && starts[k] < -n ? std::int64_t{0} : within(starts[k]), last = within(ends[k]);
        auto const reach = step > 0 ? last - first : first - last, size = step > 0 ? step : -step;
        to[i] = n == 0 || reach <= 0 ? 0 : (reach - 1) / size + 1;
        strides[i] = to[i] > 1 ? own[i] * step : 0;
        if (to[i] > 0) offset += first * own[i];
    }
    return moved(a, to, [&] { return strided(to, strides, offset); });
}

[[nodiscard]] inline std::vector<typed_tensor> split(arguments const& a, std::size_t outputs) {
    auto const& from = a[0].shape.extents;
    auto const axis = a.axis(attribute_of(a.n, "axis", std::int64_t{0}), from.size());
    auto sizes = a.has(1) ? a.ints(1) : attribute_of(a.n, "split", integers{});
    if (sizes.empty()) {
        auto const n = static_cast<std::int64_t>(outputs);
        auto const part = (from[axis] + n - 1) / n;
        for (std::int64_t i = 0; i < n; ++i) sizes.push_back(std::clamp(from[axis] - i * part, std::int64_t{0}, part));
    }
    if (sizes.size() != outputs) a.fail("splits into ", sizes.size(), " parts for ", outputs, " outputs");
    auto const own = strides_of(from);
    std::int64_t begin = 0;
    std::vector<typed_tensor> out;
    for (auto const s : sizes) {
        if (s < 0 || s > from[axis] - begin) a.fail("the parts do not add up to the extent ", from[axis]);
        auto to = from;
        to[axis] = s;
        out.push_back(moved(a, to, [&] { return strided(to, own, begin * own[axis]); }));
        begin += s;
    }
    if (begin != from[axis]) a.fail("the parts add up to ", begin, ", the extent is ", from[axis]);
    return out;
}

[[nodiscard]] inline typed_tensor concat(arguments const& a) {
    auto to = a[0].shape.extents;
    auto const axis = a.axis(attribute_of(a.n, "axis", std::int64_t{0}), to.size());
    for (std::size_t i = 1; i < a.in.size(); ++i) {
        auto const& e = a[i].shape.extents;
        if (a[i].contents->elements.index() != a[0].contents->elements.index()) a.fail("input ", i, " has another type than input 0");
        bool same = e.size() == to.size();
        for (std::size_t d = 0; same && d < e.size(); ++d) same = d == axis || e[d] == to[d];
        if (!same) a.fail("input ", i, " of ", ops::to_string(a[i].shape), " does not fit input 0 of ", ops::to_string(a[0].shape));
        to[axis] += e[axis];
    }
    return result(a, to, a[0].element, [&](std::size_t n) {
        std::int64_t const outer = std::accumulate(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(axis), std::int64_t{1}, std::multiplies<>{});
        return std::visit(
            [&](auto const& kind) {
                std::remove_cvref_t<decltype(kind)> out;
                out.reserve(n);
                for (std::int64_t o = 0; o < outer; ++o)
                    for (auto const* const x : a.in) {
                        auto const& v = std::get<std::remove_cvref_t<decltype(kind)>>(x->contents->elements);
                        auto const block = static_cast<std::ptrdiff_t>(v.size()) / outer;
                        out.insert(out.end(), v.begin() + o * block, v.begin() + (o + 1) * block);
                    }
                return constant{std::move(out)};
            },
            a[0].contents->elements);
    });
}

/// Index `i`, which may count from the end, of an axis of extent `n`.
[[nodiscard]] inline std::int64_t index_of(arguments const& a, std::int64_t i, std::int64_t n) {
    if (i < -n || i >= n) a.fail("index ", i, " is outside of an axis of extent ", n);
    return i < 0 ? i + n : i;
}

[[nodiscard]] inline typed_tensor gather(arguments const& a) {
    auto const& from = a[0].shape.extents;
    auto const axis = a.axis(attribute_of(a.n, "axis", std::int64_t{0}), from.size());
    auto const at = static_cast<std::ptrdiff_t>(axis);
    auto const& indices = a.ints(1);
    extent_list to(from.begin(), from.begin() + at);
    to.insert(to.end(), a[1].shape.extents.begin(), a[1].shape.extents.end());
    to.insert(to.end(), from.begin() + at + 1, from.end());
    return moved(a, to, [&] {
        auto const inner = strides_of(from)[axis];
        auto const outer = std::accumulate(from.begin(), from.begin() + at, std::int64_t{1}, std::multiplies<>{});
        std::vector<std::size_t> out;
        for (std::int64_t o = 0; o < outer; ++o)
            for (auto const i : indices)
                for (std::int64_t k = 0; k < inner; ++k)
                    out.push_back(static_cast<std::size_t>((o * from[axis] + index_of(a, i, from[axis])) * inner + k));
        return out;
    });
}

[[nodiscard]] inline typed_tensor gather_elements(arguments const& a) {
    auto const& from = a[0].shape.extents;
    auto const& to = a[1].shape.extents;
    auto const axis = a.axis(attribute_of(a.n, "axis", std::int64_t{0}), from.size());
    if (to.size() != from.size()) a.fail("the indices have ", to.size(), " axes, the data ", from.size());
    for (std::size_t d = 0; d < to.size(); ++d)
        if (d != axis && to[d] > from[d]) a.fail("the indices reach out of axis ", d);
    auto const& indices = a.ints(1);
    return moved(a, to, [&] {
        auto const own = strides_of(from);
        auto along = own;
        along[axis] = 0;
        auto out = strided(to, along);
        for (std::size_t i = 0; i < out.size(); ++i) out[i] += static_cast<std::size_t>(index_of(a, indices[i], from[axis]) * own[axis]);
        return out;
    });
}

[[nodiscard]] inline typed_tensor range(arguments const& a) {
    for (std::size_t i = 0; i < 3; ++i)
        if (a[i].contents->size() != 1) a.fail("input ", i, " must be one number");
    auto const start = a[0].contents->number(0), limit = a[1].contents->number(0), step = a[2].contents->number(0);
    auto const size = std::max(0.0, std::ceil((limit - start) / step));
    if (!(size <= static_cast<double>(max_extent))) a.fail("counts from ", start, " to ", limit, " by ", step, ": must end, within 2^40 steps");
    return result(a, {static_cast<std::int64_t>(size)}, a[0].element, [&](std::size_t n) {
        return std::visit(
            [&](auto const& v) {
                using number = typename std::remove_cvref_t<decltype(v)>::value_type;
                std::remove_cvref_t<decltype(v)> out;
                auto const& by = std::get<std::remove_cvref_t<decltype(v)>>(a[2].contents->elements);
                for (std::size_t i = 0; i < n; ++i) {
                    if constexpr (std::is_integral_v<number>) out.push_back(fitting(a, v[0] + static_cast<wide_integer>(i) * by[0], a[0].element));
                    else out.push_back(rounded(v[0] + static_cast<double>(i) * by[0], a[0].element));
                }
                return constant{std::move(out)};
            },
            a[0].contents->elements);
    });
}

[[nodiscard]] inline typed_tensor trilu(arguments const& a) {
    auto const& extents = a[0].shape.extents;
    if (extents.size() < 2) a.fail("the input has ", extents.size(), " axes: must have two or more");
    bool const upper = attribute_of(a.n, "upper", std::int64_t{1}) != 0;
    auto const k = std::clamp(a.has(1) ? a.integer(1) : 0, -max_extent, max_extent);
    auto const rows = extents[extents.size() - 2], columns = extents.back();
    return result(a, extents, a[0].element, [&](std::size_t n) {
        auto out = *a[0].contents;
        std::visit(
            [&](auto& v) {
                for (std::size_t i = 0; i < n; ++i) {
                    auto const at = static_cast<std::int64_t>(i);
                    auto const beyond = at % columns - at / columns % rows - k;
                    if (upper ? beyond < 0 : beyond > 0) v[i] = {};
                }
            },
            out.elements);
        return out;
    });
}

[[nodiscard]] inline typed_tensor non_zero(arguments const& a) {
    auto const extents = a[0].shape.extents.empty() ? extent_list{1} : a[0].shape.extents;
    auto const& c = *a[0].contents;
    std::vector<std::int64_t> found;
    for (std::size_t i = 0; i < c.size(); ++i)
        if (c.number(i) != 0) found.push_back(static_cast<std::int64_t>(i));
    auto const strides = strides_of(extents);
    return result(a, {static_cast<std::int64_t>(extents.size()), static_cast<std::int64_t>(found.size())}, pb::TensorProto::INT64, [&](std::size_t) {
        integers out;
        for (std::size_t d = 0; d < extents.size(); ++d)
            for (auto const i : found) out.push_back(i / strides[d] % extents[d]);
        return constant{std::move(out)};
    });
}

[[nodiscard]] inline typed_tensor cast_to(arguments const& a) {
    auto const to = a.n.type == "Cast" ? attribute_of(a.n, "to", std::int64_t{0}) : std::int64_t{a[1].element};
    auto const t = static_cast<element_type>(std::clamp(to, std::int64_t{0}, std::int64_t{1000}));
    return result(a, a[0].shape.extents, t, [&](std::size_t) { return cast(a, *a[0].contents, t); });
}

/// The operators with one output that move elements, or make them.
[[nodiscard]] inline std::map<std::string_view, evaluator> const& movement() {
    static std::map<std::string_view, evaluator> const table{{"Identity", [](arguments const& a) { return a[0]; }},
                                                             {"Reshape", reshape},
                                                             {"Squeeze", squeeze},
                                                             {"Unsqueeze", unsqueeze},
                                                             {"Flatten", flatten},
                                                             {"Transpose", transpose},
                                                             {"Expand", expand},
                                                             {"Tile", tile},
                                                             {"Slice", slice},
                                                             {"Concat", concat},
                                                             {"Gather", gather},
                                                             {"GatherElements", gather_elements},
                                                             {"Range", range},
                                                             {"Trilu", trilu},
                                                             {"NonZero", non_zero},
                                                             {"Cast", cast_to},
                                                             {"CastLike", cast_to}};
    return table;
}

} // namespace folding

/// The value of a `Shape` or `Size` of a tensor of shape `of`.
[[nodiscard]] inline typed_tensor fold_shape(node const& n, ops::tensor const& of) {
    auto const& e = of.extents;
    folding::integers out;
    if (n.type == "Size") out.push_back(checked_elements(e, shown(n), 0));
    else {
        auto const rank = static_cast<std::int64_t>(e.size());
        auto const bound = [&](std::string_view which, std::int64_t otherwise) {
            auto const x = attribute_of(n, which, otherwise);
            return std::clamp(x < 0 ? std::max(x, -rank) + rank : x, std::int64_t{0}, rank);
        };
        auto const start = bound("start", 0), end = std::max(start, bound("end", rank));
        out.assign(e.begin() + start, e.begin() + end);
    }
    ops::tensor shape{.type = ops::dtype::i64};
    if (n.type == "Shape") shape.extents.push_back(static_cast<std::int64_t>(out.size()));
    return {.shape = std::move(shape), .element = pb::TensorProto::INT64, .contents = std::make_shared<constant const>(constant{std::move(out)})};
}

/// The outputs of `n` where all of its inputs are known (null: left out) and it is an operator that is evaluated; nothing otherwise.
/// Outputs of more than `max_folded` elements have a shape but no contents. Throws `invalid_input` where the operator is not defined for the inputs.
[[nodiscard]] inline std::optional<std::vector<typed_tensor>> fold(node const& n, std::span<typed_tensor const* const> inputs) {
    if (!n.domain.empty()) return std::nullopt;
    for (auto const* const x : inputs)
        if (x != nullptr && !x->contents) return std::nullopt;
    folding::arguments const a{n, inputs};
    if (n.type == "Split") return folding::split(a, n.outputs.size());
    for (auto const* const table : {&folding::movement(), &folding::arithmetic()})
        if (auto const at = table->find(n.type); at != table->end()) return std::vector{at->second(a)};
    return std::nullopt;
}

} // namespace parsearch::io::onnx
