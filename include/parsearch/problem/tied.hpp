#pragma once
/// A problem in which operators of blocks that repeat have one configuration together.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/blocks.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/kernel/moves.hpp>
#include <parsearch/sim/delta_simulator.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch {

/// Operators that are decided together. Groups are numbered in the order of their first operators, which stand for the others.
class operator_ties {
  public:
    /// `first[op]` is the first operator that `op` is tied to, itself where it is that; `space` is that of all of them. Of those tied together,
    /// operators with other configurations (some are pinned, say) have a group of their own. Throws `invalid_input` where `first` is of another
    /// number of operators, or names one that is not first. Complexity: linear in operators, and comparisons of spaces where they differ.
    operator_ties(std::span<std::uint32_t const> first, space::strategy_space const& space);

    [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
    /// The operators of a group, ascending, at least one.
    [[nodiscard]] std::vector<std::uint32_t> const& of(std::size_t group) const noexcept { return members_[group]; }
    [[nodiscard]] std::uint32_t group_of(std::size_t op) const noexcept { return group_[op]; }
    /// Whether some group has several operators.
    [[nodiscard]] bool any() const noexcept { return members_.size() < group_.size(); }

    /// Of every operator what its group has in `s`, of which there is one per group. Linear, as what follows.
    [[nodiscard]] space::flat_strategy spread(space::flat_strategy const& s) const;
    /// Of every group what its first operator has in `s`.
    [[nodiscard]] space::flat_strategy gather(space::flat_strategy const& s) const;
    /// Whether the operators of each group have one configuration in `s`. Graph inputs, which may have any, are alone.
    [[nodiscard]] bool keeps(space::flat_strategy const& s) const { return spread(gather(s)) == s; }
    /// Whether they have the same degrees, on whatever devices.
    [[nodiscard]] bool splits_alike(space::flat_strategy const& s) const;

  private:
    std::vector<std::uint32_t> group_; ///< of each operator
    std::vector<std::vector<std::uint32_t>> members_;
};

/// A `SearchProblem` whose strategies have a configuration per group of operators of a `parallelization`. Any search that needs no additive costs
/// runs on it:
///
///     tied_parallelization const tied(problem);
///     auto found = search::mcmc(tied, tied.ties().gather(data_parallel(problem)), rng, {.time = 10s});
///     auto plan = tied.ties().spread(found.best);
///
/// Costs are those of `problem`, in picoseconds. A proposal costs what it costs the delta simulator to change all operators of a group. Cheap to
/// copy.
class tied_parallelization {
  public:
    /// As the problem's constraints say (`parallelization::ties`); where these say nothing blocks that repeat are tied: see `graph::first_repeats`.
    explicit tied_parallelization(parallelization problem)
        : tied_parallelization(problem, problem.ties().empty() ? graph::first_repeats(problem.graph()) : problem.ties()) {}
    /// Throws as `operator_ties`.
    tied_parallelization(parallelization problem, std::span<std::uint32_t const> first)
        : problem_(std::move(problem)), ties_(std::make_shared<operator_ties const>(first, problem_.space())) {}

    [[nodiscard]] operator_ties const& ties() const noexcept { return *ties_; }
    [[nodiscard]] parallelization const& problem() const noexcept { return problem_; }

    /// By group: what its operators may have.
    class space_type {
      public:
        space_type(parallelization const& problem, std::shared_ptr<operator_ties const> ties) : space_(problem.space()), ties_(std::move(ties)) {}
        [[nodiscard]] std::size_t size() const noexcept { return ties_->size(); }
        [[nodiscard]] auto operator[](std::size_t group) const { return space_[ties_->of(group).front()]; }
        /// That of all operators.
        [[nodiscard]] space::strategy_space const& whole() const noexcept { return space_; }

      private:
        space::strategy_space space_;
        std::shared_ptr<operator_ties const> ties_;
    };
    [[nodiscard]] space_type space() const { return {problem_, ties_}; }

    /// `StrategyBounds` by group.
    class bounds_type {
      public:
        bounds_type(sim::strategy_bounds bounds, std::shared_ptr<operator_ties const> ties);
        [[nodiscard]] std::vector<std::uint32_t> const& order() const noexcept { return order_; }
        void fix(std::size_t group, std::size_t choice) {
            for (auto const op : ties_->of(group)) bounds_.fix(op, choice);
        }
        void release(std::size_t group) {
            auto const& members = ties_->of(group);
            for (auto n = members.size(); n-- > 0;) bounds_.release(members[n]);
        }
        [[nodiscard]] picoseconds value() { return bounds_.value(); }

      private:
        sim::strategy_bounds bounds_;
        std::shared_ptr<operator_ties const> ties_;
        std::vector<std::uint32_t> order_; ///< of the groups: by their first operators in the bounds' order
    };

    /// An `IncrementalEvaluator`: a delta simulator that is told of each operator.
    class evaluator_type {
      public:
        evaluator_type(sim::delta_simulator simulator, std::shared_ptr<operator_ties const> ties)
            : simulator_(std::move(simulator)), ties_(std::move(ties)) {}
        [[nodiscard]] picoseconds operator()(space::flat_strategy const& s) { return simulator_(ties_->spread(s)); }
        picoseconds reset(space::flat_strategy const& s) { return simulator_.reset(ties_->spread(s)); }
        std::optional<picoseconds> propose(std::span<change<space::configuration> const> changes, picoseconds bound);
        void commit() { simulator_.commit(); }
        void roll_back() noexcept { simulator_.roll_back(); }
        /// Those of the problem, of which a fixed group fixes all its operators.
        [[nodiscard]] bounds_type bounds(space_type const& space) { return {simulator_.bounds(space.whole()), ties_}; }

      private:
        sim::delta_simulator simulator_;
        std::shared_ptr<operator_ties const> ties_;
        std::vector<change<space::configuration>> changes_;
    };
    [[nodiscard]] evaluator_type evaluator() const { return {problem_.evaluator(), ties_}; }
    [[nodiscard]] std::tuple<search::uniform_move> moves() const { return {}; }

    /// Those of the problem that keep the ties.
    [[nodiscard]] std::vector<space::flat_strategy> starts() const;
    /// See `parallelization::project`.
    std::uint64_t project(space::flat_strategy& s) const;
    [[nodiscard]] bool feasible(space::flat_strategy const& s) const { return problem_.feasible(ties_->spread(s)); }

  private:
    parallelization problem_;
    std::shared_ptr<operator_ties const> ties_;
};

} // namespace parsearch

#ifndef PARSEARCH_COMPILED
#include <parsearch/problem/tied.ipp>
#endif
