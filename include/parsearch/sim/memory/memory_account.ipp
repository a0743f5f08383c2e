#pragma once
// Memory per device: weights, gradients, optimizer state, activations kept until backward, working buffers.

#include <parsearch/sim/memory/memory_account.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE shard_memory memory_of(ops::operation const& op, std::span<std::int32_t const> degrees) {
    if (auto const k = ops::cut_dim(op, degrees)) {
        auto const most = ops::on_most_samples(op, degrees, *k);
        return memory_of(most.op, most.degrees());
    }
    auto const box = ops::middle_shard(op, degrees);
    shard_memory m;
    for (auto const& o : op.inputs) {
        auto const bytes = ops::shard_elements(o, box) * ops::size_of(o.type);
        auto const parts = ops::ring_parts(op, o, degrees);
        m.inputs.push_back(bytes / parts + (bytes % parts != 0));
        if (parts > 1) m.on_the_way += m.inputs.back();
    }
    for (auto const& o : op.outputs) m.outputs.push_back(ops::shard_elements(o, box) * ops::size_of(o.type));
    m.saved = static_cast<byte_count>(ops::work_of_shard(op.saved_bytes, op, degrees));
    return m;
}

PARSEARCH_INLINE void memory_account::add_weights(sync_plan const& plan, simulation_options const& options, std::vector<memory_use>& out) const {
    auto const states = cost_of(options.optimizer).states;
    for (auto const& h : plan.held) {
        auto& use = out[h.device];
        use.weights += h.bytes;
        use.cache += h.cache;
        if (!options.training) continue;
        use.gradients += h.gradients;
        use.optimizer += optimizer_memory(h, states);
    }
}

PARSEARCH_INLINE void memory_account::keep(std::span<std::uint32_t const> where, byte_count bytes, std::uint32_t part) {
    if (bytes == 0) return;
    tally(where, bytes);
    for_counted([&](std::uint32_t d, byte_count b) {
        if (kept_[d] == 0) kept_devices_.push_back(d);
        part_[d] = kept_[d] == 0 ? part : std::min(part_[d], part);
        kept_[d] = std::max(kept_[d], b);
    });
}

PARSEARCH_INLINE void memory_account::tally(std::span<std::uint32_t const> where, byte_count bytes) {
    for (auto const d : where) {
        if (one_[d] == 0) counted_.push_back(d);
        one_[d] += bytes;
    }
}

} // namespace parsearch::sim
