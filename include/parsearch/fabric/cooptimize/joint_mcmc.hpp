#pragma once
/// Markov chain Monte Carlo over strategy and wiring at once.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/portable_math.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/fabric/cooptimize/co_optimize.hpp>
#include <parsearch/fabric/servers/fabric_problem.hpp>
#include <parsearch/fabric/wiring/rewire_moves.hpp>
#include <parsearch/search/chain/metropolis.hpp>
#include <parsearch/search/chain/temperature.hpp>
#include <parsearch/search/kernel/events.hpp>
#include <parsearch/search/kernel/notify.hpp>
#include <parsearch/search/kernel/search_options.hpp>
#include <parsearch/search/kernel/session.hpp>
#include <parsearch/search/kernel/stopping.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::fabric {

/// Options of `joint_mcmc`. Without a budget it ends by itself, through its patience.
struct joint_mcmc_options {
    std::optional<std::chrono::nanoseconds> time{}; ///< see `search::budget`
    std::optional<std::uint64_t> evaluations{};     ///< see `search::budget`
    std::stop_token stop{};                         ///< see `search::budget`

    double link_share = 0.05;                       ///< of the proposals, those that change the wiring: each makes a cluster anew
    double relative_temperature = 0.002;            ///< as in `search::mcmc_options`, and the rest
    std::optional<double> target_acceptance = 0.02;
    std::uint64_t reset_interval = 500;             ///< goes back to the best every so many proposals; 0: never
    std::optional<double> patience{};
    std::optional<std::uint64_t> min_evaluations{};
};

/// Throws `invalid_input` naming the option, its value and the rule.
inline void validate(joint_mcmc_options const& o) {
    search::require_budget(search::budget_of(o), "joint_mcmc");
    search::require_fraction(o.link_share, "joint_mcmc", "link_share");
    search::require_amount(o.relative_temperature, "joint_mcmc", "relative_temperature");
    if (o.target_acceptance) search::require_fraction(*o.target_acceptance, "joint_mcmc", "target_acceptance");
    if (o.patience) search::require_fraction(*o.patience, "joint_mcmc", "patience");
}

/// `joint_mcmc(problem, start, rng, options, observers...)`: a Metropolis chain whose states are a network and a strategy on it. A proposal changes the strategy, by the moves of
/// the problem, or the wiring: exchanges the ends of two links (`exchange_links`) or replaces a ring (`replace_ring`), one as likely as the other. Both are accepted
/// by one rule: that of `search::mcmc`, with its temperature. What moves in the wiring keeps every server's interfaces and the network connected.
///
/// - Deterministic. Never worse than `start`. Where links moved, the network's name says ", rewired". Every `reset_interval` proposals it goes back to the best.
/// - Reason `exhausted`: there was nothing to propose very many times in a row. No lower bound.
/// - Observers are told `proposed`, `accepted` and `improved` of picoseconds; `move` is 0 for exchanged links, 1 for rings, from 2 on the problem's moves.
/// - Throws `invalid_input` on options out of range, and as `fabric_problem::on` does for `start`.
struct joint_mcmc_fn {
    template <RandomBits R, class... Os>
    search_result<fabric_plan, picoseconds> operator()(fabric_problem const& problem, fabric_plan start, R& rng, joint_mcmc_options const& options = {},
                                                       Os&&... observers) const {
        static_assert(search::observed<picoseconds, std::remove_reference_t<Os>...>::checked);
        validate(options);
        chain run(problem, std::move(start), options);
        return run.walk(rng, [&](auto const& event) { search::notify(event, observers...); });
    }

  private:
    class chain {
      public:
        using strategy = space::flat_strategy;
        using traits = cost_traits<picoseconds>;

        chain(fabric_problem const& problem, fabric_plan start, joint_mcmc_options const& options)
            : problem_(problem), options_(options), limit_(search::budget_of(options), search::patience_of(options, problem.graph().size())),
              rule_({.fixed = {}, .relative = options.relative_temperature, .target_acceptance = options.target_acceptance, .reheat_interval = 0}),
              best_(std::move(start)), now_(make(best_)), current_(best_), cost_(now_.evaluator.reset(current_.strategy)), best_cost_(cost_) {
            out_.stats.evaluations = 1;
            first_links_ = best_.wired.links;
        }

        template <class R, class Tell> search_result<fabric_plan, picoseconds> walk(R& rng, Tell const& tell) {
            std::uint64_t idle = 0;
            std::uint64_t const most_idle = 10'000 + 100 * static_cast<std::uint64_t>(problem_.graph().size());
            std::optional<stop_reason> ended;
            while (!(ended = limit_.due(out_.stats.evaluations)) && idle <= most_idle) {
                bool const rewires = bernoulli(rng, options_.link_share);
                if (rewires ? propose_wiring(rng, tell) : propose_strategy(rng, tell)) {
                    idle = 0;
                    if (options_.reset_interval > 0 && out_.stats.proposals % options_.reset_interval == 0) go_back();
                } else {
                    ++idle;
                }
            }
            out_.best = std::move(best_);
            if (out_.best.wired.links != first_links_) out_.best.wired.name += ", rewired";
            out_.cost = best_cost_;
            out_.reason = ended.value_or(stop_reason::exhausted);
            out_.stats.seconds = std::chrono::duration<double>(limit_.elapsed()).count();
            return std::move(out_);
        }

