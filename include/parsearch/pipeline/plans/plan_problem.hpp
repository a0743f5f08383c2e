#pragma once
/// `plan_problem`: the plans of a problem as a problem, on which any search runs.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/partition_options.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/pipeline/plans/plan_maker.hpp>
#include <parsearch/pipeline/plans/plan_space.hpp>
#include <parsearch/pipeline/stage_builder.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/bounds/work_bound.hpp>
#include <parsearch/sim/task/planner.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::pipeline {

namespace detail {

/// What the parts of a problem of plans have in common.
struct planned_problem {
    planned_problem(parallelization p, partition_options const& o, bool tied) : problem(std::move(p)), options(o), space(make_space(tied)) {}

    parallelization problem;
    partition_options options;
    plan_space space;

  private:
    [[nodiscard]] plan_space make_space(bool tied) const;
};

/// What makes and prices plans on one thread.
struct plan_workshop {
    /// `stops`: whether it throws `interrupted` when the problem's token says so.
    plan_workshop(std::shared_ptr<planned_problem const> p, bool stops)
        : of(std::move(p)), builder(stops ? of->problem : of->problem.until({}), of->options.cuts_anywhere),
          maker(of->problem, of->options, of->space, builder) {}
    plan_workshop(plan_workshop const&) = delete; // the maker refers to the builder
    plan_workshop& operator=(plan_workshop const&) = delete;

    /// Nothing where `d` is no plan.
    [[nodiscard]] std::optional<pipeline_plan> plan(plan_decisions const& d) {
        auto const c = maker.stages(d);
        return c ? maker.plan(d, *c) : std::nullopt;
    }

    std::shared_ptr<planned_problem const> of;
    stage_builder builder;
    plan_maker maker;
};

/// Lower bounds on plans some of whose decisions are made: those of the least work of all operators (see `plan_bound`), with the number of
/// micro-batches, and the configurations of operators, as far as they are decided. Stages that are no plan cost infinity.
class plan_bounds {
  public:
    explicit plan_bounds(std::shared_ptr<planned_problem const> of)
        : shop_(std::make_unique<plan_workshop>(std::move(of), true)), chosen_(space().size(), 0), is_fixed_(space().size(), false) {
        for (auto const m : space().micro_batches()) parts_.emplace_back(space(), shop_->builder.simulator().micro_batches(m));
    }

    /// Those of the whole plan first, then those of stages, which say whether it is one.
    [[nodiscard]] std::vector<std::size_t> order() const {
        std::vector<std::size_t> out(chosen_.size());
        std::iota(out.begin(), out.end(), std::size_t{0});
        return out;
    }
    void fix(std::size_t d, std::size_t choice) {
        chosen_[d] = static_cast<std::uint32_t>(choice);
        is_fixed_[d] = true;
        if (d < space().first_of_operators()) ++stages_fixed_;
    }
    void release(std::size_t d) {
        chosen_[d] = 0;
        is_fixed_[d] = false;
        if (d < space().first_of_operators()) --stages_fixed_;
    }
    /// No plan costs less that decides so. Complexity: linear in operators that are not tied, for each number of micro-batches; that of
    /// `plan_maker::stages` where all decisions of stages are made.
    [[nodiscard]] picoseconds value();

  private:
    [[nodiscard]] plan_space const& space() const noexcept { return shop_->of->space; }

    /// The work of one of so many micro-batches.
    class part {
      public:
        part(plan_space const& space, parallelization const& problem);
        /// Of the operators of group `g` of the ties under their choice; where it is none of the problem's space, the least.
        [[nodiscard]] std::int64_t work(std::size_t g, std::uint32_t choice);

      private:
        plan_space const* space_;
        parallelization const* problem_;
        sim::planner planner_;
        std::vector<std::int64_t> least_; ///< by group of the ties
        std::map<std::pair<std::size_t, std::uint32_t>, std::int64_t> known_;
    };

    std::unique_ptr<plan_workshop> shop_;
    std::vector<part> parts_{}; ///< by number of micro-batches
    plan_decisions chosen_;
    std::vector<bool> is_fixed_;
    std::size_t stages_fixed_ = 0;
};
} // namespace detail

