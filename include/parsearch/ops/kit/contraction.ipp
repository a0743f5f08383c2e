#pragma once
// The counts of an operator that multiplies its operands and sums: what linear, batched matmul and einsum share.

#include <parsearch/ops/kit/contraction.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::ops::kit {

PARSEARCH_INLINE void count_contraction(operation& op) {
    double points = 1;
    for (auto const& d : op.dims) points *= static_cast<double>(d.extent);
    auto const sums_over_some = [&](operand const& o) {
        for (std::size_t k = 0; k < op.dims.size(); ++k)
            if (!is_indexed_by(o, k)) return true;
        return false;
    };
    double const products = static_cast<double>(op.inputs.size() + op.weights.size() - 1);
    auto const cost = [&](operand const& result) { return points * (products + (sums_over_some(result) ? 1 : 0)); };
    op.flops = cost(op.outputs[0]);
    op.multiply_adds = products > 0 && sums_over_some(op.outputs[0]) ? points : 0; // the addition and the last multiplication
    for (auto& o : op.inputs) {
        o.gradient_flops = cost(o);
        o.saved = products > 0;
    }
    for (auto& o : op.weights) o.gradient_flops = cost(o);
}

} // namespace parsearch::ops::kit
