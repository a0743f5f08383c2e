#pragma once
/// Tables that are looked up, each on one device.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::space {

/// Data parallelism, but each table that is looked up is whole on one device: the one that holds the fewest bytes of tables so far, in graph order.
/// Source: Naumov et al., Deep learning recommendation model for personalization and recommendation systems, 2019, section 3.
[[nodiscard]] flat_strategy table_parallel(graph::dense_graph const& g, std::size_t devices, bool uneven = false);

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/textbook/table_parallel.ipp>
#endif
