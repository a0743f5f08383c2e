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
[[nodiscard]] inline operation with_weights(operation op, std::span<weight_input const> weights) {
    std::vector<bool> moved(op.inputs.size());
    for (auto const& w : weights) {
        if (w.input >= op.inputs.size()) throw invalid_input("weight '", w.name, "' is input ", w.input, ": there are ", op.inputs.size(), " inputs");
        if (moved[w.input]) throw invalid_input("weight '", w.name, "' is input ", w.input, ": it is a weight already");
        moved[w.input] = true;
        auto o = op.inputs[w.input];
        if (!kit::is_floating(o.type))
            throw invalid_input("weight '", w.name, "' is input ", w.input, " of type ", name_of(o.type), ": must have a floating-point type");
        if (!w.extents.empty()) {
            if (w.extents.size() != o.axes.size())
                throw invalid_input("weight '", w.name, "' has ", w.extents.size(), " extents: input ", w.input, " has ", o.axes.size(), " axes");
            auto const repeated = static_cast<double>(elements_of(o));
            for (std::size_t a = 0; a < o.axes.size(); ++a) {
                if (w.extents[a] == o.axes[a].extent) continue;
                if (w.extents[a] != 1)
                    throw invalid_input("weight '", w.name, "' has extent ", w.extents[a], " in axis ", a, ": must be 1 or that of input ", w.input,
                                        ", ", o.axes[a].extent);
                o.axes[a] = kit::whole(1);
            }
            if (static_cast<double>(elements_of(o)) < repeated) o.gradient_flops += repeated;
        }
        o.name = w.name;
        o.parameter = w.parameter;
        o.saved = false; // weights are there anyway
        for (auto const& a : o.axes)
            for (auto const& t : a.terms)
                if (auto& d = op.dims[t.dim]; d.kind == dim_kind::attribute) d.kind = dim_kind::parameter;
        op.weights.push_back(std::move(o));
    }
    std::vector<operand> rest;
    for (std::size_t i = 0; i < moved.size(); ++i)
        if (!moved[i]) rest.push_back(std::move(op.inputs[i]));
    op.inputs = std::move(rest);
    return op;
}
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
