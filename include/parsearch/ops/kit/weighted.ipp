#pragma once
// Operators some of whose inputs are weights: a learned table that is added, a class token that is joined, a bias.

#include <parsearch/ops/kit/weighted.hpp>

namespace parsearch::ops {

PARSEARCH_INLINE operation with_weights(operation op, std::span<weight_input const> weights) {
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

} // namespace parsearch::ops
