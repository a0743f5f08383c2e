#pragma once
/// What a device computes for a matrix product beside its flops: tiles that stick out of the result, and multiprocessors without a tile.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

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
[[nodiscard]] inline shard_products products_of(ops::shard_work const& work) {
    auto const& op = *work.op;
    shard_products out;
    if (op.inputs.empty() || op.inputs.size() + op.weights.size() < 2 || op.multiply_adds <= 0) return out;
    auto const& first = op.inputs[0];
    auto const& second = op.weights.empty() ? op.inputs[1] : op.weights[0];
    product_extents forward;
    double points = 1; // of the iteration space
    for (std::size_t d = 0; d < op.dims.size(); ++d) {
        if (ops::repeats_work(op.dims[d].kind)) continue;
        auto const extent = static_cast<double>(work.extent(d));
        points *= static_cast<double>(op.dims[d].extent);
        if (!ops::is_indexed_by(op.outputs[0], d)) forward.k *= extent;
        else if (!ops::is_indexed_by(second, d)) forward.m *= extent;
        else if (!ops::is_indexed_by(first, d)) forward.n *= extent;
        else forward.batch *= extent;
    }
    forward.k *= std::max(1.0, op.multiply_adds / points);
    auto const [batch, m, n, k] = forward;
    if (work.pass == ops::pass::forward) {
        out.products[out.count++] = forward;
    } else if (work.pass == ops::pass::backward) {
        if (work.input_gradients & 1) out.products[out.count++] = {batch, m, k, n};
        if (!op.weights.empty() || (work.input_gradients & 2)) out.products[out.count++] = {batch, k, n, m};
    }
    return out;
}

/// By how much fewer multiplications Winograd's algorithm takes for a convolution, forward and backward: (2r)^2 / (r + 1)^2 of windows of r x r, r 3
/// or 5, that move by one, in pieces of 2 x 2 (A. Lavin, S. Gray, Fast algorithms for convolutional neural networks, CVPR 2016); 1 for others.
/// Libraries have it for f32 on vector units. Complexity: O(axes).
[[nodiscard]] inline double winograd_saving(ops::operation const& op) {
    if (op.work != ops::work_class::convolution || op.inputs.empty() || op.weights.empty()) return 1;
    auto const& x = op.inputs[0].axes;
    auto const& kernel = op.weights[0].axes;
    if (x.size() != 4 || kernel.size() != 4 || x[1].terms.size() != 1) return 1; // groups: channels are counted by two dims
    for (std::size_t a = 2; a < 4; ++a)
        if (x[a].terms.size() != 1 || x[a].terms[0].stride != 1 || x[a].span != kernel[a].extent || kernel[a].extent != kernel[2].extent) return 1;
    auto const r = static_cast<double>(kernel[2].extent);
    return r == 3 || r == 5 ? 4 * r * r / ((r + 1) * (r + 1)) : 1;
}

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
[[nodiscard]] inline flop_count tiled_flops(product_extents const& p, std::uint32_t multiprocessors) {
    if (multiprocessors == 0) return p.flops();
    // Round figures: k goes in steps of 32; parts of it have 256 at least, and cost a twentieth to add up.
    constexpr std::array<double, 5> parts{1, 2, 4, 8, 16};
    constexpr double shortest_part = 256, whole_step = 32, split_rate = 0.95;
    double const slots = multiprocessors;
    double least = std::numeric_limits<double>::max();
    for (auto const& t : product_tiles) {
        double const tiles = p.batch * std::ceil(p.m / t.rows) * std::ceil(p.n / t.columns);
        for (double const s : parts) {
            double const k = std::ceil((s == 1 ? p.k : std::max(shortest_part, p.k / s)) / whole_step) * whole_step + product_overhead;
            double const rate = s == 1 ? t.rate : t.rate * split_rate;
            least = std::min(least, std::ceil(tiles * s / slots) * slots * 2 * t.rows * t.columns * k / rate);
        }
    }
    return std::max(least, p.flops());
}

/// The flops that the arithmetic of a shard takes as long as: `work.flops`, with its products in tiles. An operation that says that it takes less
/// than the product of its dims (it is sparse, say) has as much less beside.
[[nodiscard]] inline flop_count tiled_flops(ops::shard_work const& work, std::uint32_t multiprocessors) {
    if (multiprocessors == 0) return work.flops;
    auto const [products, count] = products_of(work);
    flop_count ideal = 0, tiled = 0;
    for (std::size_t i = 0; i < count; ++i) {
        ideal += products[i].flops();
        tiled += tiled_flops(products[i], multiprocessors);
    }
    return ideal > 0 ? work.flops + (tiled - ideal) * std::min(1.0, work.flops / ideal) : work.flops;
}

} // namespace parsearch::cost
