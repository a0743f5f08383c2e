#pragma once
/// Overlap tables by the positions of the shards at both ends: edges and degrees that lay their tensors out alike have theirs in common.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
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
    void forget();

    /// Of edge `number` between an operator under `from` and one under `to`.
    std::shared_ptr<overlap_table const> of_edge(std::uint32_t number, space::configuration const& from, space::configuration const& to);
    /// The number of the layout of an input: equal where shards read the same parts. Until all is forgotten.
    [[nodiscard]] std::uint32_t of_input(std::uint32_t op, std::uint32_t input, space::configuration const& c) {
        return layout_of(op, input, false, c);
    }

  private:
    /// The number of the layout of an operand: an output or an input.
    std::uint32_t layout_of(std::uint32_t op, std::uint32_t operand, bool output, space::configuration const& c);

    graph::dense_graph const* graph_;
    std::size_t most_bytes_, bytes_ = 0;
    std::vector<std::map<std::vector<std::uint32_t>, std::uint32_t>> numbers_; ///< of layouts, by operand and degrees, of each operator
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_hash_;    ///< layouts
    std::vector<shard_layout> layouts_;
    std::unordered_map<std::uint64_t, std::shared_ptr<overlap_table const>, word_hash> tables_; ///< by the layouts of both ends
    std::vector<std::uint32_t> key_{};
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/task/overlap_tables.ipp>
#endif
