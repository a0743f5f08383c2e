#pragma once
/// Where a network is narrow, and the blocks that repeat between such places.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/graph/dense_graph.hpp>

namespace parsearch::graph {

/// What crosses each place: the sum of `weight(op, slot)` over the tensors made before it and read at or behind it. `order`: operators with work, in
/// topological order; place i is before the i-th of them. Complexity: linear in edges.
template <class Weight>
[[nodiscard]] std::vector<std::int64_t> crossing_sums(dense_graph const& g, std::span<std::uint32_t const> order, Weight const& weight) {
    std::vector<std::size_t> place(g.size(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    std::vector<std::int64_t> out(order.size() + 1, 0);
    for (std::size_t i = 0; i < order.size(); ++i)
        for (std::uint32_t slot = 0; slot < g.operations[order[i]].outputs.size(); ++slot) {
            auto last = i;
            for (auto const e : g.out(order[i]))
                if (g.edges[e].slot == slot) last = std::max(last, place[g.edges[e].consumer]);
            auto const amount = weight(order[i], slot);
            out[i + 1] += amount;
            out[last + 1] -= amount;
        }
    std::partial_sum(out.begin(), out.end(), out.begin());
    out.pop_back();
    return out;
}

/// Places that fewer tensors cross than those before and behind, as far as these differ. Ascending, from 1. Linear.
[[nodiscard]] inline std::vector<std::size_t> narrow_places(std::span<std::int64_t const> crossing) {
    std::vector<std::size_t> out;
    for (std::size_t begin = 1, end; begin < crossing.size(); begin = end) {
        for (end = begin; end < crossing.size() && crossing[end] == crossing[begin]; ++end) {
        }
        bool const falls = begin == 1 || crossing[begin - 1] > crossing[begin], rises = end == crossing.size() || crossing[end] > crossing[begin];
        for (auto i = begin; falls && rises && i < end; ++i) out.push_back(i);
    }
    return out;
}

/// Of the borders of a sequence of parts, those where a period begins or ends: `kinds[i]` says which parts are alike. Appends their numbers, each
/// plus `offset`, ascending. The period that covers the most parts in one run counts first; where nothing repeats, all borders do. Linear, times the
/// longest period (64).
inline void borders_of_periods(std::span<std::uint32_t const> kinds, std::size_t offset, std::vector<std::size_t>& out) {
    constexpr std::size_t longest = 64;
    std::size_t period = 0, most = 0;
    for (std::size_t p = 1; p <= std::min(longest, kinds.size() / 2); ++p)
        for (std::size_t i = 0, run = 0; i + p < kinds.size(); ++i) {
            run = kinds[i] == kinds[i + p] ? run + 1 : 0;
            if (run < p || (run / p + 1) * p <= most) continue;
            most = (run / p + 1) * p;
            period = p;
        }
    if (period == 0) {
        for (std::size_t i = 0; i < kinds.size(); ++i) out.push_back(offset + i);
        return;
    }
    std::size_t done = 0;
    for (std::size_t i = 0; i + period < kinds.size();) {
        std::size_t run = 0;
        while (i + run + period < kinds.size() && kinds[i + run] == kinds[i + run + period]) ++run;
        if (run < period) {
            i += run + 1;
            continue;
        }
        borders_of_periods(kinds.subspan(done, i - done), offset + done, out);
        for (done = i + (run / period + 1) * period; i < done; i += period) out.push_back(offset + i);
    }
    borders_of_periods(kinds.subspan(done), offset + done, out);
}

/// What lies between `places`, in numbers: alike where kinds and extents of the operators are. Linear.
[[nodiscard]] inline std::vector<std::uint32_t> kinds_between(dense_graph const& g, std::span<std::uint32_t const> order,
                                                              std::span<std::size_t const> places) {
    std::map<std::string, std::uint32_t> known;
    std::vector<std::uint32_t> out;
    for (std::size_t part = 0; part <= places.size(); ++part) {
        std::string what;
        for (auto i = part == 0 ? 0 : places[part - 1]; i < (part < places.size() ? places[part] : order.size()); ++i) {
            what += g.operations[order[i]].kind;
            for (auto const& d : g.operations[order[i]].dims) what += text(' ', d.extent);
            what += '\n';
        }
        out.push_back(known.emplace(what, static_cast<std::uint32_t>(known.size())).first->second);
    }
    return out;
}

/// The places where blocks begin, ascending, without 0: the borders of the parts between narrow places that repeat in a period, such as attention and
/// perceptron; where nothing repeats, all narrow places. `narrow`: `narrow_places` of the numbers of tensors that cross. Complexity: linear in
/// operators, and in parts times the longest period (64).
[[nodiscard]] inline std::vector<std::size_t> block_places(dense_graph const& g, std::span<std::uint32_t const> order,
                                                           std::span<std::size_t const> narrow) {
    std::vector<std::size_t> borders, out;
    borders_of_periods(kinds_between(g, order, narrow), 0, borders);
    for (auto const b : borders)
        if (b > 0) out.push_back(narrow[b - 1]);
    return out;
}

/// Of each operator, the first that is at the same place of a block like its own (the feed-forward layer of every layer of a network): itself where
/// no block repeats it. Graph inputs are alone. Complexity: as `block_places`.
[[nodiscard]] inline std::vector<std::uint32_t> first_repeats(dense_graph const& g) {
    std::vector<std::uint32_t> order, out(g.size());
    std::iota(out.begin(), out.end(), std::uint32_t{0});
    for (auto const op : g.order)
        if (g.operations[op].work != ops::work_class::source) order.push_back(op);
    auto const narrow = narrow_places(crossing_sums(g, order, [](auto, auto) { return 1; }));
    auto const places = block_places(g, order, narrow);
    auto const kinds = kinds_between(g, order, places);
    std::map<std::uint32_t, std::size_t> first; // place where the first block of a kind begins
    for (std::size_t block = 0; block < kinds.size(); ++block) {
        auto const begin = block == 0 ? 0 : places[block - 1], end = block < places.size() ? places[block] : order.size();
        auto const like = first.try_emplace(kinds[block], begin).first->second;
        for (auto i = begin; i < end; ++i) out[order[i]] = order[like + (i - begin)];
    }
    return out;
}

} // namespace parsearch::graph
