#pragma once
/// Maximum-weight matching in general graphs.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>

namespace parsearch::fabric {

/// No partner.
inline constexpr std::uint32_t unmatched = std::numeric_limits<std::uint32_t>::max();

namespace detail {

/// Edmonds' algorithm with duals on a dense matrix of weights. One stage (`augment_once`) grows alternating trees from all free vertices
/// at once, shrinks odd cycles to blossoms, and ends with an augmenting path or the proof that there is none to gain by.
/// Nodes are numbered from 1: vertices 1 to n, blossoms from n + 1; 0 is nobody. Duals are kept doubled, so that all stay integers.
class blossom_matching {
  public:
    /// `weights`: n x n, symmetric, not negative, below 2^61; 0 is no edge.
    blossom_matching(std::uint32_t n, std::span<std::int64_t const> weights);

    [[nodiscard]] std::vector<std::uint32_t> solve();

  private:
    using node = std::uint32_t;
    enum class label : std::uint8_t { none, outer, inner };
    struct edge {
        node from = 0, to = 0; ///< vertices; 0: no edge
        [[nodiscard]] bool exists() const noexcept { return from != 0; }
    };
    struct node_state {
        node mate = 0;   ///< the vertex at the other end of its matched edge
        node parent = 0; ///< the vertex in the tree from which an inner node was reached
        node best = 0;   ///< the outer vertex whose edge to this node has the least slack
        label side = label::none;
        std::uint32_t seen = 0;  ///< the last search for a common ancestor that came by
        std::vector<node> cycle; ///< of a blossom: what it was shrunk from, the base first
    };

    [[nodiscard]] std::int64_t weight(node u, node v) const noexcept { return weights_[std::size_t{u - 1} * n_ + (v - 1)]; }
    /// The edge of least slack between two nodes.
    [[nodiscard]] edge& joint(node a, node b) noexcept { return joint_[std::size_t{a} * capacity_ + b]; }
    /// The member of a blossom's cycle that holds a vertex; 0: none does.
    [[nodiscard]] node& holder(node blossom, node vertex) noexcept { return holder_[std::size_t{blossom} * (n_ + 1) + vertex]; }
    [[nodiscard]] bool is_top(node x) const noexcept { return top_[x] == x; }
    [[nodiscard]] std::int64_t slack(edge e) const noexcept { return dual_[e.from] + dual_[e.to] - 2 * weight(e.from, e.to); }

    void offer_best(node u, node x) {
        if (auto& best = nodes_[x].best; best == 0 || slack(joint(u, x)) < slack(joint(best, x))) best = u;
    }
    void find_best(node x) {
        nodes_[x].best = 0;
        for (node u = 1; u <= n_; ++u)
            if (joint(u, x).exists() && top_[u] != x && nodes_[top_[u]].side == label::outer) offer_best(u, x);
    }
    void enqueue(node x);
    void set_top(node x, node top) {
        top_[x] = top;
        if (x > n_)
            for (auto const part : nodes_[x].cycle) set_top(part, top);
    }
    /// Turns the cycle of a blossom so that the way of even length from its base to `part` leads upwards; the position of `part`.
    std::size_t even_position(node blossom, node part);
    /// Matches node `x` by its edge to node `y`, and inside a blossom what follows from that.
    void match(node x, node y);
    /// Flips the path from outer node `x`, now matched to `y`, to the root of its tree.
    void flip(node x, node y);
    [[nodiscard]] node top_of(node vertex) const noexcept { return vertex == 0 ? 0 : top_[vertex]; }
    /// The outer node where the ways from two outer nodes to their roots meet; 0: they do not.
    [[nodiscard]] node meeting(node x, node y);
    /// Shrinks the cycle through outer nodes `x` and `y` and their common ancestor `base`.
    void shrink(node x, node y, node base);
    /// Undoes an inner blossom whose dual is 0: the even way from where the tree enters it to its base stays in the tree.
    void expand(node b);
    /// Uses an edge without slack that leaves an outer node. Whether it completed an augmenting path.
    bool use(edge e);
    bool augment_once();
    /// Changes the duals as far as they stay feasible. False: free vertices are at 0, the matching is of maximum weight.
    bool change_duals();

    std::uint32_t n_, capacity_;
    node last_; ///< the largest number of a blossom ever used
    std::span<std::int64_t const> weights_;
    std::vector<node_state> nodes_;
    std::vector<node> top_;          ///< the outermost blossom around each node; 0: an unused blossom
    std::vector<std::int64_t> dual_; ///< apart from the rest: the loop over edges reads these two
    std::vector<edge> joint_;
    std::vector<node> holder_;
    std::vector<node> queue_; ///< outer vertices whose edges are to be looked at
    std::uint32_t search_ = 0;
};

/// Throws `invalid_input` unless `weights` are n x n, symmetric, from 0 to 2^60 and 0 on the diagonal.
void check_weights(std::uint32_t n, std::span<std::int64_t const> weights);

} // namespace detail

/// The partner of each vertex in a matching of maximum weight, or `unmatched`. `weights` are n x n, symmetric, 0 where there is no edge (and on the
/// diagonal), at most 2^60; else throws `invalid_input`. Edges of weight 0 are never used. Deterministic: among equal matchings the one that the
/// order of the vertices leads to. Not Boost's `maximum_weighted_matching`: in 1.74 it does not end on some graphs of at most nine vertices
/// (boostorg/graph issues 223, 399). Source: J. Edmonds, Maximum matching and a polyhedron with 0,1-vertices, 1965; Z. Galil, Efficient algorithms
/// for finding maximum matching in graphs, ACM Computing Surveys 1986. Complexity: O(n^3); memory 24 n^2 bytes.
[[nodiscard]] inline std::vector<std::uint32_t> maximum_weight_matching(std::uint32_t n, std::span<std::int64_t const> weights) {
    detail::check_weights(n, weights);
    return detail::blossom_matching(n, weights).solve();
}

/// The same by taking the heaviest edge that is left, again and again (among equals the one of the lowest vertices): at least half of the
/// maximum weight. For graphs on which the exact one takes too long. Complexity: O(n^2 log n).
[[nodiscard]] std::vector<std::uint32_t> greedy_matching(std::uint32_t n, std::span<std::int64_t const> weights);

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/wiring/matching.ipp>
#endif
