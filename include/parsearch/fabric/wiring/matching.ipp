#pragma once
// Maximum-weight matching in general graphs.

#include <algorithm>

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/wiring/matching.hpp>

namespace parsearch::fabric::detail {

PARSEARCH_INLINE blossom_matching::blossom_matching(std::uint32_t n, std::span<std::int64_t const> weights)
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

PARSEARCH_INLINE std::vector<std::uint32_t> blossom_matching::solve() {
    while (augment_once()) {
    }
    std::vector<std::uint32_t> out(n_, unmatched);
    for (node u = 1; u <= n_; ++u)
        if (nodes_[u].mate != 0) out[u - 1] = nodes_[u].mate - 1;
    return out;
}

PARSEARCH_INLINE void blossom_matching::enqueue(node x) {
    if (x <= n_) {
        queue_.push_back(x);
        return;
    }
    for (auto const part : nodes_[x].cycle) enqueue(part);
}

PARSEARCH_INLINE std::size_t blossom_matching::even_position(node blossom, node part) {
    auto& cycle = nodes_[blossom].cycle;
    auto const at = static_cast<std::size_t>(std::find(cycle.begin(), cycle.end(), part) - cycle.begin());
    if (at % 2 == 0) return at;
    std::reverse(cycle.begin() + 1, cycle.end());
    return cycle.size() - at;
}

PARSEARCH_INLINE void blossom_matching::match(node x, node y) {
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

PARSEARCH_INLINE void blossom_matching::flip(node x, node y) {
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

PARSEARCH_INLINE blossom_matching::node blossom_matching::meeting(node x, node y) {
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

PARSEARCH_INLINE void blossom_matching::shrink(node x, node y, node base) {
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

PARSEARCH_INLINE void blossom_matching::expand(node b) {
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

PARSEARCH_INLINE bool blossom_matching::use(edge e) {
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

PARSEARCH_INLINE bool blossom_matching::augment_once() {
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

PARSEARCH_INLINE bool blossom_matching::change_duals() {
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

PARSEARCH_INLINE void check_weights(std::uint32_t n, std::span<std::int64_t const> weights) {
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

} // namespace parsearch::fabric::detail

namespace parsearch::fabric {

PARSEARCH_INLINE std::vector<std::uint32_t> greedy_matching(std::uint32_t n, std::span<std::int64_t const> weights) {
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
