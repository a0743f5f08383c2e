#pragma once
/// Candidates of `partition`, the pipelines that they stand for, and what these take at least.

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/pipeline/stage_cuts.hpp>
#include <parsearch/pipeline/stage_places.hpp>

namespace parsearch::pipeline {

namespace detail {

/// Candidates of `partition`: where stages begin in the topological order, how each runs, and what all share.
struct candidate {
    std::vector<std::size_t> first;    ///< place in the order of each stage's first operator
    std::vector<std::uint32_t> tensor; ///< degree of each stage
    std::vector<bool> recompute;
    std::uint32_t segments = 1;  ///< of each stage that computes again or offloads, where it has as many places to cut
    std::uint32_t kept = 0;      ///< of these, the last that keep their activations; where some are offloaded, evenly
    std::uint32_t offloaded = 0; ///< and those that are offloaded, evenly among them
    std::uint32_t micro_batches = 1;
    std::uint32_t interleaved = 1; ///< stages on each group of devices
    launch_order order = launch_order::one_f_one_b;
    sharded_states sharded = sharded_states::none;
    std::uint32_t experts = 1; ///< see `space::neighbour_split`
    std::uint32_t context = 1;
    std::uint32_t heads = 1;
    std::uint32_t joined = 0; ///< blocks at either end of a stage, see `stage_places::blocks`
    friend auto operator<=>(candidate const&, candidate const&) = default;

    void share(sharded_states states) noexcept {
        sharded = states;
        if (states < sharded_states::gradients) joined = 0;
        if (states >= sharded_states::gradients && cuts_backward(order)) order = launch_order::one_f_one_b;
    }
    /// Groups of devices, each with `interleaved` stages; stage s is of group s % groups().
    [[nodiscard]] std::size_t groups() const noexcept { return first.size() / interleaved; }
    /// The place behind the last operator of stage `s`, of `all` operators.
    [[nodiscard]] std::size_t end(std::size_t s, std::size_t all) const noexcept { return s + 1 < first.size() ? first[s + 1] : all; }
    /// How stage `s` divides its operators.
    [[nodiscard]] space::neighbour_split split(std::size_t s) const noexcept {
        return {.tensor = tensor[s], .experts = experts, .context = context, .heads = heads};
    }
};

/// Makes pipelines of candidates of one problem.
class stage_builder {
  public:
    /// `cuts_anywhere`: stages may begin at any operator, see `stage_places`.
    explicit stage_builder(parallelization const& problem, bool cuts_anywhere = false);

    [[nodiscard]] std::vector<std::uint32_t> const& order() const noexcept { return order_; }
    [[nodiscard]] pipeline_simulator& simulator() noexcept { return simulator_; }
    [[nodiscard]] std::size_t devices() const noexcept { return topology_->size(); }
    [[nodiscard]] stage_places const& places() const noexcept { return places_; }
    /// Whether all devices say how fast they copy to their hosts.
    [[nodiscard]] bool may_offload() const {
        return std::ranges::all_of(topology_->devices, [](auto const& d) { return d.host_rate.bytes_per_second > 0; });
    }

    /// Whether groups of `group` neighbours have several nodes, each with several of them: states shared within these are shared otherwise than over
    /// all.
    [[nodiscard]] bool may_share_within_nodes(std::size_t group) const {
        std::map<std::uint32_t, std::size_t> on; // devices by node
        for (std::size_t d = 0; d < group; ++d) ++on[topology_->node[d]];
        return on.size() * replicas_ > 1 && on.size() < group;
    }

    /// The degrees of tensor parallelism for groups of `group` neighbours: divisors whose neighbours share a node, and that divide otherwise than any
    /// smaller one. Complexity: that of `space::strategy_space::nearest` for each divisor, at the first call for a size.
    [[nodiscard]] std::vector<std::uint32_t> const& degrees(std::size_t group);
    /// Whether `space_options::allows` is satisfied by operators of micro-batches on `group` neighbours, which share them as `by` says, and these
    /// have room there. Nothing else may be asked of ways for which it is not. Complexity: O(operators) at the first call for a way.
    [[nodiscard]] bool allows(std::uint32_t micro_batches, std::size_t group, space::neighbour_split by);
    [[nodiscard]] bool allows(candidate const& c) {
        for (std::size_t s = 0; s < c.first.size(); ++s)
            if (!allows(c.micro_batches, devices() / c.groups(), c.split(s))) return false;
        return true;
    }

    /// Over how many of `group` neighbours experts may be split beside tensor parallelism of degree `tensor`: 1, and common divisors with the number
    /// of experts that `tensor` divides. Ascending. `most`: of the others only the largest, and the largest within a node.
    [[nodiscard]] std::vector<std::uint32_t> expert_degrees(std::size_t group, std::uint32_t tensor, bool most = false) const {
        return shared_by(experts_, group, most, tensor);
    }

    /// How positions of sequences may be split over groups of `tensor` neighbours, of `group`: over each divisor of these that divides the
    /// positions. Without tensor parallelism heads are split, too, over all common divisors with them. Ascending. `most`: of heads only over the
    /// largest, and the largest within a node.
    [[nodiscard]] std::vector<space::neighbour_split> context_splits(std::size_t group, std::uint32_t tensor, bool most = false) const;

