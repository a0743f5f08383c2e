#pragma once
/// Greedy search: best responses of one operator at a time, until no operator can improve alone; groups of operators first.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/core/ranges.hpp>
#include <parsearch/search/kernel/choices.hpp>
#include <parsearch/search/kernel/search_options.hpp>
#include <parsearch/search/kernel/session.hpp>

namespace parsearch::search {

/// In which order a sweep visits the operators.
enum class visit_order : std::uint8_t {
    numbered, ///< by number
    shuffled, ///< a new random permutation for each sweep
    supplied, ///< as the problem's `order()` lists them
};
[[nodiscard]] constexpr std::string_view name_of(visit_order o) noexcept {
    return o == visit_order::numbered ? "numbered" : o == visit_order::shuffled ? "shuffled" : "supplied";
}

/// Options of `greedy`. It always ends by itself, since each step improves.
struct greedy_options {
    std::optional<std::chrono::nanoseconds> time{}; ///< see `budget`
    std::optional<std::uint64_t> evaluations{};     ///< see `budget`
    std::stop_token stop{};                         ///< see `budget`

    /// Configurations tried per visit; an operator that has more gets that many drawn at random, new ones at each visit.
    std::uint64_t candidates = 64;
    /// Where it is not set, `supplied` if the problem has `order()`, else `numbered`.
    std::optional<visit_order> order{};
    /// Begins with a constructive pass: see `greedy`.
    bool construct = false;
    /// Begins with coarse operators, where the problem has a `coarsening()`: see `greedy`.
    bool coarse = true;
    /// Goes on with single operators; else it ends with the coarse ones.
    bool single = true;

    std::uint64_t progress_interval = 1000; ///< evaluations from one `progress` to the next; 0: none
};

/// Throws `invalid_input` naming the option, its value and the rule.
void validate(greedy_options const& o);

/// A problem may offer `coarsening()`: groups of operators that change together, on levels of which the first has the fewest groups. `changes`
/// appends what operators get where group number `group` makes choice number `choice`, each operator at most once. See `space::coarsening`.
template <class P>
concept OffersCoarsening = requires(P const& p, std::vector<change<problem_configuration_t<P>>>& out, std::size_t group, std::uint64_t choice) {
    { p.coarsening().size() } -> std::convertible_to<std::size_t>;
    { p.coarsening().levels() } -> std::convertible_to<std::size_t>;
    requires InputRange<decltype(p.coarsening().level(group))>;
    { p.coarsening().choices(group) } -> std::convertible_to<std::uint64_t>;
    p.coarsening().changes(group, choice, out);
};

/// `greedy(problem, start, rng, options, observers...)`: sweeps over the operators, giving each the best of its candidate
/// configurations while the others stay (coordinate descent, or best-response dynamics); ties keep what was there.
///
/// - Reason `exhausted`: every configuration of every operator was tried against the result and none is better.
///   Reason `no_improvement`: a whole sweep improved nothing, but some operators have more configurations than candidates.
/// - One evaluation per candidate. Operators whose candidates are all their configurations are not visited again before
///   something has changed. Incremental evaluators get the least cost so far as bound.
/// - With `construct` the first sweep builds a strategy operator by operator: each, in its turn, first lets the operators from it on
///   (in the order of visit) go over together to one of the known strategies, `start` and the problem's `starts()` if it has them, and then
///   takes the best of its candidates. So it joins parts of known strategies, and begins with the best of them. One evaluation more per
///   operator and known strategy that differs from there on.
/// - With `coarse`, and where the problem has a `coarsening()`, groups of operators are visited before single ones, as if each were one: level by
///   level from the coarsest, each level again while a sweep takes a hundredth off the cost, at most ten times. What many operators must do
///   together (all steps of an unrolled layer on other devices, say) is found so, and in few evaluations. (Multilevel refinement, as of graph
///   partitioning: Karypis, Kumar, SIAM J. Sci. Comput. 20, 1998.)
/// - Infeasible costs (`cost_traits::infinity()`) are never improvements: from an infeasible start the search gets away only
///   where a single change is feasible, or with `construct` a known strategy.
/// - Throws `invalid_input` on options out of range, an operator without configurations, a start of the wrong length (of the problem's
///   too), a problem's order that is not a permutation, or a cost that is not a number.
struct greedy_fn {
    static constexpr search_traits traits{.apart = true};

