#pragma once
/// The options of the simulation.

#include <array>

#include <parsearch/io/described/described.hpp>
#include <parsearch/sim/input/simulation_options.hpp>

namespace parsearch::io {

template <> inline constexpr auto enumerators<sim::movement> = std::array{sim::movement::pairwise, sim::movement::collective, sim::movement::grouped};
template <> inline constexpr auto enumerators<sim::discipline> = std::array{sim::discipline::fifo, sim::discipline::in_order};
template <>
inline constexpr auto enumerators<sim::synchronisation> = std::array{sim::synchronisation::all_reduce, sim::synchronisation::parameter_server};
template <>
inline constexpr auto enumerators<sim::memory_policy> =
    std::array{sim::memory_policy::ignore, sim::memory_policy::penalise, sim::memory_policy::reject};
template <> inline constexpr auto enumerators<sim::optimizer> = std::array{sim::optimizer::sgd, sim::optimizer::momentum, sim::optimizer::adam};
template <>
inline constexpr auto enumerators<sim::gradient_type> =
    std::array{sim::gradient_type::of_weights, sim::gradient_type::f32_of_bf16, sim::gradient_type::f32};

template <>
inline constexpr auto enumerators<sim::transfer_model> = std::array{sim::transfer_model::streaming, sim::transfer_model::store_and_forward,
                                                                    sim::transfer_model::cut_through, sim::transfer_model::fair_sharing};

template <>
inline constexpr auto described<sim::simulation_options> = boost::hana::make_tuple(
    field("training", &sim::simulation_options::training, "forward, backward and update; false: forward only, as in inference"),
    field("optimizer", &sim::simulation_options::optimizer,
          "the update rule: sgd, momentum and adam keep 0, 1 and 2 values of 4 bytes per parameter"),
    field(
        "gradients", &sim::simulation_options::gradients,
        "gradients of weights are kept and reduced in the type of the weights, in f32 where weights are bf16, or in f32 where they are f16 or bf16"),
    field("memory", &sim::simulation_options::memory,
          "what a strategy that needs more memory than a device has costs: nothing more, memory_penalty per byte over, or infinitely much"),
    field("memory_penalty", &sim::simulation_options::memory_penalty, "picoseconds per byte over a device's memory; 1000 is a second per GB"),
    field("memory_kept_free", &sim::simulation_options::memory_kept_free,
          "share of each device's memory that a plan must leave for fragmentation, kernels and the runtime"),
    field("context_memory", &sim::simulation_options::context_memory,
          "bytes of each device that the runtime and the library of collectives hold, beside that share; 0: they are within it"),
    field("movement", &sim::simulation_options::movement,
          "data between shards: regular patterns as collectives, all others as grouped sends and receives too, or a message per pair of shards as "
          "FlexFlow has it"),
    field("synchronisation", &sim::simulation_options::synchronisation,
          "replicas of a weight all-reduce its gradient, or send it to one of the devices and get the weight back"),
    field("overlap", &sim::simulation_options::overlap,
          "gradients are synchronised while backward runs; false: after the last backward task, as FlexFlow without --overlap"),
    field("discipline", &sim::simulation_options::discipline,
          "a device or link runs its tasks by the time at which they are ready, or in the order of the program as a CUDA stream does"),
    field("balanced", &sim::simulation_options::balanced,
          "where devices are of several kinds, samples are divided as devices are fast: over all devices, or over runs of equally many neighbours"),
    field("transfers", &sim::simulation_options::transfers,
          "a message streams through all links of its route at once, is stored and forwarded from link to link, or is cut through in segments, a "
          "link carrying one at a time; "
          "or all that is on its way shares the links fairly"),
    field("segment", &sim::simulation_options::segment, "bytes of a segment that is cut through"),
    field("replicas", &sim::simulation_options::replicas,
          "model and cluster are one of so many replicas on a larger cluster of such nodes, which do the same on other samples and add up their "
          "gradients"));

} // namespace parsearch::io
