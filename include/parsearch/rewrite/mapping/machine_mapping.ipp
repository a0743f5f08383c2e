#pragma once
// Machine mapping: views for all tasks of a graph such that it takes the least time.

#include <parsearch/rewrite/mapping/machine_mapping.hpp>

namespace parsearch::rewrite::mapping {

PARSEARCH_INLINE machine_mapping_result solver::solve() {
    machine_mapping_result out;
    out.views.resize(tables_.task_class.size());
    out.boxes.resize(out.views.size());
    auto const cost = trace(static_cast<std::uint32_t>(structure_.all_series.size() - 1), tables_.machine, {}, out);
    if (cost == never) return {.cost = picoseconds{never}, .steps = meter_.steps()};
    out.steps = meter_.steps();
    out.cost = picoseconds{cost};
    return out;
}

PARSEARCH_INLINE std::vector<time> const& solver::table(std::uint32_t s, resource_box const& box) {
    auto const& part = structure_.all_series[s];
    key const k{part.same, tables_.box_class(box)};
    if (auto const at = tables_of_.find(k); at != tables_of_.end()) return at->second;
    auto sum = make(part, box, {});
    std::vector<std::uint32_t> kept;
    for (auto const p : part.ports) kept.push_back(variable(part, p));
    return tables_of_.emplace(k, sum.run(kept, false)).first->second;
}

PARSEARCH_INLINE time solver::trace(std::uint32_t s, resource_box const& box, std::span<std::uint32_t const> views, machine_mapping_result& out) {
    auto const& part = structure_.all_series[s];
    auto sum = make(part, box, views);
    auto const cost = sum.run({}, true).front();
    if (cost == never) return never;
    std::vector<std::uint32_t> values(part.variables.size());
    sum.assign(values);
    for (std::size_t v = 0; v < values.size(); ++v) {
        auto const task = part.variables[v];
        auto const port = std::find(part.ports.begin(), part.ports.end(), task);
        out.views[task] = views.empty() || port == part.ports.end() ? tables_.fits(task, box).views[values[v]]
                                                                    : views[static_cast<std::size_t>(port - part.ports.begin())];
    }
    for (auto const& c : part.children) {
        if (!c.group) {
            out.boxes[c.number] = box;
            continue;
        }
        auto const& g = structure_.all_groups[c.number];
        std::size_t at = 0;
        std::vector<std::uint32_t> scope;
        for (auto const task : g.scope) {
            auto const& fits = tables_.fits(task, box);
            scope.push_back(out.views[task]);
            at = at * fits.views.size() + fits.place[scope.back()];
        }
        auto solve = [this](std::uint32_t number, resource_box const& on) -> auto const& { return table(number, on); };
        branches parts(tables_, structure_, g, box, meter_, solve);
        parts.trace(scope, group_table(g, box)[at],
                    [&](std::uint32_t number, resource_box const& on, std::span<std::uint32_t const> ports) { trace(number, on, ports, out); });
    }
    return cost;
}

PARSEARCH_INLINE elimination solver::make(series const& s, resource_box const& box, std::span<std::uint32_t const> views) {
    std::map<std::uint32_t, std::uint32_t> number; // of the variable of a task
    std::vector<std::size_t> all, sizes, fixed;    // views that fit; values; the position that value 0 stands for
    for (auto const task : s.variables) {
        number.emplace(task, static_cast<std::uint32_t>(number.size()));
        all.push_back(tables_.fits(task, box).views.size());
        sizes.push_back(all.back());
        fixed.push_back(0);
    }
    for (std::size_t p = 0; p < views.size(); ++p) {
        auto const v = number.at(s.ports[p]);
        sizes[v] = 1;
        fixed[v] = tables_.fits(s.ports[p], box).place[views[p]];
    }
    elimination sum(sizes, meter_);
    auto const add = [&](factor f) {
        for (std::size_t k = 0; k < f.scope.size(); ++k) f.data += f.step[k] * fixed[f.scope[k]];
        sum.add(std::move(f));
    };
    for (auto const& c : s.children) {
        if (!c.group) {
            auto const& costs = tables_.costs[tables_.task_class[c.number]];
            std::vector<time> own;
            for (auto const view : tables_.fits(c.number, box).views) own.push_back(costs[view]);
            add(own_factor({number.at(c.number)}, all, std::move(own)));
            continue;
        }
        auto const& g = structure_.all_groups[c.number];
        factor f = own_factor({}, all, {});
        for (auto const task : g.scope) f.scope.push_back(number.at(task));
        f = own_factor(std::move(f.scope), all, {});
        f.data = group_table(g, box).data();
        add(std::move(f));
    }
    for (auto const e : s.links) {
        auto const [from, to] = tables_.edges[e];
        auto const &rows = tables_.fits(from, box).views, &columns = tables_.fits(to, box).views;
        auto const* const costs = tables_.edge_costs(e, false);
        auto const width = tables_.views(to);
        std::vector<std::uint32_t> scope{number.at(from), number.at(to)};
        if (rows.size() == tables_.views(from) && columns.size() == width) {
            auto f = own_factor(std::move(scope), all, {});
            f.data = costs;
            add(std::move(f));
            continue;
        }
        std::vector<time> own;
        own.reserve(rows.size() * columns.size());
        for (auto const r : rows)
            for (auto const column : columns) own.push_back(costs[r * width + column]);
        add(own_factor(std::move(scope), all, std::move(own)));
    }
    return sum;
}

PARSEARCH_INLINE std::vector<time> const& solver::group_table(structure::group const& g, resource_box const& box) {
    key const k{g.same, tables_.box_class(box)};
    if (auto const at = tables_of_groups_.find(k); at != tables_of_groups_.end()) return at->second;
    std::vector<std::size_t> sizes;
    std::vector<std::uint32_t const*> fits;
    for (auto const task : g.scope) {
        auto const& list = tables_.fits(task, box).views;
        sizes.push_back(list.size());
        fits.push_back(list.data());
    }
    std::vector<time> out(meter_.entries(sizes));
    auto solve = [this](std::uint32_t number, resource_box const& on) -> auto const& { return table(number, on); };
    branches parts(tables_, structure_, g, box, meter_, solve);
    std::vector<std::size_t> at(sizes.size(), 0);
    std::vector<std::uint32_t> views(sizes.size());
    for (auto& value : out) {
        for (std::size_t n = 0; n < at.size(); ++n) views[n] = fits[n][at[n]];
        value = parts.value(views);
        for (std::size_t n = at.size(); n-- > 0;) {
            if (++at[n] < sizes[n]) break;
            at[n] = 0;
        }
    }
    return tables_of_groups_.emplace(k, std::move(out)).first->second;
}

} // namespace parsearch::rewrite::mapping