/// Prices plans: an `IncrementalEvaluator` and a `BoundedEvaluator` of `plan_decisions`. A cost is that of `pipeline_simulator`, its makespan and
/// what memory is missed; of decisions that are no plan infinity. Plans are made and simulated whole, but what was priced before is known, as are
/// plans that differ in nothing that matters, and what takes longer than the bound by its work alone is not simulated. One object serves one thread.
class plan_evaluator {
  public:
    /// Throws as `pipeline_simulator`.
    explicit plan_evaluator(std::shared_ptr<detail::planned_problem const> of)
        : shop_(std::make_unique<detail::plan_workshop>(std::move(of), true)) {}

    [[nodiscard]] picoseconds operator()(plan_decisions const& d) { return price(d, cost_traits<picoseconds>::infinity()).value(); }
    picoseconds reset(plan_decisions const& d) {
        auto const cost = (*this)(d);
        current_ = d;
        return cost;
    }
    /// The cost of the current plan with `changes`, or nothing where it is above `bound`.
    std::optional<picoseconds> propose(std::span<change<std::uint32_t> const> changes, picoseconds bound) {
        proposed_ = current_;
        for (auto const& c : changes) proposed_[c.op] = c.configuration;
        return price(proposed_, bound);
    }
    void commit() { current_ = proposed_; }
    void roll_back() noexcept {}

    /// Complexity: that of a problem, and of `sim::least_work`, for each number of micro-batches.
    [[nodiscard]] detail::plan_bounds bounds(plan_space const&) const { return detail::plan_bounds(shop_->of); }

  private:
    /// What is known of decisions: their cost, or that it is above one.
    struct known_cost {
        picoseconds cost;
        bool exact;
    };

    std::optional<picoseconds> price(plan_decisions const& d, picoseconds bound);

    static constexpr std::size_t most_known = std::size_t{1} << 14;

    std::unique_ptr<detail::plan_workshop> shop_;
    plan_decisions current_, proposed_;
    std::map<plan_decisions, known_cost> known_; ///< by canonical decisions
};

/// A `SearchProblem`: the plans of a `parallelization`, decision by decision, those of the whole plan (micro-batches, stages, order of launches,
/// shared states, recomputation, activations on hosts: `plan_decision`) like those of operators. Every search that needs no additive costs runs on
/// it:
///
///     plan_problem const plans(problem);
///     auto found = search::mcmc(plans, plans.decisions(partition(problem, {}, rng).best), rng, {.time = 10s});
///     auto plan = plans.plan(found.best);
///
/// Costs are those of `pipeline_simulator`, in picoseconds. Of a plan with micro-batches no change can be priced without all of its tasks: an
/// evaluation takes milliseconds. Cheap to copy.
class plan_problem {
  public:
    /// `options`: what may be chosen; their budget does not count. `tied`: whether operators at the same place of blocks that repeat
    /// (`graph::first_repeats`) have one decision. Throws `invalid_input` on options out of range, and where no operator has work.
    explicit plan_problem(parallelization problem, partition_options const& options = {}, bool tied = true)
        : of_(std::make_shared<detail::planned_problem const>(std::move(problem), options, tied)) {}

    [[nodiscard]] plan_space const& space() const noexcept { return of_->space; }
    /// Throws as `pipeline_simulator`.
    [[nodiscard]] plan_evaluator evaluator() const { return plan_evaluator(of_); }
    [[nodiscard]] std::tuple<plan_move> moves() const { return {}; }
    /// Whether every device can hold what the plan needs of it, or memory is ignored; false where `d` is no plan. Complexity: as `plan`, and a
    /// simulation.
    [[nodiscard]] bool feasible(plan_decisions const& d) const;

    /// The plan that `d` says. Throws `invalid_input` where there is none, or `d` has another number of decisions, or a number out of range.
    /// Complexity: that of a `stage_builder` and of the first plan of as many micro-batches, as nothing is kept from one call to the next.
    [[nodiscard]] pipeline_plan plan(plan_decisions const& d) const;
    /// What `plan` decides: see `plan_maker::decisions`. Complexity: as there, and that of a `stage_builder`, of which nothing is kept, either.
    [[nodiscard]] plan_decisions decisions(pipeline_plan const& plan) const { return detail::plan_workshop(of_, false).maker.decisions(plan); }

  private:
    std::shared_ptr<detail::planned_problem const> of_;
};

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/plans/plan_problem.ipp>
#endif
