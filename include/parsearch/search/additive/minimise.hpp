#pragma once
/// Minimises an additive cost given in tables: what `dominator_dp` does between reading them and telling.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/search/additive/cost_network.hpp>
#include <parsearch/search/additive/dominance.hpp>
#include <parsearch/search/additive/solver.hpp>

namespace parsearch::search::additive {

namespace detail {

/// The variables that separate what is before from what is behind: those that every path from a first to a last one passes.
[[nodiscard]] std::vector<std::uint32_t> cuts_of(std::size_t variables, std::vector<link> const& links);

template <class N, class C>
bool minimise_as(cost_tables<C> const& tables, double memory, std::function<void(std::span<std::uint32_t const>)> const& found,
                 std::function<void(C const&)> const& bound, std::function<bool(phase)> const& stop) {
    auto net = make_network<N>(tables);
    std::vector<std::uint32_t> choices(net.operators.size());
    auto const chosen = [&](std::span<std::uint32_t const> positions, N) {
        for (std::size_t op = 0; op < positions.size(); ++op) choices[op] = net.numbers[op][positions[op]];
        found(choices);
    };
    if (std::ranges::all_of(net.operators, [](auto const& own) { return own.size() == 1; })) { // on one device, say
        N sum{0};
        for (auto const& own : net.operators) sum = number<N>::sum(sum, own[0]);
        for (auto const& pair : net.pairs) sum = number<N>::sum(sum, pair.costs[0]);
        if (!number<N>::is_infinite(sum)) chosen(std::vector<std::uint32_t>(net.operators.size(), 0), sum);
        return true;
    }
    auto const least = [&](N n) {
        if (auto const c = to_cost<C>(n)) bound(*c);
    };
    // Where little more is done than to read each term, dropping configurations and finding repeats would take longer.
    bool const prepares = operations_per_term(net) > 8;
    if (prepares && !drop_dominated(net)) return true; // nothing is finite
    return solver<N>(net, memory, counts_integers<C>, prepares, {.cuts = cuts_of, .found = chosen, .bound = least, .stop = stop}).run();
}

} // namespace detail

/// Minimises the sum of `tables`; they must outlive the call. Calls back:
/// - `found(choices)`: the number of each operator's configuration in a strategy that is better than all before;
/// - `bound(cost)`: no strategy costs less (told only where the least cost is not found at once, and a `C` can be made of a number);
/// - `stop(phase)`: whether to end; asked every few million operations, and every 64 partial strategies.
/// Answers whether it is complete: then the last strategy found is the best, and where none was found none has a finite cost.
/// Tables take `memory` bytes at most; beyond, mini-bucket bounds and branch and bound. Complexity: see `dominator_dp`.
template <class C>
bool minimise(cost_tables<C> const& tables, double memory, std::function<void(std::span<std::uint32_t const>)> const& found,
              std::type_identity_t<std::function<void(C const&)>> const& bound, std::function<bool(phase)> const& stop) {
    if constexpr (counts_integers<C>)
        if (sums_fit_double(tables)) return detail::minimise_as<double, C>(tables, memory, found, bound, stop);
    return detail::minimise_as<widest_number<C>, C>(tables, memory, found, bound, stop);
}

#ifdef PARSEARCH_COMPILED
extern template bool minimise(cost_tables<picoseconds> const&, double, std::function<void(std::span<std::uint32_t const>)> const&,
                              std::function<void(picoseconds const&)> const&, std::function<bool(phase)> const&);
extern template bool minimise(cost_tables<std::int64_t> const&, double, std::function<void(std::span<std::uint32_t const>)> const&,
                              std::function<void(std::int64_t const&)> const&, std::function<bool(phase)> const&);
#endif

} // namespace parsearch::search::additive

#ifndef PARSEARCH_COMPILED
#include <parsearch/search/additive/minimise.ipp>
#endif