      private:
        /// What is made of a network. The problem does not move: the drawer refers to it.
        struct place {
            std::unique_ptr<problem_on_network> made;
            sim::delta_simulator evaluator;
            search::drawer<parallelization, strategy> drawer;
        };
        [[nodiscard]] place make(fabric_plan const& plan) const {
            auto made = std::make_unique<problem_on_network>(problem_.on(plan.wired));
            auto const& p = made->problem;
            return {std::move(made), p.evaluator(), search::drawer<parallelization, strategy>("joint_mcmc", p)};
        }

        /// False where there was nothing to propose.
        template <class R, class Tell> bool propose_wiring(R& rng, Tell const& tell) {
            bool const ring = uniform_index(rng, 2) == 1;
            auto changed = ring ? replace_ring(current_.wired, rng) : exchange_links(current_.wired, rng);
            if (!changed) return false;
            double const by = unfused(standard_exponential(rng) * rule_.at(best_cost_));
            auto const bound = cost_ < traits::infinity() ? traits::raised(cost_, by) : traits::infinity();
            fabric_plan next{*std::move(changed), current_.strategy};
            auto there = make(next);
            auto const cost = there.evaluator.reset(next.strategy);
            bool const taken = cost <= bound && !(cost >= traits::infinity() && cost_ < traits::infinity());
            settle(taken, taken ? std::optional(cost) : std::nullopt, 0, ring ? 1 : 0, [&] {
                now_ = std::move(there);
                current_ = std::move(next);
            }, tell);
            return true;
        }
        template <class R, class Tell> bool propose_strategy(R& rng, Tell const& tell) {
            now_.drawer.draw(drawn_, current_.strategy, cost_, rule_.at(best_cost_), rng);
            if (drawn_.changes.empty() || !drawn_.bound) return false;
            auto const priced = now_.evaluator.propose(drawn_.changes, *drawn_.bound);
            bool const taken = priced && !(*priced >= traits::infinity() && cost_ < traits::infinity());
            if (!taken) now_.evaluator.roll_back();
            settle(taken, priced, drawn_.changes.front().op, 2 + drawn_.origin.move, [&] {
                now_.evaluator.commit();
                for (auto const& c : drawn_.changes) current_.strategy[c.op] = c.configuration;
            }, tell);
            return true;
        }

        /// Counts a proposal, and goes there by `go` where it is taken.
        template <class Go, class Tell> void settle(bool taken, std::optional<picoseconds> cost, std::size_t op, std::size_t move, Go const& go, Tell const& tell) {
            ++out_.stats.evaluations;
            ++out_.stats.proposals;
            tell(search::proposed<picoseconds>{out_.stats.evaluations, op, move, cost, best_cost_});
            if (!taken) return rule_.worsened(false);
            auto const before = std::exchange(cost_, *cost);
            go();
            ++out_.stats.accepted;
            out_.stats.trajectory = split_mix(out_.stats.trajectory ^ (out_.stats.proposals << 16 ^ op << 4 ^ move))();
            tell(search::accepted<picoseconds>{out_.stats.evaluations, op, move, cost_, best_cost_});
            if (cost_ < best_cost_) {
                tell(search::improved<picoseconds>{out_.stats.evaluations, op, move, cost_, best_cost_});
                ++out_.stats.improved;
                best_cost_ = cost_;
                best_ = current_;
                limit_.improved(out_.stats.evaluations);
                rule_.improved();
            } else if (before < cost_) {
                rule_.worsened(true);
            } else {
                rule_.passed();
            }
        }
        void go_back() {
            if (!(best_cost_ < cost_) || !(best_cost_ < traits::infinity())) return;
            if (!(current_.wired == best_.wired)) now_ = make(best_);
            current_ = best_;
            cost_ = now_.evaluator.reset(current_.strategy);
        }

        fabric_problem const& problem_;
        joint_mcmc_options const& options_;
        search::stopping limit_;
        search::temperature_rule rule_;
        fabric_plan best_;
        std::vector<network_link> first_links_{};
        place now_;
        fabric_plan current_;
        picoseconds cost_, best_cost_;
        search::drawing<space::configuration, picoseconds> drawn_{};
        search_result<fabric_plan, picoseconds> out_{};
    };
};
inline constexpr joint_mcmc_fn joint_mcmc{};

} // namespace parsearch::fabric
