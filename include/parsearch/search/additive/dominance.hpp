#pragma once
/// Drops configurations that another of the same operator can replace in every strategy at no higher cost.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <parsearch/search/additive/cost_network.hpp>

namespace parsearch::search::additive {

namespace detail {

/// One operator's side of a pair table: entry (own, other) at `own * own_stride + other * other_stride`.
template <class N> struct side {
    N const* data;
    std::size_t own_stride, other_stride;
    std::vector<std::uint32_t> const* others;
    std::vector<N> least; ///< of each own configuration, over the others alive
    [[nodiscard]] N at(std::size_t own, std::size_t other) const noexcept { return data[own * own_stride + other * other_stride]; }
};

/// The most that `b` costs above `a` along this pair; infinity where `b` is not allowed with something that `a` is allowed with.
template <class N> [[nodiscard]] N most_above(side<N> const& s, std::size_t b, std::size_t a, N enough) {
    N most = -number<N>::infinity();
    for (auto const x : *s.others) {
        N const of_a = s.at(a, x), of_b = s.at(b, x);
        if (number<N>::is_infinite(of_a)) continue;
        if (number<N>::is_infinite(of_b)) return number<N>::infinity();
        most = std::max(most, of_b - of_a);
        if (most > enough) return most;
    }
    return most;
}

} // namespace detail

/// Drops configuration a where some b of the same operator costs at most as much even where each neighbour chooses what suits a best:
/// u(b) - u(a) + sum over pairs of max over x of (e(b, x) - e(a, x)) <= 0; and what no strategy of finite cost has. At least one strategy
/// of least cost is left, if any is finite. Answers false where an operator has nothing left: no strategy is finite.
/// Source: Goldstein, Biophysical Journal 66, 1994 (dead-end elimination). Each configuration is compared with the `tried` most promising.
/// Complexity: O(terms * tried) per round, of which there are few; most comparisons end after some terms.
template <class N> [[nodiscard]] bool drop_dominated(network<N>& net, std::size_t tried = 8) {
    using traits = number<N>;
    std::size_t const operators = net.operators.size();
    std::vector<std::vector<std::uint32_t>> alive(operators);
    std::vector<std::vector<std::size_t>> pairs_of(operators);
    for (std::size_t op = 0; op < operators; ++op) {
        alive[op].resize(net.choices(op));
        std::iota(alive[op].begin(), alive[op].end(), std::uint32_t{0});
    }
    for (std::size_t n = 0; n < net.pairs.size(); ++n) {
        pairs_of[net.pairs[n].from].push_back(n);
        pairs_of[net.pairs[n].to].push_back(n);
    }
    std::vector<bool> due(operators, true); // something changed at the operator or beside it
    bool possible = true;
    for (int round = 0; round < 3 && possible; ++round) {
        for (std::size_t op = 0; op < operators && possible; ++op) {
            if (!due[op]) continue;
            due[op] = false;
            auto const& own = net.operators[op];
            std::vector<detail::side<N>> sides;
            for (auto const n : pairs_of[op]) {
                auto const& p = net.pairs[n];
                bool const rows = p.from == op;
                std::size_t const width = net.choices(p.to);
                sides.push_back({p.costs.data, rows ? width : 1, rows ? 1 : width, &alive[rows ? p.to : p.from], {}});
                auto& s = sides.back();
                s.least.assign(own.size(), traits::infinity());
                auto const lower = [&](std::size_t a, std::size_t x) { s.least[a] = std::min(s.least[a], s.at(a, x)); };
                if (rows)
                    for (auto const a : alive[op])
                        for (auto const x : *s.others) lower(a, x);
                else
                    for (auto const x : *s.others)
                        for (auto const a : alive[op]) lower(a, x);
            }
            // The least that a configuration can cost with its pairs: the smaller, the more promising.
            std::vector<N> promise(own.size(), traits::infinity());
            for (auto const a : alive[op]) {
                promise[a] = own[a];
                for (auto const& s : sides) promise[a] = traits::sum(promise[a], s.least[a]);
            }
            auto order = alive[op];
            std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return promise[a] < promise[b]; });
            while (!order.empty() && traits::is_infinite(promise[order.back()])) order.pop_back();
            auto const dominates = [&](std::size_t b, std::size_t a) {
                // A lower bound on the left side of the rule, raised pair by pair.
                N above = promise[b] - promise[a];
                for (auto const& s : sides) {
                    if (above > 0) return false;
                    N const rest = above - (s.least[b] - s.least[a]);
                    N const most = detail::most_above(s, b, a, static_cast<N>(-rest));
                    if (traits::is_infinite(most)) return false;
                    above = rest + most;
                }
                return above <= 0;
            };
            std::vector<std::uint32_t> kept; // ascending in promise
            for (auto const a : order) {
                bool const dropped = std::any_of(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(std::min(tried, kept.size())),
                                                 [&](auto b) { return dominates(b, a); });
                if (!dropped) kept.push_back(a);
            }
            possible = !kept.empty();
            if (kept.size() == alive[op].size()) continue;
            std::sort(kept.begin(), kept.end());
            alive[op] = std::move(kept);
            for (auto const n : pairs_of[op]) due[net.pairs[n].from == op ? net.pairs[n].to : net.pairs[n].from] = true;
        }
    }
    if (possible) restrict_network(net, alive);
    return possible;
}

} // namespace parsearch::search::additive
