#pragma once
/// Plans as decisions: what is chosen once for a whole plan, for a stage, and for an operator.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/graph/blocks.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/pipeline/launch_order.hpp>
#include <parsearch/pipeline/partition_options.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/pipeline/stage_builder.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/problem/tied.hpp>
#include <parsearch/space/strategy_space.hpp>
#include <parsearch/space/textbook/neighbour_split.hpp>

namespace parsearch::pipeline {

/// A plan, in a space of plans: of each decision the number of what is chosen.
using plan_decisions = std::vector<std::uint32_t>;

/// The decisions that are made once for a whole plan, by their numbers. Those of stages and of operators come behind.
enum class plan_decision : std::uint8_t {
    groups,        ///< of devices
    interleaved,   ///< stages on each group
    micro_batches, ///< a divisor of the samples
    order,         ///< of launches
    sharded,       ///< states of weights
    split,         ///< how neighbours in a group share operators beside their samples
    recompute,     ///< whether stages compute activations again
    segments,      ///< of stages that do, or that offload activations
    kept,          ///< of these, the last that keep their activations
    offloaded,     ///< and those, evenly among them, whose activations wait for backward on the host
    joined         ///< blocks at either end of a stage whose weights are gathered together
};
inline constexpr std::size_t plan_wide_decisions = 11;

/// A `ConfigurationSpace` of plans. What a decision may be is told by numbers from 0, whose meaning does not depend on other decisions:
/// - of the whole plan, one of the values listed here;
/// - of each stage, up to as many as there may be: where it begins, in places (`stage_places`) from where stages of equal load would (0: there; odd
///   numbers after, even ones before); its degree of tensor parallelism (0: that of `split`; then `degrees`); whether it computes again (0: as
///   `recompute` says; 1: not so);
/// - of each operator, or of all that constraints tie, or that are tied at one place of blocks that repeat: 0: as the stage's split says; then as
/// each
///   of `splits` would have it; then each configuration of the problem's space, counted from the first device of the stage's group.
/// Not all combinations are plans (`plan_maker`). A decision that means nothing beside others (of a fourth stage where there are two) may be any.
class plan_space {
  public:
    /// `builder`: of `problem`. Throws as `plan_rules` and `operator_ties`. Complexity: that of `stage_builder::degrees` for each number of groups.
    plan_space(parallelization const& problem, detail::stage_builder& builder, partition_options const& options, bool tied);

    [[nodiscard]] std::size_t size() const noexcept { return counts_.size(); }
    /// The numbers that decision `d` may be.
    [[nodiscard]] auto operator[](std::size_t d) const noexcept { return std::views::iota(std::uint32_t{0}, counts_[d]); }

    [[nodiscard]] static constexpr std::size_t number(plan_decision d) noexcept { return static_cast<std::size_t>(d); }
    /// The numbers of the decisions of stage `s`; no decision says where the first begins. `s` < most_stages(), and positive of `beginning_of`.
    [[nodiscard]] std::uint32_t most_stages() const noexcept { return most_stages_; }
    [[nodiscard]] std::size_t beginning_of(std::size_t s) const noexcept { return plan_wide_decisions + s - 1; }
    [[nodiscard]] std::size_t tensor_of(std::size_t s) const noexcept { return plan_wide_decisions + most_stages_ - 1 + s; }
    [[nodiscard]] std::size_t recompute_of(std::size_t s) const noexcept { return plan_wide_decisions + 2 * std::size_t{most_stages_} - 1 + s; }
    /// The first decision of operators: number `g` behind it is of group `g` of `ties`.
    [[nodiscard]] std::size_t first_of_operators() const noexcept { return plan_wide_decisions + 3 * std::size_t{most_stages_} - 1; }
    [[nodiscard]] operator_ties const& ties() const noexcept { return *ties_; }

    // What the numbers mean.
    [[nodiscard]] std::span<std::uint32_t const> groups() const noexcept { return groups_; }
    [[nodiscard]] std::span<std::uint32_t const> interleaved() const noexcept { return interleaved_; }
    [[nodiscard]] std::span<std::uint32_t const> micro_batches() const noexcept { return micro_batches_; }
    [[nodiscard]] std::span<launch_order const> orders() const noexcept { return orders_; }
    [[nodiscard]] std::span<sharded_states const> sharded() const noexcept { return sharded_; }
    [[nodiscard]] std::span<space::neighbour_split const> splits() const noexcept { return splits_; }
    [[nodiscard]] std::span<std::uint32_t const> segments() const noexcept { return segments_; }
    [[nodiscard]] std::span<std::uint32_t const> joined() const noexcept { return joined_; }
    [[nodiscard]] std::span<std::uint32_t const> degrees() const noexcept { return degrees_; }
    /// By how many places a stage begins behind that of equal load, and the number that says so.
    [[nodiscard]] static constexpr std::int64_t shift_of(std::uint32_t choice) noexcept {
        return choice % 2 == 1 ? std::int64_t{choice / 2} + 1 : -std::int64_t{choice / 2};
    }
    [[nodiscard]] static constexpr std::uint32_t number_of_shift(std::int64_t shift) noexcept {
        return static_cast<std::uint32_t>(shift > 0 ? 2 * shift - 1 : -2 * shift);
    }
    [[nodiscard]] space::strategy_space const& strategies() const noexcept { return strategies_; }
    [[nodiscard]] std::size_t devices() const noexcept { return devices_; }

