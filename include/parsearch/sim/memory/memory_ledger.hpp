#pragma once
/// The memory of a strategy per device, kept up to date as operators change: the sums of `memory_account` without adding up all operators.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/sim/memory/memory_account.hpp>

namespace parsearch::sim {

/// Holds what every operator and class takes, by pointer, and the sums. "Devices" may be classes of devices, each given as one of them.
/// `set_operator` and `set_class` replace one; `settle` brings the sums up to date; setting the old ones again undoes exactly.
/// Complexity of a change: O(D log V) for D devices and V operators, and the shards of the operators that keep a tensor with it.
class memory_ledger {
  public:
    memory_ledger(graph::dense_graph const& g, std::size_t devices, std::size_t classes, simulation_options const& options);

    /// The memory of a shard and the device of each; nothing: the operator takes none.
    struct placed {
        shard_memory const* shard = nullptr;
        std::vector<std::uint32_t> const* devices = nullptr;
    };
    using weights = std::vector<std::pair<std::uint32_t, byte_count>>; ///< by device

    void set_operator(std::uint32_t op, placed b);

    void set_class(std::uint32_t c, weights const* b);

    /// After all changes.
    void settle();

    [[nodiscard]] byte_count bytes(std::size_t device) const noexcept { return total_[device] + buffers_[devices_ + device]; }

  private:
    /// A tensor that is kept until backward, counted once per device at its largest part there.
    struct kept_tensor {
        std::vector<keeper> keepers;
        std::vector<std::pair<std::uint32_t, byte_count>> bytes; ///< by device
        bool stale = false;
    };

    void weigh(kept_tensor& tensor);

    /// Writes `row_` as the leaves of `op` in a tree of maxima per device, up to where nothing changes.
    void set_buffers(std::uint32_t op) {
        auto at = leaves_ + op;
        auto* row = row_.data();
        for (;;) {
            auto* const kept = buffers_.data() + at * devices_;
            if (std::equal(kept, kept + devices_, row)) return;
            std::copy(row, row + devices_, kept);
            if (at <= 1) return;
            auto const* const sibling = buffers_.data() + (at ^ 1) * devices_;
            for (std::size_t d = 0; d < devices_; ++d) row_[d] = std::max(kept[d], sibling[d]);
            at /= 2;
        }
    }

    graph::dense_graph const* graph_;
    simulation_options options_;
    std::size_t devices_, leaves_;
    std::vector<placed> operators_;
    std::vector<weights const*> classes_;
    std::vector<kept_tensor> tensors_;
    std::vector<std::vector<std::uint32_t>> kept_by_; ///< tensors that an operator keeps
    std::vector<std::uint32_t> stale_, touched_;
    std::vector<byte_count> total_;   ///< of each device, without buffers
    std::vector<byte_count> buffers_; ///< tree node n on device d at n * devices + d; the root is node 1
    std::vector<byte_count> row_, one_, most_;
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/memory/memory_ledger.ipp>
#endif
