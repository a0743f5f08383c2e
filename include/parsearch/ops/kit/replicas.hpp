#pragma once
/// Operations that run in copies or on partial sums: dims that repeat work.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

/// True where the value of `op` is linear in the operands of `summed` (bit i: operand i, inputs, then weights) taken together, the others held fixed:
/// partial sums of these make partial sums of the results. Known of the library's own kinds, whose names an operation of a user's must have only
/// where it is that; false of others.
[[nodiscard]] bool linear_in(operation const& op, std::uint64_t summed);

/// True where the partial results of `op` are added up; those of maxima, products and norms join otherwise, and are no sums to anything linear. Taken
/// to be true of kinds that are not the library's own.
[[nodiscard]] bool adds_up(operation const& op);

/// The dim of kind `k` of `op`, `copies` or `sums`, if it has one.
[[nodiscard]] inline std::optional<std::uint32_t> replica_dim(operation const& op, dim_kind k) noexcept {
    for (std::uint32_t d = 0; d < op.dims.size(); ++d)
        if (op.dims[d].kind == k) return d;
    return std::nullopt;
}

/// The most copies or partial sums of one operation.
inline constexpr std::int64_t max_replicas = 1 << 20;

/// Adds a dim of `n` copies or partial sums behind the others, of the name "copies" or "sums". Throws `invalid_input` where `n` is below 1 or above
/// `max_replicas`, `op` has one, or no place for it.
void add_replica_dim(operation& op, dim_kind kind, std::int64_t n);

/// `op`, which may run in `n` copies, or any divisor: one more dim. Throws as `add_replica_dim`.
[[nodiscard]] inline operation with_copies(operation op, std::int64_t n) {
    add_replica_dim(op, dim_kind::copies, n);
    return op;
}
/// `op`, which may run on up to `n` partial sums of its inputs in `summed` (bit i: input i): one more dim. Throws as `add_replica_dim`, and
/// `invalid_input` where `summed` is empty, names no input, or the operation is not linear in these (`linear_in`).
[[nodiscard]] operation with_sums(operation op, std::int64_t n, std::uint64_t summed);
/// `op` without such dims.
[[nodiscard]] operation without_replicas(operation op);

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/kit/replicas.ipp>
#endif