    /// Whether the space lets `by` split all positions: it may not allow as many shards, or no attributes to be split.
    [[nodiscard]] bool splits_positions(std::uint32_t micro_batches, std::size_t group, space::neighbour_split by) {
        return on_group(micro_batches, group, by).as_wanted;
    }

    /// The strategy of operators of micro-batches on the first `group` devices, which share them as `by` says: the textbook's, or what the space has
    /// nearest to it. Complexity: that of `space::strategy_space::nearest` at the first call for a way.
    [[nodiscard]] space::flat_strategy const& strategy(std::uint32_t micro_batches, std::size_t group, space::neighbour_split by) {
        return on_group(micro_batches, group, by).strategy;
    }

    /// The candidate of stages with equal loads, `interleaved` on each group of devices.
    [[nodiscard]] candidate balanced(std::size_t stages, std::uint32_t interleaved, std::uint32_t micro_batches, space::neighbour_split by);

    /// No less than this takes an iteration of `c`: for some group the work of a device on all micro-batches; before it what must come before any
    /// operator of its stages, after it what must follow the last backward of any, where that is not cut. Complexity: linear in operators, their
    /// inputs and shards.
    [[nodiscard]] std::int64_t least_time(candidate const& c);

    [[nodiscard]] pipeline_plan plan(candidate const& c);

  private:
    /// What operators take on a group of devices, by place in the order.
    struct operator_times {
        std::vector<std::vector<std::uint32_t>> devices;         ///< of each shard, counted in the group
        std::vector<std::vector<std::int64_t>> time;             ///< of a shard, forward and backward, by kind of device
        std::vector<std::int64_t> least_forward, least_backward; ///< of a shard on any kind
        std::vector<std::vector<std::uint32_t>> needed;          ///< edges from operators with work that bring something to every shard
        std::vector<byte_count> bytes;                           ///< that cross before it
        std::vector<std::int64_t> crossing;                      ///< how long they take from one group to the next
    };
    using key = std::tuple<std::uint32_t, std::size_t, space::neighbour_split>; // micro-batches, devices, how they share an operator

    struct group_strategy {
        space::flat_strategy strategy;
        bool as_wanted = true; ///< all operators are split as in the textbook
    };
    /// The textbook strategy of all operators on the first `group` devices, or what the space has nearest to it. Neighbours share dims in the order
    /// of the former, also where the space has another.
    [[nodiscard]] group_strategy const& on_group(std::uint32_t micro_batches, std::size_t group, space::neighbour_split by);

    /// Over how many of `group` neighbours `n` equal things may be split: 1, and common divisors that are multiples of `of`. Ascending. `most`: of
    /// the others only the largest, and the largest within a node.
    [[nodiscard]] std::vector<std::uint32_t> shared_by(std::int64_t n, std::size_t group, bool most, std::uint32_t of = 1) const;

    /// Whether each run of `n` neighbours, counted from device 0, is on one node.
    [[nodiscard]] bool share_nodes(std::uint32_t n) const {
        for (std::size_t d = 0; d < devices(); ++d)
            if (topology_->node[d] != topology_->node[d - d % n]) return false;
        return true;
    }

    /// Adds what the operator at place `i` takes on the devices of the group from `start`.
    void add_work(operator_times const& t, std::size_t i, std::size_t start, std::vector<std::int64_t>& busy) const {
        for (auto const d : t.devices[i]) busy[start + d] = saturating_sum(busy[start + d], t.time[i][topology_->kind[start + d]]);
    }
    /// How long the busiest device of the group from `start` computes each operator.
    [[nodiscard]] std::vector<std::int64_t> busiest(operator_times const& t, std::size_t start) const;

    [[nodiscard]] operator_times const& times(std::uint32_t micro_batches, std::size_t group, space::neighbour_split by);

    /// Whether every shard of the consumer reads something of edge `e`: then it waits for some shard of the producer, and that for it in backward.
    [[nodiscard]] static bool reaches_all(graph::dense_graph const& g, graph::edge const& e, space::flat_strategy const& strategy);

    /// A message from the first device of the first group to that of the second, and in training back.
    [[nodiscard]] std::int64_t crossing_time(byte_count bytes, std::size_t group) const;

    graph::dense_graph const* graph_;
    topology::dense_topology const* topology_;
    cost::any_oracle const* oracle_;
    bool training_;
    std::size_t replicas_;
    pipeline_simulator simulator_;
    std::vector<std::uint32_t> order_; ///< without graph inputs
    std::vector<std::size_t> place_;   ///< of each operator in it
    stage_places places_;
    std::int64_t experts_ = 1;                                  ///< of each mixture
    std::int64_t positions_ = 1, heads_ = 1;                    ///< see `space::positions_of`, `splittable_heads`
    std::map<std::size_t, std::vector<std::uint32_t>> degrees_; ///< by size of a group
    std::map<key, group_strategy> strategies_;
    std::map<key, operator_times> times_;
    std::map<key, bool> allowed_;
};

} // namespace detail

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/stage_builder.ipp>
#endif
