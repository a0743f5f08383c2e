#pragma once
/// The memory of a strategy per device, kept up to date as operators change: the sums of `memory_account` without adding up all operators.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/sim/memory/memory_account.hpp>

namespace parsearch::sim {

/// Holds what every operator and class takes, by pointer, and the sums. "Devices" may be classes of devices, each given as one of them.
/// `set_operator` and `set_class` replace one; `settle` brings the sums up to date; setting the old ones again undoes exactly.
/// Complexity of a change: O(D log V) for D devices and V operators, and the shards of the operators that keep a tensor with it.
class memory_ledger {
  public:
    memory_ledger(graph::dense_graph const& g, std::size_t devices, std::size_t classes, simulation_options const& options)
        : graph_(&g), options_(options), devices_(devices), leaves_(std::bit_ceil(std::max<std::size_t>(1, g.size()))), operators_(g.size()),
          classes_(classes), kept_by_(g.size()), total_(devices), buffers_(2 * leaves_ * devices), row_(devices), one_(devices), most_(devices) {
        if (options.training)
            for (std::uint32_t op = 0; op < g.size(); ++op) find_tensors(op);
    }

    /// The memory of a shard and the device of each; nothing: the operator takes none.
    struct placed {
        shard_memory const* shard = nullptr;
        std::vector<std::uint32_t> const* devices = nullptr;
    };
    using weights = std::vector<std::pair<std::uint32_t, byte_count>>; ///< by device

    void set_operator(std::uint32_t op, placed b) {
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

    void set_class(std::uint32_t c, weights const* b) {
        if (auto const* const old = std::exchange(classes_[c], b))
            for (auto const& [d, bytes] : *old) total_[d] -= bytes;
        if (b)
            for (auto const& [d, bytes] : *b) total_[d] += bytes;
    }

    /// After all changes.
    void settle() {
        for (auto const t : stale_) {
            auto& tensor = tensors_[t];
            tensor.stale = false;
            for (auto const& [d, bytes] : tensor.bytes) total_[d] -= bytes;
            weigh(tensor);
            for (auto const& [d, bytes] : tensor.bytes) total_[d] += bytes;
        }
        stale_.clear();
    }

    [[nodiscard]] byte_count bytes(std::size_t device) const noexcept { return total_[device] + buffers_[devices_ + device]; }

  private:
    struct keeper {
        std::uint32_t op = 0, operand = 0;
        bool output = false;
    };
    /// A tensor that is kept until backward, counted once per device at its largest part there.
    struct kept_tensor {
        std::vector<keeper> keepers;
        std::vector<std::pair<std::uint32_t, byte_count>> bytes; ///< by device
        bool stale = false;
    };

    void find_tensors(std::uint32_t op) {
        if (graph_->operations[op].work == ops::work_class::view) return; // the same bytes as its input
        auto const& outputs = graph_->operations[op].outputs;
        for (std::uint32_t slot = 0; slot < outputs.size(); ++slot) {
            kept_tensor tensor;
            if (outputs[slot].saved && graph_->trains[op]) tensor.keepers.push_back({op, slot, true});
            find_readers(op, slot, tensor);
            if (tensor.keepers.empty()) continue;
            for (auto const& k : tensor.keepers)
                if (auto& mine = kept_by_[k.op]; mine.empty() || mine.back() != tensors_.size())
                    mine.push_back(static_cast<std::uint32_t>(tensors_.size()));
            tensors_.push_back(std::move(tensor));
        }
    }
    /// Those that read the tensor, as it is or through views.
    void find_readers(std::uint32_t op, std::uint32_t slot, kept_tensor& tensor) const {
        for (auto const number : graph_->out(op)) {
            auto const& e = graph_->edges[number];
            if (e.slot != slot) continue;
            auto const& reader = graph_->operations[e.consumer];
            if (reader.work == ops::work_class::view)
                for (std::uint32_t s = 0; s < reader.outputs.size(); ++s) find_readers(e.consumer, s, tensor);
            else if (reader.inputs[e.input].saved && graph_->trains[e.consumer]) tensor.keepers.push_back({e.consumer, e.input, false});
        }
    }

    void weigh(kept_tensor& tensor) {
        tensor.bytes.clear();
        touched_.clear();
        for (auto const& k : tensor.keepers) {
            auto const& b = operators_[k.op];
            if (!b.shard) continue;
            auto const bytes = k.output ? b.shard->outputs[k.operand] : b.shard->inputs[k.operand];
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
