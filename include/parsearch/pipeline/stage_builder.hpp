#pragma once
/// Candidates of `partition`, the pipelines that they stand for, and what these take at least.

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/concepts/cost_oracle.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/pipeline/stage_cuts.hpp>
#include <parsearch/pipeline/stage_places.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

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
    explicit stage_builder(parallelization const& problem, bool cuts_anywhere = false)
        : graph_(&problem.graph()), topology_(&problem.topology()), oracle_(&problem.workload()->oracle), training_(problem.options().training),
          simulator_(problem) {
        for (auto const op : graph_->order)
            if (graph_->operations[op].work != ops::work_class::source) order_.push_back(op);
        place_.resize(graph_->size());
        for (std::size_t i = 0; i < order_.size(); ++i) place_[order_[i]] = i;
        places_ = stage_places(*graph_, order_, cuts_anywhere);
        experts_ = space::experts_of(*graph_);
        positions_ = space::positions_of(*graph_);
        heads_ = space::splittable_heads(*graph_);
    }

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
        return on.size() > 1 && on.size() < group;
    }

    /// The degrees of tensor parallelism for groups of `group` neighbours: divisors whose neighbours share a node, and that divide otherwise than any
    /// smaller one. Complexity: that of `space::strategy_space::nearest` for each divisor, at the first call for a size.
    [[nodiscard]] std::vector<std::uint32_t> const& degrees(std::size_t group) {
        auto const [at, added] = degrees_.try_emplace(group);
        for (std::uint32_t t = 1; added && t <= group; ++t) {
            if (group % t != 0 || !share_nodes(t)) continue;
            auto const alike = [&](std::uint32_t other) { return strategy(1, group, {.tensor = other}) == strategy(1, group, {.tensor = t}); };
            if (std::ranges::none_of(at->second, alike)) at->second.push_back(t);
        }
        return at->second;
    }
    /// Whether `space_options::allows` is satisfied by operators of micro-batches on `group` neighbours, which share them as `by` says, and these
    /// have room there. Nothing else may be asked of ways for which it is not. Complexity: O(operators) at the first call for a way.
    [[nodiscard]] bool allows(std::uint32_t micro_batches, std::size_t group, space::neighbour_split by) {
        auto const& options = simulator_.micro_batches(1).space().options();
        if (!options.allows) return true;
        auto const [at, fresh] = allowed_.try_emplace({micro_batches, group, by}, true);
        if (!fresh) return at->second;
        auto const& s = strategy(micro_batches, group, by);
        auto const& g = simulator_.micro_batches(micro_batches).graph();
        // All strides are positive.
        auto const stays = [&](space::configuration const& c) { return c.place(c.shards() - 1) < static_cast<std::int64_t>(group); };
        return at->second = !space::first_not_allowed(options, g, s) && std::ranges::all_of(order_, [&](auto op) { return stays(s[op]); });
    }
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
    [[nodiscard]] std::vector<space::neighbour_split> context_splits(std::size_t group, std::uint32_t tensor, bool most = false) const {
        std::vector<space::neighbour_split> out;
        for (std::uint32_t c = 2; std::size_t{c} * tensor <= group; ++c) {
            if (group % (std::size_t{c} * tensor) != 0 || positions_ % (std::int64_t{c} * tensor) != 0) continue;
            out.push_back({.tensor = tensor, .context = c});
            if (tensor > 1) continue;
            for (auto const h : shared_by(heads_, c, most))
                if (h > 1) out.push_back({.context = c, .heads = h});
        }
        return out;
    }

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
    [[nodiscard]] candidate balanced(std::size_t stages, std::uint32_t interleaved, std::uint32_t micro_batches, space::neighbour_split by) {
        auto const groups = stages / interleaved, group = devices() / groups;
        auto const& t = times(micro_batches, group, by);
        std::vector<std::vector<std::int64_t>> of_stage;
        for (std::size_t s = 0; s < stages; ++s) of_stage.push_back(busiest(t, s % groups * group));
        return {.first = balanced_cuts(of_stage, t.crossing, places_.of(stages)),
                .tensor = std::vector<std::uint32_t>(stages, by.tensor),
                .recompute = std::vector<bool>(stages, false),
                .micro_batches = micro_batches,
                .interleaved = interleaved,
                .experts = by.experts,
                .context = by.context,
                .heads = by.heads};
    }

    /// No less than this takes an iteration of `c`: for some group the work of a device on all micro-batches; before it what must come before any
    /// operator of its stages, after it what must follow the last backward of any, where that is not cut. Complexity: linear in operators, their
    /// inputs and shards.
    [[nodiscard]] std::int64_t least_time(candidate const& c) {
        auto const stages = c.first.size(), groups = c.groups(), group = devices() / groups;
        std::vector<std::uint32_t> stage(order_.size());
        for (std::size_t s = 0; s < stages; ++s)
            for (auto i = c.first[s]; i < c.end(s, order_.size()); ++i) stage[i] = static_cast<std::uint32_t>(s);
        auto const of = [&](std::size_t i) -> operator_times const& { return times(c.micro_batches, group, c.split(stage[i])); };
        // The longest way that all shards have to wait for, forward to an operator and backward from it.
        std::vector<std::int64_t> head(order_.size(), 0), tail(order_.size(), 0);
        for (std::size_t i = 0; i < order_.size(); ++i)
            for (auto const e : of(i).needed[i]) {
                auto const p = place_[graph_->edges[e].producer];
                head[i] = std::max(head[i], saturating_sum(head[p], of(p).least_forward[p]));
                if (graph_->carries_gradient(graph_->edges[e])) tail[i] = std::max(tail[i], saturating_sum(of(p).least_backward[p], tail[p]));
            }
        std::int64_t least = 0;
        std::vector<std::int64_t> busy(devices());
        for (std::size_t on = 0; on < groups; ++on) {
            auto before = std::numeric_limits<std::int64_t>::max(), after = before;
            std::fill(busy.begin(), busy.end(), 0);
            for (auto s = on; s < stages; s += groups)
                for (auto i = c.first[s]; i < c.end(s, order_.size()); ++i) {
                    before = std::min(before, head[i]);
                    after = std::min(after, graph_->trains[order_[i]] && training_ && !cuts_backward(c.order) ? tail[i] : 0);
                    add_work(of(i), i, on * group, busy);
                }
            auto const most = *std::max_element(busy.begin(), busy.end());
            auto const all =
                most > std::numeric_limits<std::int64_t>::max() / c.micro_batches ? std::numeric_limits<std::int64_t>::max() : most * c.micro_batches;
            least = std::max(least, saturating_sum(saturating_sum(before, all), after));
        }
        return least;
    }

    [[nodiscard]] pipeline_plan plan(candidate const& c) {
        pipeline_plan out;
        auto const stages = c.first.size(), groups = c.groups(), group = devices() / groups;
        out.how = {.stage = std::vector<std::uint32_t>(graph_->size(), 0),
                   .stages = static_cast<std::uint32_t>(stages),
                   .interleaved = c.interleaved,
                   .micro_batches = c.micro_batches,
                   .order = c.order,
                   .recompute = c.recompute,
                   .sharded = c.sharded};
        if (c.sharded >= sharded_states::gradients) {
            out.how.block.assign(graph_->size(), 0);
            auto const blocks = places_.blocks_of_stages(c.first, order_.size(), c.joined);
            for (std::size_t i = 0; i < order_.size(); ++i) out.how.block[order_[i]] = blocks[i];
        }
        out.tensor_parallel = c.tensor;
        out.expert_parallel = c.experts;
        out.context_parallel = c.context;
        out.context_heads = c.heads;
        out.strategy = strategy(c.micro_batches, group, c.split(0));
        for (std::uint32_t s = 0; s < stages; ++s) {
            auto const& of_stage = strategy(c.micro_batches, group, c.split(s));
            auto const end = c.end(s, order_.size());
            for (auto i = c.first[s]; i < end; ++i) {
                out.how.stage[order_[i]] = s;
                out.strategy[order_[i]] = of_stage[order_[i]];
                out.strategy[order_[i]].start += static_cast<std::int32_t>(s % groups * group);
            }
            if ((c.segments > 1 && c.recompute[s]) || c.offloaded > 0) {
                if (out.how.segment.empty()) out.how.segment.assign(graph_->size(), 0);
                auto const& t = times(c.micro_batches, group, c.split(s));
                auto const of_this = [&](auto const& all) { return std::span(all).subspan(c.first[s], end - c.first[s]); };
                auto const cuts = narrow_cuts(of_this(busiest(t, s % groups * group)), of_this(t.bytes), c.segments);
                auto const kept_from = cuts.size() - std::min<std::size_t>(c.kept, cuts.size());
                if (c.kept > 0 && c.recompute[s]) out.how.kept.resize(graph_->size(), false);
                if (c.offloaded > 0) out.how.offloaded.resize(graph_->size(), false);
                for (auto i = c.first[s]; i < end; ++i) {
                    auto const segment = static_cast<std::size_t>(std::upper_bound(cuts.begin(), cuts.end(), i - c.first[s]) - cuts.begin() - 1);
                    out.how.segment[order_[i]] = static_cast<std::uint32_t>(segment);
                    bool const keeps = c.offloaded > 0 ? is_among(segment, c.kept, c.segments) : segment >= kept_from;
                    if (keeps && c.recompute[s]) out.how.kept[order_[i]] = true;
                    if (is_among(segment, c.offloaded, c.segments)) out.how.offloaded[order_[i]] = true;
                }
            }
        }
        return out;
    }

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
    [[nodiscard]] group_strategy const& on_group(std::uint32_t micro_batches, std::size_t group, space::neighbour_split by) {
        auto const at = strategies_.find({micro_batches, group, by});
        if (at != strategies_.end()) return at->second;
        auto const& micro = simulator_.micro_batches(micro_batches);
        auto const wanted = split_among_neighbours(micro, group, by);
        group_strategy out{.strategy = micro.space().nearest(wanted)};
        for (std::size_t op = 0; op < wanted.size(); ++op)
            if (out.strategy[op].degree == wanted[op].degree) out.strategy[op] = wanted[op];
            else out.as_wanted = false;
        return strategies_.emplace(key{micro_batches, group, by}, std::move(out)).first->second;
    }

    /// Over how many of `group` neighbours `n` equal things may be split: 1, and common divisors that are multiples of `of`. Ascending. `most`: of
    /// the others only the largest, and the largest within a node.
    [[nodiscard]] std::vector<std::uint32_t> shared_by(std::int64_t n, std::size_t group, bool most, std::uint32_t of = 1) const {
        std::vector<std::uint32_t> out;
        auto const all = static_cast<std::uint32_t>(std::gcd(n, static_cast<std::int64_t>(group)));
        for (auto e = all; e > 1; --e)
            if (all % e == 0 && e % of == 0 && (!most || out.empty() || share_nodes(e))) {
                out.push_back(e);
                if (most && share_nodes(e)) break;
            }
        out.push_back(1);
        std::ranges::reverse(out);
        return out;
    }

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
    [[nodiscard]] std::vector<std::int64_t> busiest(operator_times const& t, std::size_t start) const {
        std::vector<std::int64_t> out, busy(devices());
        for (std::size_t i = 0; i < order_.size(); ++i) {
            std::fill(busy.begin(), busy.end(), 0);
            add_work(t, i, start, busy);
            out.push_back(*std::max_element(busy.begin(), busy.end()));
        }
        return out;
    }

    [[nodiscard]] operator_times const& times(std::uint32_t micro_batches, std::size_t group, space::neighbour_split by) {
        if (auto const at = times_.find({micro_batches, group, by}); at != times_.end()) return at->second;
        auto const& of_all = strategy(micro_batches, group, by);
        auto const& plan = simulator_.plan_micro_batch(micro_batches, of_all);
        auto const& g = simulator_.micro_batches(micro_batches).graph();
        operator_times out;
        for (auto const op : order_) {
            auto const& p = plan.operators[op];
            bool const backward = g.trains[op] && training_;
            out.devices.push_back(p.devices);
            out.time.push_back(p.forward);
            for (std::size_t k = 0; backward && k < p.forward.size(); ++k) out.time.back()[k] = saturating_sum(p.forward[k], p.backward[k]);
            out.least_forward.push_back(*std::min_element(p.forward.begin(), p.forward.end()));
            out.least_backward.push_back(backward ? *std::min_element(p.backward.begin(), p.backward.end()) : 0);
            auto& needed = out.needed.emplace_back();
            for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e)
                if (g.operations[g.edges[e].producer].work != ops::work_class::source && reaches_all(g, g.edges[e], of_all)) needed.push_back(e);
        }
        out.bytes = graph::crossing_sums(g, order_, [&](auto op, auto slot) { return ops::bytes_of(g.operations[op].outputs[slot]); });
        for (auto const b : out.bytes) out.crossing.push_back(group < devices() ? crossing_time(b / static_cast<byte_count>(group), group) : 0);
        return times_.emplace(key{micro_batches, group, by}, std::move(out)).first->second;
    }

    /// Whether every shard of the consumer reads something of edge `e`: then it waits for some shard of the producer, and that for it in backward.
    [[nodiscard]] static bool reaches_all(graph::dense_graph const& g, graph::edge const& e, space::flat_strategy const& strategy) {
        auto const& to = g.operations[e.consumer];
        auto const& c = strategy[e.consumer];
        if (to.inputs[e.input].summed) return false; // a share of the partial sums may be empty
        for (std::int64_t n = 0; n < c.shards(); ++n)
            if (ops::shard_elements(to.inputs[e.input], ops::shard_box(to, c.degrees(), n)) == 0) return false;
        return true;
    }

    /// A message from the first device of the first group to that of the second, and in training back.
    [[nodiscard]] std::int64_t crossing_time(byte_count bytes, std::size_t group) const {
        auto const one_way = [&](std::size_t a, std::size_t b) {
            std::int64_t slowest = 0;
            for (auto const l : topology_->route(a, b))
                slowest = std::max(slowest, static_cast<std::int64_t>(oracle_->transfer_time(bytes, topology_->links[l]).count()));
            return slowest;
        };
        return saturating_sum(one_way(0, group), training_ ? one_way(group, 0) : 0);
    }

    graph::dense_graph const* graph_;
    topology::dense_topology const* topology_;
    cost::any_oracle const* oracle_;
    bool training_;
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
