#pragma once
/// An operation and the elementwise one behind it as one operation: what is between them is never written.

#include <cstddef>
#include <cstdint>
#include <utility>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/rewrite/algebra/outcome.hpp>

namespace parsearch::rewrite {

/// `producer`, then the unary `function` of its output, as one operation of kind "<producer>+<function>" (a batch normalization and relu:
/// "batch_norm_relu", as `ops::batch_norm` makes it). The tensor between them is not read, and written only where one of the two keeps it for
/// backward: it counts as `saved_bytes`. The function's backward flops are `backward_flops`. Dims that the output lacks become fixed, since
/// partial sums can not go through the function, unless it is additive (negate, scale, mask, identity).
/// The caller knows that nothing else reads the tensor between them.
[[nodiscard]] outcome<ops::operation> fused(ops::operation const& producer, ops::operation const& function);

/// `producer`, then `combination` (an add or multiply of two tensors of one shape, no weights), which reads its output as input `slot`: one operation
/// of kind "<producer>+add" that has one more input, the last, with the output's axes. See `fused` of a function for what becomes of the rest. The
/// caller knows that nothing else reads the tensor between them: not the other input of the combination either.
[[nodiscard]] outcome<ops::operation> fused(ops::operation const& producer, ops::operation const& combination, std::size_t slot);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/algebra/fuse.ipp>
#endif
