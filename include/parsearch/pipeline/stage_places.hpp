#pragma once
/// Where stages may begin: between the blocks of a network.

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

namespace parsearch::pipeline {

/// What crosses each place: the sum of `weight(op, slot)` over the tensors made before it and read at or behind it. `order`: operators with work, in
/// topological order; place i is before the i-th of them. Complexity: linear in edges.
template <class Weight>
[[nodiscard]] std::vector<std::int64_t> crossing_sums(graph::dense_graph const& g, std::span<std::uint32_t const> order, Weight const& weight) {
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

namespace detail {

/// Places that fewer tensors cross than those before and behind, as far as these differ. Ascending, from 1.
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
/// plus `offset`, ascending. The period that covers the most parts in one run counts first; where nothing repeats, all borders do.
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
} // namespace detail

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
            auto const narrow = detail::narrow_places(crossing_sums(g, order, [](auto, auto) { return 1; }));
            std::vector<std::size_t> borders;
            detail::borders_of_periods(kinds_between(g, order, narrow), 0, borders);
            auto& blocks = choices_.emplace_back();
            for (auto const b : borders)
                if (b > 0) blocks.push_back(narrow[b - 1]);
            choices_.push_back(narrow);
        }
        choices_.push_back(std::move(all));
        auto const kinds = kinds_between(g, order, of(blocks_at_least));
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

    /// What lies between `places`, in numbers: alike where the operators are.
    [[nodiscard]] static std::vector<std::uint32_t> kinds_between(graph::dense_graph const& g, std::span<std::uint32_t const> order,
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

    std::vector<std::vector<std::size_t>> choices_; ///< the best first
    std::vector<bool> repeats_;                     ///< of each block, whether another is alike
};

} // namespace parsearch::pipeline
