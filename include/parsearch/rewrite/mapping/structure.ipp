#pragma once
// A composition tree as series of tasks and of groups of branches, with what each depends on and what is alike.

#include <parsearch/rewrite/mapping/structure.hpp>

namespace parsearch::rewrite::mapping {

PARSEARCH_INLINE structure::structure(tables const& t, graph::composition_tree const& tree)
    : tables_(t), tree_(tree), place_(t.task_class.size()), home_(place_.size()) {
    make_series(static_cast<std::uint32_t>(tree.parts.size() - 1));
    for (auto s = static_cast<std::uint32_t>(all_series.size()); s-- > 0;)
        if (auto const p = all_series[s].parent; p != none) all_series[s].depth = all_series[p].depth + 1;
    for (std::uint32_t e = 0; e < t.edges.size(); ++e) place_edge(e);
    for (auto& s : all_series) sort_tasks(s.ports);
    for (std::uint32_t s = 0; s < all_series.size(); ++s) { // branches have smaller numbers than what they are in
        for (auto const& c : all_series[s].children)
            if (c.group) find_ports(all_groups[c.number]);
        open_ports(all_series[s]);
        for (auto const& c : all_series[s].children)
            if (c.group) find_scope(c.number);
        find_variables(s);
    }
}

PARSEARCH_INLINE std::uint32_t structure::make_series(std::uint32_t p) {
    series made;
    made.first = leaves_;
    auto const add = [&](std::uint32_t c) {
        auto const& part = tree_.parts[c];
        if (part.kind == graph::composition::task) {
            made.children.push_back({false, part.task});
            place_[part.task] = leaves_++;
        } else {
            made.children.push_back({true, make_group(c)});
        }
    };
    if (tree_.parts[p].kind == graph::composition::series)
        for (auto const c : tree_.parts[p].parts) add(c);
    else add(p);
    made.tasks = leaves_ - made.first;
    auto const number = static_cast<std::uint32_t>(all_series.size());
    for (auto const& c : made.children) {
        if (!c.group) {
            home_[c.number] = number;
            continue;
        }
        for (auto const b : all_groups[c.number].branches) {
            all_series[b].parent = number;
            all_series[b].within = c.number;
        }
    }
    all_series.push_back(std::move(made));
    return number;
}

PARSEARCH_INLINE std::uint32_t structure::make_group(std::uint32_t p) {
    group made;
    for (auto const c : tree_.parts[p].parts) made.branches.push_back(make_series(c));
    all_groups.push_back(std::move(made));
    return static_cast<std::uint32_t>(all_groups.size() - 1);
}

PARSEARCH_INLINE void structure::place_edge(std::uint32_t e) {
    auto const [from, to] = tables_.edges[e];
    auto a = home_[from], b = home_[to];
    auto const climb = [&](std::uint32_t& s, std::uint32_t port, std::uint32_t other) {
        all_series[s].ports.push_back(port);
        all_groups[all_series[s].within].outer.push_back({e, port, other, port == from});
        s = all_series[s].parent;
    };
    while (a != b) {
        if (all_series[a].depth >= all_series[b].depth) climb(a, from, to);
        else climb(b, to, from);
    }
    all_series[a].edges.push_back(e);
}

PARSEARCH_INLINE void structure::open_ports(series const& s) {
    std::map<std::uint32_t, std::uint32_t> group_of; // of ports
    for (auto const& c : s.children)
        if (c.group)
            for (auto const p : all_groups[c.number].ports) {
                group_of[p] = c.number;
                if (has(s.ports, p)) all_groups[c.number].open.push_back(p);
            }
    std::map<std::pair<std::uint32_t, std::uint32_t>, junction> between; // by the groups
    for (auto const e : s.edges) {
        auto const [a, b] = tables_.edges[e];
        auto const from = group_of.find(a), to = group_of.find(b);
        if (from == group_of.end() || to == group_of.end() || has(all_groups[from->second].open, a) || has(all_groups[to->second].open, b)) continue;
        auto& j = between[{from->second, to->second}];
        j.groups = {from->second, to->second};
        j.ends[0].push_back(a);
        j.ends[1].push_back(b);
    }
    std::map<std::uint32_t, std::vector<junction*>> of_group;
    for (auto& [pair, j] : between)
        for (auto const side : {0u, 1u}) {
            sort_tasks(j.ends[side]);
            of_group[j.groups[side]].push_back(&j);
        }
    // The sides that leave the smaller tables: those of all junctions of a group at once, or of one where there are many.
    for (auto& [pair, j] : between) j.side = views_of(j.ends[1]) <= views_of(j.ends[0]) ? 1 : 0;
    bool changed = true;
    for (int pass = 0; changed && pass < 16; ++pass) {
        changed = false;
        for (auto const& [g, list] : of_group)
            if (list.size() <= 6) changed |= choose_sides(list, of_group);
            else
                for (auto* const j : list) changed |= choose_sides({j}, of_group);
    }
    for (auto const& [pair, j] : between) {
        auto& open = all_groups[j.groups[j.side]].open;
        open.insert(open.end(), j.ends[j.side].begin(), j.ends[j.side].end());
    }
    for (auto const& c : s.children)
        if (c.group) sort_tasks(all_groups[c.number].open);
}

PARSEARCH_INLINE double structure::scope_views(std::uint32_t g, std::map<std::uint32_t, std::vector<junction*>> const& of_group) const {
    auto scope = all_groups[g].open;
    for (auto const* const j : of_group.at(g))
        if (j->groups[j->side] == g) scope.insert(scope.end(), j->ends[j->side].begin(), j->ends[j->side].end());
    auto const open = scope;
    for (auto const& o : all_groups[g].outer)
        if (!has(open, o.port)) scope.push_back(o.other);
    sort_tasks(scope);
    return views_of(scope);
}

PARSEARCH_INLINE bool structure::choose_sides(std::vector<junction*> const& list,
                                              std::map<std::uint32_t, std::vector<junction*>> const& of_group) const {
    std::vector<std::uint32_t> touched;
    std::uint32_t now = 0;
    for (std::size_t n = 0; n < list.size(); ++n) {
        touched.insert(touched.end(), list[n]->groups.begin(), list[n]->groups.end());
        now |= list[n]->side << n;
    }
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    auto const set = [&](std::uint32_t sides) {
        for (std::size_t n = 0; n < list.size(); ++n) list[n]->side = sides >> n & 1u;
        double sum = 0;
        for (auto const g : touched) sum += scope_views(g, of_group);
        return sum;
    };
    auto best = now;
    auto least = set(now);
    for (std::uint32_t sides = 0; sides < 1u << list.size(); ++sides)
        if (auto const sum = set(sides); sum < least) {
            least = sum;
            best = sides;
        }
    set(best);
    return best != now;
}

PARSEARCH_INLINE void structure::find_scope(std::uint32_t number) {
    auto& g = all_groups[number];
    auto const first = all_series[g.branches.front()].first;
    for (auto const& o : g.outer)
        if (!has(g.open, o.port)) g.closed.push_back(o);
    std::sort(g.closed.begin(), g.closed.end(), [&](auto const& x, auto const& y) {
        return std::tuple(place_[x.port], x.out, place_[x.other], tables_.edge_class[x.edge], x.edge) <
               std::tuple(place_[y.port], y.out, place_[y.other], tables_.edge_class[y.edge], y.edge);
    });
    g.scope = g.open;
    for (auto const& o : g.closed)
        if (!has(g.scope, o.other)) g.scope.push_back(o.other);
    std::vector<std::uint32_t> key;
    for (auto const b : g.branches) key.push_back(all_series[b].same);
    key.push_back(none);
    for (auto const p : g.open) key.push_back(place_[p] - first);
    key.push_back(none);
    for (std::size_t n = g.open.size(); n < g.scope.size(); ++n) key.push_back(tables_.task_class[g.scope[n]]);
    key.push_back(none);
    for (auto const& o : g.closed) {
        auto const other = static_cast<std::uint32_t>(std::find(g.scope.begin(), g.scope.end(), o.other) - g.scope.begin());
        key.insert(key.end(), {place_[o.port] - first, o.out ? 1u : 0u, other, tables_.edge_class[o.edge]});
    }
    g.same = group_keys_.emplace(std::move(key), number).first->second;
}

PARSEARCH_INLINE void structure::find_variables(std::uint32_t number) {
    auto& s = all_series[number];
    for (auto const& c : s.children)
        if (!c.group) s.variables.push_back(c.number);
    for (auto const& c : s.children)
        if (c.group) s.variables.insert(s.variables.end(), all_groups[c.number].open.begin(), all_groups[c.number].open.end());
    std::map<std::uint32_t, bool> variable;
    for (auto const v : s.variables) variable[v] = true;
    std::vector<std::array<std::uint32_t, 3>> between;
    for (auto const e : s.edges) {
        auto const [a, b] = tables_.edges[e];
        if (variable.count(a) && variable.count(b)) s.links.push_back(e);
        between.push_back({place_[a] - s.first, place_[b] - s.first, tables_.edge_class[e]});
    }
    std::sort(between.begin(), between.end());
    std::vector<std::uint32_t> key;
    for (auto const& c : s.children)
        if (c.group) key.insert(key.end(), {1u, all_groups[c.number].same});
        else key.insert(key.end(), {0u, tables_.task_class[c.number]});
    key.push_back(none);
    for (auto const p : s.ports) key.push_back(place_[p] - s.first);
    key.push_back(none);
    for (auto const& b : between) key.insert(key.end(), b.begin(), b.end());
    s.same = series_keys_.emplace(std::move(key), number).first->second;
}

} // namespace parsearch::rewrite::mapping
