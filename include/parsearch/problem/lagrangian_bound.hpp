#pragma once
/// A lower bound on the strategies of a problem that weighs resources against paths: Lagrangian relaxation.

#include <cstddef>
#include <cstdint>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/problem/problem.hpp>

namespace parsearch {

/// Options of `lagrangian_bound`.
struct lagrangian_options {
    std::uint64_t rounds = 64; ///< in which weights are improved, at least 1
    /// Pairs of configurations that are tabulated over all edges that differ, and an eighth of those over all edges. Edges beyond are left out: the
    /// bound is weaker and still holds.
    std::uint64_t pairs = std::uint64_t{1} << 21;
};

/// Throws `invalid_input` naming the option, its value and the rule.
void validate(lagrangian_options const& o);

/// No strategy of the space of `problem` costs less. 0 where nothing is known: the space has more than 2^18 configurations, or the problem's stop
/// token (`parallelization::until`) is requested before anything is; later the best bound until then is the answer.
///
/// A makespan is at least the mean work of the devices of a kind, that of the links of a kind, and the length of any path of dependences: so it is at
/// least any weighted mean of these. Under fixed weights the least mean over all strategies is that of a sum of terms of one operator and of two
/// neighbours, which `search::additive::minimise` finds exactly. Neither alone says much: what is spread over all devices has little work on each but
/// sends much, what stays together has long paths. Weights are improved from round to round: what takes longest in the strategy found gets more
/// (Held, Karp, Math. Programming 1, 1971; Geoffrion, Math. Programming Study 2, 1974; the weights of paths are a mean of the longest ones found, as
/// of Brown's fictitious play, 1951).
///
/// - A path runs forward from operator to operator, turns at one, and runs back, each step as long as the fastest shard takes with the slowest
/// message
///   that it waits for, and ends with the synchronisation and update of a weight.
/// - Work of a device: shards forward and backward, and updates of weights that one or two operators share. Work of a link: messages, sums of partial
///   results, and the synchronisation of weights that one operator has.
/// - Memory, and the weights that more operators share, are left out. Holds for both disciplines, every movement and synchronisation.
///
/// The same on every platform. Complexity: a plan for each pair of configurations of each edge that differs, and per round the minimisation of an
/// additive cost. Throws `invalid_input` on options out of range, and what the oracle throws.
[[nodiscard]] picoseconds lagrangian_bound(parallelization const& problem, lagrangian_options const& options = {});

} // namespace parsearch

#ifndef PARSEARCH_COMPILED
#include <parsearch/problem/lagrangian_bound.ipp>
#endif
