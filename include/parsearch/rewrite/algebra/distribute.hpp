#pragma once
/// Sums of products and products of sums: distributivity, of contractions whose operands the axes tell.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/rewrite/algebra/attributes.hpp>
#include <parsearch/rewrite/algebra/outcome.hpp>
#include <parsearch/rewrite/algebra/reorder.hpp>

namespace parsearch::rewrite {

/// A sum of contractions as one. Inputs and weights are those of the terms behind each other, as the cuts say; the last weight, where it is not cut,
/// is the bias of the only term that has one, or for inference the sum of the biases of all terms in `biases`.
struct joining {
    ops::operation operation;
    std::uint32_t dim = 0;
    std::vector<std::int64_t> sizes{};
    std::vector<cut> inputs{}, weights{}; ///< weights: of the factors; a bias behind them has none
    std::vector<std::size_t> biases{};    ///< the terms that have a bias: in training one at most
};

/// A contraction as a sum of several: cuts as in `joining`, and the addition of the parts' results. Only the first part has the bias.
struct sum_parting {
    std::vector<ops::operation> parts{};
    ops::operation sum;
    std::vector<cut> inputs{}, weights{};
};

/// A product of a sum: the sum of input `input`, and the product.
struct factoring {
    ops::operation sum, product;
};

/// A sum of products: the products, one per term, and their sum.
struct distribution {
    std::vector<ops::operation> products{};
    ops::operation sum;
};

namespace detail {

/// `op` without its bias.
[[nodiscard]] ops::operation unbiased(ops::operation op);

/// An add of `terms` tensors like `o`.
[[nodiscard]] inline ops::operation sum_of(ops::operand const& o, std::size_t terms) {
    std::vector<ops::tensor> const shapes(terms, ops::tensor_of(o));
    return ops::add{}.infer(shapes);
}

/// True where `op` adds at least two tensors of one shape.
[[nodiscard]] inline bool is_plain_sum(ops::operation const& op) {
    if (op.kind != "add" || op.inputs.size() < 2 || !op.weights.empty() || op.outputs.size() != 1 || !is_plain(op, op.outputs[0])) return false;
    return std::all_of(op.inputs.begin(), op.inputs.end(), [&](auto const& in) { return in.axes == op.outputs[0].axes; });
}
} // namespace detail

/// linear(x, v) + linear(y, w) = linear(concat(x, y), concat(v, w)): contractions of one kind whose results are added, as one, where they differ in
/// the extent of one reduction dim at most, which indexes every input and every weight but a bias in consecutive blocks of one axis. Matrix
/// products of two inputs, convolutions (channels) and einsums alike. The addition falls away. Two biases are one in inference only: in
/// training both would learn, in step. Weights may not be shared parameters.
[[nodiscard]] outcome<joining> joined_sum(std::span<ops::operation const> terms, purpose use);

/// The inverse of `joined_sum`: `op` as a sum of parts of the given sizes along reduction dim `d`.
[[nodiscard]] outcome<sum_parting> parted_sum(ops::operation const& op, std::uint32_t d, std::span<std::int64_t const> sizes);

/// a w + b w = (a + b) w: products that differ in input `input` alone, whose results are added, as one product of the sum. Their weights must be the
/// same parameters, by name, and there may be no bias (it would count once instead of once per term). Other inputs are the same tensors: the
/// caller knows.
[[nodiscard]] outcome<factoring> factored(std::span<ops::operation const> terms, std::size_t input = 0);

/// (a + b) w = a w + b w: `sum` (an add of tensors of one shape), which makes input `input` of the contraction `product`, behind it instead. The
/// products share their weights: those without a parameter name get `parameter`, a dot and the weight's name. Only the first has the bias.
[[nodiscard]] outcome<distribution> distributed(ops::operation const& sum, ops::operation const& product, std::size_t input = 0,
                                                std::string_view parameter = {});

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/algebra/distribute.ipp>
#endif
