#pragma once
/// Rings through all servers along the links of any network between them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/fabric/network/network.hpp>

namespace parsearch::fabric {

/// Options of `disjoint_rings`.
struct ring_search_options {
    std::uint32_t most = std::numeric_limits<std::uint32_t>::max(); ///< cycles at most; each is two rings, one per direction (one of two servers)
    std::uint32_t attempts = 256;                                   ///< the answer with the most rings of so many is taken; at least 1
    std::uint64_t seed = 0;
};

/// Rings through all servers along direct links, each direction of a link in at most one: cycles as long as some are found, each as two rings, one
/// per direction. Of two servers one ring per link. None where servers are joined by switches alone, or where none is found: a network may have more.
/// Rates of links do not matter. The same for the same seed on every platform. Method: a path that cannot be extended at its end is turned around
/// behind a neighbour of the end, which makes another server the end (L. Posa, Hamiltonian circuits in random graphs, Discrete Mathematics 14, 1976);
/// the links of a cycle are taken away, and the next one is looked for. Throws `invalid_input` where the network breaks a rule of `validate`, or
/// `attempts` is 0. Complexity: O(attempts * rings * servers^2).
[[nodiscard]] std::vector<std::vector<std::uint32_t>> disjoint_rings(network const& n, ring_search_options const& options = {});

/// `n` with the rings that `disjoint_rings` finds in place of its own.
[[nodiscard]] inline network with_rings(network n, ring_search_options const& options = {}) {
    n.rings = disjoint_rings(n, options);
    return n;
}

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/network/disjoint_rings.ipp>
#endif
