#pragma once
/// Exhaustive search: every strategy of the space, one operator changing at a time.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/search/bounds/problem_bounds.hpp>
#include <parsearch/search/kernel/choices.hpp>
#include <parsearch/search/kernel/search_options.hpp>
#include <parsearch/search/kernel/session.hpp>

namespace parsearch::search {

/// Options of `exhaustive`. It ends by itself once it has priced every strategy, which for most spaces is never: give it a budget.
struct exhaustive_options {
    std::optional<std::chrono::nanoseconds> time{}; ///< see `budget`
    std::optional<std::uint64_t> evaluations{};     ///< see `budget`
    std::stop_token stop{};                         ///< see `budget`

    bool bound = true; ///< reports `root_bound` where the problem's evaluator knows one, and ends when it is met

    std::uint64_t progress_interval = 100'000; ///< evaluations from one `progress` to the next; 0: none
};

/// Throws `invalid_input` naming the option, its value and the rule.
inline void validate(exhaustive_options const& o) { require_budget(budget_of(o), "exhaustive"); }

/// The strategies of a space in reflected mixed-radix Gray code: one digit goes up or down by one at a time (Knuth, The Art of Computer
/// Programming 4A, section 7.2.1.1, algorithm H, which finds the digit in constant time).
class gray_code {
  public:
    /// All digits are 0 and count up. A radix is at least 2.
    explicit gray_code(std::vector<std::uint64_t> radix) : radix_(std::move(radix)), digit_(radix_.size(), 0), up_(radix_.size(), true) {
        for (std::size_t n = 0; n <= radix_.size(); ++n) focus_.push_back(n);
    }
    /// Changes one digit and answers its number; nothing where every number has been.
    std::optional<std::size_t> next();
    [[nodiscard]] std::uint64_t digit(std::size_t n) const noexcept { return digit_[n]; }

  private:
    std::vector<std::uint64_t> radix_, digit_;
    std::vector<bool> up_;
    std::vector<std::size_t> focus_;
};

/// `exhaustive(problem, start, rng, options, observers...)`: prices every strategy of the space, and the start.
///
/// - One evaluation per strategy. Incremental evaluators get the few operators that differ from a strategy near by, and the least cost so far as
///   bound.
/// - Reason `proved_optimal`: no strategy of the space, nor `start`, costs less; `lower_bound` equals the cost.
/// - A space is enumerated however large it is, until the budget ends it. Draws nothing from `rng`.
/// - Throws `invalid_input` on options out of range, an operator without configurations, a start of the wrong length, or a cost that is not a
///   number.
struct exhaustive_fn {
    static constexpr search_traits traits{.start_matters = false, .looks_inside = true};
    template <class P, class S, class R, class... Os>
        requires SearchProblem<P, S> && RandomBits<R>
    search_result<S, problem_cost_t<P, S>> operator()(P const& problem, S start, R&, exhaustive_options const& options = {},
                                                      Os&&... observers) const {
        using cost = problem_cost_t<P, S>;
        auto const& space = problem.space();
        validate(options);
        auto const projected = project_start(problem, start, "exhaustive");
        session<P, S, std::remove_reference_t<Os>...> run("exhaustive", problem, std::move(start), budget_of(options), patience_rule{},
                                                          options.progress_interval, observers...);
        run.count_projected(projected);
        auto const bound = options.bound ? root_bound<S>(problem) : std::nullopt;
        std::vector<std::size_t> free; // operators with a choice; the last number changes fastest
        std::vector<std::uint64_t> radix;
        std::vector<change<problem_configuration_t<P>>> changes;
        for (std::size_t op = space.size(); op-- > 0;) {
            changes.push_back({op, choice(space, op, 0)});
            if (choice_count(space, op) < 2) continue;
            free.push_back(op);
            radix.push_back(choice_count(space, op));
        }
        gray_code code(std::move(radix));
        // What differs from the current strategy: changes to as many operators are priced, then the current strategy follows.
        std::vector<std::size_t> differing;
        std::vector<std::uint64_t> anchor(free.size(), 0);
        bool follow = true;
        for (;;) {
            if (bound) run.raise_bound(*bound < run.best_cost() ? *bound : run.best_cost());
            if (bound && !(*bound < run.best_cost())) return run.finish(stop_reason::proved_optimal);
            if (auto const reason = run.due()) return run.finish(*reason);
            if (!changes.empty()) {
                cost const limit = follow ? cost_traits<cost>::infinity() : run.best_cost();
                auto const priced = run.propose(changes, limit, {});
                if (follow || (priced && *priced < run.best_cost())) {
                    run.keep();
                    for (auto const n : differing) anchor[n] = code.digit(n);
                    differing.clear();
                } else {
                    run.drop();
                }
            }
            auto const changed = code.next();
            if (!changed) {
                run.raise_bound(run.best_cost());
                return run.finish(stop_reason::proved_optimal);
            }
            if (std::find(differing.begin(), differing.end(), *changed) == differing.end()) differing.push_back(*changed);
            std::erase_if(differing, [&](std::size_t n) { return code.digit(n) == anchor[n]; });
            follow = differing.size() > most_differing;
            changes.clear();
            for (auto const n : differing) changes.push_back({free[n], choice(space, free[n], code.digit(n))});
        }
    }

  private:
    static constexpr std::size_t most_differing = 3;
};
inline constexpr exhaustive_fn exhaustive{};

} // namespace parsearch::search

#ifndef PARSEARCH_COMPILED
#include <parsearch/search/exhaustive.ipp>
#endif
