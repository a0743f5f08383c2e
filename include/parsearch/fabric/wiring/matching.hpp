#pragma once
/// Maximum-weight matching in general graphs.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>

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
    blossom_matching(std::uint32_t n, std::span<std::int64_t const> weights)
        : n_(n), capacity_(n + n / 2 + 2), last_(n), weights_(weights), nodes_(capacity_), top_(capacity_, 0), dual_(capacity_, 0),
          joint_(std::size_t{capacity_} * capacity_), holder_(std::size_t{capacity_} * (n + 1), 0), queue_(0) {
        std::int64_t largest = 0;
        for (auto const w : weights) largest = std::max(largest, w);
        for (node u = 1; u <= n; ++u) {
            top_[u] = u;
            dual_[u] = largest;
            holder(u, u) = u;
            for (node v = 1; v <= n; ++v)
                if (u != v && weight(u, v) > 0) joint(u, v) = {u, v};
        }
    }

    [[nodiscard]] std::vector<std::uint32_t> solve() {
        while (augment_once()) {
        }
        std::vector<std::uint32_t> out(n_, unmatched);
        for (node u = 1; u <= n_; ++u)
            if (nodes_[u].mate != 0) out[u - 1] = nodes_[u].mate - 1;
        return out;
    }

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
    void enqueue(node x) {
        if (x <= n_) {
            queue_.push_back(x);
            return;
        }
        for (auto const part : nodes_[x].cycle) enqueue(part);
    }
    void set_top(node x, node top) {
        top_[x] = top;
        if (x > n_)
            for (auto const part : nodes_[x].cycle) set_top(part, top);
    }
    /// Turns the cycle of a blossom so that the way of even length from its base to `part` leads upwards; the position of `part`.
    std::size_t even_position(node blossom, node part) {
        auto& cycle = nodes_[blossom].cycle;
        auto const at = static_cast<std::size_t>(std::find(cycle.begin(), cycle.end(), part) - cycle.begin());
        if (at % 2 == 0) return at;
        std::reverse(cycle.begin() + 1, cycle.end());
        return cycle.size() - at;
    }
    /// Matches node `x` by its edge to node `y`, and inside a blossom what follows from that.
    void match(node x, node y) {
        auto const e = joint(x, y);
        nodes_[x].mate = e.to;
        if (x <= n_) return;
        auto const part = holder(x, e.from);
        auto const at = even_position(x, part);
        for (std::size_t i = 0; i < at; ++i) match(nodes_[x].cycle[i], nodes_[x].cycle[i ^ 1]);
        match(part, y);
        auto& cycle = nodes_[x].cycle;
        std::rotate(cycle.begin(), cycle.begin() + static_cast<std::ptrdiff_t>(at), cycle.end());
    }
    /// Flips the path from outer node `x`, now matched to `y`, to the root of its tree.
    void flip(node x, node y) {
        for (;;) {
            auto const before = top_of(nodes_[x].mate);
            match(x, y);
            if (before == 0) return;
            auto const above = top_of(nodes_[before].parent);
            match(before, above);
            x = above;
            y = before;
        }
    }
    [[nodiscard]] node top_of(node vertex) const noexcept { return vertex == 0 ? 0 : top_[vertex]; }
    /// The outer node where the ways from two outer nodes to their roots meet; 0: they do not.
    [[nodiscard]] node meeting(node x, node y) {
        ++search_;
        for (; x != 0 || y != 0; std::swap(x, y)) {
            if (x == 0) continue;
            if (nodes_[x].seen == search_) return x;
            nodes_[x].seen = search_;
            x = top_of(nodes_[x].mate);
            if (x != 0) x = top_of(nodes_[x].parent);
        }
        return 0;
    }
    /// Shrinks the cycle through outer nodes `x` and `y` and their common ancestor `base`.
    void shrink(node x, node y, node base) {
        node b = n_ + 1;
        while (b <= last_ && top_[b] != 0) ++b;
        last_ = std::max(last_, b);
        auto& made = nodes_[b];
        dual_[b] = 0;
        made.side = label::outer;
        made.mate = nodes_[base].mate;
        made.parent = nodes_[base].parent;
        made.cycle.assign(1, base);
        auto const climb = [&](node from) {
            for (node at = from; at != base;) {
                made.cycle.push_back(at);
                auto const inner = top_of(nodes_[at].mate);
                made.cycle.push_back(inner);
                enqueue(inner);
                at = top_of(nodes_[inner].parent);
            }
        };
        climb(x);
        std::reverse(made.cycle.begin() + 1, made.cycle.end());
        climb(y);
        set_top(b, b);
        for (node other = 1; other <= last_; ++other) joint(b, other) = joint(other, b) = {};
        for (node v = 1; v <= n_; ++v) holder(b, v) = 0;
        for (auto const part : made.cycle) {
            for (node other = 1; other <= last_; ++other) {
                auto const e = joint(part, other);
                if (!e.exists() || (joint(b, other).exists() && slack(e) >= slack(joint(b, other)))) continue;
                joint(b, other) = e;
                joint(other, b) = joint(other, part);
            }
            for (node v = 1; v <= n_; ++v)
                if (holder(part, v) != 0) holder(b, v) = part;
        }
        find_best(b);
    }
    /// Undoes an inner blossom whose dual is 0: the even way from where the tree enters it to its base stays in the tree.
    void expand(node b) {
        auto& old = nodes_[b];
        for (auto const part : old.cycle) set_top(part, part);
        auto const entry = holder(b, joint(b, old.parent).from);
        auto const at = even_position(b, entry);
        auto const& cycle = old.cycle;
        for (std::size_t i = 0; i < at; i += 2) {
            auto &inner = nodes_[cycle[i]], &outer = nodes_[cycle[i + 1]];
            inner.parent = joint(cycle[i + 1], cycle[i]).from;
            inner.side = label::inner;
            inner.best = 0;
            outer.side = label::outer;
            find_best(cycle[i + 1]);
            enqueue(cycle[i + 1]);
        }
        nodes_[entry].side = label::inner;
        nodes_[entry].parent = old.parent;
        for (std::size_t i = at + 1; i < cycle.size(); ++i) {
            nodes_[cycle[i]].side = label::none;
            find_best(cycle[i]);
        }
        top_[b] = 0;
    }
    /// Uses an edge without slack that leaves an outer node. Whether it completed an augmenting path.
    bool use(edge e) {
        auto const x = top_[e.from], y = top_[e.to];
        if (nodes_[y].side == label::none) {
            nodes_[y].parent = e.from;
            nodes_[y].side = label::inner;
            nodes_[y].best = 0;
            auto const next = top_of(nodes_[y].mate);
            nodes_[next].best = 0;
            nodes_[next].side = label::outer;
            enqueue(next);
        } else if (nodes_[y].side == label::outer) {
            if (auto const base = meeting(x, y); base != 0) {
                shrink(x, y, base);
            } else {
                flip(x, y);
                flip(y, x);
                return true;
            }
        }
        return false;
    }
    bool augment_once() {
        queue_.clear();
        for (node x = 1; x <= last_; ++x) {
            nodes_[x].side = label::none;
            nodes_[x].best = 0;
        }
        for (node x = 1; x <= last_; ++x)
            if (is_top(x) && nodes_[x].mate == 0) {
                nodes_[x].parent = 0;
                nodes_[x].side = label::outer;
                enqueue(x);
            }
        if (queue_.empty()) return false;
        for (;;) {
            for (std::size_t i = 0; i < queue_.size(); ++i) {
                auto const u = queue_[i];
                if (nodes_[top_[u]].side == label::inner) continue;
                for (node v = 1; v <= n_; ++v) {
                    if (top_[u] == top_[v] || weight(u, v) == 0) continue;
                    if (slack({u, v}) > 0) offer_best(u, top_[v]);
                    else if (use({u, v})) return true;
                }
            }
            queue_.clear();
            if (!change_duals()) return false;
            for (node x = 1; x <= last_; ++x) {
                auto const best = nodes_[x].best;
                if (is_top(x) && best != 0 && top_[best] != x && slack(joint(best, x)) == 0 && use(joint(best, x))) return true;
            }
            for (node b = n_ + 1; b <= last_; ++b)
                if (is_top(b) && nodes_[b].side == label::inner && dual_[b] == 0) expand(b);
        }
    }
    /// Changes the duals as far as they stay feasible. False: free vertices are at 0, the matching is of maximum weight.
    bool change_duals() {
        auto step = std::numeric_limits<std::int64_t>::max();
        for (node u = 1; u <= n_; ++u)
            if (nodes_[top_[u]].side == label::outer) step = std::min(step, dual_[u]);
        auto const limit = step; // free vertices are outer and have the least dual of all outer ones
        for (node x = 1; x <= last_; ++x) {
            if (!is_top(x)) continue;
            auto const& s = nodes_[x];
            if (x > n_ && s.side == label::inner) step = std::min(step, dual_[x] / 2);
            if (s.best == 0 || s.side == label::inner) continue;
            auto const gap = slack(joint(s.best, x));
            step = std::min(step, s.side == label::none ? gap : gap / 2);
        }
        for (node u = 1; u <= n_; ++u) {
            auto const side = nodes_[top_[u]].side;
            dual_[u] += side == label::outer ? -step : side == label::inner ? step : 0;
        }
        for (node b = n_ + 1; b <= last_; ++b)
            if (is_top(b)) dual_[b] += nodes_[b].side == label::outer ? 2 * step : nodes_[b].side == label::inner ? -2 * step : 0;
        return step < limit;
    }

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
inline void check_weights(std::uint32_t n, std::span<std::int64_t const> weights) {
    if (weights.size() != std::size_t{n} * n) throw invalid_input("matching: ", weights.size(), " weights for ", n, " vertices: must be n x n");
    for (std::size_t u = 0; u < n; ++u)
        for (std::size_t v = 0; v <= u; ++v) {
            auto const w = weights[u * n + v];
            auto const place = [&] { return text("matching: weight ", w, " of vertices ", u, " and ", v); };
            if (w < 0 || w > (std::int64_t{1} << 60)) throw invalid_input(place(), ": must be from 0 to 2^60");
            if (u == v && w != 0) throw invalid_input(place(), ": must be 0, a vertex has no edge to itself");
            if (w != weights[v * n + u]) throw invalid_input(place(), ": differs from that of the other direction, ", weights[v * n + u]);
        }
}

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
[[nodiscard]] inline std::vector<std::uint32_t> greedy_matching(std::uint32_t n, std::span<std::int64_t const> weights) {
    detail::check_weights(n, weights);
    struct candidate {
        std::int64_t weight;
        std::uint32_t u, v;
    };
    std::vector<candidate> edges;
    for (std::uint32_t u = 0; u < n; ++u)
        for (std::uint32_t v = u + 1; v < n; ++v)
            if (auto const w = weights[std::size_t{u} * n + v]; w > 0) edges.push_back({w, u, v});
    std::sort(edges.begin(), edges.end(), [](candidate const& a, candidate const& b) {
        if (a.weight != b.weight) return a.weight > b.weight;
        return std::pair(a.u, a.v) < std::pair(b.u, b.v);
    });
    std::vector<std::uint32_t> out(n, unmatched);
    for (auto const& e : edges)
        if (out[e.u] == unmatched && out[e.v] == unmatched) {
            out[e.u] = e.v;
            out[e.v] = e.u;
        }
    return out;
}

} // namespace parsearch::fabric
