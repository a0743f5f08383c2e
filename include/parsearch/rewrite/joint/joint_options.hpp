#pragma once
/// The options of `joint`.

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/rewrite/joint/graph_pricer_options.hpp>
#include <parsearch/rewrite/rules/graph_rule.hpp>

namespace parsearch::rewrite {

class joint_cache;

/// Options of `joint`. It always ends by itself.
struct joint_options {
    std::vector<graph_rule> rules{}; ///< what may become of operators, such as `algebraic_rules()`; none: they stay as they are
    joint_cache* cache = nullptr;    ///< what earlier searches on the same topology remembered, and later ones will; `pricing` is the cache's then

    std::optional<std::chrono::nanoseconds> time{}; ///< see `search::budget`
    std::optional<std::uint64_t> evaluations{};     ///< graphs priced and strategies simulated, at least 1
    std::stop_token stop{};                         ///< see `search::budget`

    /// A graph is followed up while it costs at most `alpha` - 1 times the part of the cost that falls to its segment, by its operators, more than
    /// the best (Unity, section 6.1: 1.05), at least 1.
    double alpha = 1.05;
    std::uint64_t segment_operators = 24; ///< the least of a segment but the last, at least 1
    std::uint64_t segment_graphs = 64;    ///< priced for each kind of segment before the next one
    std::uint64_t beam = 6;               ///< graphs that are simulated in the end, at least 1
    std::uint64_t mapping_views =
        32; ///< configurations per operator among which machine mapping chooses, see `map_operators`; 0: graphs are not mapped
    std::uint64_t mapping_effort = std::uint64_t{1}
                                   << 28;   ///< steps of machine mapping, of all graphs together; no graph is mapped once they are made
    std::uint64_t refinement = 0;           ///< evaluations of mcmc under simulation, from the best of these; 0: none
    std::uint64_t progress_interval = 1000; ///< evaluations from one `search::progress` to the next; 0: none
    bool bound = true;                      ///< bounds the parallelizations of the graph found, see `joint_plan::bound`
    /// How graphs are priced. Where no memory limit is given and the problem does not ignore memory, it is that of the smallest device.
    graph_pricer_options pricing{};
};

/// Throws `invalid_input` naming the option, its value and the rule.
void validate(joint_options const& o);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/joint/joint_options.ipp>
#endif
