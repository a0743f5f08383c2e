#pragma once
/// The options of the search for pipelines.

#include <parsearch/io/described/described.hpp>
#include <parsearch/io/described/described_search.hpp>
#include <parsearch/pipeline/partition_options.hpp>

namespace parsearch::io {

template <>
inline constexpr auto described<pipeline::partition_options> = boost::hana::make_tuple(
    detail::time_field<pipeline::partition_options>(),
    field("evaluations", &pipeline::partition_options::evaluations, "pipelines simulated after which the search ends, at least 1; none: no limit"),
    field("estimates", &pipeline::partition_options::estimates,
          "ways to divide the network (stages, micro-batches, degree) that are estimated before any is simulated; none: all"),
    field("max_stages", &pipeline::partition_options::max_stages, "stages that a pipeline may have, at least 1"),
    field("max_micro_batches", &pipeline::partition_options::max_micro_batches, "micro-batches into which it may divide the samples, at least 1"),
    field("max_interleaved", &pipeline::partition_options::max_interleaved, "stages that each group of devices may run in turn, at least 1"),
    field("recomputation", &pipeline::partition_options::recomputation,
          "whether stages may compute their activations again in backward, to keep fewer"),
    field("offload", &pipeline::partition_options::offload,
          "whether activations may wait for backward in the memory of hosts, where the cluster says how fast devices copy there"),
    field("context_parallel", &pipeline::partition_options::context_parallel,
          "whether positions of sequences may be split over devices, where there are too few samples"),
    field("zero_bubble", &pipeline::partition_options::zero_bubble,
          "whether stages may compute gradients of weights later than those of inputs, where they would wait (zb-h1, zb-h2)"),
    field("sharded_optimizer", &pipeline::partition_options::sharded_optimizer,
          "whether devices that hold the same weights may each keep a share of the optimizer's state"),
    field("sharded_gradients", &pipeline::partition_options::sharded_gradients, "whether they may keep a share of gradients, too (ZeRO-2)"),
    field("sharded_parameters", &pipeline::partition_options::sharded_parameters,
          "whether they may keep a share of parameters and gradients, too, and gather what a block needs (ZeRO-3, FSDP)"),
    field("sharded_within_nodes", &pipeline::partition_options::sharded_within_nodes,
          "whether the devices of each node may share parameters among themselves, with copies across nodes (HSDP)"),
    field("cuts_anywhere", &pipeline::partition_options::cuts_anywhere, "whether stages may begin at any operator, not only between blocks"),
    detail::progress_field<pipeline::partition_options>(),
    field("beam", &pipeline::partition_options::beam, "pipelines that are improved step by step in the end, at least 1"));

} // namespace parsearch::io
