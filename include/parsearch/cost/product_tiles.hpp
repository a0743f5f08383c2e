#pragma once
/// What a device computes for a matrix product beside its flops: tiles that stick out of the result, and multiprocessors without a tile.

#include <array>
#include <cstddef>
#include <cstdint>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::cost {

/// `batch` products [m, k] x [k, n].
struct product_extents {
    double batch = 1, m = 1, n = 1, k = 1;
    [[nodiscard]] constexpr flop_count flops() const noexcept { return 2 * batch * m * n * k; }
    friend bool operator==(product_extents const&, product_extents const&) = default;
};

/// The products of a shard of an operation of class matmul or convolution: one in forward, at most two in backward.
struct shard_products {
    std::array<product_extents, 2> products{};
    std::size_t count = 0;
};

/// Reads them off the dims of the shard. The factors are the first input and the first weight, or the second input where there is no weight. A dim
/// of the result belongs to m, n or the batch as the first, the second or both factors have it; the others are summed over, and k. A convolution is
/// the product that it is lowered to: kernel positions are in k. Backward has a product for each factor whose gradient is wanted, which sums over
/// what the other one has alone. None of an operation with one factor, or without `multiply_adds`. Complexity: O(terms of three operands).
[[nodiscard]] shard_products products_of(ops::shard_work const& work);

/// By how much fewer multiplications Winograd's algorithm takes for a convolution, forward and backward: (2r)^2 / (r + 1)^2 of windows of r x r, r 3
/// or 5, that move by one, in pieces of 2 x 2 (A. Lavin, S. Gray, Fast algorithms for convolutional neural networks, CVPR 2016); 1 for others.
/// Libraries have it for f32 on vector units. Complexity: O(axes).
[[nodiscard]] double winograd_saving(ops::operation const& op);

/// The part of a result that a block of threads computes at once, and the part of the rate of the largest that it runs at.
struct tile {
    double rows, columns, rate;
};
/// Tiles that libraries choose from. The rates fall with the products per element that is read, which for 256 x 128 is twice that of 64 x 64 and
/// more: what NVIDIA's Matrix multiplication background user's guide (DA-07975, "tile efficiency") shows, in round figures.
inline constexpr std::array<tile, 4> product_tiles{{{256, 128, 1}, {128, 128, 0.95}, {128, 64, 0.8}, {64, 64, 0.6}}};

/// What a tile takes to begin and to end, as further elements of k: the first operands are waited for, results are written. Two steps of 32: a round
/// figure, which published runs of widths from 768 on do not tell from 0 or 192 (docs/fidelity.md).
inline constexpr double product_overhead = 64;

/// The flops of a device that computes nothing else for as long as the product takes it: those of `p`, of what sticks out of the result in its tiles
/// (tile quantisation), of multiprocessors that have no tile in the last round (wave quantisation) and of `product_overhead`, for the tile, and the
/// number of parts that k is split into, with the least. Source of the two effects: as `product_tiles`. Not below `p.flops()`, and not less where an
/// extent grows. `multiprocessors` 0, not known: `p.flops()`.
[[nodiscard]] flop_count tiled_flops(product_extents const& p, std::uint32_t multiprocessors);

/// The flops that the arithmetic of a shard takes as long as: `work.flops`, with its products in tiles. An operation that says that it takes less
/// than the product of its dims (it is sparse, say) has as much less beside.
[[nodiscard]] flop_count tiled_flops(ops::shard_work const& work, std::uint32_t multiprocessors);

} // namespace parsearch::cost

#ifndef PARSEARCH_COMPILED
#include <parsearch/cost/product_tiles.ipp>
#endif
