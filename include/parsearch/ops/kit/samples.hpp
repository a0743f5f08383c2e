#pragma once
/// Operators on a part of their samples.

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::ops {

/// The dim of the samples, if any: one of extent 1 is what all samples share (a position bias).
[[nodiscard]] inline std::optional<std::uint32_t> sample_dim(operation const& op) {
    for (std::uint32_t k = 0; k < op.dims.size(); ++k)
        if (op.dims[k].kind == dim_kind::sample && op.dims[k].extent > 1) return k;
    return std::nullopt;
}

/// A part of a batch: `taken` of `n` equal parts of its samples.
struct batch_part {
    std::int64_t n = 1, taken = 1;
    friend auto operator<=>(batch_part const&, batch_part const&) = default;
};

namespace detail {

[[nodiscard]] inline term const* term_of(axis const& a, std::uint32_t dim) noexcept {
    for (auto const& t : a.terms)
        if (t.dim == dim) return &t;
    return nullptr;
}
} // namespace detail

/// `op` on a part of its samples: their dim and the axes that it indexes are shorter, the work is less. An operator without samples does all
/// of its work in every micro-batch; what is kept beside operands is divided evenly, as over shards. Throws `invalid_input` naming `name`, where it
/// is not empty, and the rule where `part.n` is not positive or does not divide the samples, where a second dim is one of samples, where they index
/// weights that are no caches, and where an axis holds samples in other than equal consecutive parts.
[[nodiscard]] operation on_samples(operation op, batch_part part, std::string_view name);

/// The dim along which `degrees` cut `op` by the speeds of devices.
[[nodiscard]] inline std::optional<std::uint32_t> cut_dim(operation const& op, std::span<std::int32_t const> degrees) noexcept {
    for (std::uint32_t k = 0; k < op.dims.size(); ++k)
        if (is_cut_by_speed(op.dims[k], degrees[k])) return k;
    return std::nullopt;
}

/// An operator and its degrees.
struct split_operation {
    operation op;
    std::array<std::int32_t, max_dims> degree{};
    [[nodiscard]] std::span<std::int32_t const> degrees() const noexcept { return {degree.data(), op.dims.size()}; }
};
/// A shard with `size` of the samples of `op` that `degrees` cut by speed along dim `k`, as one of an operator on no more samples.
[[nodiscard]] split_operation on_samples(operation const& op, std::span<std::int32_t const> degrees, std::uint32_t k, std::int64_t size);
/// The largest shard.
[[nodiscard]] inline split_operation on_most_samples(operation const& op, std::span<std::int32_t const> degrees, std::uint32_t k) {
    std::int64_t most = 1;
    for (std::int32_t i = 0; i < degrees[k]; ++i) most = std::max(most, op.dims[k].shares->part(op.dims[k].extent, degrees[k], i).size());
    return on_samples(op, degrees, k, most);
}

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/kit/samples.ipp>
#endif
