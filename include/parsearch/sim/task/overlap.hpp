#pragma once
/// Which shards of a consumer read what which shards of a producer made, and the collectives such an edge amounts to.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/sim/task/shard_layout.hpp>

namespace parsearch::sim {

/// Consumer shard `consumer` reads `elements` of what producer shard `producer` holds. Where the producer's shards are
/// partial sums, the consumer reads every one of its share of them and adds.
struct overlap {
    std::uint32_t producer = 0, consumer = 0;
    std::int64_t elements = 0;
};

/// Shards among which data move as one collective: every producer feeds every consumer.
struct exchange {
    std::vector<std::uint32_t> producers, consumers;
    collective_kind forward{}, backward{}; ///< backward moves the gradients the other way
    std::int64_t elements = 0;             ///< of the whole tensor of the collective
    bool partial = false;                  ///< the producers hold partial sums
};

/// The data movement of an edge for given degrees at both ends; independent of placement.
struct overlap_table {
    std::vector<overlap> pairs;                   ///< by consumer, then producer
    std::vector<std::uint32_t> first_of_consumer; ///< pairs of consumer c: [first_of_consumer[c], first_of_consumer[c + 1])
    std::vector<std::uint32_t> by_producer;       ///< pair numbers by producer, then consumer
    std::vector<std::uint32_t> first_of_producer;
    std::vector<exchange> exchanges;
    std::vector<std::int32_t> exchange_of; ///< of each pair; -1: an irregular pattern, moved pair by pair
    bool partial = false;                  ///< consumers add partial sums up
};

namespace detail {

/// Whether along each axis any two of the regions take the same positions or none in common, as parts of a grid do.
[[nodiscard]] bool on_a_grid(shard_regions const& regions, std::span<std::uint32_t const> shards);

/// Among one or more `shards`, whose regions are not empty: 1 = all regions equal, 0 = all pairwise disjoint, nothing = neither.
/// Complexity: O(shards log shards) on a grid, else quadratic where they are disjoint.
[[nodiscard]] std::optional<bool> replicated(shard_regions const& regions, std::span<std::uint32_t const> shards);

} // namespace detail

/// What consumers' shards read of what producers' shards made. Of several copies a shard reads one: of M shards that read the same region (and the
/// same share of partial sums), number j reads copy floor(j * copies / M). Of P partial sums, share k of S has those p of which floor(p * S / P) is
/// k: it may be none. Complexity: O(pairs whose first axes overlap * axes), at most producer shards * consumer shards.
[[nodiscard]] overlap_table find_overlaps(shard_layout const& made, shard_layout const& read);

/// Overlaps of output `made` of `producer` with input `read` of `consumer`.
[[nodiscard]] inline overlap_table find_overlaps(ops::operation const& producer, ops::operand const& made,
                                                 std::span<std::int32_t const> producer_degrees, ops::operation const& consumer,
                                                 ops::operand const& read, std::span<std::int32_t const> consumer_degrees) {
    return find_overlaps(layout_of_output(producer, made, producer_degrees), layout_of_input(consumer, read, consumer_degrees));
}

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/task/overlap.ipp>
#endif
