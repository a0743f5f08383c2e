#pragma once
// Where a network is narrow, and the blocks that repeat between such places.

#include <map>

#include <parsearch/graph/blocks.hpp>

namespace parsearch::graph {

PARSEARCH_INLINE std::vector<std::size_t> narrow_places(std::span<std::int64_t const> crossing) {
    std::vector<std::size_t> out;
    for (std::size_t begin = 1, end; begin < crossing.size(); begin = end) {
        for (end = begin; end < crossing.size() && crossing[end] == crossing[begin]; ++end) {
        }
        bool const falls = begin == 1 || crossing[begin - 1] > crossing[begin], rises = end == crossing.size() || crossing[end] > crossing[begin];
        for (auto i = begin; falls && rises && i < end; ++i) out.push_back(i);
    }
    return out;
}

PARSEARCH_INLINE void borders_of_periods(std::span<std::uint32_t const> kinds, std::size_t offset, std::vector<std::size_t>& out) {
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

PARSEARCH_INLINE std::vector<std::uint32_t> kinds_between(dense_graph const& g, std::span<std::uint32_t const> order,
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

PARSEARCH_INLINE std::vector<std::size_t> block_places(dense_graph const& g, std::span<std::uint32_t const> order,
                                                       std::span<std::size_t const> narrow) {
    std::vector<std::size_t> borders, out;
    borders_of_periods(kinds_between(g, order, narrow), 0, borders);
    for (auto const b : borders)
        if (b > 0) out.push_back(narrow[b - 1]);
    return out;
}

PARSEARCH_INLINE std::vector<std::uint32_t> first_repeats(dense_graph const& g) {
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
    auto least = out; // where the graph numbers a later block first, its operators name the group
    for (std::uint32_t op = 0; op < out.size(); ++op) least[out[op]] = std::min(least[out[op]], op);
    for (auto& root : out) root = least[root];
    return out;
}

} // namespace parsearch::graph
