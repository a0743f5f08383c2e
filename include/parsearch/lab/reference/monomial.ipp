#pragma once
// Operations as sums of products over their iteration space, read from their axes: what the reference computes with.

#include <parsearch/lab/reference/monomial.hpp>

namespace parsearch::rewrite::reference::detail {

PARSEARCH_INLINE std::int64_t element_at(place const& p, std::vector<std::int64_t> const& point) noexcept {
    std::int64_t at = 0;
    for (auto const& axis : p) {
        auto here = axis.offset;
        for (auto const& [d, stride] : axis.terms) here += stride * point[d];
        if (here < 0 || here >= axis.extent) return -1;
        at = at * axis.extent + here;
    }
    return at;
}

PARSEARCH_INLINE monomial reader::product_of(std::vector<std::size_t> operands, std::size_t output, std::span<window const> windows,
                                             std::int64_t coefficient) const {
    monomial m{.coefficient = residue(coefficient), .operands = std::move(operands), .output = output};
    auto const dims = op_.dims.size();
    std::vector<bool> used(dims + windows.size(), false);
    for (std::size_t i = 0; i < windows.size(); ++i) used[dims + i] = true;
    auto const placed = [&](ops::operand const& o, std::size_t factor) {
        place p;
        for (std::size_t a = 0; a < o.axes.size(); ++a) {
            auto const& axis = o.axes[a];
            position here{.extent = axis.extent, .offset = axis.offset};
            for (auto const& t : axis.terms) {
                here.terms.emplace_back(t.dim, t.stride);
                used[t.dim] = true;
            }
            bool const slides = a >= 2 && a - 2 < windows.size() && factor < 2;
            if (slides) here.terms.emplace_back(dims + a - 2, factor == 0 ? windows[a - 2].dilation : 1);
            else if (axis.terms.empty() ? axis.extent != 1 : axis.span != 1)
                throw invalid_input("operator of kind '", op_.kind, "': operand '", o.name, "' has axis ", a, " of which a point touches more than ",
                                    "one position: the reference can not tell what it does with them");
            p.push_back(std::move(here));
        }
        return p;
    };
    for (std::size_t f = 0; f < m.operands.size(); ++f) m.factors.push_back(placed(operand(m.operands[f]), f));
    m.result = placed(op_.outputs[output], ~std::size_t{0});
    // Dims that neither factors nor result have would add the same again.
    for (std::size_t d = 0; d < used.size(); ++d) m.space.push_back(!used[d] ? 1 : d < dims ? op_.dims[d].extent : windows[d - dims].kernel);
    return m;
}

PARSEARCH_INLINE std::vector<window> reader::pooling_windows() const {
    std::vector<window> out;
    auto const& axes = op_.inputs[0].axes;
    for (std::size_t a = 2; a < axes.size(); ++a) out.push_back({.kernel = axes[a].span});
    return out;
}

PARSEARCH_INLINE std::optional<std::vector<monomial>> read_sum(ops::operation const& op, std::string_view base, std::size_t inputs) {
    reader const read(op);
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < inputs; ++i) all.push_back(i);
    for (std::size_t i = 0; i < op.weights.size(); ++i) all.push_back(op.inputs.size() + i);
    auto const is = [&](auto... kinds) { return ((base == kinds) || ...); };
    std::vector<monomial> out;
    auto const each = [&](std::int64_t coefficient) {
        for (auto const i : all)
            for (std::size_t y = 0; y < op.outputs.size(); ++y) out.push_back(read.product_of({i}, y, {}, coefficient));
    };
    bool const convolves = is("conv1d", "conv2d");
    if (convolves || is("linear")) {
        std::vector<window> windows;
        if (convolves) {
            auto found = read_windows(op);
            if (!found) throw invalid_input("operator of kind '", op.kind, "': its axes are not those of a ", base);
            windows = std::move(*found);
        }
        if (inputs != 1 || op.weights.empty() || op.weights.size() > 2)
            throw invalid_input("operator of kind '", op.kind, "' has ", inputs, " inputs and ", op.weights.size(),
                                " weights: must have 1, and 1 or 2");
        out.push_back(read.product_of({0, op.inputs.size()}, 0, windows));
        if (op.weights.size() == 2) out.push_back(read.product_of({op.inputs.size() + 1}, 0));
    } else if (is_contraction(op) || is("multiply")) {
        out.push_back(read.product_of(all, 0));
    } else if (is("add", "concat", "split", "slice", "strided_slice", "pad", "expand", "tile", "transpose", "reduce_sum", "identity")) {
        each(1);
    } else if (is("mean")) {
        each(inverse(static_cast<std::int64_t>(all.size())));
    } else if (is("subtract")) {
        if (!op.weights.empty()) throw invalid_input("a subtract with weights does not tell which operand is first");
        each(-1);
        out[0].coefficient = 1;
    } else if (is("reduce_mean", "average_global_pool")) {
        each(inverse(ops::elements_of(op.inputs[0]) / ops::elements_of(op.outputs[0])));
    } else if (is("average_pool1d", "average_pool2d")) {
        auto const windows = read.pooling_windows();
        std::int64_t positions = 1;
        for (auto const& w : windows) positions *= w.kernel;
        out.push_back(read.product_of({0}, 0, windows, inverse(positions))); // what is padded counts
    } else {
        return std::nullopt;
    }
    return out;
}

} // namespace parsearch::rewrite::reference::detail
