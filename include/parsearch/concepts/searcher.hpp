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
enum class stop_reason : std::uint8_t {
    exhausted,         ///< it has nothing more to try
    evaluation_budget, ///< so many strategies were priced
    time_budget,
    stop_requested,  ///< by a stop token
    proved_optimal,  ///< the bound meets the cost
    no_improvement,  ///< its patience ended
    observer,        ///< an observer ended it
    out_of_memory,   ///< pricing a strategy took more memory than there is
    nothing_feasible ///< the best plan found is infeasible, whatever ended the search
};

/// The name of a reason, for reports.
[[nodiscard]] constexpr std::string_view name_of(stop_reason r) noexcept {
    switch (r) {
    case stop_reason::exhausted: return "exhausted";
    case stop_reason::evaluation_budget: return "evaluation budget";
    case stop_reason::time_budget: return "time budget";
    case stop_reason::stop_requested: return "stop requested";
    case stop_reason::proved_optimal: return "proved optimal";
    case stop_reason::no_improvement: return "no improvement";
    case stop_reason::observer: return "ended by an observer";
    case stop_reason::out_of_memory: return "out of memory";
    case stop_reason::nothing_feasible: return "nothing feasible";
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
    std::uint64_t nodes = 0;     ///< partial strategies bounded, by searches that do
    std::uint64_t projected = 0; ///< operators of the start that broke a constraint of the problem, and got what is nearest: see `ProjectsStarts`
};

/// Adds what a part of a search counted, but not `improved`, `trajectory` and `seconds`: those of the whole are not the sums of the parts'.
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
    stop_reason reason = stop_reason::exhausted; ///< `nothing_feasible` where the best is infeasible
    stop_reason ended = reason;                  ///< what ended the search, also where nothing feasible was found; set it where `reason` is set later
};

/// What a search asks of a problem beyond `SearchProblem`, and how it may be used. A search declares it as a static member `traits`:
/// `static constexpr search_traits traits{.bounds = true};`.
struct search_traits {
    bool bounds = false;         ///< needs lower bounds: see `BoundedEvaluator`
    bool additive_costs = false; ///< needs additive costs, or a surrogate that has them: see `AdditiveEvaluator`
    bool rewrites = false;       ///< works on a graph that rules may rewrite, and so on problems of its own
    bool start_matters = true;   ///< what it finds depends on the start: where not, it need not run twice
    bool looks_inside = false;   ///< uses members of the evaluator beyond pricing: it must get the problem itself, not a wrapper
    bool small_spaces = false;   ///< prepares long, so it is of use where there are few strategies: at most 2^64
    bool repeats = false;        ///< run again it does the same, and more where it may: in a portfolio its slice doubles with each turn
    bool draws_moves = false;    ///< the `move` of its events is the number of a move of the problem's mix
    bool coarsening = false;     ///< in a portfolio, needs a problem with a `coarsening()`
    bool apart = false;          ///< in a portfolio, on a problem with a `coarsening()`: it begins at the start, not at the best
};
template <class F> inline constexpr search_traits traits_of{};
template <class F>
    requires requires { F::traits; }
inline constexpr search_traits traits_of<F>{F::traits};

namespace detail {
template <class P, class S> struct plan_cost;
template <class P, class S>
    requires SearchProblem<P, S>
struct plan_cost<P, S> {
    using type = problem_cost_t<P, S>;
};
template <class P, class S>
    requires(!SearchProblem<P, S>) && requires { typename S::cost_type; }
struct plan_cost<P, S> {
    using type = typename S::cost_type;
};
} // namespace detail

/// The cost type of plans `S` of problem `P`: that of the evaluator of a `SearchProblem`; else what the plan says, `S::cost_type`, for plans that are
/// more than a strategy of one space.
template <class P, class S> using plan_cost_t = typename detail::plan_cost<P, S>::type;

/// `f(problem, start, rng)` answers a `search_result` of plans like `start`, or what is derived from one. See docs/concepts/searcher.md.
template <class F, class P, class S, class R>
concept Searcher = RandomBits<R> && requires(F const& f, P const& p, S const& s, R& rng) {
    { f(p, s, rng) } -> std::derived_from<search_result<S, plan_cost_t<P, S>>>;
};

} // namespace parsearch
