#pragma once
// A network of fewer, coarse operators: groups of operators that change together, on several levels.

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <parsearch/core/joined_sets.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/space/alike_operators.hpp>
#include <parsearch/space/coarsening.hpp>
#include <parsearch/space/propagate.hpp>

namespace parsearch::space::detail {

/// The bytes that go between the sets of `part`, the most first, then by the sets' numbers. Of graph inputs nothing.
[[nodiscard]] inline std::vector<std::tuple<std::int64_t, std::uint32_t, std::uint32_t>> bytes_between(graph::dense_graph const& g,
                                                                                                       std::vector<std::uint32_t> const& part) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> sums;
    for (auto const& e : g.edges) {
        auto const a = part[e.producer], b = part[e.consumer];
        if (a == b || g.operations[e.producer].work == ops::work_class::source) continue;
        auto& sum = sums[std::minmax(a, b)];
        sum = saturating_sum(sum, static_cast<std::int64_t>(ops::bytes_of(g.operations[e.producer].outputs[e.slot])));
    }
    std::vector<std::tuple<std::int64_t, std::uint32_t, std::uint32_t>> out;
    for (auto const& [pair, bytes] : sums) out.emplace_back(bytes, pair.first, pair.second);
    std::ranges::stable_sort(out, [](auto const& a, auto const& b) { return std::get<0>(a) > std::get<0>(b); });
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
            count += part[op] == op && g.operations[op].work != ops::work_class::source ? 1 : 0;
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
        for (auto const& [bytes, a, b] : detail::bytes_between(g, part)) {
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
    std::map<std::uint32_t, std::vector<std::uint32_t>> sets;
    for (std::uint32_t op = 0; op < part.size(); ++op)
        if (graph_->operations[op].work != ops::work_class::source) sets[part[op]].push_back(op);
    std::map<std::uint32_t, std::uint32_t> below; // by its first member, a coarse operator of the last level
    if (!levels_.empty())
        for (auto const coarse : levels_.back()) below[members_[coarse].front()] = coarse;
    levels_.emplace_back();
    for (auto& [first, members] : sets) {
        if (members.size() == 1) continue;
        if (auto const same = below.find(first); same != below.end() && members_[same->second].size() == members.size()) {
            levels_.back().push_back(same->second);
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
