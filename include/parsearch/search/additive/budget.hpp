#pragma once
/// Minimises an additive cost within a budget of memory.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/search/additive/cost_network.hpp>
#include <parsearch/search/additive/memory_limit.hpp>
#include <parsearch/search/additive/number.hpp>
#include <parsearch/search/additive/solver.hpp>

namespace parsearch::search::additive {

/// What a search within a budget tells and asks.
struct budget_calls {
    std::function<void(std::span<std::uint32_t const> choices)> found; ///< a feasible strategy, better than all before
    std::function<void(std::int64_t least)> bound;                     ///< no feasible strategy costs less
    std::function<bool(phase)> stop;                                   ///< whether to end
};

/// Minimises the sum of `tables` over the strategies that take at most `limit.budget` bytes; both must outlive the call. Answers whether it is
/// complete: then the last strategy found is the best, and where none was found none is feasible. `bytes` limits the tables that are made.
///
/// Lagrangian relaxation first: exact minima of cost + price * memory, at prices that the solutions on both sides of the budget tell, until none lies
/// between (Handler, Zang, A dual algorithm for the constrained shortest path problem, Networks 10, 1980). The best of them bounds all;
/// `label_search` closes what gap there is. Terms and their sums must be below 2^60. Complexity: a minimum per price, as those of `minimise`, and
/// the labels. A template, though of one type: only programs that ask compile the solvers.
template <std::same_as<std::int64_t> T>
[[nodiscard]] bool minimise_within(cost_tables<T> const& tables, memory_limit const& limit, double bytes, budget_calls const& calls);

/// The terms as 64-bit integers. Throws `invalid_input` where their largest add up to 2^60 or more.
template <class C> [[nodiscard]] cost_tables<std::int64_t> whole_tables(cost_tables<C> const& tables, std::string_view algorithm) {
    static_assert(counts_integers<C>, "a budget of memory needs costs that are integers, or durations of integers");
    constexpr auto most = wide_integer{1} << 60;
    wide_integer sum = 0;
    auto const copy = [&](numbers<C> const& terms) {
        std::vector<std::int64_t> out(terms.size);
        wide_integer largest = 0;
        for (std::size_t n = 0; n < terms.size; ++n) {
            auto const exact = to_number<wide_integer>(terms.data[n]);
            if (number<wide_integer>::is_infinite(exact)) {
                out[n] = cost_traits<std::int64_t>::infinity();
            } else {
                largest = std::max(largest, exact < 0 ? -exact : exact);
                out[n] = static_cast<std::int64_t>(exact);
            }
        }
        if ((sum += largest) >= most)
            throw invalid_input(algorithm, ": the largest terms of the tables add up to 2^60 or more: with a budget of memory it must be less");
        return numbers<std::int64_t>(std::move(out));
    };
    cost_tables<std::int64_t> out;
    for (auto const& op : tables.operators) out.operators.push_back(copy(op));
    for (auto const& e : tables.edges) out.edges.push_back({e.ends, copy(e.costs)});
    return out;
}

} // namespace parsearch::search::additive

#ifndef PARSEARCH_COMPILED
#include <parsearch/search/additive/budget.ipp>
#endif
