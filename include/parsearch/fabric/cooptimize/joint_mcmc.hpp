#pragma once
/// Markov chain Monte Carlo over strategy and wiring at once.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/fabric/servers/fabric_problem.hpp>
#include <parsearch/fabric/wiring/rewire_moves.hpp>
#include <parsearch/search/chain/metropolis.hpp>
#include <parsearch/search/chain/metropolis_chain.hpp>
#include <parsearch/search/chain/temperature.hpp>
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

    double link_share = 0.05;            ///< of the proposals, those that change the wiring: each makes a cluster anew
    double relative_temperature = 0.002; ///< as in `search::mcmc_options`, and the rest
    std::optional<double> target_acceptance = 0.02;
    std::uint64_t reset_interval = 500; ///< goes back to the best every so many proposals; 0: never
    std::optional<double> patience{};
    std::optional<std::uint64_t> min_evaluations{};
    std::uint64_t progress_interval = 1000; ///< evaluations from one `progress` to the next; 0: none
};

/// Throws `invalid_input` naming the option, its value and the rule.
void validate(joint_mcmc_options const& o);

namespace detail {

/// A change of a plan: of an operator's configuration, or of the wiring.
struct fabric_change {
    std::optional<std::size_t> op;
    std::variant<space::configuration, network> to;
};

/// Prices changes of a plan as `search::pricer` those of a strategy. A new wiring makes a cluster, a problem and a simulator anew.
class fabric_pricer {
  public:
    using cost = picoseconds;
    using changes = std::span<fabric_change const>;
    using drawer = search::drawer<parallelization, space::flat_strategy>;

    fabric_pricer(fabric_problem const& problem, fabric_plan start) : problem_(&problem), current_(std::move(start)), here_(make(current_.wired)) {}

    [[nodiscard]] fabric_plan const& current() const noexcept { return current_; }
    [[nodiscard]] cost price() { return here_.evaluator.reset(current_.strategy); }
    [[nodiscard]] cost look_at(fabric_plan const& plan) { return make(plan.wired).evaluator.reset(plan.strategy); }
    /// Memory does not depend on the wiring.
    [[nodiscard]] bool feasible(fabric_plan const& plan) const { return here_.made->problem.feasible(plan.strategy); }
    void jump(fabric_plan const& to) {
        if (!(to.wired == current_.wired)) here_ = make(to.wired);
        current_ = to;
        static_cast<void>(price());
    }
    [[nodiscard]] std::optional<cost> propose(changes what, cost const& bound);
    void keep();
    void drop() {
        if (there_) there_.reset();
        else here_.evaluator.roll_back();
    }
    /// Draws from the moves of the problem on the current network.
    [[nodiscard]] drawer& moves() noexcept { return here_.draws; }

  private:
    /// What is made of a network. The problem does not move: the drawer refers to it.
    struct place {
        std::unique_ptr<problem_on_network> made;
        sim::delta_simulator evaluator;
        drawer draws;
    };
    [[nodiscard]] place make(network const& wired) const {
        auto made = std::make_unique<problem_on_network>(problem_->on(wired));
        auto const& p = made->problem;
        return {std::move(made), p.evaluator(), drawer("joint_mcmc", p)};
    }

    fabric_problem const* problem_;
    fabric_plan current_;
    place here_;
    std::optional<place> there_; ///< where a wiring is proposed
    network proposed_;
    std::vector<change<space::configuration>> configurations_;
};

/// Draws changes of the wiring, a share of all, and of the strategy.
template <class R> class fabric_drawings {
  public:
    struct drawing {
        std::vector<fabric_change> changes;
        search::proposal_origin origin;
        std::optional<picoseconds> bound;
    };

    fabric_drawings(R& rng, double link_share) : rng_(&rng), link_share_(link_share) {}

    template <class Session> drawing const& next(Session& run, search::temperature_rule const& rule, std::uint64_t) {
        drawn_.changes.clear();
        drawn_.bound.reset();
        if (bernoulli(*rng_, link_share_)) wiring(run, rule.at(run.best_cost()));
        else strategy(run, rule.at(run.best_cost()));
        return drawn_;
    }
    void restart() {}

  private:
    template <class Session> void wiring(Session const& run, double temperature) {
        bool const ring = uniform_index(*rng_, 2) == 1;
        auto changed = ring ? replace_ring(run.current().wired, *rng_) : exchange_wires(run.current().wired, *rng_);
        if (!changed) return;
        drawn_.changes.emplace_back().to = *std::move(changed);
        drawn_.origin = {.move = ring ? std::size_t{1} : std::size_t{0}, .index = {}};
        drawn_.bound = search::acceptance_bound(run.current_cost(), temperature, *rng_);
    }
    /// What changes nothing is not proposed.
    template <class Session> void strategy(Session& run, double temperature) {
        run.prices().moves().draw(of_strategy_, run.current().strategy, run.current_cost(), temperature, *rng_);
        if (!of_strategy_.bound) return;
        for (auto const& c : of_strategy_.changes) drawn_.changes.push_back({c.op, c.configuration});
        drawn_.origin = {.move = 2 + of_strategy_.origin.move, .index = {}};
        drawn_.bound = of_strategy_.bound;
    }

    R* rng_;
    double link_share_;
    drawing drawn_;
    search::drawing<space::configuration, picoseconds> of_strategy_;
};

} // namespace detail

/// `joint_mcmc(problem, start, rng, options, observers...)`: a Metropolis chain whose states are a network and a strategy on it. A proposal changes
/// the strategy, by the moves of the problem, or the wiring: exchanges the ends of two wires (`exchange_wires`) or replaces a ring (`replace_ring`),
/// one as likely as the other. Both are accepted by one rule: that of `search::mcmc`, with its temperature. What moves in the wiring keeps every
/// server's interfaces and the network connected.
///
/// - Deterministic. Never worse than `start`. Where links moved, the network's name says ", rewired". Every `reset_interval` proposals it goes back
/// to the best.
/// - Reasons as of `search::mcmc`. No lower bound.
/// - Observers are told what `search::mcmc` tells, of picoseconds; `move` is 0 for exchanged wires, 1 for rings, which have no `op`, from 2 on the
/// problem's moves.
/// - Throws `invalid_input` on options out of range, and as `fabric_problem::on` does for `start`.
struct joint_mcmc_fn {
    template <RandomBits R, class... Os>
    search_result<fabric_plan, picoseconds> operator()(fabric_problem const& problem, fabric_plan start, R& rng,
                                                       joint_mcmc_options const& options = {}, Os&&... observers) const {
        validate(options);
        auto const operators = problem.graph().size();
        search::basic_session<detail::fabric_pricer, fabric_plan, std::remove_reference_t<Os>...> run(
            "joint_mcmc", [&] { return detail::fabric_pricer(problem, start); }, start, search::budget_of(options),
            search::patience_of(options, operators), options.progress_interval, observers...);
        detail::fabric_drawings<R> drawings(rng, options.link_share);
        auto const links = start.wired.links;
        search::no_other_starts<fabric_plan> others;
        auto found = search::metropolis(run, drawings, std::move(start), others,
                                        {.temperature = {.fixed = {},
                                                         .relative = options.relative_temperature,
                                                         .target_acceptance = options.target_acceptance,
                                                         .reheat_interval = 0},
                                         .reset_interval = options.reset_interval},
                                        operators);
        if (found.best.wired.links != links) found.best.wired.name += ", rewired";
        return found;
    }
};
inline constexpr joint_mcmc_fn joint_mcmc{};

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/cooptimize/joint_mcmc.ipp>
#endif
