#pragma once
/// The Metropolis chain: accepts a proposal that is not much worse. `mcmc` and `fabric::joint_mcmc` are this chain over other states.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/stable_order.hpp>
#include <parsearch/search/chain/temperature.hpp>

namespace parsearch::search {

/// What decides about a chain beside its proposals; see `mcmc_options`.
struct chain_rules {
    temperature_options temperature;
    std::uint64_t reset_interval = 0; ///< proposals from one return to the best to the next; 0: never
    std::uint64_t race_length = 1000; ///< proposals of a round of the race between several starts
    std::uint64_t racing_starts = 0;  ///< starts that race, the cheapest; 0: all
};

namespace detail {
/// A start in the race: the best state of its chain.
template <class S, class C> struct contender {
    S best;
    C cost;
};

/// Keeps the `count` cheapest in `race`, in order of their cost; equal ones stay in their order.
template <class S, class C> void keep_cheapest(std::vector<contender<S, C>>& race, std::size_t count) {
    auto order = stable_order(race.size(), [&](std::size_t a, std::size_t b) { return race[a].cost < race[b].cost; });
    order.resize(std::min(order.size(), count));
    std::vector<contender<S, C>> cheapest;
    for (auto const n : order) cheapest.push_back(std::move(race[n]));
    race = std::move(cheapest);
}
} // namespace detail

/// For a chain with one start.
template <class S> struct no_other_starts {
    [[nodiscard]] static std::optional<S> next() { return {}; }
};

/// Walks until `run`, a `basic_session`, ends it. `drawings.next(run, rule, until)` draws the next proposal, with the greatest cost that is accepted
/// (see `drawn_now`); `drawings.restart()` is told that the current state has changed. The run's start and `others` race: see `mcmc`; `others.next()`
/// answers them one by one, and nothing behind the last. `operators` decides how many draws in a row may propose nothing.
template <class Run, class Drawings, class S, class Others>
[[nodiscard]] auto metropolis(Run& run, Drawings& drawings, S start, Others& others, chain_rules const& rules, std::size_t operators)
    -> search_result<S, typename Run::cost> {
    using cost = typename Run::cost;
    using traits = cost_traits<cost>;
    std::uint64_t const most_idle = 10'000 + 100 * static_cast<std::uint64_t>(operators);
    auto const none = std::numeric_limits<std::uint64_t>::max();
    auto const reset_interval = rules.reset_interval;
    temperature_rule rule(rules.temperature);

    std::vector<detail::contender<S, cost>> race;
    race.push_back({std::move(start), run.current_cost()});
    auto other = others.next();
    if (other) run.count_start();
    for (; other; other = others.next()) {
        if (auto const reason = run.due()) return run.finish(*reason);
        auto const priced = run.consider(*other);
        if (!priced) return run.finish(*run.due());
        race.push_back({*std::move(other), *priced});
    }
    std::size_t racing = 0; // the contender whose chain runs
    std::uint64_t leg = 0, leg_end = none;
    bool away = false; // the current strategy may differ from the contender's best
    auto const begin_round = [&] {
        leg = std::max<std::uint64_t>(1, rules.race_length / race.size());
        leg_end = race.size() > 1 ? run.stats().proposals + leg : none;
        racing = 0;
    };
    auto const go_to_contender = [&] {
        run.go_to(race[racing].best, race[racing].cost);
        away = false;
        rule.improved();
        drawings.restart();
    };
    // Ends the leg of one contender, begins that of the next.
    auto const hand_over = [&] {
        leg_end += leg;
        if (++racing == race.size()) {
            detail::keep_cheapest(race, (race.size() + 1) / 2);
            begin_round();
        }
        go_to_contender();
    };
    if (rules.racing_starts > 0 && race.size() > rules.racing_starts) {
        detail::keep_cheapest(race, rules.racing_starts);
        go_to_contender();
    }
    begin_round();

    std::uint64_t idle = 0; // attempts in a row that had nothing to price
    for (;;) {
        if (auto const reason = run.due()) return run.finish(*reason);
        if (idle > most_idle) return run.finish(stop_reason::exhausted);
        auto const proposals = run.stats().proposals;
        auto& home = race[racing];
        bool const returns = away && reset_interval > 0 && home.cost < traits::infinity();
        auto const next_return = returns ? (proposals / reset_interval + 1) * reset_interval : none;
        auto const& drawn = drawings.next(run, rule, std::min(leg_end, next_return));
        if (drawn.changes.empty()) {
            ++idle;
            continue;
        }
        if (!drawn.bound) {
            ++idle;
            rule.passed();
            run.propose_nothing(drawn.changes.front().op, drawn.origin);
        } else {
            idle = 0;
            cost const before = run.current_cost();
            auto const priced = run.propose(drawn.changes, *drawn.bound, drawn.origin);
            bool const worsens_to_infeasible = priced && *priced >= traits::infinity() && before < traits::infinity();
            if (priced && !worsens_to_infeasible) {
                run.keep();
                away = true;
                if (*priced < home.cost) {
                    home.best = run.current();
                    home.cost = *priced;
                    away = false;
                    rule.improved();
                } else if (before < *priced) {
                    rule.worsened(true);
                } else {
                    rule.passed();
                }
                drawings.restart();
            } else {
                run.drop();
                rule.worsened(false);
            }
        }
        if (run.stats().proposals >= leg_end) {
            hand_over();
        } else if (away && reset_interval > 0 && run.stats().proposals % reset_interval == 0 && home.cost < traits::infinity()) {
            // While nothing feasible is known, going back would only undo the walk.
            run.go_to(home.best, home.cost);
            away = false;
            drawings.restart();
        }
    }
}

} // namespace parsearch::search
