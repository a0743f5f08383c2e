#pragma once
/// What the library's rules make of a network, place by place: the rewritings of an instance.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <parsearch/io/instances/rewritings.hpp>
#include <parsearch/problem/problem.hpp>

namespace bench {

namespace ps = parsearch;

/// Which alternatives are looked for.
struct alternatives_wanted {
    std::size_t segment = 12; ///< operators of a place, at least
    std::size_t graphs = 256; ///< made of a place
    std::size_t kept = 10;    ///< of these: first those in which no kernels can be fused any more, then those that take the least time on one device
};

/// The segments of the problem's graph that `rewrite::algebraic_rules` make others of, and these in their order: segments of one shape have the same.
/// Deterministic. Complexity: `graphs` applications of all rules for each shape.
[[nodiscard]] std::vector<ps::io::rewriting> rewritings_of(ps::parallelization const& problem, alternatives_wanted const& wanted = {});

} // namespace bench
