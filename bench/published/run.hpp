#pragma once
/// A run of training as it was published, and the pipeline that it stands for.

#include <cstddef>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include <parsearch/core/error.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/graph/fusion.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/pipeline/pipelining.hpp>
#include <parsearch/sim/input/simulation_options.hpp>

#include "../blocks.hpp"

namespace parsearch::pipeline {
NLOHMANN_JSON_SERIALIZE_ENUM(sharded_states, {{sharded_states::none, "nothing"},
                                              {sharded_states::optimizer, "optimizer"},
                                              {sharded_states::parameters, "parameters"}})
} // namespace parsearch::pipeline

namespace parsearch::graph {
NLOHMANN_JSON_SERIALIZE_ENUM(fusion, {{fusion::none, "none"}, {fusion::dropout, "dropout"}, {fusion::compiled, "compiled"}})
} // namespace parsearch::graph

namespace bench {

using parsearch::pipeline::sharded_states;

enum class again : std::uint8_t { none, every_other, all_but_attention, all };
NLOHMANN_JSON_SERIALIZE_ENUM(
    again, {{again::none, "none"}, {again::every_other, "every other"}, {again::all_but_attention, "all but attention"}, {again::all, "all"}})

/// Degrees and micro-batches; of the model and the devices see `main`.
struct published_run {
    std::uint32_t data = 1, tensor = 1, context = 1, groups = 1; ///< groups of devices that stages go round
    std::uint32_t rounds = 1;                                    ///< stages of each: above 1 they are interleaved
    std::uint32_t micro_batch = 1, micro_batches = 1;            ///< samples of a replica at once; how often an iteration
    bench::again again = bench::again::none;                     ///< blocks that are computed again in backward
    sharded_states sharded = sharded_states::none;
    bool sequence_parallel = true; ///< norms, dropouts and sums are split among tensor ranks, else each does all
    parsearch::graph::fusion fusion = parsearch::graph::fusion::none;
    bool f8_products = false; ///< of linear layers

    [[nodiscard]] std::uint32_t replica() const noexcept { return tensor * context * groups; }
    [[nodiscard]] std::uint32_t devices() const noexcept { return replica() * data; }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(published_run, data, tensor, context, groups, rounds, micro_batch, micro_batches, again, sharded,
                                   sequence_parallel, fusion, f8_products)

/// The pipeline of a run: stages of blocks of `g`, as many each as can be. Of what is computed again each block is a segment; the output layer never
/// is.
inline parsearch::pipeline::pipelining pipelining_of(published_run const& run, parsearch::graph::dense_graph const& g) {
    auto const blocks = blocks_of(g);
    parsearch::pipeline::pipelining how{
        .stages = run.groups * run.rounds, .interleaved = run.rounds, .micro_batches = run.micro_batches, .sharded = run.sharded};
    if (how.stages > blocks.count)
        throw parsearch::invalid_input(how.stages, " stages of ", blocks.count, " blocks: must be as many blocks at least");
    how.recompute.assign(how.stages, run.again != again::none);
    for (std::size_t op = 0; op < blocks.of.size(); ++op) {
        auto const block = blocks.behind[op] ? blocks.count : blocks.of[op];
        how.stage.push_back(blocks.of[op] * how.stages / blocks.count);
        if (how.sharded == sharded_states::parameters) how.block.push_back(block);
        if (run.again == again::none) continue;
        how.segment.push_back(block);
        how.kept.push_back(block == blocks.count || (run.again == again::every_other && block % 2 == 0) ||
                           (run.again == again::all_but_attention && g.operations[op].work == parsearch::ops::work_class::attention));
    }
    return how;
}

} // namespace bench
