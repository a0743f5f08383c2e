#pragma once
/// How a network runs as a pipeline: its stages, micro-batches and their order.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/pipeline/launch_order.hpp>

namespace parsearch::pipeline {

/// Which states of a weight the devices that hold copies of it share: each keeps and updates its part alone. Each value but the last shares what
/// those before it do.
enum class sharded_states : std::uint8_t {
    none,
    optimizer,  ///< the optimizer's (ZeRO-1: Rajbhandari et al., ZeRO, SC 2020, section 5.1): all gather what the others updated
    gradients,  ///< and gradients (ZeRO-2, section 5.2 there): reduced and scattered, block by block, once per micro-batch
    parameters, ///< and parameters (ZeRO-3, section 5.3 there; Zhao et al., PyTorch FSDP, VLDB 2023, full sharding): all gather the weights
                ///< of a block ahead of each pass through it, and drop them behind it
    parameters_within_nodes ///< the same among the devices of each node, whose parts are copied across nodes (hybrid sharding, HSDP, there; Zhang et
                            ///< al., MiCS, VLDB 2022): gradients of the parts are all-reduced between nodes, once for all micro-batches
};
inline constexpr std::array all_sharded_states{sharded_states::none, sharded_states::optimizer, sharded_states::gradients, sharded_states::parameters,
                                               sharded_states::parameters_within_nodes};
/// "nothing", "optimizer", "optimizer, gradients" and so on.
[[nodiscard]] constexpr std::string_view listed(sharded_states s) noexcept {
    constexpr std::array<std::string_view, all_sharded_states.size()> names{
        "nothing", "optimizer", "optimizer, gradients", "optimizer, gradients, parameters", "optimizer, gradients, parameters within nodes"};
    return names[static_cast<std::size_t>(s)];
}

/// A pipeline. Each operator's configuration says which devices it runs on: those of its stage's group, if stages are to run at once.
struct pipelining {
    std::vector<std::uint32_t> stage{}; ///< of each operator; that of graph inputs does not matter
    std::uint32_t stages = 1;
    std::uint32_t interleaved = 1; ///< stages that each group of devices runs in turn, see `launch_rule`
    std::uint32_t micro_batches = 1;
    launch_order order = launch_order::one_f_one_b;
    /// By stage, whether it keeps only the inputs of its segments from forward until backward, and computes each segment again right before its
    /// backward (Chen et al., Training deep nets with sublinear memory cost, 2016). Empty: none does.
    std::vector<bool> recompute{};
    /// Of each operator, its segment, what is computed again or offloaded together, counted in any way that rises along the edges within a stage.
    /// Empty: a stage is one segment.
    std::vector<std::uint32_t> segment{};
    /// Of each operator, whether its activations are kept although its stage computes again: selective recomputation (Korthikanti et al., Reducing
    /// activation recomputation in large transformer models, MLSys 2023, section 5). Empty: of none.
    std::vector<bool> kept{};
    sharded_states sharded = sharded_states::none; ///< of each weight, among the devices that hold it
    /// Of each operator, the block with which its weights are gathered and their gradients reduced, counted in any way. Empty: an operator is one.
    std::vector<std::uint32_t> block{};
    /// Of each operator, whether what it keeps from forward until backward is on the host between: all that a segment offloads is copied there behind
    /// its forward, and back ahead of its backward (Rhu et al., vDNN, MICRO 2016). Of an operator that computes again, what it reads from outside of
    /// its segment (Rajbhandari et al., ZeRO-Infinity, SC 2021, section 5.1.2). Empty: of none.
    std::vector<bool> offloaded{};

    [[nodiscard]] launch_rule launching() const noexcept { return {order, stages, micro_batches, interleaved}; }
    [[nodiscard]] std::uint32_t block_of(std::size_t op) const noexcept { return block.empty() ? static_cast<std::uint32_t>(op) : block[op]; }
    [[nodiscard]] std::uint32_t segment_of(std::size_t op) const noexcept { return segment.empty() ? 0 : segment[op]; }
    [[nodiscard]] bool recomputes(std::uint32_t s) const noexcept { return s < recompute.size() && recompute[s]; }
    /// Whether operator `op` does not keep its activations.
    [[nodiscard]] bool computes_again(std::size_t op) const noexcept { return recomputes(stage[op]) && !(op < kept.size() && kept[op]); }
    [[nodiscard]] bool offloads(std::size_t op) const noexcept { return op < offloaded.size() && offloaded[op]; }
    [[nodiscard]] bool offloads() const noexcept { return std::find(offloaded.begin(), offloaded.end(), true) != offloaded.end(); }
    /// A network as it is: one stage and micro-batch, nothing shared, computed again, offloaded or cut.
    [[nodiscard]] bool plain() const noexcept { return runs_once() && sharded == sharded_states::none; }
    /// One stage and micro-batch, nothing computed again, offloaded or cut.
    [[nodiscard]] bool runs_once() const noexcept {
        return stages == 1 && micro_batches == 1 && !recomputes(0) && !cuts_backward(order) && !offloads();
    }
    friend bool operator==(pipelining const&, pipelining const&) = default;
};

/// Families of textbook plans, by what they divide: a number of stages, each with a degree of tensor parallelism.
enum class plan_family : std::uint8_t {
    data,              ///< samples alone, over devices and micro-batches
    sharded_data,      ///< the same, with the optimizer's state shared (ZeRO-1)
    sharded_gradients, ///< and gradients (ZeRO-2)
    fully_sharded,     ///< and parameters (ZeRO-3, FSDP)
    hybrid_sharded,    ///< the same within nodes (HSDP)
    tensor,            ///< operators on neighbours, samples over the rest
    pipeline,          ///< stages, samples over the devices of each
    tensor_pipeline,   ///< stages, and operators within them (Narayanan et al., Megatron-LM, SC 2021)
    experts,           ///< the experts of mixtures, whatever else (Lepikhin et al., GShard, ICLR 2021)
    context            ///< positions of sequences, whatever else (Jacobs et al., DeepSpeed Ulysses, 2023; Dubey et al., Llama 3, 2024)
};
[[nodiscard]] constexpr plan_family family_of(std::uint32_t stages, std::uint32_t tensor, std::uint32_t experts, std::uint32_t context,
                                              sharded_states sharded) noexcept {
    if (context > 1) return plan_family::context;
    if (experts > 1) return plan_family::experts;
    if (stages > 1) return tensor > 1 ? plan_family::tensor_pipeline : plan_family::pipeline;
    if (tensor > 1) return plan_family::tensor;
    constexpr std::array by_states{plan_family::data, plan_family::sharded_data, plan_family::sharded_gradients, plan_family::fully_sharded,
                                   plan_family::hybrid_sharded};
    return by_states[static_cast<std::size_t>(sharded)];
}

/// A pipeline of one stage and one micro-batch: a network as it is.
[[nodiscard]] inline pipelining unpipelined(graph::dense_graph const& g) { return {.stage = std::vector<std::uint32_t>(g.size(), 0)}; }

/// Throws `invalid_input` naming what is wrong: what `validate` says of a `launch_rule`, an operator without a stage, data that go back to an earlier
/// stage or segment, flags of another number of stages, a backward pass that is cut although gradients are sharded or activations offloaded.
void validate(pipelining const& p, graph::dense_graph const& g);

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/pipelining.ipp>
#endif
