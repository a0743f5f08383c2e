#pragma once
/// Where stages may begin: between the blocks of a network.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/blocks.hpp>
#include <parsearch/graph/dense_graph.hpp>

namespace parsearch::pipeline {

/// The places where stages may begin.
///
/// A part is what lies between two places that fewer tensors cross than those around them: in a transformer, a residual branch with its sum. Parts
/// that repeat in a period, such as attention and perceptron, are a block; stages begin where one does. Where there are not as many, they begin at
/// any part, and where these do not suffice, or `anywhere`, at any operator.
class stage_places {
  public:
    stage_places() = default;
    /// `order`: the operators of `g` with work, in topological order. Complexity: linear in edges, and in parts times the longest period (64).
    stage_places(graph::dense_graph const& g, std::span<std::uint32_t const> order, bool anywhere);

    /// Ascending, without 0, where the first stage begins. Where there are fewer operators than stages, all.
    [[nodiscard]] std::vector<std::size_t> const& of(std::size_t stages) const {
        for (auto const& c : choices_)
            if (c.size() + 1 >= stages) return c;
        return choices_.back();
    }

    /// Blocks of operators whose weights are gathered together: of each operator from place `begin` to `end` its block, counted from 0. At least
    /// eight in a network of as many operators. `joined`: at either end so many blocks that repeat are one, with those outside of them that do not.
    [[nodiscard]] std::vector<std::uint32_t> blocks(std::size_t begin, std::size_t end, std::uint32_t joined = 0) const;

    /// The blocks of stages that begin at the places `first`, of `operators`, each stage with blocks of its own.
    [[nodiscard]] std::vector<std::uint32_t> blocks_of_stages(std::span<std::size_t const> first, std::size_t operators, std::uint32_t joined) const;

  private:
    static constexpr std::size_t blocks_at_least = 8;

    std::vector<std::vector<std::size_t>> choices_; ///< the best first
    std::vector<bool> repeats_;                     ///< of each block, whether another is alike
};

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/stage_places.ipp>
#endif
