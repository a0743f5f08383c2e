#pragma once
/// Shards: the part of an operator, and of each operand, that falls to one of its tasks.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/device_shares.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

/// The passes of a training iteration.
enum class pass : std::uint8_t { forward, backward, update };
[[nodiscard]] constexpr std::string_view name_of(pass p) noexcept {
    constexpr std::array<std::string_view, 3> names{"forward", "backward", "update"};
    return names[static_cast<std::size_t>(p)];
}

[[nodiscard]] constexpr interval intersection(interval a, interval b) noexcept { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

/// One interval per iteration dim.
using box = std::array<interval, max_dims>;

/// The number of shards that `degrees` (one per dim) make.
[[nodiscard]] constexpr std::int64_t shard_count(std::span<std::int32_t const> degrees) noexcept {
    std::int64_t n = 1;
    for (auto const d : degrees) n *= d;
    return n;
}

/// Positions of part `i` of `parts` of `extent` positions. Where `parts` does not divide it, the first `extent % parts` have one more than the rest.
[[nodiscard]] constexpr interval part_of(std::int64_t extent, std::int64_t parts, std::int64_t i) noexcept {
    auto const size = extent / parts, larger = extent % parts;
    auto const begin = i * size + std::min(i, larger);
    return {begin, begin + size + (i < larger)};
}
/// Positions of the largest of them.
[[nodiscard]] constexpr std::int64_t largest_part(std::int64_t extent, std::int64_t parts) noexcept { return (extent + parts - 1) / parts; }

/// Whether dim `d` in `parts` parts is cut by the speeds of devices.
[[nodiscard]] inline bool is_cut_by_speed(dim const& d, std::int64_t parts) noexcept { return d.shares && d.shares->cut(d.extent, parts); }

/// The part of the iteration space of shard number `shard` (row major: the last dim varies fastest).
/// Precondition: no degree is above its extent.
[[nodiscard]] box shard_box(operation const& op, std::span<std::int32_t const> degrees, std::int64_t shard) noexcept;

/// Whether `d` can be in `parts` parts: each has a position, and those that repeat work are alike.
[[nodiscard]] inline bool can_be_in(dim const& d, std::int64_t parts) noexcept {
    return parts == 1 || (d.kind != dim_kind::fixed && parts >= 1 && parts <= d.extent && (!repeats_work(d.kind) || d.extent % parts == 0));
}

/// True where some degree does not divide its extent: shards are of two sizes.
[[nodiscard]] inline bool is_uneven(operation const& op, std::span<std::int32_t const> degrees) noexcept {
    for (std::size_t k = 0; k < op.dims.size(); ++k)
        if (op.dims[k].extent % degrees[k] != 0) return true;
    return false;
}

/// The middle one of the largest shards: the size at which work and memory of all shards are taken. No border clips its windows along dims split in
/// three or more equal parts. Of what is cut by speed it knows nothing: see `on_samples`.
[[nodiscard]] box middle_shard(operation const& op, std::span<std::int32_t const> degrees) noexcept;

/// The positions of one tensor axis that a box of the iteration space touches; empty where it touches none.
[[nodiscard]] interval axis_interval(axis const& a, box const& b) noexcept;

/// Elements of an operand that a box of the iteration space touches.
[[nodiscard]] inline std::int64_t shard_elements(operand const& o, box const& b) noexcept {
    std::int64_t n = 1;
    for (auto const& a : o.axes) n *= axis_interval(a, b).size();
    return n;
}

/// True where splitting `dim` splits the operand; otherwise every part of the split touches the same elements.
[[nodiscard]] inline bool is_indexed_by(operand const& o, std::size_t dim) noexcept {
    return std::any_of(o.axes.begin(), o.axes.end(),
                       [&](axis const& a) { return std::any_of(a.terms.begin(), a.terms.end(), [&](term const& t) { return t.dim == dim; }); });
}

/// Of an input that is passed on in a ring, into how many parts the shards that need the same hold it, each its own alone. 1 where each keeps what it
/// needs: what is not passed on, or among fewer than three, or is also split along a dim that is no sample (then it may come otherwise than in a
/// ring).
[[nodiscard]] std::int64_t ring_parts(operation const& op, operand const& input, std::span<std::int32_t const> degrees) noexcept;

/// True where shards along dim `k` hold different partial sums of an output.
[[nodiscard]] inline bool leaves_partial_sums(operation const& op, operand const& output, std::size_t k) noexcept {
    return op.dims[k].kind != dim_kind::copies && !is_indexed_by(output, k);
}
/// How many partial sums of each element of an output `degrees` leave (1: none).
[[nodiscard]] std::int64_t partial_sums(operation const& op, operand const& output, std::span<std::int32_t const> degrees) noexcept;
/// Among how many shards the work is divided: all, but for those that repeat it.
[[nodiscard]] std::int64_t work_shards(operation const& op, std::span<std::int32_t const> degrees) noexcept;

/// `amount` of a whole operator, divided among its shards: the part of the largest.
[[nodiscard]] double work_of_shard(double amount, operation const& op, std::span<std::int32_t const> degrees) noexcept;

/// The work of one shard in one pass: what a cost oracle is asked to price. It stands for all shards of a configuration; where these are uneven, it
/// is the largest.
struct shard_work {
    operation const* op = nullptr;
    std::array<std::int32_t, max_dims> degrees{}; ///< one per iteration dim of `op`
    ops::pass pass = ops::pass::forward;
    flop_count flops = 0;              ///< of this shard
    flop_count product_flops = 0;      ///< of these, by matrix products where the operator's class is another
    double bytes = 0;                  ///< read and written by this shard
    std::uint64_t input_gradients = 0; ///< backward: bit i says that the gradient of input i is computed

    /// Extent of dim `k` of the shard.
    [[nodiscard]] std::int64_t extent(std::size_t k) const noexcept { return largest_part(op->dims[k].extent, degrees[k]); }
    /// Element type of the shard's output.
    [[nodiscard]] dtype type() const noexcept { return op->outputs.front().type; }
};

/// Bytes that one pass of a shard of `op` moves for operand `o`, of which it holds `elements`.
[[nodiscard]] inline double traffic(operand const& o, std::int64_t elements, operation const& op, std::span<std::int32_t const> degrees) noexcept {
    double const held = static_cast<double>(elements * size_of(o.type));
    return o.touched_bytes < 0 ? held : std::min(held, work_of_shard(o.touched_bytes, op, degrees));
}

/// The work of a shard. `input_gradients`: bit i says that the gradient of input i is wanted (none is for graph inputs).
/// Forward reads inputs and weights and writes outputs and what is kept beside them. Backward reads output gradients, what is kept, and weights, and
/// writes the gradients of inputs and weights. Both move their intermediate results. Updates depend on what a device holds: the simulator fills them
/// in. Operands' shards are measured at the middle shard (see `middle_shard`). Complexity: O(operands).
[[nodiscard]] shard_work work_of(operation const& op, std::span<std::int32_t const> degrees, pass p,
                                 std::uint64_t input_gradients = ~std::uint64_t{0});

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/shard.ipp>
#endif
