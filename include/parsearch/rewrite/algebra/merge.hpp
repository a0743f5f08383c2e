#pragma once
/// Siblings that read the same tensors as one operation, and an operation in parts along a parameter dim.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/rewrite/algebra/attributes.hpp>
#include <parsearch/rewrite/algebra/outcome.hpp>

namespace parsearch::rewrite {

/// Operations joined to one along dim `dim`. Part i has `sizes[i]` values of it; `weights` and `outputs` say how the joined operands are cut into
/// those of the parts: `ops::split{.axis = outputs[0].axis, .sizes = outputs[0].sizes}` gives what the parts made.
struct merging {
    ops::operation operation;
    std::uint32_t dim = 0;
    std::vector<std::int64_t> sizes{};
    std::vector<cut> weights{}, outputs{};
};

/// An operation cut into several along a parameter dim; `weights` and `outputs` say how its operands are cut.
struct parting {
    std::vector<ops::operation> parts{};
    std::vector<cut> weights{}, outputs{};
};

namespace detail {

/// The only axis of `o` that dim `d` indexes, in consecutive blocks of its stride and alone; none where there is no such axis.
[[nodiscard]] std::optional<std::size_t> blocks_along(ops::operation const& op, ops::operand const& o, std::uint32_t d);

/// True where two operands are indexed the same way, but for the extents of axes along dim `d`.
[[nodiscard]] bool alike(ops::operand const& a, ops::operand const& b, std::optional<std::uint32_t> d);

/// The dim along which `a` and `b` differ in extent: none where they are alike in all dims. Refuses where they differ in anything else.
[[nodiscard]] outcome<std::optional<std::uint32_t>> differing_dim(ops::operation const& a, ops::operation const& b);

/// Sets the extent of dim `d`, and of the axes along it.
void resize(ops::operation& op, std::uint32_t d, std::int64_t extent);

/// Adds the work of `more` to `op`, operand by operand, of which both have as many.
void add_work(ops::operation& op, ops::operation const& more);

/// The part of the work that belongs to `size` of `whole` equal shares.
void scale_work(ops::operation& op, std::int64_t size, std::int64_t whole);

/// How operands with axes `axes` along dim `d` are cut when it is cut into `sizes`.
[[nodiscard]] std::vector<cut> cuts(std::span<ops::operand const> operands, std::span<std::size_t const> axes, std::span<std::int64_t const> sizes);

/// True where the sizes, all at least 1, add up to an extent that the library allows.
[[nodiscard]] inline bool may_add_up(std::span<std::int64_t const> sizes) {
    double all = 0;
    for (auto const n : sizes) all += static_cast<double>(n);
    return all <= static_cast<double>(ops::kit::largest_extent);
}
} // namespace detail

/// Siblings as one operation: linears or convolutions of one input, products or einsums of the same inputs, lookups of the same indices, with the
/// same fused functions behind them, that differ in the extent of one parameter dim at most. This dim must index every weight and every output in
/// consecutive blocks of one axis, and no input. Extents, work and gradient flops are added; inputs are read, and kept, once. Where the siblings are
/// equal in all extents, the first dim that fits is joined. The merged weights are those of the siblings behind each other; they may not be shared
/// parameters (see `forget_unshared`). The result is what the operator's own `infer` gives for the sum of the extents.
/// The caller knows that the siblings read the same tensors in the same order.
[[nodiscard]] outcome<merging> merged(std::span<ops::operation const> siblings);

/// The inverse of `merged`: `op` cut into parts of the given sizes along parameter dim `d`, which all read its inputs. Work is divided in proportion.
/// Unlike in `merged`, fused functions may have numbers that their kind does not tell: the parts have the same.
[[nodiscard]] outcome<parting> parted(ops::operation const& op, std::uint32_t d, std::span<std::int64_t const> sizes);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/algebra/merge.ipp>
#endif
