#pragma once
/// Tensors that several inputs read: they are moved once for those that read the same parts on the same devices.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>

namespace parsearch::sim {

/// The edges that may move data for each other: of one output, alike in whether gradients go back along them. Of what a reader passes on
/// (`ops::operand::passed_on`), how much moves while it computes depends on how long it does: such edges move for those of the same reader alone.
/// Graph inputs move nothing.
class shared_reads {
  public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    shared_reads() = default;
    explicit shared_reads(graph::dense_graph const& g);

    [[nodiscard]] std::size_t size() const noexcept { return groups_.size(); }
    /// The group of an edge; `none` where it is alone.
    [[nodiscard]] std::uint32_t group_of(std::size_t edge) const noexcept { return group_of_[edge]; }
    /// Edges of two or more, in the order in which their movement comes in a task graph: of consumers, then inputs.
    [[nodiscard]] std::span<std::uint32_t const> operator[](std::size_t group) const noexcept { return groups_[group]; }

    /// Sets `carrier[e]` of the edges of a group: the edge that brings its data. That is the first alike: of its own operator, where it has several,
    /// else of all, which may be the edge itself. `alike(a, b)` says whether the readers of two edges read the same parts on the same devices;
    /// `first` is room for the first of those alike. Complexity: O(edges * different readers).
    template <class Alike>
    void find_carriers(std::uint32_t group, Alike const& alike, std::span<std::uint32_t> carrier, std::vector<std::uint32_t>& first) const {
        auto const& all = groups_[group];
        first.clear();
        for (auto e = all.begin(), own = e; e != all.end(); ++e) {
            if (consumer_[*own] != consumer_[*e]) own = e;
            auto const same = [&](std::uint32_t before) { return alike(before, *e); };
            if (auto const at = std::find_if(own, e, same); at != e) {
                carrier[*e] = *at;
            } else if (auto const other = std::find_if(first.begin(), first.end(), same); other != first.end()) {
                carrier[*e] = *other;
            } else {
                carrier[*e] = *e;
                first.push_back(*e);
            }
        }
    }

  private:
    std::vector<std::uint32_t> group_of_{}, consumer_{}; ///< of each edge
    std::vector<std::vector<std::uint32_t>> groups_{};
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/input/shared_reads.ipp>
#endif
