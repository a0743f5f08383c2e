#pragma once
/// Overlap tables by the positions of the shards at both ends: edges and degrees that lay their tensors out alike have theirs in common.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/sim/task/overlap.hpp>
#include <parsearch/sim/task/word_hash.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::sim {

/// Makes tables on first use and keeps them, within a limit. The graph must outlive it.
class overlap_tables {
  public:
    /// Forgets all before it makes more where it holds more than `most_bytes`.
    overlap_tables(graph::dense_graph const& g, std::size_t most_bytes) : graph_(&g), most_bytes_(most_bytes), numbers_(g.size()) {}

    /// What the tables take, about.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    void forget() {
        for (auto& known : numbers_) known.clear();
        by_hash_.clear();
        layouts_.clear();
        tables_.clear();
        bytes_ = 0;
    }

    /// Of edge `number` between an operator under `from` and one under `to`.
    std::shared_ptr<overlap_table const> of_edge(std::uint32_t number, space::configuration const& from, space::configuration const& to) {
        if (bytes_ > most_bytes_) forget();
        auto const& e = graph_->edges[number];
        auto const made = layout_of(e.producer, e.slot, true, from), read = layout_of(e.consumer, e.input, false, to);
        auto& known = tables_[std::uint64_t{made} << 32 | read];
        if (!known) {
            auto table = std::make_shared<overlap_table const>(find_overlaps(layouts_[made], layouts_[read]));
            bytes_ +=
                sizeof *table + table->pairs.size() * (sizeof(overlap) + 8) + 4 * (table->first_of_consumer.size() + table->first_of_producer.size());
            for (auto const& x : table->exchanges) bytes_ += sizeof x + 4 * (x.producers.size() + x.consumers.size());
            known = std::move(table);
        }
        return known;
    }
    /// The number of the layout of an input: equal where shards read the same parts. Until all is forgotten.
    [[nodiscard]] std::uint32_t of_input(std::uint32_t op, std::uint32_t input, space::configuration const& c) {
        return layout_of(op, input, false, c);
    }

  private:
    /// The number of the layout of an operand: an output or an input.
    std::uint32_t layout_of(std::uint32_t op, std::uint32_t operand, bool output, space::configuration const& c) {
        key_.assign(1, operand << 1 | std::uint32_t{output});
        for (auto const d : c.degrees()) key_.push_back(static_cast<std::uint32_t>(d));
        auto& known = numbers_[op];
        if (auto const at = known.find(key_); at != known.end()) return at->second;
        auto const& operation = graph_->operations[op];
        auto const& o = output ? operation.outputs[operand] : operation.inputs[operand];
        auto made = output ? layout_of_output(operation, o, c.degrees()) : layout_of_input(operation, o, c.degrees());
        auto h =
            word_hash::step(word_hash::step(static_cast<std::uint64_t>(made.partials), static_cast<std::uint64_t>(made.copies)), made.regions.size());
        for (auto const& i : made.regions.intervals())
            h = word_hash::step(word_hash::step(h, static_cast<std::uint64_t>(i.begin)), static_cast<std::uint64_t>(i.end));
        auto& same_hash = by_hash_[h];
        bytes_ += 64 + 4 * key_.size();
        for (auto const n : same_hash)
            if (layouts_[n] == made) return known.emplace(key_, n).first->second;
        auto const number = static_cast<std::uint32_t>(layouts_.size());
        bytes_ += sizeof made + 64 + made.regions.intervals().size_bytes() + 4 * (made.copy.size() + made.partial.size());
        layouts_.push_back(std::move(made));
        same_hash.push_back(number);
        return known.emplace(key_, number).first->second;
    }

    graph::dense_graph const* graph_;
    std::size_t most_bytes_, bytes_ = 0;
    std::vector<std::map<std::vector<std::uint32_t>, std::uint32_t>> numbers_; ///< of layouts, by operand and degrees, of each operator
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_hash_;    ///< layouts
    std::vector<shard_layout> layouts_;
    std::unordered_map<std::uint64_t, std::shared_ptr<overlap_table const>, word_hash> tables_; ///< by the layouts of both ends
    std::vector<std::uint32_t> key_{};
};

} // namespace parsearch::sim
