#pragma once
/// The counts of an operator that multiplies its operands and sums: what linear, batched matmul and einsum share.

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops::kit {

/// Fills in flops, multiply-adds, gradients and saved operands of an operation whose only output is the sum, over the dims that it
/// lacks, of the products of all inputs and weights. A point of the iteration space costs one multiplication per further factor, and
/// one addition where something is summed. The gradient of a factor is the same contraction with the output in its place.
void count_contraction(operation& op);

} // namespace parsearch::ops::kit

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/kit/contraction.ipp>
#endif
