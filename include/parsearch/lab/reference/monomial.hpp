#pragma once
/// Operations as sums of products over their iteration space, read from their axes: what the reference computes with.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/lab/reference/array.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/rewrite/algebra/attributes.hpp>

namespace parsearch::rewrite::reference::detail {

/// Where a point of a space stands on one axis: offset + sum of stride * coordinate; nowhere outside [0, extent).
struct position {
    std::int64_t extent = 1, offset = 0;
    std::vector<std::pair<std::size_t, std::int64_t>> terms{}; ///< dim, stride
};
using place = std::vector<position>;

/// result[...] += coefficient * product of the factors, for every point of a space at which all of them stand somewhere.
struct monomial {
    std::vector<std::int64_t> space{};
    std::int64_t coefficient = 1;
    std::vector<std::size_t> operands{}; ///< of the factors: numbers of the inputs, then the weights
    std::vector<place> factors{};
    std::size_t output = 0;
    place result{};
};

/// Row-major number of the element, or -1.
[[nodiscard]] inline std::int64_t element_at(place const& p, std::vector<std::int64_t> const& point) noexcept {
    std::int64_t at = 0;
    for (auto const& axis : p) {
        auto here = axis.offset;
        for (auto const& [d, stride] : axis.terms) here += stride * point[d];
        if (here < 0 || here >= axis.extent) return -1;
        at = at * axis.extent + here;
    }
    return at;
}

/// Calls `visit(elements of the factors, element of the result)` for every point, the last dim fastest.
template <class F> void walk(monomial const& m, F&& visit) {
    double points = 1;
    for (auto const e : m.space) points *= static_cast<double>(e);
    if (points > most_points) throw invalid_input("an iteration space has ", points, " points: a reference computes at most ", most_points);
    std::vector<std::int64_t> point(m.space.size()), at(m.factors.size());
    for (;;) {
        auto const to = element_at(m.result, point);
        bool inside = to >= 0;
        for (std::size_t f = 0; inside && f < m.factors.size(); ++f) inside = (at[f] = element_at(m.factors[f], point)) >= 0;
        if (inside) visit(at, to);
        auto d = point.size();
        while (d > 0 && ++point[d - 1] == m.space[d - 1]) point[--d] = 0;
        if (d == 0) return;
    }
}

/// Makes monomials of one operation.
class reader {
  public:
    explicit reader(ops::operation const& op) : op_(op) {}

    /// Operand number `i` of inputs, then weights.
    [[nodiscard]] ops::operand const& operand(std::size_t i) const {
        return i < op_.inputs.size() ? op_.inputs[i] : op_.weights[i - op_.inputs.size()];
    }

    /// The product of `operands`, summed over the dims that output `output` lacks. `kernels`: the extents of windows on axes 2, 3, ... of
    /// operand 0, which are dims of their own and the last axes of operand 1; empty where there are none.
    [[nodiscard]] monomial product_of(std::vector<std::size_t> operands, std::size_t output, std::span<window const> windows = {},
                                      std::int64_t coefficient = 1) const {
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
                    throw invalid_input("operator of kind '", op_.kind, "': operand '", o.name, "' has axis ", a,
                                        " of which a point touches more than ", "one position: the reference can not tell what it does with them");
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

    /// The windows of a pooling: as many positions as they span, since a pooling does not keep its dilation.
    [[nodiscard]] std::vector<window> pooling_windows() const {
        std::vector<window> out;
        auto const& axes = op_.inputs[0].axes;
        for (std::size_t a = 2; a < axes.size(); ++a) out.push_back({.kernel = axes[a].span});
        return out;
    }

  private:
    ops::operation const& op_;
};

/// `op`, of base kind `base` and of which the first `inputs` inputs are the base's, as a sum of products. None where it is none.
[[nodiscard]] inline std::optional<std::vector<monomial>> read_sum(ops::operation const& op, std::string_view base, std::size_t inputs) {
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
