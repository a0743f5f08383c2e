#pragma once
/// Repeats: which operators, edges and sharing classes have the same blocks under the same configurations, as the layers of a deep network
/// do.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/sim/input/workload.hpp>

namespace parsearch::sim {

/// Of each operator, edge and sharing class, the number of the first that is alike.
struct repeats {
    std::vector<std::uint32_t> operators, edges, classes;
};

/// Equivalent operators have equal descriptions, differentiable inputs and used outputs. Equivalent edges join the same slots of equivalent
/// operators; where these pass the tensor on, they read it as the same inputs. Equivalent classes have equivalent members, one for one, with equal
/// sharing. `classes` are those of the workload. Complexity: linear but for operators that differ while their kinds and extents do not.
[[nodiscard]] repeats find_repeats(graph::dense_graph const& g, std::vector<sharing_class> const& classes);

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/delta/repeats.ipp>
#endif
