#pragma once
/// Where in an iteration to rewire the links between servers, and how.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <utility>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/fabric/cooptimize/co_optimize.hpp>
#include <parsearch/fabric/cooptimize/phased_simulator.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/fabric/servers/fabric_problem.hpp>
#include <parsearch/fabric/wiring/demand.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::fabric {

/// Options of `rewire_within_iteration`. It ends by itself.
struct phase_options {
    picoseconds reconfiguration_time{}; ///< no movement between servers is on its way meanwhile
    std::uint32_t phases = 4;           ///< the most, at least 1: one wiring
    std::uint32_t cuts = 24;            ///< moments at which rewiring is tried, at least 1
    std::vector<network> wirings{};     ///< tried beside those of the finder, such as that of `co_optimize`
    std::stop_token stop{};             ///< then the answer is the best so far
};

/// Throws `invalid_input` naming the option, its value and the rule.
void validate(phase_options const& o);

/// A part of the iteration, and the wiring of servers meanwhile.
struct wiring_phase {
    network wired;
    time_span time;       ///< from when its links are set until the last of its movements has arrived
    byte_count bytes = 0; ///< that these put on the wire, were each link one hop
};

/// The answer of `rewire_within_iteration`.
struct phased_wiring {
    std::vector<wiring_phase> phases; ///< one: the links stay
    std::size_t rewirings = 0;        ///< in an iteration; the last sets the first wiring back
    picoseconds cost{};               ///< of an iteration
    network one_wiring;               ///< the best of those tried for all of the iteration
    picoseconds one_wiring_cost{};    ///< never below `cost`
    std::size_t wirings = 0;          ///< tried
    std::size_t simulations = 0;
};

namespace detail {
using several_wirings = std::function<std::vector<network>(demand const&)>;
[[nodiscard]] phased_wiring rewire(fabric_problem const& problem, space::flat_strategy s, several_wirings const& finder, phase_options const& o);
} // namespace detail

/// Parts the movements of an iteration under strategy `s` into phases, with a wiring each, and rewires the links between them ("dynamic traffic"
/// of W. Wang et al., TopoOpt, NSDI 2023); `phased_simulator` says what is simulated.
///
/// Movements go in the order in which they begin on the best single wiring. The iteration may be cut at `cuts` places, between equal parts of the
/// bytes, where the fewest others are on their way. `finder(demand)` wires for the traffic of all, of each piece between cuts and of the phases
/// found. How long each piece takes on each wiring is simulated; the shortest way through pieces and wirings with at most so many phases is found by
/// dynamic programming, simulated, and changed at its cuts and wirings while that makes it faster. Of all that was simulated the fastest is the
/// answer, one wiring among them, and that where nothing is faster. With several phases the last rewiring sets the first wiring back; so where twice
/// the time of a rewiring is more than the iteration takes nothing is tried. Wirings with other movements than the first are tried as the only one.
///
/// Throws `invalid_input` on options out of range, where the finder makes no network, and what finder and `fabric_problem::on` throw. Complexity:
/// that of making a cluster for each wiring, some hundreds at most, and of as many simulations. Memory: a task graph for each wiring; where it does
/// not suffice the answer is the best so far, and `std::bad_alloc` is thrown where there is none.
template <Strategy<space::configuration> S, TopologyFinder F>
[[nodiscard]] phased_wiring rewire_within_iteration(fabric_problem const& problem, S const& s, F const& finder, phase_options const& o) {
    return detail::rewire(
        problem, space::flat(s, problem.graph().size()),
        [&](demand const& d) { return detail::as_networks(finder(d), problem.options().servers.interface); }, o);
}

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/cooptimize/phased_wiring.ipp>
#endif
