#pragma once
// What an operation says about itself, read back from its kind and its axes: the stages that are fused to it, cuts along an axis,

#include <map>

#include <parsearch/rewrite/algebra/attributes.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE fused_kind parts_of(std::string_view kind) {
    fused_kind out;
    for (std::size_t begin = 0, stage = 0; begin <= kind.size(); ++stage) {
        auto const end = std::min(kind.find('+', begin), kind.size());
        auto const part = kind.substr(begin, end - begin);
        if (stage) out.stages.emplace_back(part);
        else if (part == "batch_norm_relu") out = {"batch_norm", {"relu"}};
        else out.base = part;
        begin = end + 1;
    }
    return out;
}

PARSEARCH_INLINE bool is_plain(ops::operation const& op, ops::operand const& o) {
    std::uint32_t seen = 0;
    for (auto const& a : o.axes) {
        if (!is_plain(op, a) || seen >> a.terms[0].dim & 1) return false;
        seen |= std::uint32_t{1} << a.terms[0].dim;
    }
    return true;
}

PARSEARCH_INLINE knowledge knowledge_of(std::string_view kind) noexcept {
    using namespace std::string_view_literals;
    constexpr std::array with_numbers{"leaky_relu"sv, "scale"sv, "shift"sv,        "power"sv, "elu"sv,          "celu"sv,
                                      "clip"sv,       "round"sv, "hard_sigmoid"sv, "cast"sv,  "trigonometric"sv};
    if (std::find(with_numbers.begin(), with_numbers.end(), kind) != with_numbers.end()) return knowledge::numbers;
    for (auto const& f : ops::function_table)
        if (f.name == kind) return kind == "mask" ? knowledge::positional : knowledge::told;
    return knowledge::positional;
}

} // namespace parsearch::rewrite

namespace parsearch::rewrite::detail {

PARSEARCH_INLINE std::optional<cut> cut_of(ops::operation const& op, ops::operand const& all, std::span<ops::operand const> parts) {
    if (!is_plain(op, all) || parts.empty()) return std::nullopt;
    cut out;
    for (auto const& p : parts)
        if (p.axes.size() != all.axes.size() || p.type != all.type) return std::nullopt;
    for (std::size_t a = 0; a < all.axes.size(); ++a)
        if (std::any_of(parts.begin(), parts.end(), [&](auto const& p) { return p.axes[a].extent != all.axes[a].extent; })) out.axis = a;
    std::int64_t begin = 0;
    for (auto const& p : parts) {
        for (std::size_t a = 0; a < all.axes.size(); ++a) {
            auto expected = all.axes[a];
            if (a == out.axis) {
                expected.offset = -begin;
                expected.extent = p.axes[a].extent;
            }
            if (!(p.axes[a] == expected)) return std::nullopt;
        }
        if (!all.axes.empty()) {
            out.sizes.push_back(p.axes[out.axis].extent);
            begin += out.sizes.back();
        }
    }
    if (all.axes.empty() || begin != all.axes[out.axis].extent) return std::nullopt;
    return out;
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE std::optional<std::vector<std::int64_t>> read_transpose(ops::operation const& op) {
    if (op.kind != "transpose" || !op.weights.empty() || op.inputs.size() != 1 || op.outputs.size() != 1) return std::nullopt;
    auto const &x = op.inputs[0], &y = op.outputs[0];
    if (x.axes.size() != y.axes.size() || x.type != y.type || !is_plain(op, x) || !is_plain(op, y)) return std::nullopt;
    std::vector<std::int64_t> out;
    for (auto const& a : y.axes) {
        auto const at = std::find(x.axes.begin(), x.axes.end(), a);
        if (at == x.axes.end()) return std::nullopt;
        out.push_back(at - x.axes.begin());
    }
    return out;
}

PARSEARCH_INLINE std::optional<std::vector<window>> read_windows(ops::operation const& op) {
    auto const base = parts_of(op.kind).base;
    std::size_t const rank = base == "conv1d" ? 3 : base == "conv2d" ? 4 : 0;
    if (!rank || op.inputs.empty() || op.weights.empty() || op.outputs.size() != 1) return std::nullopt;
    auto const &x = op.inputs[0].axes, &w = op.weights[0].axes, &y = op.outputs[0].axes;
    if (x.size() != rank || w.size() != rank || y.size() != rank) return std::nullopt;
    std::vector<window> out;
    for (std::size_t a = 2; a < rank; ++a) {
        auto const kernel = w[a].extent;
        bool const slides = w[a].terms.empty() && is_plain(op, y[a]) && x[a].terms.size() == 1 && x[a].terms[0].dim == y[a].terms[0].dim;
        if (!slides || (kernel == 1 ? x[a].span != 1 : (x[a].span - 1) % (kernel - 1) != 0)) return std::nullopt;
        out.push_back({.kernel = kernel,
                       .stride = x[a].terms[0].stride,
                       .padding = -x[a].offset,
                       .dilation = kernel == 1 ? 1 : (x[a].span - 1) / (kernel - 1)});
    }
    return out;
}

PARSEARCH_INLINE void forget_unshared(std::span<ops::operation> model) {
    std::map<std::string, std::size_t, std::less<>> uses;
    for (auto const& op : model)
        for (auto const& w : op.weights) ++uses[w.parameter];
    for (auto& op : model)
        for (auto& w : op.weights)
            if (!w.parameter.empty() && uses[w.parameter] == 1) w.parameter.clear();
}

} // namespace parsearch::rewrite
