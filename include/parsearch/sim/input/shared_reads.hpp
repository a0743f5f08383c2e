#pragma once
/// Tensors that several inputs read: they are moved once for those that read the same parts on the same devices.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/graph/dense_graph.hpp>

namespace parsearch::sim {

/// The edges that may move data for each other: of one output, alike in whether gradients go back along them. Of what a reader passes on
/// (`ops::operand::passed_on`), how much moves while it computes depends on how long it does: such edges move for those of the same reader alone.
/// Graph inputs move nothing.
class shared_reads {
  public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    shared_reads() = default;
    explicit shared_reads(graph::dense_graph const& g) : group_of_(g.edges.size(), none) {
        for (auto const& e : g.edges) consumer_.push_back(e.consumer);
        std::vector<std::uint32_t> place(g.size());
        for (std::uint32_t i = 0; i < g.size(); ++i) place[g.order[i]] = i;
        for (std::uint32_t op = 0; op < g.size(); ++op) {
            if (g.operations[op].work == ops::work_class::source) continue;
            std::vector<std::uint32_t> out(g.out(op).begin(), g.out(op).end());
            auto const tensor = [&](std::uint32_t number) {
                auto const& e = g.edges[number];
                return std::tuple(e.slot, g.carries_gradient(e), g.operations[e.consumer].inputs[e.input].passed_on ? e.consumer : none);
            };
            std::sort(out.begin(), out.end(), [&](auto a, auto b) {
                if (tensor(a) != tensor(b)) return tensor(a) < tensor(b);
                return std::pair(place[g.edges[a].consumer], g.edges[a].input) < std::pair(place[g.edges[b].consumer], g.edges[b].input);
            });
            for (std::size_t first = 0, last = 0; first < out.size(); first = last) {
                while (last < out.size() && tensor(out[last]) == tensor(out[first])) ++last;
                if (last - first < 2) continue;
                for (auto i = first; i < last; ++i) group_of_[out[i]] = static_cast<std::uint32_t>(groups_.size());
                groups_.emplace_back(out.begin() + static_cast<std::ptrdiff_t>(first), out.begin() + static_cast<std::ptrdiff_t>(last));
            }
        }
    }

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
