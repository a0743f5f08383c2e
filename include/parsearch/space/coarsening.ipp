#pragma once
// A network of fewer, coarse operators: groups of operators that change together, on several levels.

#include <algorithm>
#include <array>
#include <utility>

#include <parsearch/core/joined_sets.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/space/alike_operators.hpp>
#include <parsearch/space/coarsening.hpp>
#include <parsearch/space/propagate.hpp>

namespace parsearch::space::detail {

/// The bytes that go between two of the sets of `part`, less than 0, and the numbers of the sets: the most bytes first. Of graph inputs nothing.
[[nodiscard]] inline std::vector<std::array<std::int64_t, 3>> bytes_between(graph::dense_graph const& g, std::vector<std::uint32_t> const& part) {
    std::vector<std::array<std::int64_t, 3>> edges, out; // edges: the numbers of the sets, and the bytes
    for (auto const& e : g.edges) {
        std::int64_t const a = part[e.producer], b = part[e.consumer];
        if (a != b && g.operations[e.producer].work != ops::work_class::source)
            edges.push_back({std::min(a, b), std::max(a, b), static_cast<std::int64_t>(ops::bytes_of(g.operations[e.producer].outputs[e.slot]))});
    }
    std::sort(edges.begin(), edges.end());
    for (auto const& [a, b, bytes] : edges) {
        if (out.empty() || out.back()[1] != a || out.back()[2] != b) out.push_back({0, a, b});
        out.back()[0] = -saturating_sum(-out.back()[0], bytes);
    }
    std::sort(out.begin(), out.end());
    return out;
}

} // namespace parsearch::space::detail

namespace parsearch::space {

PARSEARCH_INLINE coarsening::coarsening(graph::dense_graph const& g, strategy_space const& space)
    : graph_(&g), space_(&space), alike_(first_alike(g)), alike_members_(g.size()), inside_(g.size(), 0), changed_(g.size(), 0) {
    for (std::uint32_t op = 0; op < g.size(); ++op) alike_members_[alike_[op]].push_back(op);
    joined_sets sets(g.size());
    std::vector<std::uint32_t> part(g.size());
    std::size_t count = 0; // of the sets of operators with work
    auto const read = [&] {
        count = 0;
        for (std::uint32_t op = 0; op < g.size(); ++op) {
            part[op] = sets.root(op);
            if (part[op] == op && g.operations[op].work != ops::work_class::source) ++count;
        }
    };
    for (auto const* const first : {&g.sharing, &std::as_const(alike_)}) {
        bool joined = false;
        for (std::uint32_t op = 0; op < g.size(); ++op)
            if (g.operations[op].work != ops::work_class::source) joined = sets.join((*first)[op], op) || joined;
        if (!joined) continue;
        read();
        add_level(part);
    }
    for (read(); count > 1;) {
        std::vector<bool> paired(g.size(), false);
        for (auto const& between : detail::bytes_between(g, part)) {
            auto const a = static_cast<std::uint32_t>(between[1]), b = static_cast<std::uint32_t>(between[2]);
            if (paired[a] || paired[b]) continue;
            paired[a] = paired[b] = true;
            sets.join(a, b);
        }
        auto const before = count;
        read();
        if (10 * (before - count) < before) break;
        add_level(part);
    }
    std::ranges::reverse(levels_);
}

PARSEARCH_INLINE void coarsening::add_level(std::vector<std::uint32_t> const& part) {
    std::vector<std::vector<std::uint32_t>> sets(part.size());
    for (std::uint32_t op = 0; op < part.size(); ++op)
        if (graph_->operations[op].work != ops::work_class::source) sets[part[op]].push_back(op);
    std::vector<std::uint32_t> below(part.size(), 0); // by its first member, one more than the number of a coarse operator of the last level
    if (!levels_.empty())
        for (auto const coarse : levels_.back()) below[members_[coarse].front()] = coarse + 1;
    levels_.emplace_back();
    for (auto& members : sets) {
        if (members.size() < 2) continue;
        if (auto const same = below[members.front()]; same > 0 && members_[same - 1].size() == members.size()) {
            levels_.back().push_back(same - 1);
            continue;
        }
        auto leader = members.front();
        auto const rank = [&](std::uint32_t op) { return std::pair(space_->of(op).size() > 1, graph_->operations[op].flops); };
        for (auto const op : members)
            if (rank(leader) < rank(op)) leader = op;
        levels_.back().push_back(static_cast<std::uint32_t>(members_.size()));
        members_.push_back(std::move(members));
        leader_.push_back(leader);
    }
}

PARSEARCH_INLINE void coarsening::changes(std::size_t coarse, std::uint64_t index, std::vector<change<configuration>>& out) {
    auto const& g = *graph_;
    ++call_;
    for (auto const op : members_[coarse]) inside_[op] = call_;
    auto const begin = out.size();
    auto const give = [&](std::uint32_t op, configuration const& c) {
        for (auto const like : alike_members_[alike_[op]])
            if (inside_[like] == call_ && changed_[like] != call_ && space_->of(like).contains(c)) {
                changed_[like] = call_;
                out.push_back({like, c});
            }
    };
    auto const leader = leader_[coarse];
    auto const chosen = space_->of(leader)[static_cast<std::size_t>(index)];
    changed_[leader] = call_;
    out.push_back({leader, chosen});
    give(leader, chosen);
    for (auto at = begin; at < out.size(); ++at) {
        auto const op = out[at].op;
        auto const c = out[at].configuration; // a copy: `out` grows
        auto const pass_on = [&](graph::edge const& e, bool forward) {
            auto const next = forward ? e.consumer : e.producer;
            if (inside_[next] != call_ || changed_[next] == call_) return;
            if (auto const carried = carried_over(g, e, c, forward); carried && space_->of(next).contains(*carried)) give(next, *carried);
        };
        for (auto const& e : g.in(op)) pass_on(e, false);
        for (auto const number : g.out(op)) pass_on(g.edges[number], true);
    }
}

} // namespace parsearch::space
