#pragma once
/// A layered drawing of an acyclic graph: longest-path layers, few crossings by barycenters, edges that bend between layers.
/// Source: K. Sugiyama, S. Tagawa, M. Toda, Methods for visual understanding of hierarchical system structures, IEEE SMC 11(2), 1981.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>

namespace parsearch::io {

/// Where nodes and edges are drawn: `x` in widths of a node, layers from 0 downwards.
struct graph_layout {
    std::vector<double> x;                  ///< centre of each node
    std::vector<std::uint32_t> layer;       ///< of each node
    std::vector<std::vector<double>> bends; ///< of each edge: its x in each layer between its ends; none where they are neighbours
    double width = 0;                       ///< all x and bends are within [0, width], half a node inside
    std::uint32_t layers = 0;
};

namespace detail {

/// Least squares: positions as near to `wanted` as can be where each is at least `apart[i]` past the one before (pool adjacent
/// violators). Both of one size.
[[nodiscard]] std::vector<double> spread(std::vector<double> const& wanted, std::vector<double> const& apart);

/// A drawing in progress. Places are nodes, then the points at which edges pass the layers between their ends.
class layered_drawing {
  public:
    static constexpr std::size_t most_bends = 60'000; ///< past these, edges are drawn straight

    layered_drawing(std::size_t nodes, std::vector<std::pair<std::uint32_t, std::uint32_t>> const& edges);

    graph_layout run();

  private:
    using row_type = std::vector<std::uint32_t>;

    void join(std::uint32_t from, std::uint32_t to) {
        down_[from].push_back(to);
        up_[to].push_back(from);
    }
    [[nodiscard]] double mean(std::uint32_t v, std::vector<row_type> const& neighbours) const;
    /// Orders a row by the mean place of its neighbours, and puts it at equal distances around their middle.
    void reorder(row_type& row, std::vector<row_type> const& neighbours);
    /// Moves the places of a row towards their neighbours, in their order: nodes a width apart, bends less.
    void place(row_type const& row, std::vector<row_type> const& neighbours);
    [[nodiscard]] double half(std::uint32_t place) const noexcept { return place < nodes_ ? 0.5 : 0.08; }

    std::size_t nodes_;
    std::vector<std::uint32_t> layer_;       ///< of each place
    std::vector<row_type> up_, down_, rows_; ///< neighbours of each place; the places of each layer, left to right
    std::vector<std::size_t> first_bend_;    ///< first place of each edge
    std::vector<double> x_;
};
} // namespace detail

/// Lays out `nodes` nodes; an edge leads from a node of smaller number to one of larger number. Deterministic. Complexity: a constant number
/// of sweeps over nodes, edges and bends.
[[nodiscard]] inline graph_layout lay_out_graph(std::size_t nodes, std::vector<std::pair<std::uint32_t, std::uint32_t>> const& edges) {
    return detail::layered_drawing(nodes, edges).run();
}

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/report/graph_drawing.ipp>
#endif
