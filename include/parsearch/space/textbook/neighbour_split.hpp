#pragma once
/// How neighbours share an operator beside its samples: what textbook plans choose from.

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/strategy_space.hpp>
#include <parsearch/space/textbook/context_parallel.hpp>
#include <parsearch/space/textbook/expert_parallel.hpp>

namespace parsearch::space {

/// How operators are divided among neighbours beside their samples.
struct neighbour_split {
    std::uint32_t tensor = 1;  ///< degree of `tensor_parallel`
    std::uint32_t experts = 1; ///< neighbours over which the experts of a mixture are split; 1: they are divided as other products are
    std::uint32_t context = 1; ///< groups of `tensor` neighbours, each with a part of the positions: see `context_parallel`
    std::uint32_t heads = 1;   ///< of these, over how many attention has heads in place of positions
    friend auto operator<=>(neighbour_split const&, neighbour_split const&) = default;

    /// Neighbours that work on parts of the same samples.
    [[nodiscard]] std::uint32_t same_samples() const noexcept { return tensor * context; }
    /// Neighbours that work on the same samples, or exchange tokens: a replica of the network.
    [[nodiscard]] std::uint32_t replica() const noexcept { return std::max(same_samples(), experts); }
};

/// `tensor_parallel`, `context_parallel` and `expert_parallel` together. Throws `invalid_input` as these do.
[[nodiscard]] inline flat_strategy split_among_neighbours(graph::dense_graph const& g, std::size_t devices, neighbour_split by, bool uneven = false) {
    auto s = context_parallel(g, devices, by.context, by.tensor, by.heads, uneven);
    return by.experts > 1 ? with_experts_split(g, std::move(s), devices, by.experts, uneven) : s;
}

} // namespace parsearch::space
