#pragma once
/// The blocks of a pipeline whose weights are shared: what moves for each, and which tasks of a micro-batch that replaces.

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/pipeline/zero_sharding.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/sim/task/assemble.hpp>

namespace parsearch::pipeline {

/// A block whose gradients, or parameters too, are shared. Times are picoseconds by resource, of links.
struct shared_block {
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    using link_times = std::vector<std::pair<std::uint32_t, std::int64_t>>; ///< in the order of resources

    std::uint32_t first = none;                ///< task of its synchronisation
    link_times gather{};                       ///< of weights, on every visit,
    link_times reduce{};                       ///< of gradients, once per micro-batch,
    link_times once{};                         ///< and behind all of these
    std::vector<std::uint32_t> contributors{}; ///< backward tasks whose gradients are reduced together, in order
};

struct shared_blocks {
    std::map<std::uint32_t, shared_block> blocks{}; ///< by number; empty where neither gradients nor parameters are shared
    std::vector<bool> waits{};                      ///< of each operator, whether it shares weights
    std::vector<std::uint32_t>
        reduced_with{}; ///< of tasks that synchronise and the backward tasks that they wait for, the block; `shared_block::none`
};

/// Whether task `t` moves data, or joins what does.
[[nodiscard]] inline bool moves(sim::task_graph const& tasks, std::uint32_t t) noexcept {
    auto const kind = tasks.kind[t];
    return kind == sim::task_kind::transfer || kind == sim::task_kind::collective || kind == sim::task_kind::barrier;
}
/// Whether task `t` synchronises gradients. Activations that move along no edge are the barrier between backward and synchronisation that does not
/// overlap.
[[nodiscard]] inline bool synchronises(sim::task_graph const& tasks, std::uint32_t t) noexcept {
    auto const& who = tasks.label[t];
    return moves(tasks, t) && (who.traffic == sim::traffic_kind::weight_gradient ||
                               (who.traffic == sim::traffic_kind::activation && who.edge == sim::task_label::no_edge));
}

namespace detail {
/// Sorts `times`, and makes those of one resource one.
void add_up(shared_block::link_times& times);
} // namespace detail

/// Those of a pipeline in training: `one` is what `sim::assembler` makes of `plan`, the plan of a micro-batch on `devices` devices, whose weights are
/// shared as `sharing` says. To gather and to reduce take half of each all-reduce of the block, one after the other on each link. Complexity: that of
/// sorting the hops of `sharing`.
[[nodiscard]] shared_blocks blocks_with_shared_weights(sim::task_graph const& one, sim::iteration_plan const& plan, std::uint32_t devices,
                                                       pipelining const& how, sharing_plan const& sharing);

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/shared_blocks.ipp>
#endif
