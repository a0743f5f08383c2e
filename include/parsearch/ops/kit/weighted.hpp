#pragma once
/// Operators some of whose inputs are weights: a learned table that is added, a class token that is joined, a bias.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

/// An input of an operation that is trained.
struct weight_input {
    std::size_t input = 0;               ///< its number among the inputs
    std::string name = "weight";         ///< of the weight
    std::string parameter{};             ///< the tensor's name; operands with the same non-empty name share it
    std::vector<std::int64_t> extents{}; ///< the weight's, where it is repeated along axes of the input: 1 for these. Empty: the input's
};

/// `op` with some of its inputs moved to its weights, in the order given; the other inputs keep theirs. Work and gradients stay, and
/// the gradient of what is repeated is summed. Attribute dims that index such a weight become parameter dims.
/// Throws `invalid_input` where there is no such input, one is named twice, is no floating-point tensor, or the extents do not fit.
[[nodiscard]] operation with_weights(operation op, std::span<weight_input const> weights);
[[nodiscard]] inline operation with_weights(operation op, std::initializer_list<weight_input> weights) {
    return with_weights(std::move(op), std::span<weight_input const>(weights.begin(), weights.size()));
}

/// `op` applied to its inputs and, as input number `weight.input`, to a weight of shape `as` (of the repeated weight, where it is repeated).
template <ShapedOperator Op> struct weighted {
    static constexpr std::string_view kind = Op::kind;
    Op op{};
    weight_input weight{};
    tensor as{};
    /// Inputs: those of `op` but the weight.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        std::vector<tensor> all(inputs.begin(), inputs.end());
        if (weight.input > all.size())
            throw invalid_input("weight '", weight.name, "' is input ", weight.input, ": there are ", all.size(), " others");
        all.insert(all.begin() + static_cast<std::ptrdiff_t>(weight.input), as);
        return with_weights(op.infer(all), {weight});
    }
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/kit/weighted.ipp>
#endif
