#pragma once
// Where stages may begin: between the blocks of a network.

#include <algorithm>
#include <numeric>

#include <parsearch/pipeline/stage_places.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE stage_places::stage_places(graph::dense_graph const& g, std::span<std::uint32_t const> order, bool anywhere) {
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

PARSEARCH_INLINE std::vector<std::uint32_t> stage_places::blocks(std::size_t begin, std::size_t end, std::uint32_t joined) const {
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

PARSEARCH_INLINE std::vector<std::uint32_t> stage_places::blocks_of_stages(std::span<std::size_t const> first, std::size_t operators,
                                                                           std::uint32_t joined) const {
    std::vector<std::uint32_t> out;
    for (std::size_t s = 0; s < first.size(); ++s) {
        auto const before = out.empty() ? 0 : out.back() + 1;
        for (auto const b : blocks(first[s], s + 1 < first.size() ? first[s + 1] : operators, joined)) out.push_back(before + b);
    }
    return out;
}

} // namespace parsearch::pipeline
