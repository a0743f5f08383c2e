#pragma once
/// Lower bounds on the makespan with one operator changed, from its shape, its messages and the current schedule: no task is made.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/sim/delta/block_bounds.hpp>
#include <parsearch/sim/delta/block_cache.hpp>
#include <parsearch/sim/delta/block_graph.hpp>
#include <parsearch/sim/delta/engine.hpp>
#include <parsearch/sim/input/simulation_options.hpp>

namespace parsearch::sim {

/// Bounds on what a change of one operator leads to. The parts it is made of must outlive it. See docs/simulation.md for why they hold.
class change_bounds {
  public:
    change_bounds(workload const& w, block_graph const& graph, block_cache& cache)
        : work_(&w), graph_(&graph), cache_(&cache), load_(w.topology.size()) {}

    /// The forward and backward work of the busiest of the devices that an operator runs on as `with` in the place of `now`. `folded`: the
    /// schedule is of classes of resources. Complexity: O(shards).
    [[nodiscard]] std::int64_t device_load(operator_blocks const& now, operator_blocks const& with, engine const& schedule, bool folded);

    /// The earliest makespan with operator `op` as `with` in the place of `now`, or any value above `limit` where it is later than that. `known` has
    /// the facts of the change but not its tails, which are found when they are needed; `schedule` is of the current strategy; `blocks(op)` answers
    /// an operator's blocks with the change. Complexity: O(operators + edges + messages of the operator).
    template <class Blocks>
    [[nodiscard]] std::int64_t earliest(std::uint32_t op, operator_blocks const& now, operator_blocks const& with, path_bounds& known,
                                        engine& schedule, Blocks const& blocks, std::int64_t limit) {
        auto const& g = work_->graph;
        auto const data = arrivals(op, with, known, schedule, blocks, first_difference(op, now, with, schedule, blocks));
        auto const forward = with.shape->shortest_forward, backward = with.shape->shortest_backward;
        auto const done = data.some + forward, last_done = data.last + forward;
        std::int64_t there = 0, back = 0; // what is sure to come between the passes of `op`, and after
        for (auto const e : g.out(op))
            if (returns(e, known)) there = std::max(there, known.round_trip(g.edges[e].consumer));
        for (auto e = g.first_in[op]; e < g.first_in[op + 1] && there > 0; ++e)
            if (goes_on(e, known)) back = std::max(back, known.way_back(g.edges[e].producer));
        if (auto const soon = last_done + there + backward + back; there > 0 && soon > limit) return soon;

        known.find_tails();
        auto earliest = std::max(data.last + known.tail(op), done + known.after_work(op));
        if (earliest > limit) return earliest;

        // Gradients.
        returned_.assign(arrived_.size(), 0);
        std::int64_t last = 0; // when some shard has all of its own
        for (auto const e : g.out(op)) {
            auto const consumer = g.edges[e].consumer;
            auto const& times = cache_->times_of_edge(e, with, blocks(consumer));
            earliest = std::max(earliest, done + times.last_there + known.tail(consumer));
            if (!returns(e, known) || times.producers.empty()) continue;
            auto const between = known.round_trip(consumer);
            for (std::size_t n = 0; n < returned_.size(); ++n)
                returned_[n] = std::max(returned_[n], arrived_[n] + forward + times.producers[n].there + between + times.producers[n].back);
            last = std::max({last, done + least(times.producers, &shard_times::there) + between + times.last_back,
                             last_done + between + least(times.producers, &shard_times::back)});
        }
        if (last == 0 || earliest > limit) return earliest;
        earliest = std::max({earliest, last + backward, *std::max_element(returned_.begin(), returned_.end()) + backward});
        auto const first = *std::min_element(returned_.begin(), returned_.end());
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e) {
            auto const producer = g.edges[e].producer;
            auto const& times = cache_->times_of_edge(e, blocks(producer), with);
            if (!goes_on(e, known) || times.consumers.empty()) continue;
            auto sent = std::max(first + times.last_back, last + least(times.consumers, &shard_times::back));
            for (std::size_t n = 0; n < returned_.size(); ++n) sent = std::max(sent, returned_[n] + times.consumers[n].back);
            earliest = std::max(earliest, sent + backward + known.way_back(producer));
        }
        return earliest;
    }

