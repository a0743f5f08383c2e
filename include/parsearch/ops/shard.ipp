#pragma once
// Shards: the part of an operator, and of each operand, that falls to one of its tasks.

#include <parsearch/ops/shard.hpp>

namespace parsearch::ops {

PARSEARCH_INLINE box shard_box(operation const& op, std::span<std::int32_t const> degrees, std::int64_t shard) noexcept {
    box b{};
    for (std::size_t k = op.dims.size(); k-- > 0; shard /= degrees[k]) {
        auto const& d = op.dims[k];
        b[k] = is_cut_by_speed(d, degrees[k]) ? d.shares->part(d.extent, degrees[k], shard % degrees[k])
                                              : part_of(d.extent, degrees[k], shard % degrees[k]);
    }
    return b;
}

PARSEARCH_INLINE box middle_shard(operation const& op, std::span<std::int32_t const> degrees) noexcept {
    box b{};
    for (std::size_t k = 0; k < op.dims.size(); ++k) {
        auto const extent = op.dims[k].extent, larger = extent % degrees[k];
        b[k] = part_of(extent, degrees[k], (larger == 0 ? degrees[k] : larger) / 2);
    }
    return b;
}

PARSEARCH_INLINE interval axis_interval(axis const& a, box const& b) noexcept {
    if (a.terms.empty()) return {0, a.extent};
    std::int64_t first = a.offset, last = a.offset + a.span;
    for (auto const& t : a.terms) {
        first += t.stride * b[t.dim].begin;
        last += t.stride * (b[t.dim].end - 1);
    }
    interval const clipped = intersection({first, last}, {0, a.extent});
    return clipped.size() ? clipped : interval{};
}

PARSEARCH_INLINE std::int64_t ring_parts(operation const& op, operand const& input, std::span<std::int32_t const> degrees) noexcept {
    if (!input.passed_on) return 1;
    std::int64_t n = 1;
    for (std::size_t k = 0; k < op.dims.size(); ++k) {
        if (degrees[k] == 1) continue;
        bool const indexed = is_indexed_by(input, k);
        if (repeats_work(op.dims[k].kind) || (indexed && op.dims[k].kind != dim_kind::sample)) return 1;
        if (!indexed) n *= degrees[k];
    }
    return n >= 3 ? n : 1;
}

PARSEARCH_INLINE std::int64_t partial_sums(operation const& op, operand const& output, std::span<std::int32_t const> degrees) noexcept {
    std::int64_t n = 1;
    for (std::size_t k = 0; k < op.dims.size(); ++k)
        if (leaves_partial_sums(op, output, k)) n *= degrees[k];
    return n;
}

PARSEARCH_INLINE std::int64_t work_shards(operation const& op, std::span<std::int32_t const> degrees) noexcept {
    std::int64_t n = 1;
    for (std::size_t k = 0; k < op.dims.size(); ++k)
        if (!repeats_work(op.dims[k].kind)) n *= degrees[k];
    return n;
}

PARSEARCH_INLINE double work_of_shard(double amount, operation const& op, std::span<std::int32_t const> degrees) noexcept {
    double part = 1, of = 1; // positions of the largest shard, and of how many: whole numbers, so that nothing is rounded before the division
    for (std::size_t k = 0; k < op.dims.size(); ++k) {
        if (repeats_work(op.dims[k].kind)) continue;
        auto const extent = op.dims[k].extent;
        bool const even = extent % degrees[k] == 0;
        part *= even ? 1 : static_cast<double>(largest_part(extent, degrees[k]));
        of *= static_cast<double>(even ? degrees[k] : extent);
    }
    return amount * part / of;
}

PARSEARCH_INLINE shard_work work_of(operation const& op, std::span<std::int32_t const> degrees, pass p, std::uint64_t input_gradients) {
    shard_work w{.op = &op, .pass = p};
    std::copy(degrees.begin(), degrees.end(), w.degrees.begin());
    if (op.work == work_class::view || op.work == work_class::source) return w;
    box const b = middle_shard(op, degrees);
    auto const count = [&](operand const& o) { w.bytes += traffic(o, shard_elements(o, b), op, degrees); };
    auto const part = [&](double amount) { return work_of_shard(amount, op, degrees); };
    double flops = 0, products = 0;
    if (p == pass::forward) {
        flops = op.flops;
        products = op.product_flops;
        w.bytes += part(op.saved_bytes + op.intermediate_bytes);
        for (auto const& o : op.inputs) count(o);
        for (auto const& o : op.weights) count(o);
        for (auto const& o : op.outputs) count(o);
    } else if (p == pass::backward) {
        flops = op.backward_flops;
        for (std::size_t i = 0; i < op.inputs.size(); ++i) {
            auto const& o = op.inputs[i];
            if (o.saved) count(o);
            if (o.differentiable && (i >= 64 || input_gradients >> i & 1)) {
                if (i < 64) w.input_gradients |= std::uint64_t{1} << i;
                flops += o.gradient_flops;
                count(o);
            }
        }
        for (auto const& o : op.weights) {
            flops += o.gradient_flops;
            count(o); // read
            count(o); // gradient written
        }
        for (auto const& o : op.outputs) {
            count(o);
            if (o.saved) count(o);
        }
        if (op.product_flops > 0) products = flops - (op.backward_flops - op.backward_product_flops);
        w.bytes += part(op.saved_bytes + op.backward_intermediate_bytes);
    }
    w.flops = part(flops);
    w.product_flops = part(products);
    return w;
}

} // namespace parsearch::ops
