#pragma once
// What a device computes for a matrix product beside its flops: tiles that stick out of the result, and multiprocessors without a tile.

#include <algorithm>
#include <cmath>
#include <limits>

#include <parsearch/cost/product_tiles.hpp>

namespace parsearch::cost {

PARSEARCH_INLINE shard_products products_of(ops::shard_work const& work) {
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

PARSEARCH_INLINE double winograd_saving(ops::operation const& op) {
    if (op.work != ops::work_class::convolution || op.inputs.empty() || op.weights.empty()) return 1;
    auto const& x = op.inputs[0].axes;
    auto const& kernel = op.weights[0].axes;
    if (x.size() != 4 || kernel.size() != 4 || x[1].terms.size() != 1) return 1; // groups: channels are counted by two dims
    for (std::size_t a = 2; a < 4; ++a)
        if (x[a].terms.size() != 1 || x[a].terms[0].stride != 1 || x[a].span != kernel[a].extent || kernel[a].extent != kernel[2].extent) return 1;
    auto const r = static_cast<double>(kernel[2].extent);
    return r == 3 || r == 5 ? 4 * r * r / ((r + 1) * (r + 1)) : 1;
}

PARSEARCH_INLINE flop_count tiled_flops(product_extents const& p, std::uint32_t multiprocessors) {
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

PARSEARCH_INLINE flop_count tiled_flops(ops::shard_work const& work, std::uint32_t multiprocessors) {
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
