#pragma once
/// Where stages may begin: between the blocks of a network.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

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
    stage_places(graph::dense_graph const& g, std::span<std::uint32_t const> order, bool anywhere) {
        std::vector<std::size_t> all(order.empty() ? 0 : order.size() - 1);
        std::iota(all.begin(), all.end(), std::size_t{1});
        if (!anywhere) {
            auto const narrow = graph::narrow_places(graph::crossing_sums(g, order, [](auto, auto) { return 1; }));
            choices_.push_back(graph::block_places(g, order, narrow));
            choices_.push_back(narrow);
        }
        choices_.push_back(std::move(all));
        auto const kinds = graph::kinds_between(g, order, of(blocks_at_least));
        for (auto const k : kinds) repeats_.push_back(std::ranges::count(kinds, k) > 1);
    }

    /// Ascending, without 0, where the first stage begins. Where there are fewer operators than stages, all.
    [[nodiscard]] std::vector<std::size_t> const& of(std::size_t stages) const {
        for (auto const& c : choices_)
            if (c.size() + 1 >= stages) return c;
        return choices_.back();
    }

    /// Blocks of operators whose weights are gathered together: of each operator from place `begin` to `end` its block, counted from 0. At least
    /// eight in a network of as many operators. `joined`: at either end so many blocks that repeat are one, with those outside of them that do not.
    [[nodiscard]] std::vector<std::uint32_t> blocks(std::size_t begin, std::size_t end, std::uint32_t joined = 0) const {
        auto const& places = of(blocks_at_least);
        auto const at = [&](std::size_t i) { return static_cast<std::size_t>(std::ranges::upper_bound(places, i) - places.begin()); };
        std::vector<std::uint32_t> out;
        if (begin >= end) return out;
        auto const first = at(begin), last = at(end - 1);
        auto low = first, high = last; // the blocks where those in the middle end
        // Whether the next block is joined, too: those that do not repeat are, until the last that may.
        auto const takes = [&](std::size_t block, std::uint32_t& left) {
            if (left == 0 || (left == 1 && repeats_[block])) return false;
            if (repeats_[block]) --left;
            return true;
        };
        for (auto left = joined; low < last && takes(low, left);) ++low;
        for (auto left = joined; high > low && takes(high, left);) --high;
        for (auto i = begin; i < end; ++i) out.push_back(static_cast<std::uint32_t>(std::clamp(at(i), low, high) - low));
        return out;
    }

    /// The blocks of stages that begin at the places `first`, of `operators`, each stage with blocks of its own.
    [[nodiscard]] std::vector<std::uint32_t> blocks_of_stages(std::span<std::size_t const> first, std::size_t operators, std::uint32_t joined) const {
        std::vector<std::uint32_t> out;
        for (std::size_t s = 0; s < first.size(); ++s) {
            auto const before = out.empty() ? 0 : out.back() + 1;
            for (auto const b : blocks(first[s], s + 1 < first.size() ? first[s + 1] : operators, joined)) out.push_back(before + b);
        }
        return out;
    }

  private:
    static constexpr std::size_t blocks_at_least = 8;

    std::vector<std::vector<std::size_t>> choices_; ///< the best first
    std::vector<bool> repeats_;                     ///< of each block, whether another is alike
};

} // namespace parsearch::pipeline
