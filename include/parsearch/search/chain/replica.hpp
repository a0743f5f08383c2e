#pragma once
/// The chains of `tempering`: what they do in a round is written down, and told afterwards.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/interruption.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/search/chain/metropolis.hpp>
#include <parsearch/search/kernel/session.hpp>

namespace parsearch::search {

/// What a chain of `tempering` did in one step.
template <class C, class Cost> struct replica_step {
    std::vector<change<C>> changes; // the first alone, where it was not accepted
    proposal_origin origin;
    std::optional<Cost> priced;
    bool evaluated = false, accepted = false;
    std::exception_ptr failure{};
};

/// What is known of a chain of `tempering`: its strategy as far as that was told, and what it did in this round.
template <class P, class S> class replica_log {
  public:
    using cost = problem_cost_t<P, S>;
    using configuration = problem_configuration_t<P>;
    using step_type = replica_step<configuration, cost>;

    replica_log(S const& start, cost const& known) : told(start), told_cost(known), at(known) {}

    [[nodiscard]] step_type const& step(std::size_t n) const { return written_[n]; }
    [[nodiscard]] bool failed() const { return steps > 0 && written_[steps - 1].failure; }
    /// Steps of this round that were priced.
    [[nodiscard]] std::uint64_t priced_steps() const {
        auto const all = std::span(written_).first(steps);
        return static_cast<std::uint64_t>(std::count_if(all.begin(), all.end(), [](auto const& s) { return s.evaluated; }));
    }
    /// Forgets what comes behind the first `evaluations` of them, as if no more had been asked for.
    void forget_behind(std::uint64_t evaluations) {
        std::size_t kept = 0;
        for (; evaluations > 0; ++kept)
            if (written_[kept].evaluated) --evaluations;
        steps = kept;
        exhausted = false;
    }
    /// A step behind those of this round, to be written.
    [[nodiscard]] step_type& next_step() {
        if (steps == written_.size()) written_.emplace_back();
        auto& step = written_[steps++];
        step.changes.clear();
        step.origin = {};
        step.priced.reset();
        step.evaluated = step.accepted = false;
        step.failure = nullptr;
        return step;
    }

    std::size_t steps = 0; ///< written down in this round
    bool exhausted = false;
    S told;         ///< the current strategy as far as it was told,
    cost told_cost; ///< and its cost
    cost at;        ///< cost of the current strategy

  protected:
    std::vector<step_type> written_;
};

/// A chain of `tempering`, with an evaluator and an engine of its own.
template <class P, class S> class replica : public replica_log<P, S> {
    using base = replica_log<P, S>;
    using base::written_;

  public:
    using cost = problem_cost_t<P, S>;
    using configuration = problem_configuration_t<P>;
    using base::at, base::exhausted, base::steps, base::told;
    /// What it has learnt is in its strategy and its engine alone.
    static constexpr bool memoryless = drawer<P, S>::template memoryless<split_mix>;

    replica(P const& problem, S const& start, cost const& known, split_mix rng)
        : base(start, known), problem_(&problem), drawer_("tempering", problem), rng_(rng) {}

    [[nodiscard]] split_mix const& engine() const noexcept { return rng_; }

    /// Takes `evaluations` steps that are priced, or less where `halted()` or where there is nothing to propose, and writes down all of them.
    template <class Halted> void walk(double temperature, std::uint64_t evaluations, std::uint64_t most_idle, Halted const& halted) noexcept {
        steps = 0;
        std::uint64_t idle = 0;
        bool pricing = false; // the last step
        try {
            if (!prices_) {
                prices_.emplace(*problem_, told);
                if constexpr (pricer<P, S>::incremental) static_cast<void>(prices_->price());
            }
            for (std::uint64_t n = 0; n < evaluations && idle <= most_idle && !halted();) {
                drawer_.draw(drawn_, prices_->current(), at, temperature, rng_);
                if (drawn_.changes.empty()) {
                    ++idle;
                    continue;
                }
                auto& step = base::next_step();
                if (!drawn_.bound) {
                    ++idle;
                    note(step, false);
                    continue;
                }
                idle = 0;
                ++n;
                step.evaluated = true;
                note(step, false);
                pricing = true;
                auto const priced = prices_->propose(drawn_.changes, *drawn_.bound);
                pricing = false;
                step.priced = priced;
                using traits = cost_traits<cost>;
                if (priced && !(*priced >= traits::infinity() && at < traits::infinity())) {
                    prices_->keep();
                    at = *priced;
                    note(step, true);
                } else {
                    prices_->drop();
                }
            }
        } catch (interrupted const&) {
            if (!halted()) fail(pricing); // by a token of the problem's own
            else if (pricing) --steps;    // as if it had halted before this step
        } catch (...) {
            fail(pricing);
        }
        exhausted = idle > most_idle;
    }

  private:
    /// Writes down what was thrown: in the last step, which was to be priced, or behind it.
    void fail(bool pricing) {
        if (!pricing) static_cast<void>(base::next_step());
        written_[steps - 1].failure = std::current_exception();
    }
    void note(replica_step<configuration, cost>& step, bool accepted) {
        step.origin = drawn_.origin;
        step.accepted = accepted;
        step.changes.clear();
        for (auto const& c : std::span(drawn_.changes).first(accepted ? drawn_.changes.size() : 1)) step.changes.push_back(c);
    }

    P const* problem_;
    std::optional<pricer<P, S>> prices_;
    drawer<P, S> drawer_;
    split_mix rng_;
    drawing<configuration, cost> drawn_;
};

} // namespace parsearch::search
