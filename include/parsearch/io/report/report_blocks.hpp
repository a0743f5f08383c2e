#pragma once
/// Blocks of operators that follow each other several times, as the layers of a transformer do.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/io/display/configuration_classes.hpp>

namespace parsearch::io {

/// `count` copies, one after the other, of `length` operators that start at position `first` of the graph's topological order.
struct repeated_block {
    std::size_t first = 0, length = 0, count = 0;
    friend bool operator==(repeated_block const&, repeated_block const&) = default;
    [[nodiscard]] std::size_t end() const noexcept { return first + length * count; }
};

/// Disjoint repeated blocks of `g`, by first position: from the start on, at each position the one that leaves out most operators.
/// Complexity: O(n * min(n, 512)).
[[nodiscard]] std::vector<repeated_block> find_blocks(graph::dense_graph const& g, configuration_classes const& classes);

/// Operators that are drawn as one box: the copies of `blocks` but the first are in none; an operator that merely passes on what the
/// one before it made (normalises, activates, moves) is in the box of that one where nobody else reads it and the configurations are equal.
/// Boxes are in topological order of their first operators.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> boxes_of(graph::dense_graph const& g, configuration_classes const& classes,
                                                               std::vector<repeated_block> const& blocks);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/report/report_blocks.ipp>
#endif