    template <class P, class S, class R, class... Os>
        requires SearchProblem<P, S> && RandomBits<R>
    search_result<S, problem_cost_t<P, S>> operator()(P const& problem, S start, R& rng, greedy_options const& options = {},
                                                      Os&&... observers) const {
        auto const& space = problem.space();
        validate(options);
        auto const projected = project_start(problem, start, "greedy");
        std::size_t const operators = space.size();
        visit_order const how = options.order.value_or(has_order<P> ? visit_order::supplied : visit_order::numbered);
        std::vector<std::size_t> order = order_of(problem, operators, how);
        std::vector<S> known;
        if (options.construct) known = known_strategies(problem, space, start);
        session<P, S, std::remove_reference_t<Os>...> run("greedy", problem, std::move(start), budget_of(options), patience_rule{},
                                                          options.progress_interval, observers...);
        run.count_projected(projected);

        if constexpr (OffersCoarsening<P>)
            if (options.coarse)
                if (auto const reason = visit_coarse<problem_configuration_t<P>>(run, problem.coarsening(), options.candidates, rng))
                    return run.finish(*reason);
        if (!options.single) return run.finish(stop_reason::exhausted);

        std::vector<std::uint64_t> settled(operators, 0);
        std::vector<change<problem_configuration_t<P>>> changes;
        for (;;) {
            if (how == visit_order::shuffled) shuffle(order, rng);
            std::uint64_t const before = run.stats().accepted;
            bool all_tried = true;
            for (std::size_t at = 0; at < operators; ++at) {
                std::size_t const op = order[at];
                for (S const& other : known) {
                    if (auto const reason = run.due()) return run.finish(*reason);
                    try_rest_of(run, other, std::span(order).subspan(at), changes);
                }
                std::uint64_t const choices = choice_count(space, op);
                all_tried = all_tried && choices <= options.candidates;
                auto const one = [&](std::uint64_t index, auto& out) {
                    out.push_back({op, choice(space, op, index)});
                    return proposal_origin{.index = index};
                };
                if (auto const reason = visit(run, settled[op], choices, options.candidates, rng, changes, one)) return run.finish(*reason);
            }
            known.clear(); // it is constructed
            if (run.stats().accepted == before) return run.finish(all_tried ? stop_reason::exhausted : stop_reason::no_improvement);
        }
    }

  private:
    /// Tries the choices of an operator or group, `most` of them where it has more; `changes_of(index, changes)` appends what a choice changes
    /// and answers its origin. `settled`: the number of improvements at which it was last known to be at its best, plus one. Answers why the
    /// search ends with it, if it does.
    template <class Session, class R, class C, class F>
    static std::optional<stop_reason> visit(Session& run, std::uint64_t& settled, std::uint64_t choices, std::uint64_t most, R& rng,
                                            std::vector<change<C>>& changes, F&& changes_of) {
        if (settled == run.stats().accepted + 1) return {};
        bool const all = choices <= most;
        std::vector<std::uint64_t> drawn;
        if (!all) drawn = draw_candidates(choices, most, rng);
        for (std::uint64_t n = 0, end = all ? choices : most; n < end; ++n) {
            if (auto const reason = run.due()) return reason;
            auto const index = all ? n : drawn[static_cast<std::size_t>(n)];
            changes.clear();
            auto const origin = changes_of(index, changes);
            try_changes(run, changes, origin);
        }
        if (all) settled = run.stats().accepted + 1;
        return {};
    }

    /// Why the search ends with it, if it does.
    template <class configuration, class Session, class Coarsening, class R>
    static std::optional<stop_reason> visit_coarse(Session& run, Coarsening coarse, std::uint64_t most, R& rng) {
        using traits = cost_traits<typename Session::cost>;
        constexpr int most_sweeps = 10;
        std::vector<std::uint64_t> settled(static_cast<std::size_t>(coarse.size()), 0);
        std::vector<change<configuration>> changes;
        for (std::size_t level = 0; level < static_cast<std::size_t>(coarse.levels()); ++level)
            for (int sweep = 0; sweep < most_sweeps; ++sweep) {
                auto const before = run.current_cost();
                for (auto const number : coarse.level(level)) {
                    auto const group = static_cast<std::size_t>(number);
                    auto const members = [&](std::uint64_t index, auto& out) {
                        coarse.changes(group, index, out);
                        return proposal_origin{};
                    };
                    auto const choices = static_cast<std::uint64_t>(coarse.choices(group));
                    if (auto const reason = visit(run, settled[group], choices, most, rng, changes, members)) return reason;
                }
                if (!(run.current_cost() < before)) break;
                if (before < traits::infinity() && traits::value(run.current_cost()) > 0.99 * traits::value(before)) break;
            }
        return {};
    }

