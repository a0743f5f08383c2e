#pragma once
/// Tables that are looked up: each on one device, or cut by columns.

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

/// Tables that are looked up cut by their columns, the features of an entry, over as many neighbours as divide both columns and devices. What is made
/// of them, up to the first layers with weights, is split by features over `degree` neighbours, as `tensor_parallel` has it: these layers add up
/// what each part of the features gives. The rest is split by samples, or with `everywhere` by features, too.
/// Source: column-wise sharding of D. Ivchenko et al., TorchRec, RecSys 2022. Throws `invalid_input` where `degree` does not divide `devices`.
[[nodiscard]] flat_strategy column_wise_tables(graph::dense_graph const& g, std::size_t devices, std::size_t degree = 1, bool everywhere = false,
                                               bool uneven = false);

/// How many parameters a graph has, and how many of them are of tables that are looked up.
struct table_parameters {
    std::int64_t looked_up = 0, all = 0;
    /// Whether tables hold at least half of them, as in recommendation models.
    [[nodiscard]] bool mostly() const noexcept { return looked_up > 0 && looked_up >= all - looked_up; }
};
[[nodiscard]] table_parameters parameters_of_tables(graph::dense_graph const& g);

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/textbook/table_parallel.ipp>
#endif
