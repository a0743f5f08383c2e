#pragma once
/// What it costs to rewire a fabric.

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/fabric/network/network.hpp>

namespace parsearch::fabric {

/// A fabric that can be rewired between iterations.
struct reconfigurable_options {
    picoseconds reconfiguration_time{}; ///< links idle meanwhile
    std::int64_t iterations = 1;        ///< that a wiring is kept for, at least
};

/// Whether two networks join the same vertices by as many links of the same kind each; neither the order of links and of their ends nor
/// rings matter. Complexity: O(links log links).
[[nodiscard]] bool same_wiring(network const& x, network const& y);

/// The time that rewiring adds to each iteration: none where `wanted` is wired as `present`, else the reconfiguration time over the iterations,
/// rounded up. Throws `invalid_input` on a negative time or fewer than one iteration.
[[nodiscard]] picoseconds rewiring_time(reconfigurable_options const& o, network const& present, network const& wanted);

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/network/reconfigurable.ipp>
#endif
