#pragma once
// A DAG of tasks as a tree of series and parallel compositions.

#include <algorithm>

#include <parsearch/core/error.hpp>
#include <parsearch/graph/series_parallel.hpp>

namespace parsearch::graph {

PARSEARCH_INLINE std::vector<std::uint32_t> task_order(std::size_t tasks, std::span<task_edge const> edges) {
    std::vector<std::vector<std::uint32_t>> next(tasks);
    std::vector<std::size_t> waits(tasks, 0);
    for (std::size_t e = 0; e < edges.size(); ++e) {
        auto const [from, to] = edges[e];
        if (from >= tasks || to >= tasks)
            throw invalid_input("task graph: edge number ", e, " leads from ", from, " to ", to, ": the graph has ", tasks, " tasks");
        next[from].push_back(to);
        ++waits[to];
    }
    std::vector<std::uint32_t> order;
    auto const each_next = [&](std::uint32_t v, auto const& f) {
        for (auto const n : next[v]) f(n);
    };
    visit_topologically(std::span(waits), each_next, [&](std::uint32_t v) { order.push_back(v); });
    if (order.size() < tasks)
        for (std::uint32_t v = 0;; ++v)
            if (waits[v] > 0) throw invalid_input("task graph: task ", v, " waits for itself: the edges have a cycle");
    return order;
}

PARSEARCH_INLINE void validate(composition_tree const& tree, std::size_t tasks, std::span<task_edge const> edges) {
    auto const none = tree.parts.size();
    std::vector<std::size_t> parent(tree.parts.size(), none), rank(tree.parts.size(), 0), leaf(tasks, none);
    for (std::size_t p = 0; p < tree.parts.size(); ++p) {
        auto const& part = tree.parts[p];
        auto const wrong = [&](auto const&... what) { return invalid_input("composition tree: part ", p, ' ', what...); };
        if (part.kind > composition::parallel) throw wrong("is of kind ", static_cast<int>(part.kind), ": must be one of those declared");
        if (part.kind == composition::task) {
            if (!part.parts.empty()) throw wrong("is a task and has parts");
            if (part.task >= tasks) throw wrong("is task ", part.task, ": the graph has ", tasks, " tasks");
            if (leaf[part.task] != none) throw wrong("is task ", part.task, ", as is part ", leaf[part.task], ": each must be there once");
            leaf[part.task] = p;
            continue;
        }
        if (part.parts.size() < 2) throw wrong("has ", part.parts.size(), " parts: a composition must have at least 2");
        for (auto const& child : part.parts) {
            if (child >= p) throw wrong("has part ", child, ": parts must have smaller numbers");
            if (parent[child] != none) throw wrong("has part ", child, ", as has part ", parent[child], ": must be in one place");
            if (tree.parts[child].kind == part.kind)
                throw wrong("has part ", child, " of its own kind: their parts must be parts of one composition");
            parent[child] = p;
            rank[child] = static_cast<std::size_t>(&child - part.parts.data());
        }
    }
    for (std::size_t v = 0; v < tasks; ++v)
        if (leaf[v] == none) throw invalid_input("composition tree: task ", v, " is missing");
    for (std::size_t p = 0; p + 1 < tree.parts.size(); ++p)
        if (parent[p] == none) throw invalid_input("composition tree: part ", p, " is part of nothing: only the last may be");
    for (std::size_t e = 0; e < edges.size(); ++e) {
        auto a = leaf[edges[e].first], b = leaf[edges[e].second]; // climbed until both are parts of the same composition
        while (parent[a] != parent[b]) (parent[a] < parent[b] ? a : b) = std::min(parent[a], parent[b]);
        if (parent[a] == none || tree.parts[parent[a]].kind == composition::parallel || rank[a] >= rank[b])
            throw invalid_input("composition tree: edge number ", e, " from task ", edges[e].first, " to task ", edges[e].second,
                                ": must lead from an earlier part of a series to a later one");
    }
}

} // namespace parsearch::graph

