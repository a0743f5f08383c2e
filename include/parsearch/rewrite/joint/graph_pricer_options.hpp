#pragma once
/// What pricing graphs may take: the options of `graph_pricer`.

#include <cstddef>
#include <cstdint>
#include <optional>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>

namespace parsearch::rewrite {

/// How much of the time for which weights are synchronised counts: the rest is taken to overlap with backward.
/// Backward reaches the first operators last, so that nothing is left with which their synchronisation overlaps. The makespan of backward and a
/// queue of synchronisations is the largest of sums in which those of the first operators count and the others do not; which is largest depends on
/// the strategy, so that a search asks for several and simulates what comes of each.
struct counted_synchronisation {
    double share = 1; ///< of every operator's, from 0 to 1
    double first =
        0; ///< all of that of the first operators in topological order that are this share, from 0 to 1, of the work under data parallelism
    friend bool operator==(counted_synchronisation const&, counted_synchronisation const&) = default;
};

/// Ways to count synchronisation of which one is usually near the truth: price by each, simulate, and take the best.
inline constexpr counted_synchronisation usual_countings[] = {{1, 0}, {0.5, 0}, {0.25, 0}, {0, 0.75}, {0, 0.5}, {0, 0.25}, {0, 0}};

/// What is priced, and what it may take.
struct graph_pricer_options {
    std::size_t candidates = 24; ///< configurations per operator, at least 1: see `space::likely_configurations`
    counted_synchronisation synchronisation{};
    std::optional<byte_count> memory_limit{};                ///< bytes on each device; see `graph_pricer::price`
    std::uint64_t table_bytes = std::uint64_t{1} << 28;      ///< that elimination's tables may take beside the terms, at least 1 MiB
    std::uint64_t remembered_bytes = std::uint64_t{1} << 30; ///< of tables, from one call to the next, about
    std::uint64_t effort = 1 << 14; ///< where elimination does not fit: 64 partial strategies, or a message of mini-buckets, each
};

/// Throws `invalid_input` naming option, value and rule.
inline void validate(counted_synchronisation const& o) {
    if (!(o.share >= 0 && o.share <= 1)) throw invalid_input("graph_pricer option synchronisation.share is ", o.share, ": must be from 0 to 1");
    if (!(o.first >= 0 && o.first <= 1)) throw invalid_input("graph_pricer option synchronisation.first is ", o.first, ": must be from 0 to 1");
}

/// Throws `invalid_input` naming option, value and rule.
void validate(graph_pricer_options const& o);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/joint/graph_pricer_options.ipp>
#endif
