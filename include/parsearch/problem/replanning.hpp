#pragma once
/// Searches that weigh what it takes to change to a plan against what the plan gains.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/make_set.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/problem/adapted.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/problem/state_moves.hpp>
#include <parsearch/sim/delta_simulator.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch {

/// A `SearchProblem` whose costs are those of `to` and a share of what it takes to change to a plan:
///
///     replanning const p(problem, plan, smaller, 10'000);         // the next 10,000 iterations pay for the change
///     auto const found = search::mcmc(p, p.start(), rng, {.time = 5s});
///     found.cost;                                                 // an iteration, and a 10,000th of the change
///
/// Any search that needs no bounds and no additive costs runs on it. Costs are picoseconds. Ties of `to` are not kept. Cheap to copy.
class replanning {
  public:
    /// Throws `invalid_input` where `iterations` is 0, and as `state_moves`.
    template <class Operator, class Device, class OtherDevice, Strategy<space::configuration> S, class Name = std::identity>
    replanning(parallelization_of<Operator, Device> const& from, S const& plan, parallelization_of<Operator, OtherDevice> const& to,
               std::uint64_t iterations, Name const& name = {})
        : problem_(to), moves_(std::make_shared<state_moves const>(from, plan, to, name)), start_(adapted(from, plan, to, name).strategy),
          iterations_(iterations, "replanning") {}

    [[nodiscard]] parallelization const& problem() const noexcept { return problem_; }
    /// The strategy nearest to the plan: see `adapted`.
    [[nodiscard]] space::flat_strategy const& start() const noexcept { return start_; }
    /// What it takes to change to `s`.
    [[nodiscard]] moved_states change_to(space::flat_strategy const& s) const {
        auto moves = *moves_;
        return moves(s);
    }

    [[nodiscard]] space::strategy_space const& space() const noexcept { return problem_.space(); }
    [[nodiscard]] auto moves() const { return problem_.moves(); }
    /// `start()`, and those of the problem.
    [[nodiscard]] std::vector<space::flat_strategy> starts() const {
        auto out = problem_.starts();
        out.insert(out.begin(), start_);
        return out;
    }
    std::uint64_t project(space::flat_strategy& s) const { return problem_.project(s); }
    [[nodiscard]] bool feasible(space::flat_strategy const& s) const { return problem_.feasible(s); }

    /// An `IncrementalEvaluator`: a delta simulator, and what each sharing class needs. A proposal costs that of the simulator, and
    /// `state_moves::of_class` of the classes of its operators.
    class evaluator_type {
      public:
        evaluator_type(parallelization const& problem, state_moves moves, paying_iterations iterations)
            : simulator_(problem.evaluator()), work_(problem.workload()), moves_(std::move(moves)), iterations_(iterations) {}

        /// As that of the delta simulator: `s` becomes current where there is none.
        [[nodiscard]] picoseconds operator()(space::flat_strategy const& s) {
            if (now_.empty()) return reset(s);
            return with(simulator_(s), iterations_.share(moves_(s).time.count()));
        }
        picoseconds reset(space::flat_strategy const& s);
        std::optional<picoseconds> propose(std::span<change<space::configuration> const> changes, picoseconds bound);
        void commit();
        void roll_back() noexcept {
            simulator_.roll_back();
            restore();
        }

      private:
        [[nodiscard]] std::int64_t time_of(std::size_t number) {
            return moves_.of_class(number, [&](std::uint32_t op) -> auto const& { return now_[op]; }).time.count();
        }
        [[nodiscard]] static std::int64_t sum_of(std::vector<std::int64_t> const& times) {
            return std::accumulate(times.begin(), times.end(), std::int64_t{0}, saturating_sum);
        }
        [[nodiscard]] static picoseconds with(picoseconds cost, std::int64_t share) {
            return cost == cost_traits<picoseconds>::infinity() ? cost : picoseconds(saturating_sum(cost.count(), share));
        }
        void restore() noexcept {
            for (auto i = before_.size(); i-- > 0;) now_[before_[i].op] = std::move(before_[i].configuration);
            before_.clear();
            changed_.clear();
        }

        static constexpr auto no_class = ~std::uint32_t{0}; // see `sim::workload::class_of`

        sim::delta_simulator simulator_;
        std::shared_ptr<sim::workload const> work_;
        state_moves moves_;
        paying_iterations iterations_;
        space::flat_strategy now_;                         ///< with what is proposed
        std::vector<std::int64_t> time_, next_time_;       ///< of each class, without and with that
        std::vector<std::uint32_t> changed_;               ///< classes of the operators that change
        std::vector<change<space::configuration>> before_; ///< what the changes replaced
    };
    [[nodiscard]] evaluator_type evaluator() const { return {problem_, *moves_, iterations_}; }

  private:
    parallelization problem_;
    std::shared_ptr<state_moves const> moves_;
    space::flat_strategy start_;
    paying_iterations iterations_;
};

} // namespace parsearch

#ifndef PARSEARCH_COMPILED
#include <parsearch/problem/replanning.ipp>
#endif
