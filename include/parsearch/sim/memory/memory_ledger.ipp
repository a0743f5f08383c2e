#pragma once
// The memory of a strategy per device, kept up to date as operators change: the sums of `memory_account` without adding up all operators.

#include <algorithm>
#include <bit>

#include <parsearch/sim/memory/memory_ledger.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE memory_ledger::memory_ledger(graph::dense_graph const& g, std::size_t devices, std::size_t classes,
                                              simulation_options const& options)
    : graph_(&g), options_(options), devices_(devices), leaves_(std::bit_ceil(std::max<std::size_t>(1, g.size()))), operators_(g.size()),
      classes_(classes), kept_by_(g.size()), total_(devices), buffers_(2 * leaves_ * devices), row_(devices), one_(devices), most_(devices) {
    if (!options.training) return;
    for_kept_tensors(g, [&](std::span<keeper const> keepers) {
        if (keepers.front().what == keeper::part::beside) return; // `set_operator` counts it
        for (auto const& k : keepers)
            if (auto& mine = kept_by_[k.op]; mine.empty() || mine.back() != tensors_.size())
                mine.push_back(static_cast<std::uint32_t>(tensors_.size()));
        tensors_.push_back({.keepers = {keepers.begin(), keepers.end()}, .bytes = {}});
    });
}

PARSEARCH_INLINE void memory_ledger::set_operator(std::uint32_t op, placed b) {
    auto const work = graph_->operations[op].work;
    auto const old = std::exchange(operators_[op], b);
    for (auto const t : kept_by_[op])
        if (!tensors_[t].stale) {
            tensors_[t].stale = true;
            stale_.push_back(t);
        }
    if (work == ops::work_class::source || work == ops::work_class::view) return;
    bool const keeps = options_.training && graph_->trains[op];
    if (keeps && old.shard)
        for (auto const d : *old.devices) total_[d] -= old.shard->saved;
    if (keeps && b.shard)
        for (auto const d : *b.devices) total_[d] += b.shard->saved;
    std::fill(row_.begin(), row_.end(), 0);
    if (b.shard) {
        auto const working = b.shard->working();
        for (auto const d : *b.devices) row_[d] += keeps ? 2 * working : working;
    }
    set_buffers(op);
}

PARSEARCH_INLINE void memory_ledger::set_class(std::uint32_t c, weights const* b) {
    if (auto const* const old = std::exchange(classes_[c], b))
        for (auto const& [d, bytes] : *old) total_[d] -= bytes;
    if (b)
        for (auto const& [d, bytes] : *b) total_[d] += bytes;
}

PARSEARCH_INLINE void memory_ledger::settle() {
    for (auto const t : stale_) {
        auto& tensor = tensors_[t];
        tensor.stale = false;
        for (auto const& [d, bytes] : tensor.bytes) total_[d] -= bytes;
        weigh(tensor);
        for (auto const& [d, bytes] : tensor.bytes) total_[d] += bytes;
    }
    stale_.clear();
}

PARSEARCH_INLINE void memory_ledger::weigh(kept_tensor& tensor) {
    tensor.bytes.clear();
    touched_.clear();
    for (auto const& k : tensor.keepers) {
        auto const& b = operators_[k.op];
        if (!b.shard) continue;
        auto const bytes = kept_bytes(k, *b.shard);
        if (bytes == 0) continue;
        for (auto const d : *b.devices) one_[d] += bytes;
        for (auto const d : *b.devices)
            if (auto const here = std::exchange(one_[d], 0)) {
                if (most_[d] == 0) touched_.push_back(d);
                most_[d] = std::max(most_[d], here);
            }
    }
    for (auto const d : touched_) tensor.bytes.push_back({d, std::exchange(most_[d], 0)});
}

} // namespace parsearch::sim
