#pragma once
/// Drawing the proposals of a Metropolis chain: one at a time, or ahead for several threads.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/portable_math.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/search/chain/temperature.hpp>
#include <parsearch/search/kernel/moves.hpp>
#include <parsearch/search/kernel/session.hpp>

namespace parsearch::search {

/// One attempt of a chain to propose something.
template <class C, class Cost> struct drawing {
    std::vector<change<C>> changes; ///< empty: there was nothing to propose
    proposal_origin origin;
    std::optional<Cost> bound; ///< the greatest cost that is accepted; empty where the changes change nothing
};

/// The greatest cost that a Metropolis chain accepts now: min(1, exp((current - new) / t)) > u is new < current + t * E, where E = -log(u) is a
/// standard exponential variate. Draws E in any case; infinity where `current` is infeasible.
template <class C, RandomBits R> [[nodiscard]] C acceptance_bound(C const& current, double temperature, R& rng) {
    using traits = cost_traits<C>;
    double const by = unfused(standard_exponential(rng) * temperature);
    return current < traits::infinity() ? traits::raised(current, by) : traits::infinity();
}

/// Draws from a mix of moves, and with each proposal the greatest cost that the chain will accept.
template <class P, class S> class drawer {
  public:
    using configuration = problem_configuration_t<P>;
    using cost = problem_cost_t<P, S>;
    using mix = decltype(moves_of(std::declval<P const&>()));
    using moves_type = std::optional<mix>; // so that a copy can be put back without assigning moves
    template <class R> static constexpr bool memoryless = mix::template memoryless<space_t<P>, S, R>;

    drawer(std::string_view algorithm, P const& problem) : algorithm_(algorithm), problem_(&problem), mix_(moves_of(problem)) {}

    /// Throws `invalid_input` where a move names an operator that does not exist.
    template <class R> void draw(drawing<configuration, cost>& out, S const& current, cost const& current_cost, double temperature, R& rng) {
        auto const& space = problem_->space();
        out.changes.clear();
        out.bound.reset();
        auto const drawn = (*mix_)(space, current, rng, out.changes);
        if (!drawn || out.changes.empty()) return out.changes.clear();
        for (auto const& c : out.changes)
            if (std::size_t const operators = space.size(); c.op >= operators)
                throw invalid_input(algorithm_, ": move number ", drawn->move, " changed operator number ", c.op, ": the space has ", operators,
                                    " operators");
        out.origin = {.move = drawn->move, .index = drawn->index};
        if (!changes_nothing(current, out.changes)) out.bound = acceptance_bound(current_cost, temperature, rng);
    }

    /// The moves, with what they have learnt.
    [[nodiscard]] moves_type& moves() noexcept { return mix_; }

  private:
    static bool changes_nothing(S const& strategy, std::vector<change<configuration>> const& changes) {
        if constexpr (std::equality_comparable<configuration>)
            for (auto const& c : changes) {
                configuration const& now = configuration_of(strategy, c.op);
                if (!(now == c.configuration)) return false;
            }
        else return false;
        return true;
    }

    std::string_view algorithm_;
    P const* problem_;
    moves_type mix_;
};

/// The drawings of a chain, each when it is needed.
template <class P, class S, class R> class drawn_now {
  public:
    using drawing_type = drawing<problem_configuration_t<P>, problem_cost_t<P, S>>;

    drawn_now(std::string_view algorithm, P const& problem, R& rng) : drawer_(algorithm, problem), rng_(&rng) {}

    /// The next one, of a session in its present state.
    template <class Session> drawing_type const& next(Session& run, temperature_rule const& rule, std::uint64_t) {
        drawer_.draw(drawn_, run.current(), run.current_cost(), rule.at(run.best_cost()), *rng_);
        return drawn_;
    }
    /// The current strategy has changed.
    void restart() {}

  private:
    drawer<P, S> drawer_;
    R* rng_;
    drawing_type drawn_;
};

/// The same drawings, made ahead for a session that prices with a `speculator`: each as it is where all before it are rejected. The engine
/// is in the same state as with `drawn_now` once this is destroyed, however that comes about.
template <class P, class S, class R>
    requires std::copyable<R>
class drawn_ahead {
  public:
    using drawing_type = drawing<problem_configuration_t<P>, problem_cost_t<P, S>>;

    /// Draws at most `most` ahead.
    drawn_ahead(std::string_view algorithm, P const& problem, R& rng, std::size_t most)
        : drawer_(algorithm, problem), rng_(&rng), ahead_(rng), notes_(most + 2, note{.after = rng}) {}
    drawn_ahead(drawn_ahead const&) = delete;
    drawn_ahead& operator=(drawn_ahead const&) = delete;
    ~drawn_ahead() {
        if (taken_ > 0) *rng_ = note_of(taken_ - 1).after;
    }

    /// The next one, of a session in its present state, which stays until the chain has counted `until` proposals or accepts one.
    template <class Session> drawing_type const& next(Session& run, temperature_rule const& rule, std::uint64_t until) {
        if (!rule_) {
            rule_ = rule;
            counted_ = run.stats().proposals;
            if (drawn_ == 0) ahead_ = *rng_; // which starts have been drawn from meanwhile
        }
        auto& prices = run.prices();
        while (drawn_ == taken_ || (counted_ < until && !failed_ && drawn_ - taken_ < notes_.size() - 2 && prices.wants_more())) write_one(run);
        note& n = note_of(taken_++);
        if (n.failure) std::rethrow_exception(n.failure);
        return n.drawn;
    }
    /// The current strategy has changed: what was drawn ahead is void.
    void restart() {
        rule_.reset();
        failed_ = false;
        if (drawn_ == taken_) return;
        drawn_ = taken_;
        ahead_ = note_of(taken_ - 1).after;
        if constexpr (!memoryless) drawer_.moves().emplace(*note_of(taken_ - 1).moves);
    }

  private:
    static constexpr bool memoryless = drawer<P, S>::template memoryless<R>;
    struct nothing {};
    struct note {
        drawing_type drawn{};
        R after; // the engine
        std::conditional_t<memoryless, nothing, typename drawer<P, S>::moves_type> moves{};
        std::exception_ptr failure{};
    };
    // One more than may be ahead, since the engine after the last one taken may be needed.
    [[nodiscard]] note& note_of(std::uint64_t n) { return notes_[n % notes_.size()]; }

    template <class Session> void write_one(Session& run) {
        note& n = note_of(drawn_++);
        n.failure = nullptr;
        try {
            drawer_.draw(n.drawn, run.current(), run.current_cost(), rule_->at(run.best_cost()), ahead_);
        } catch (...) {
            n.failure = std::current_exception();
            failed_ = true;
        }
        n.after = ahead_;
        if constexpr (!memoryless) n.moves.emplace(*drawer_.moves());
        if (n.failure || n.drawn.changes.empty()) return;
        ++counted_;
        if (!n.drawn.bound) return rule_->passed();
        rule_->worsened(false);
        run.prices().write(n.drawn.changes, *n.drawn.bound, run.current_cost() < cost_traits<typename Session::cost>::infinity());
    }

    drawer<P, S> drawer_;
    R* rng_;
    R ahead_;
    std::vector<note> notes_;
    std::optional<temperature_rule> rule_; // as it is where all that is drawn ahead is rejected
    std::uint64_t drawn_ = 0, taken_ = 0, counted_ = 0;
    bool failed_ = false;
};

} // namespace parsearch::search