  private:
    static constexpr auto none = block_graph::none;
    using shard_times = planner::shard_times;

    /// Every shard of the producer waits for gradients along edge `e`; every shard of the consumer sends some.
    [[nodiscard]] bool returns(std::uint32_t e, path_bounds& known) const noexcept {
        return graph_->backward[e].block != none && known.of_edge(e).every_producer;
    }
    [[nodiscard]] bool goes_on(std::uint32_t e, path_bounds& known) const noexcept {
        return graph_->backward[e].block != none && known.of_edge(e).every_consumer;
    }

    [[nodiscard]] static std::int64_t least(std::vector<shard_times> const& shards, std::int64_t shard_times::*member) noexcept {
        return shards.empty()
                   ? 0
                   : (*std::min_element(shards.begin(), shards.end(), [&](auto const& x, auto const& y) { return x.*member < y.*member; })).*member;
    }

    /// When the last message is there; when some shard has all of its own.
    struct arrival {
        std::int64_t last = 0, some = 0;
    };
    /// Before this time the schedule is the current one: no task of the operator that goes or comes is ready, nor a message to it, nor a task
    /// of its class. In order, what comes before the operator stays as it is anyway.
    template <class Blocks>
    [[nodiscard]] std::int64_t first_difference(std::uint32_t op, operator_blocks const& now, operator_blocks const& with, engine& schedule,
                                                Blocks const& blocks) const {
        auto const& g = work_->graph;
        if (work_->options.discipline == discipline::in_order) return 0;
        auto first = std::numeric_limits<std::int64_t>::max();
        bool before = false, after = false; // every shard waits for something
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e) {
            if (graph_->forward[e].block == none) continue;
            auto const& producer = blocks(g.edges[e].producer);
            first = std::min(first, first_end(e, schedule));
            before = before || cache_->shape_of_edge(e, producer, now).every_consumer;
            after = after || cache_->shape_of_edge(e, producer, with).every_consumer;
        }
        if (!before || !after) return 0;
        if (auto const c = work_->class_of[op]; c != none) // its synchronisation may begin with other members
            for (auto const member : work_->classes[c])
                if (member != op && graph_->operators[member].backward != none)
                    first = std::min(first, schedule.least_end(graph_->operators[member].backward));
        return first;
    }
    [[nodiscard]] std::int64_t first_end(std::uint32_t e, engine& schedule) const {
        return schedule.least_end(graph_->operators[work_->graph.edges[e].producer].forward);
    }

    /// Also when each shard has its data, in `arrived_`. `first`: see `first_difference`.
    template <class Blocks>
    [[nodiscard]] arrival arrivals(std::uint32_t op, operator_blocks const& with, path_bounds& known, engine& schedule, Blocks const& blocks,
                                   std::int64_t first) {
        auto const& g = work_->graph;
        arrived_.assign(static_cast<std::size_t>(with.configuration.shards()), 0);
        arrival out;
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e) {
            if (graph_->forward[e].block == none) continue;
            auto const sent = work_->options.discipline == discipline::in_order ? first_end(e, schedule) : first;
            auto const& times = cache_->times_of_edge(e, blocks(g.edges[e].producer), with);
            out.last = std::max(out.last, sent + times.last_there);
            for (std::size_t n = 0; n < times.consumers.size(); ++n) arrived_[n] = std::max(arrived_[n], sent + times.consumers[n].there);
            if (known.of_edge(e).every_consumer) out.some = std::max(out.some, sent + least(times.consumers, &shard_times::there));
        }
        return out;
    }

    workload const* work_;
    block_graph const* graph_;
    block_cache* cache_;
    std::vector<std::int64_t> load_;               ///< what a change adds to each device
    std::vector<std::int64_t> arrived_, returned_; ///< of each shard: when it has its data, and its gradients
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/delta/change_bounds.ipp>
#endif