    // Keeps those of `changes` that change something, where that is better.
    template <class Session, class C> static void try_changes(Session& run, std::vector<change<C>>& changes, proposal_origin const& origin) {
        if constexpr (std::equality_comparable<C>)
            std::erase_if(changes,
                          [&](change<C> const& c) { return static_cast<C const&>(configuration_of(run.current(), c.op)) == c.configuration; });
        if (changes.empty()) return;
        auto const priced = run.propose(changes, run.current_cost(), origin);
        if (priced && *priced < run.current_cost()) run.keep();
        else run.drop();
    }

    template <class P>
    static constexpr bool has_order = requires(P const& p) {
        requires InputRange<decltype(p.order())>;
        requires std::convertible_to<range_value_t<decltype(p.order())>, std::size_t>;
    };

    template <class P, class S>
    static constexpr bool has_starts = requires(P const& p) {
        requires InputRange<decltype(p.starts())>;
        requires std::convertible_to<range_value_t<decltype(p.starts())>, S>;
    };

    // The start, and those of the problem that differ from all before.
    template <class P, class X, class S> static std::vector<S> known_strategies(P const& problem, X const& space, S const& start) {
        std::vector<S> known{start};
        if constexpr (has_starts<P, S>)
            for (auto&& given : problem.starts()) {
                S other(std::forward<decltype(given)>(given));
                require_choices(space, other, "greedy: a start of the problem");
                if (std::find(known.begin(), known.end(), other) == known.end()) known.push_back(std::move(other));
            }
        return known;
    }

    // Gives `operators` their configurations in `other`, where that is better.
    template <class Session, class S, class C>
    static void try_rest_of(Session& run, S const& other, std::span<std::size_t const> operators, std::vector<change<C>>& changes) {
        changes.clear();
        for (auto const op : operators) changes.push_back({op, configuration_of(other, op)});
        try_changes(run, changes, {});
    }

    template <class P> static std::vector<std::size_t> order_of(P const& problem, std::size_t operators, visit_order how) {
        std::vector<std::size_t> order;
        if (how == visit_order::supplied) {
            if constexpr (has_order<P>) {
                std::vector<bool> seen(operators, false);
                for (auto const& given : problem.order()) {
                    auto const op = static_cast<std::size_t>(given);
                    if (op >= operators) throw invalid_input("greedy: the problem's order lists operator number ", op, ": the space has ", operators);
                    if (seen[op]) throw invalid_input("greedy: the problem's order lists operator number ", op, " twice: must be once");
                    seen[op] = true;
                    order.push_back(op);
                }
                if (order.size() != operators)
                    throw invalid_input("greedy: the problem's order lists ", order.size(), " operators: the space has ", operators);
            } else {
                throw invalid_input("greedy: option 'order' is supplied: the problem has no order()");
            }
        } else {
            for (std::size_t op = 0; op < operators; ++op) order.push_back(op);
        }
        return order;
    }

    // Fisher and Yates.
    template <class R> static void shuffle(std::vector<std::size_t>& order, R& rng) {
        for (std::size_t n = order.size(); n > 1; --n) std::swap(order[n - 1], order[static_cast<std::size_t>(uniform_index(rng, n))]);
    }

    // A uniform subset of `count` of [0, choices), ascending: Floyd's algorithm (Bentley and Floyd, A sample of brilliance, 1987).
    template <class R> static std::vector<std::uint64_t> draw_candidates(std::uint64_t choices, std::uint64_t count, R& rng) {
        std::vector<std::uint64_t> out;
        for (std::uint64_t last = choices - count; last < choices; ++last) {
            std::uint64_t const drawn = uniform_index(rng, last + 1);
            auto const at = std::lower_bound(out.begin(), out.end(), drawn);
            if (at != out.end() && *at == drawn) out.push_back(last); // above all drawn before
            else out.insert(at, drawn);
        }
        return out;
    }
};
inline constexpr greedy_fn greedy{};

} // namespace parsearch::search

#ifndef PARSEARCH_COMPILED
#include <parsearch/search/greedy.ipp>
#endif