namespace parsearch::graph::detail {

PARSEARCH_INLINE decomposition::decomposition(std::size_t tasks, std::span<task_edge const> edges)
    : order_(task_order(tasks, edges)), before_(tasks, set(tasks)), after_(before_) {
    std::vector<std::uint32_t> place(tasks); // tasks are known by their places in the order from here on
    for (std::uint32_t n = 0; n < tasks; ++n) place[order_[n]] = n;
    std::vector<std::vector<std::uint32_t>> from(tasks);
    for (auto const& [a, b] : edges) from[place[b]].push_back(place[a]);
    for (std::uint32_t n = 0; n < tasks; ++n) {
        for (auto const f : from[n]) {
            before_[n] |= before_[f];
            before_[n].set(f);
        }
        for (auto f = before_[n].find_first(); f != set::npos; f = before_[n].find_next(f)) after_[f].set(n);
    }
}

PARSEARCH_INLINE decomposition::node decomposition::of(set const& tasks) {
    if (tasks.count() == 1) return {composition::task, tasks.find_first(), {}};
    if (auto const parts = components(tasks, false); parts.size() > 1) return compose(composition::parallel, parts);
    if (auto const parts = components(tasks, true); parts.size() > 1) return compose(composition::series, parts);
    return in_levels(modules(tasks));
}

PARSEARCH_INLINE std::vector<decomposition::set> decomposition::components(set left, bool incomparable) const {
    std::vector<set> out;
    while (left.any()) {
        set found(left.size()), waiting(left.size());
        waiting.set(left.find_first());
        left &= ~waiting;
        for (auto v = waiting.find_first(); v != set::npos; v = waiting.find_first()) {
            waiting.reset(v);
            found.set(v);
            auto near = before_[v] | after_[v];
            if (incomparable) near.flip();
            near &= left;
            left -= near;
            waiting |= near;
        }
        out.push_back(std::move(found));
    }
    return out;
}

PARSEARCH_INLINE std::vector<decomposition::set> decomposition::modules(set const& tasks) const {
    auto const v = tasks.find_first();
    set one(tasks.size());
    one.set(v);
    std::vector<set> classes; // becomes the maximal modules without v
    for (auto const& part : {tasks & after_[v], tasks - after_[v] - one})
        if (part.any()) classes.push_back(part);
    for (bool changed = true; changed;) {
        changed = false;
        for (auto w = tasks.find_first(); w != set::npos; w = tasks.find_next(w))
            for (std::size_t c = 0; c < classes.size(); ++c) {
                if (classes[c].test(w) || alike(classes[c], w)) continue;
                changed = true;
                set const whole = classes[c];
                std::size_t pieces = 0;
                for (auto& piece : {whole & before_[w], whole & after_[w], whole - before_[w] - after_[w]})
                    if (piece.any()) {
                        if (pieces++ == 0) classes[c] = piece;
                        else classes.push_back(piece);
                    }
            }
    }
    set with_v = one;
    for (auto const& c : classes) {
        if (c.is_subset_of(with_v)) continue;
        auto const closed = closure(one | c, tasks);
        if (closed != tasks) with_v |= closed;
    }
    std::vector<set> out{with_v};
    for (auto const& c : classes)
        if (!c.intersects(with_v)) out.push_back(c);
    std::sort(out.begin(), out.end(), [](set const& a, set const& b) { return a.find_first() < b.find_first(); });
    return out;
}

PARSEARCH_INLINE decomposition::set decomposition::closure(set s, set const& tasks) const {
    for (bool changed = true; changed;) {
        changed = false;
        set const outside = tasks - s;
        for (auto w = outside.find_first(); w != set::npos; w = outside.find_next(w))
            if (!alike(s, w)) {
                s.set(w);
                changed = true;
            }
    }
    return s;
}

PARSEARCH_INLINE decomposition::node decomposition::in_levels(std::vector<set> const& modules) {
    std::vector<std::size_t> level(modules.size(), 0);
    std::vector<node> levels;
    for (std::size_t m = 0; m < modules.size(); ++m) {
        auto const first = modules[m].find_first();
        for (std::size_t k = 0; k < m; ++k)
            if (before_[first].test(modules[k].find_first())) level[m] = std::max(level[m], level[k] + 1);
        if (level[m] == levels.size()) levels.push_back({composition::parallel, 0, {}});
        append(levels[level[m]], of(modules[m]));
    }
    node out{composition::series, 0, {}};
    for (auto& l : levels) {
        if (l.parts.size() > 1) append(out, std::move(l));
        else append(out, node(std::move(l.parts.front())));
    }
    return out;
}

PARSEARCH_INLINE std::uint32_t decomposition::add(node const& n) {
    composition_tree::part part{n.kind, n.kind == composition::task ? order_[n.task] : 0, {}};
    for (auto const& p : n.parts) part.parts.push_back(add(p));
    out_.parts.push_back(std::move(part));
    return static_cast<std::uint32_t>(out_.parts.size() - 1);
}

} // namespace parsearch::graph::detail
