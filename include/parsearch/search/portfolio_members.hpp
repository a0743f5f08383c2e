#pragma once
/// The members of a portfolio, and what one turn of a member is.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <stop_token>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/search/bounds/problem_bounds.hpp>
#include <parsearch/search/dominator_dp.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/kernel/choices.hpp>
#include <parsearch/search/kernel/starts.hpp>
#include <parsearch/search/threads/evaluator_pool.hpp>

namespace parsearch::search {

/// A member of a portfolio: a search, its options but for the budget, and what it is called.
template <class F, class Options> struct portfolio_member {
    std::string_view name;
    F search;
    Options options;
    double share = 0.25; ///< of one that begins apart: of all evaluations, while others improve on the best
};
template <class F, class Options>
[[nodiscard]] portfolio_member<F, Options> member(std::string_view name, F search, Options options, double share = 0.25) {
    return {name, std::move(search), std::move(options), share};
}

/// Whether problem `P` has what search `F` declares to need: see `search_traits`.
template <class F, class P, class S>
inline constexpr bool runs_on =
    !traits_of<F>.rewrites && (!traits_of<F>.coarsening || OffersCoarsening<P>)&&(!traits_of<F>.bounds || has_bounds<P, S>)&&(
                                  !traits_of<F>.additive_costs || has_additive_costs<P, S>);

/// Whether member `M` begins at the start of the search, not at the best.
template <class M, class P>
inline constexpr bool apart_on = traits_of<std::remove_cvref_t<decltype(std::declval<M const&>().search)>>.apart && OffersCoarsening<P>;
/// Whether it is a search as `greedy` is, which is then run on groups of operators alone, to the end, each time from the start.
template <class M, class P>
inline constexpr bool begins_anew = apart_on<M, P> && requires(M m) {
    m.options.single = false;
    m.options.candidates = 1;
};

/// What decides about a turn of a member beside its own options and its slice.
struct portfolio_turn {
    std::uint64_t most; ///< evaluations that are left for it; one that begins anew may make all of these
    bool wider;         ///< chains start from more than the best strategy, as in their first turn
    std::optional<std::chrono::nanoseconds> time;
};

/// A member between its turns, and what its last one found or threw.
template <class S, class C> struct portfolio_state {
    split_mix engine;
    bool resting = false;    ///< it has nothing more to find from the best strategy,
    bool done = false;       ///< or from any
    std::uint32_t turns = 0; ///< that it has had
    std::uint64_t slice = 0; ///< evaluations that its next turn may make, beside that of its start: its full slice, or what its share allows
    std::uint64_t full = 0;  ///< where members run in turn; 0 before its first turn
    std::uint64_t used = 0;  ///< in turns while it had its share alone
    bool gained = false;     ///< whether its last turn improved on the best
    std::optional<std::pair<S, C>> own{}; ///< of one that begins apart: the strategy from which it goes on, and its cost; nothing: the start
    std::optional<search_result<S, C>> found{};
    std::exception_ptr failure{};
    [[nodiscard]] bool rests() const noexcept { return resting || done; }
};

/// Whether member `M` is `dominator_dp`, or a search like it, on a problem `P` whose surrogate has as many candidates as it is asked for: it is run
/// again with more of them.
template <class M, class P, class S>
inline constexpr bool widens = traits_of<std::remove_cvref_t<decltype(std::declval<M const&>().search)>>.additive_costs && !AdditiveProblem<P, S> &&
                               requires(M const& m, P const& p) { p.surrogate(m.options.candidates); };
/// `first`, doubled `times` times, at most `most`.
[[nodiscard]] constexpr std::uint64_t doubled(std::uint64_t first, std::uint32_t times, std::uint64_t most) noexcept {
    for (; times > 0 && first < most; --times) first = first > most / 2 ? most : 2 * first;
    return std::min(first, most);
}
/// The candidates of such a member in its turn number `turn`, from 0: twice as many from turn to turn, at most those that it has by default alone.
template <class M> [[nodiscard]] std::uint64_t candidates_in(M const& m, std::uint32_t turn) {
    return doubled(m.options.candidates, turn, std::max(m.options.candidates, std::remove_cvref_t<decltype(m.options)>{}.candidates));
}
/// The candidates of one that begins anew: first a quarter of `own`, then twice as many from turn to turn, at most four times as many.
[[nodiscard]] constexpr std::uint64_t candidates_anew(std::uint64_t own, std::uint32_t turn) noexcept {
    constexpr auto most = std::numeric_limits<std::uint64_t>::max();
    return doubled(std::max<std::uint64_t>(1, own / 4), turn, own > most / 4 ? most : 4 * own);
}

/// The members of a portfolio that run on a problem, by number, and one turn of one of them.
template <class P, class S, class... Ms> class portfolio_members {
    using cost = problem_cost_t<P, S>;

  public:
    template <class M> using search_of = std::remove_cvref_t<decltype(std::declval<M const&>().search)>;

    /// Keeps `idle` evaluators at most from turn to turn. Refers to members and problem. `start`: of those that begin apart.
    portfolio_members(std::tuple<Ms...> const& members, P const& problem, S start, std::size_t idle)
        : members_(members), problem_(problem), start_(std::move(start)), pool_(problem, idle), small_(is_small(problem)) {}

    [[nodiscard]] pooled_problem<P> const& pool() const noexcept { return pool_; }

    /// Calls `f(member, number)` with each member that runs on this problem.
    template <class F> void for_each(F const& f) const {
        [&]<std::size_t... Ns>(std::index_sequence<Ns...>) { (visit<Ns>(f), ...); }(std::index_sequence_for<Ms...>{});
    }
    /// A turn of member number `n`, from `best`, or anew.
    void run(std::size_t n, portfolio_state<S, cost>& mine, S const& best, portfolio_turn const& turn, std::size_t threads,
             std::stop_token const& stop) const noexcept {
        for_each([&](auto const& m, std::size_t number) {
            if (number == n) run(m, mine, best, turn, threads, stop);
        });
    }
    template <class M, class... Listeners>
    void run(M const& m, portfolio_state<S, cost>& mine, S const& best, portfolio_turn const& turn, std::size_t threads, std::stop_token const& stop,
             Listeners&... listeners) const noexcept {
        try {
            auto o = m.options;
            o.stop = stop;
            o.evaluations = mine.slice + 1; // the start, which is known
            if constexpr (requires { fix_derived(o); }) fix_derived(o);
            constexpr bool anew = begins_anew<M, P>;
            if constexpr (anew) {
                o.single = false;
                o.candidates = candidates_anew(m.options.candidates, mine.turns);
            }
            if (anew || turn.most < mine.slice) o.evaluations = turn.most + 1;
            constexpr bool apart = apart_on<M, P>;
            std::optional<S> drawn;
            if constexpr (apart && !anew)
                if (!mine.own && mine.turns > 0 && bernoulli(mine.engine, 0.5)) drawn = random_strategy(problem_.space(), start_, mine.engine);
            S const& from = !apart ? best : mine.own ? mine.own->first : drawn ? *drawn : start_;
            if (turn.time) o.time = turn.time;
            if constexpr (requires { o.threads = 1; }) o.threads = threads;
            if constexpr (requires { o.problem_starts = true; })
                o.problem_starts = o.problem_starts && !drawn && (turn.wider || mine.turns == 0 || (apart && !mine.own));
            if constexpr (requires { o.progress_interval = 1; }) o.progress_interval = 0;
            if constexpr (requires { o.nodes.emplace(1); }) o.nodes = nodes_per_evaluation * mine.slice;
            if constexpr (widens<M, P, S>) o.candidates = candidates_in(m, mine.turns);
            if constexpr (traits_of<search_of<M>>.looks_inside) mine.found.emplace(m.search(problem_, from, mine.engine, o, listeners...));
            else mine.found.emplace(m.search(pool_, from, mine.engine, o, listeners...));
        } catch (...) {
            mine.failure = std::current_exception();
        }
    }

  private:
    static constexpr std::uint64_t nodes_per_evaluation = 64; ///< what a partial strategy costs beside a whole one

    template <std::size_t N, class F> void visit(F const& f) const {
        using search = search_of<std::tuple_element_t<N, std::tuple<Ms...>>>;
        if constexpr (runs_on<search, P, S>)
            if (!traits_of<search>.small_spaces || small_) f(std::get<N>(members_), N);
    }
    /// Whether there are at most 2^64 strategies: the tables of bounds alone take long where there are many.
    [[nodiscard]] static bool is_small(P const& problem) {
        auto const& space = problem.space();
        auto left = std::numeric_limits<std::uint64_t>::max(); // integers: logarithms differ between platforms
        for (std::size_t op = 0; op < space.size(); ++op) left /= std::max<std::uint64_t>(1, choice_count(space, op));
        return left > 0;
    }

    std::tuple<Ms...> const& members_;
    P const& problem_;
    S const start_;
    pooled_problem<P> pool_;
    bool const small_;
};

} // namespace parsearch::search
