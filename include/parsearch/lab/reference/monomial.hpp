#pragma once
/// Operations as sums of products over their iteration space, read from their axes: what the reference computes with.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
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
[[nodiscard]] std::int64_t element_at(place const& p, std::vector<std::int64_t> const& point) noexcept;

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
                                      std::int64_t coefficient = 1) const;

    /// The windows of a pooling: as many positions as they span, since a pooling does not keep its dilation.
    [[nodiscard]] std::vector<window> pooling_windows() const;

  private:
    ops::operation const& op_;
};

/// `op`, of base kind `base` and of which the first `inputs` inputs are the base's, as a sum of products. None where it is none.
[[nodiscard]] std::optional<std::vector<monomial>> read_sum(ops::operation const& op, std::string_view base, std::size_t inputs);

} // namespace parsearch::rewrite::reference::detail

#ifndef PARSEARCH_COMPILED
#include <parsearch/lab/reference/monomial.ipp>
#endif
