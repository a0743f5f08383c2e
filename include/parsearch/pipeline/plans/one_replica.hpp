#pragma once
/// Large clusters of like nodes, told by a part of them: replicas that do the same on other samples are planned once.

#include <cstdint>
#include <string>

#include <parsearch/core/compiled.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/problem/problem.hpp>

namespace parsearch::pipeline {

/// The problem of one of `replicas` replicas of `problem`: on its first nodes, with an equal part of its samples, and gradients that all replicas sum
/// up (`simulation_options::replicas`). A plan there costs what `on_all_replicas` of it costs in `problem`, to the picosecond, and takes as long to
/// simulate as on so many nodes:
///
///     auto const part = pipeline::one_replica(problem, 16); // 2,048 nodes, told by 128
///     auto const found = pipeline::partition(part, {}, rng, {.time = 10s});
///     auto const plan = pipeline::on_all_replicas(problem, found.best, 16);
///
/// It has no plan of which a stage, or what one operator of a stage does, is more than a part of the cluster, but for states that are shared over
/// all replicas. Two nodes at least are left. Complexity: linear in operators, and in devices and links of `problem`.
/// Throws `invalid_input` where `topology::require_like_nodes` does, `replicas` is 0, does not divide samples (`samples_of`) or nodes, an operator
/// has no samples or needs those of all replicas at once, synchronisation is not all_reduce, samples are balanced or may be split unevenly, or
/// constraints say how operators are split: these are of all devices.
[[nodiscard]] parallelization one_replica(parallelization const& problem, std::uint32_t replicas);

/// Why `one_replica` refuses, without a full stop; empty where it does not.
[[nodiscard]] std::string not_replicated(parallelization const& problem, std::uint32_t replicas);

/// `plan`, of `one_replica(problem, replicas)`, on all devices of `problem`: each operator in so many times the parts of its samples, part by part on
/// the replicas. Replicas are side by side on the devices of each stage where these are whole nodes and stages share no weights, else one behind
/// the other. Throws `invalid_input` as `one_replica` does, and where the plan is not one of one replica, or would have more than
/// `space::max_shards` shards of an operator. Complexity: linear in all shards.
[[nodiscard]] pipeline_plan on_all_replicas(parallelization const& problem, pipeline_plan plan, std::uint32_t replicas);

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/plans/one_replica.ipp>
#endif
