#pragma once
/// A network of fewer, coarse operators: groups of operators that change together, on several levels.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::space {

/// Levels of coarse operators, the coarsest first, for `search::greedy`. Each coarse operator is several operators of the graph:
/// - on the finest level those that share parameters (the steps of an unrolled layer), on the next also those that compute the same (the blocks of a
///   deep network);
/// - on each level above, pairs of neighbours: of those of the level below the ones between which most bytes go, each in one pair at most, until less
///   than a tenth of them find a partner (heavy edge matching; Karypis, Kumar, SIAM J. Sci. Comput. 20, 1998).
/// One of a coarse operator's members leads: the one with most flops of those that have a choice. A configuration of the leader is one of all:
/// members that compute the same take it as it is, neighbours as their tensors stay where they are (see `carried_over`); a member that cannot stays
/// as it is. Graph inputs and operators that are alone are in none.
class coarsening {
  public:
    /// `g` and `space` must outlive it. Complexity: O(edges * log edges) per level, and levels grow with the logarithm of the operators.
    coarsening(graph::dense_graph const& g, strategy_space const& space);

    /// The number of coarse operators of all levels; one that stays as it is from level to level is one.
    [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
    [[nodiscard]] std::size_t levels() const noexcept { return levels_.size(); }
    /// The numbers of the coarse operators of a level, ascending by their first members. Level 0 is the coarsest.
    [[nodiscard]] std::span<std::uint32_t const> level(std::size_t number) const noexcept { return levels_[number]; }
    /// The operators of coarse operator `coarse`, ascending.
    [[nodiscard]] std::span<std::uint32_t const> members(std::size_t coarse) const noexcept { return members_[coarse]; }
    [[nodiscard]] std::uint32_t leader(std::size_t coarse) const noexcept { return leader_[coarse]; }
    /// The configurations that coarse operator `coarse` may have: those of its leader.
    [[nodiscard]] std::uint64_t choices(std::size_t coarse) const { return space_->of(leader_[coarse]).size(); }
    /// Appends what members get under configuration number `index` of the leader, the leader first, each at most once. Complexity: linear in the
    /// edges at members.
    void changes(std::size_t coarse, std::uint64_t index, std::vector<change<configuration>>& out);

  private:
    /// Adds a level: `part` says to which set each operator belongs, by the lowest number in it.
    void add_level(std::vector<std::uint32_t> const& part);

    graph::dense_graph const* graph_;
    strategy_space const* space_;
    std::vector<std::vector<std::uint32_t>> levels_;
    std::vector<std::vector<std::uint32_t>> members_;
    std::vector<std::uint32_t> leader_;
    std::vector<std::uint32_t> alike_;                      ///< of each operator the first that computes the same
    std::vector<std::vector<std::uint32_t>> alike_members_; ///< by that first one
    std::vector<std::uint32_t> inside_, changed_;           ///< the last call of `changes` that met an operator as a member, and that changed it
    std::uint32_t call_ = 0;
};

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/coarsening.ipp>
#endif
