#pragma once
/// Runs one operation on small integer tensors, forward and backward: what a rewrite of operations is checked against.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/lab/reference/array.hpp>
#include <parsearch/lab/reference/monomial.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/rewrite/algebra/attributes.hpp>
#include <parsearch/rewrite/algebra/outcome.hpp>

namespace parsearch::rewrite::reference {

/// Gradients of the operands of one operation; zero for those that are not differentiable.
struct operand_gradients {
    std::vector<array> inputs{}, weights{};
    friend bool operator==(operand_gradients const&, operand_gradients const&) = default;
};

namespace detail {

/// One operation on given operands. Forward keeps what backward needs.
class evaluation {
  public:
    evaluation(ops::operation const& op, std::span<array const> x, std::span<array const> w, purpose use);

    [[nodiscard]] std::vector<array> const& outputs() const noexcept { return outputs_; }

    [[nodiscard]] operand_gradients backward(std::span<array const> given);

  private:
    enum class form : std::uint8_t { sum, copy, maximum, lookup, normalization };

    [[nodiscard]] invalid_input unfit(std::string_view rule) const { return invalid_input("operator of kind '", op_.kind, "' ", rule); }
    void check(std::span<array const> given, std::vector<ops::operand> const& operands, std::string_view role) const;

    void forward();

    void base_forward();

    void base_backward(std::vector<array> const& g);

    [[nodiscard]] std::int64_t factor(monomial const& m, std::size_t f, std::vector<std::int64_t> const& at) const {
        return operands_[m.operands[f]].values[static_cast<std::size_t>(at[f])];
    }

    /// Of equal elements the first in the order of the walk is the maximum.
    void maximum_forward();

    /// Calls `add(first element of the row, element of the result, feature)`. An index is taken modulo the rows.
    template <class F> void look_up(F&& add) {
        auto const& table = operands_[op_.inputs.size()].extents;
        auto const rows = table[0];
        auto const features = static_cast<std::size_t>(table[1]);
        auto const& indices = operands_[0];
        auto const bag = base_ == "embedding_bag" ? static_cast<std::size_t>(indices.extents.back()) : 1;
        for (std::size_t i = 0; i < indices.values.size(); ++i) {
            auto const row = static_cast<std::size_t>((indices.values[i] % rows + rows) % rows);
            for (std::size_t o = 0; o < features; ++o) add(row * features, i / bag * features + o, o);
        }
    }

    /// The group of elements that are normalised together, of each element: those that differ in dims that are not divisible, of a batch
    /// normalization in all but the channel.
    [[nodiscard]] std::vector<std::size_t> groups() const;
    /// Element of weight `w` that belongs to each element of x.
    [[nodiscard]] std::vector<std::size_t> of_weight(std::size_t w) const;

    /// A stand-in that depends on what a normalization depends on: y = f(x) * (sum of h over the group) * weight + bias, f and h unknown.
    void normalise();
    void normalise_backward(std::vector<std::int64_t> const& g);
    [[nodiscard]] std::int64_t weight(std::size_t w, std::size_t i) const { return operands_[op_.inputs.size() + w].values[along_[w][i]]; }

    ops::operation const& op_;
    purpose use_;
    std::string base_;
    std::vector<std::string> stages_;
    std::size_t base_inputs_ = 0;
    form form_ = form::sum;
    std::vector<array> operands_{}, outputs_{}, between_{}, gradients_{}; ///< between: in front of each stage
    std::vector<monomial> terms_{};
    std::vector<std::int64_t> origin_{}; ///< of a maximum: the element that it is
    std::vector<std::size_t> group_{};
    std::vector<std::int64_t> total_{};
    std::vector<std::vector<std::size_t>> along_{};
};

} // namespace detail

/// The outputs of `op`. Known are: linear, batched_matmul, einsum, conv1d, conv2d; sums, differences, means and products of tensors; concat, split,
/// slices, pad, expand, tile, transpose, views; sums, means and maxima by `reduce`, pooling (max and average, padding included) and globally;
/// embeddings; functions of one element (relu, negate, square and identity as they are, others as unknown functions); normalizations and softmax,
/// as unknown functions of the same elements; and all of these with fused stages. For inference a batch normalization is y = x * weight + bias.
/// Throws `invalid_input` on other kinds, and on arrays of other shapes. Complexity: O(points of the iteration space).
[[nodiscard]] inline std::vector<array> outputs_of(ops::operation const& op, std::span<array const> x, std::span<array const> w,
                                                   purpose use = purpose::training) {
    return detail::evaluation(op, x, w, use).outputs();
}

/// The gradients of the operands, given those of the outputs (reverse mode; derivatives of unknown functions are unknown functions).
[[nodiscard]] inline operand_gradients gradients_of(ops::operation const& op, std::span<array const> x, std::span<array const> w,
                                                    std::span<array const> outputs, purpose use = purpose::training) {
    return detail::evaluation(op, x, w, use).backward(outputs);
}

} // namespace parsearch::rewrite::reference

#ifndef PARSEARCH_COMPILED
#include <parsearch/lab/reference/reference_operation.ipp>
#endif