    /// The stages of a plan, which may be more than there may be, and the devices of each group.
    [[nodiscard]] std::uint32_t stages(plan_decisions const& d) const noexcept {
        return groups_[d[number(plan_decision::groups)]] * interleaved_[d[number(plan_decision::interleaved)]];
    }
    [[nodiscard]] std::size_t group(plan_decisions const& d) const noexcept { return devices_ / groups_[d[number(plan_decision::groups)]]; }
    /// Whether a group of `group` neighbours may share operators so.
    [[nodiscard]] bool has(space::neighbour_split by, std::size_t group) const noexcept {
        return group % by.replica() == 0 && std::ranges::find(splits_, by) != splits_.end();
    }

    /// `d` with what means nothing in it at 0: equal for decisions that mean the same, but where two numbers mean one split of an operator, or launch
    /// orders are one.
    [[nodiscard]] plan_decisions canonical(plan_decisions d) const;

  private:
    /// The first operator that each is tied to: by the problem's constraints, and where `blocks` says so in blocks that repeat.
    [[nodiscard]] static std::vector<std::uint32_t> first_of_ties(parallelization const& problem, bool blocks);

    std::size_t devices_, operators_;
    space::strategy_space strategies_;
    std::shared_ptr<operator_ties const> ties_;
    std::uint32_t most_stages_ = 1;
    std::vector<std::uint32_t> groups_, degrees_, interleaved_, micro_batches_, segments_, joined_, counts_;
    std::vector<launch_order> orders_;
    std::vector<sharded_states> sharded_;
    std::vector<space::neighbour_split> splits_;
};

/// Changes one decision that means something in the plan: one of the whole plan, of a stage, or of operators. Decisions that are numbers go a step up
/// or down (places by 1, 2, 4 or 8) as often as anywhere; an operator is split as `splits` say as often as in another way that its group of devices
/// has room for. Where the draw leaves everything as it is, it proposes nothing. A change is not always as likely as its reverse (see
/// `search/kernel/moves.hpp`): one of a whole plan is drawn more often where there is one stage, and of an operator a split more often than one of
/// the many other ways.
struct plan_move {
    static constexpr std::string_view name = "plan";
    static constexpr bool memoryless = true;

    template <RandomBits R>
    bool operator()(plan_space const& space, plan_decisions const& now, R& rng, std::vector<change<std::uint32_t>>& out) const {
        auto const stages = std::min(space.stages(now), space.most_stages());
        auto const what = uniform_index(rng, stages > 1 ? 3 : 2);
        auto const d = what == 0   ? static_cast<std::size_t>(uniform_index(rng, plan_wide_decisions))
                       : what == 1 ? space.first_of_operators() + static_cast<std::size_t>(uniform_index(rng, space.ties().size()))
                                   : of_stage(space, stages, rng);
        auto const count = static_cast<std::uint32_t>(space[d].size());
        if (count == 1) return false;
        auto const to = what == 1                                                     ? of_operator(space, now, d, count, rng)
                        : stages > 1 && is_beginning(space, d) && bernoulli(rng, 0.5) ? shifted(now[d], rng)
                        : is_number(d) && bernoulli(rng, 0.5)                         ? now[d] + (bernoulli(rng, 0.5) ? 1U : ~0U)
                                                                                      : static_cast<std::uint32_t>(uniform_index(rng, count));
        if (to == now[d] || to >= count) return false;
        out.push_back({d, to});
        return true;
    }

  private:
    static bool is_number(std::size_t d) noexcept {
        return d < plan_wide_decisions && d != plan_space::number(plan_decision::order) && d != plan_space::number(plan_decision::sharded) &&
               d != plan_space::number(plan_decision::split);
    }
    static bool is_beginning(plan_space const& space, std::size_t d) noexcept { return d >= plan_wide_decisions && d < space.tensor_of(0); }
    template <class R> static std::size_t of_stage(plan_space const& space, std::uint32_t stages, R& rng) {
        auto const s = static_cast<std::size_t>(uniform_index(rng, stages));
        auto const which = uniform_index(rng, s > 0 ? 3 : 2);
        return which == 0 ? space.tensor_of(s) : which == 1 ? space.recompute_of(s) : space.beginning_of(s);
    }
    template <class R> static std::uint32_t shifted(std::uint32_t from, R& rng) {
        auto const step = std::int64_t{1} << uniform_index(rng, 4);
        return plan_space::number_of_shift(plan_space::shift_of(from) + (bernoulli(rng, 0.5) ? step : -step));
    }
    template <class R>
    static std::uint32_t of_operator(plan_space const& space, plan_decisions const& now, std::size_t d, std::uint32_t count, R& rng) {
        auto const splits = static_cast<std::uint32_t>(space.splits().size());
        if (bernoulli(rng, 0.5)) return static_cast<std::uint32_t>(uniform_index(rng, 1 + splits));
        auto const& all = space.strategies().of(space.ties().of(d - space.first_of_operators()).front());
        auto const group = static_cast<std::int64_t>(space.group(now));
        for (int tries = 0; tries < 100; ++tries) {
            auto const to = static_cast<std::uint32_t>(1 + splits + uniform_index(rng, count - 1 - splits));
            auto const c = all[to - 1 - splits];
            if (c.place(c.shards() - 1) < group) return to; // strides are positive
        }
        return now[d];
    }
};

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/plans/plan_space.ipp>
#endif
