#pragma once
/// A backward pass cut in two: gradients of inputs, which others wait for, and gradients of weights, which can be computed later.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/sim/memory/memory_account.hpp>

namespace parsearch::pipeline {

/// The part of the backward pass of operator `op` that its gradients of weights take: their part of its flops; all where no other gradient is wanted.
/// 0 where they are not matrix products: such kernels make all gradients at once (norms). From 0 to 1. Complexity: O(operands).
[[nodiscard]] double weight_gradient_share(graph::dense_graph const& g, std::size_t op);

/// Of a task of `time` picoseconds, those of its gradients of weights.
[[nodiscard]] inline std::int64_t weight_gradient_time(std::int64_t time, double share) noexcept {
    double const volatile part = static_cast<double>(time) * share; // volatile: not fused with the rounding below
    return share >= 1 ? time : static_cast<std::int64_t>(part + 0.5);
}

/// Bytes of gradients that a shard whose backward is cut keeps for those of its weights: of its outputs, and where products are inside the operator
/// (an attention's projections) of as much as it keeps beside its operands.
[[nodiscard]] inline byte_count waiting_gradients(ops::operation const& op, sim::shard_memory const& shard) {
    byte_count bytes = op.product_flops > 0 ? shard.saved : 0;
    for (auto const b : shard.outputs) bytes += b;
    return bytes;
}

/// Bytes that wait for gradients of weights.
struct waiting_bytes {
    byte_count inputs = 0;    ///< what forward has kept
    byte_count gradients = 0; ///< what backward has made: see `waiting_gradients`

    [[nodiscard]] byte_count total() const noexcept { return inputs + gradients; }
    /// What comes while backward runs: inputs are there already, but where they are computed again, segment by segment.
    [[nodiscard]] byte_count rising(bool again) const noexcept { return gradients + (again ? inputs : 0); }
    waiting_bytes& operator+=(waiting_bytes const& more) noexcept {
        inputs += more.inputs;
        gradients += more.gradients;
        return *this;
    }
};

namespace detail {
/// Calls `f(edge)` for each edge along which an operator whose backward is cut reads output `slot` of `op`, as it is or through views.
template <class F> void for_waiting_readers(graph::dense_graph const& g, std::uint32_t op, std::uint32_t slot, F const& f) {
    for (auto const number : g.out(op)) {
        auto const& e = g.edges[number];
        if (e.slot != slot) continue;
        auto const& reader = g.operations[e.consumer];
        if (reader.work == ops::work_class::view)
            for (std::uint32_t s = 0; s < reader.outputs.size(); ++s) for_waiting_readers(g, e.consumer, s, f);
        else if (reader.inputs[e.input].saved && weight_gradient_share(g, e.consumer) > 0) f(e);
    }
}
} // namespace detail

/// Calls `take(device, waiting_bytes, op)` for what operators whose backward is cut keep of one micro-batch from then on: what they read and keep,
/// and the gradients. Of several that read a tensor, `op` is the first: it is counted once per device, at its largest part there, where
/// `alike(edge, edge)` says of the edges along which they read it that none needs it when the other does not. `shards(op)` is the
/// `sim::shard_memory` of an operator, `devices(op)` the device of each of its shards. Complexity: O(edges * shards), and the pairs of readers.
template <class Alike, class Shards, class Devices, class Take>
void for_waiting(graph::dense_graph const& g, Alike const& alike, Shards const& shards, Devices const& devices, Take const& take) {
    std::map<std::uint32_t, byte_count> read; // by device
    struct waiting_tensor {
        graph::edge const* first;
        std::map<std::uint32_t, byte_count> bytes; // by device
    };
    std::vector<waiting_tensor> tensors;
    for (std::uint32_t op = 0; op < g.size(); ++op) {
        for (std::uint32_t slot = 0; slot < g.operations[op].outputs.size(); ++slot) {
            if (g.operations[op].work == ops::work_class::view) break; // the same bytes as its input
            tensors.clear();
            detail::for_waiting_readers(g, op, slot, [&](graph::edge const& e) {
                auto at = std::ranges::find_if(tensors, [&](auto const& t) { return alike(*t.first, e); });
                if (at == tensors.end()) at = tensors.insert(at, {&e, {}});
                read.clear();
                for (auto const d : devices(e.consumer)) read[d] += shards(e.consumer).inputs[e.input];
                for (auto const& [d, bytes] : read) {
                    auto& most = at->bytes[d];
                    most = std::max(most, bytes);
                }
            });
            for (auto const& t : tensors)
                for (auto const& [d, bytes] : t.bytes) take(d, waiting_bytes{.inputs = bytes}, t.first->consumer);
        }
        if (weight_gradient_share(g, op) == 0) continue;
        waiting_bytes const own{.inputs = shards(op).saved, .gradients = waiting_gradients(g.operations[op], shards(op))};
        for (auto const d : devices(op)) take(d, own, op);
    }
}

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/weight_gradients.ipp>
#endif
