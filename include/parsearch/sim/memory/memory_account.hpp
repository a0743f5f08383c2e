#pragma once
/// Memory per device: weights, gradients, optimizer state, activations kept until backward, working buffers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/kit/samples.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/memory/kept_tensors.hpp>
#include <parsearch/sim/memory/memory_use.hpp>
#include <parsearch/sim/task/gradient_sync.hpp>

namespace parsearch::sim {

/// Bytes of one shard of an operator, the same for all of them.
struct shard_memory {
    std::vector<byte_count> inputs, outputs; ///< of each operand
    byte_count saved = 0;                    ///< beside operands: masks, statistics
    byte_count on_the_way = 0;               ///< parts of inputs that come in while it computes, see `ops::operand::passed_on`

    /// Operands and what is on the way: what a pass has in memory.
    [[nodiscard]] byte_count working() const noexcept {
        return std::accumulate(outputs.begin(), outputs.end(), std::accumulate(inputs.begin(), inputs.end(), on_the_way));
    }
};

/// Of an input that is passed on in a ring a shard keeps its own part, see `ops::ring_parts`, and has room for another.
[[nodiscard]] shard_memory memory_of(ops::operation const& op, std::span<std::int32_t const> degrees);

/// Bytes of optimizer state of the weights on one device: 4 per element and state, and a copy of 4 where weights have fewer.
[[nodiscard]] inline byte_count optimizer_memory(held_weights const& h, std::int64_t states) noexcept {
    auto const master = h.bytes < 4 * h.elements ? 1 : 0;
    return 4 * h.elements * (states + master);
}
/// Bytes that the weights on one device bring: themselves, in training gradients and optimizer state, in inference caches.
[[nodiscard]] inline byte_count weight_memory(held_weights const& h, simulation_options const& options, std::int64_t states) noexcept {
    return options.training ? h.bytes + h.gradients + optimizer_memory(h, states) : h.bytes + h.cache;
}

/// Bytes that `k` keeps in each of its shards, which have `shard`.
[[nodiscard]] inline byte_count kept_bytes(keeper const& k, shard_memory const& shard) noexcept {
    return k.what == keeper::part::beside ? shard.saved : k.what == keeper::part::input ? shard.inputs[k.operand] : shard.outputs[k.operand];
}

/// Adds up the memory of a strategy.
class memory_account {
  public:
    memory_account(graph::dense_graph const& g, std::size_t devices) : graph_(&g), kept_(devices), one_(devices), part_(devices) {}

    [[nodiscard]] std::size_t size() const noexcept { return kept_.size(); } ///< devices

    /// `shards(op)` is the `shard_memory` of an operator, `devices(op)` the device of each of its shards; each of `classes`
    /// has the weights of a sharing class as `sync`. A tensor that several operators keep is counted once per device, at its largest part there.
    /// Inference keeps caches, and nothing beyond the working buffers. Complexity: O(edges * shards).
    template <class Classes, class Shards, class Devices>
    void add_up(simulation_options const& options, Classes const& classes, Shards const& shards, Devices const& devices,
                std::vector<memory_use>& out) {
        out.assign(kept_.size(), {});
        for (auto const& c : classes) add_weights(c.sync, options, out);
        for (std::size_t op = 0; op < graph_->size(); ++op) {
            auto const& operation = graph_->operations[op];
            if (operation.work == ops::work_class::source || operation.work == ops::work_class::view) continue;
            auto const& mine = shards(op);
            std::span<std::uint32_t const> const where = devices(op);
            bool const keeps = options.training && graph_->trains[op];
            auto const working = mine.working();
            tally(where, keeps ? 2 * working : working);
            for_counted([&](std::uint32_t d, byte_count b) { out[d].buffers = std::max(out[d].buffers, b); });
        }
        if (options.training)
            for_kept_tensors(*graph_, [&](auto const& keepers) {
                for_largest(
                    keepers, shards, devices, [](std::uint32_t) { return 0U; },
                    [&](std::uint32_t d, byte_count bytes, std::uint32_t) { out[d].activations += bytes; });
            });
    }

    /// Calls `take(device, bytes, part)` for each device of `keepers` of a tensor with its largest part there; `part` is the least `part_of(op)` of
    /// those that keep it there. Complexity: O(shards).
    template <class Keepers, class Shards, class Devices, class PartOf, class Take>
    void for_largest(Keepers const& keepers, Shards const& shards, Devices const& devices, PartOf const& part_of, Take const& take) {
        kept_devices_.clear();
        for (keeper const& k : keepers) keep(devices(k.op), kept_bytes(k, shards(k.op)), part_of(k.op));
        for (auto const d : kept_devices_) take(d, std::exchange(kept_[d], 0), part_[d]);
    }

  private:
    void add_weights(sync_plan const& plan, simulation_options const& options, std::vector<memory_use>& out) const;

    void keep(std::span<std::uint32_t const> where, byte_count bytes, std::uint32_t part);

    /// Bytes per device of shards of equal size, and a walk over them that clears the tally.
    void tally(std::span<std::uint32_t const> where, byte_count bytes);
    template <class F> void for_counted(F const& f) {
        for (auto const d : counted_)
            if (auto const bytes = std::exchange(one_[d], 0)) f(d, bytes);
        counted_.clear();
    }

    graph::dense_graph const* graph_;
    std::vector<byte_count> kept_, one_;
    std::vector<std::uint32_t> kept_devices_, counted_, part_;
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/memory/memory_account.ipp>
#endif
