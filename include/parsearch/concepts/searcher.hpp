#pragma once
/// The concept `Searcher`: anything callable as a search.

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>

#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/core/random.hpp>

namespace parsearch {

/// Why a search ended.
enum class stop_reason : std::uint8_t { exhausted, evaluation_budget, time_budget, stop_requested, proved_optimal, no_improvement };

/// The name of a reason, for reports.
[[nodiscard]] constexpr std::string_view name_of(stop_reason r) noexcept {
    switch (r) {
    case stop_reason::exhausted: return "exhausted";
    case stop_reason::evaluation_budget: return "evaluation budget";
    case stop_reason::time_budget: return "time budget";
    case stop_reason::stop_requested: return "stop requested";
    case stop_reason::proved_optimal: return "proved optimal";
    case stop_reason::no_improvement: return "no improvement";
    }
    return "unknown";
}

/// Counts of a search. `seconds` is wall time; the rest is reproducible.
struct search_stats {
    std::uint64_t evaluations = 0; ///< strategies priced, the start included
    std::uint64_t proposals = 0;   ///< changes drawn
    std::uint64_t accepted = 0;    ///< proposals that became current
    std::uint64_t improved = 0;    ///< proposals better than every one before
    std::uint64_t trajectory = 0;  ///< hash of the sequence of accepted changes' positions: equal trajectories, equal hash
    double seconds = 0;
    std::uint64_t nodes = 0;       ///< partial strategies bounded, by searches that do
};

/// Adds what a part of a search counted. What is an improvement in the whole, its trajectory and time, whoever has the parts says.
inline void add_counts(search_stats& whole, search_stats const& part) noexcept {
    whole.evaluations += part.evaluations;
    whole.proposals += part.proposals;
    whole.accepted += part.accepted;
    whole.nodes += part.nodes;
}

/// What every search returns. `lower_bound` is set where the algorithm knows one.
template <class S, class C> struct search_result {
    S best;
    C cost;
    std::optional<C> lower_bound;
    search_stats stats;
    stop_reason reason = stop_reason::exhausted;
};

/// `f(problem, start, rng)` answers a `search_result`. See docs/concepts/searcher.md.
template <class F, class P, class S, class R>
concept Searcher = SearchProblem<P, S> && RandomBits<R> && requires(F const& f, P const& p, S const& s, R& rng) {
    { f(p, s, rng) } -> std::same_as<search_result<S, problem_cost_t<P, S>>>;
};

} // namespace parsearch
