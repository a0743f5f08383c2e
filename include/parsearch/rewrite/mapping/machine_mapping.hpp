#pragma once
/// Machine mapping: views for all tasks of a graph such that it takes the least time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/series_parallel.hpp>
#include <parsearch/rewrite/mapping/branches.hpp>
#include <parsearch/rewrite/mapping/mapping_model.hpp>
#include <parsearch/rewrite/mapping/mapping_tables.hpp>
#include <parsearch/rewrite/mapping/structure.hpp>
#include <parsearch/rewrite/mapping/table_elimination.hpp>

namespace parsearch::rewrite {

/// A view for every task.
struct machine_mapping_result {
    picoseconds cost{};                 ///< `mapping_time` of `views`; infinity where no plan exists
    std::vector<std::uint32_t> views{}; ///< by task, the position in `m.views(task)`; empty where no plan exists
    std::vector<resource_box> boxes{};  ///< by task, the resources that its branch has in a plan of that cost; empty where no plan exists
    std::uint64_t steps = 0;            ///< that the search made: see `mapping_options::effort`
};

namespace mapping {
/// The dynamic program. Tables are over positions among the views that fit a box, so that what is alike on boxes of one class shares them.
class solver {
  public:
    solver(tables& t, graph::composition_tree const& tree, mapping_options const& options) : tables_(t), structure_(t, tree), meter_(options) {}

    machine_mapping_result solve() {
        machine_mapping_result out;
        out.views.resize(tables_.task_class.size());
        out.boxes.resize(out.views.size());
        auto const cost = trace(static_cast<std::uint32_t>(structure_.all_series.size() - 1), tables_.machine, {}, out);
        if (cost == never) return {.cost = picoseconds{never}, .steps = meter_.steps()};
        out.steps = meter_.steps();
        out.cost = picoseconds{cost};
        return out;
    }

  private:
    using series = structure::series;
    using key = std::pair<std::uint32_t, std::uint32_t>; // what is like it first, class of the box

    /// The least time of series number `s` on `box`, by the views of its ports that fit it, the last fastest.
    std::vector<time> const& table(std::uint32_t s, resource_box const& box) {
        auto const& part = structure_.all_series[s];
        key const k{part.same, tables_.box_class(box)};
        if (auto const at = tables_of_.find(k); at != tables_of_.end()) return at->second;
        auto sum = make(part, box, {});
        std::vector<std::uint32_t> kept;
        for (auto const p : part.ports) kept.push_back(variable(part, p));
        return tables_of_.emplace(k, sum.run(kept, false)).first->second;
    }

    /// Finds views for the tasks of series number `s`, its ports having `views`; the time.
    time trace(std::uint32_t s, resource_box const& box, std::span<std::uint32_t const> views, machine_mapping_result& out) {
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

    static std::uint32_t variable(series const& s, std::uint32_t task) {
        return static_cast<std::uint32_t>(std::find(s.variables.begin(), s.variables.end(), task) - s.variables.begin());
    }

    /// The sum to be minimised over the variables of a series, those in `views` fixed: they have one value.
    elimination make(series const& s, resource_box const& box, std::span<std::uint32_t const> views) {
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

    /// The least of the time of a group and of the communication of its closed ports, by the views of its scope that fit `box`.
    std::vector<time> const& group_table(structure::group const& g, resource_box const& box) {
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

    tables& tables_;
    structure structure_;
    meter meter_;
    std::map<key, std::vector<time>> tables_of_, tables_of_groups_;
};
} // namespace mapping

/// The views of the tasks of `m`, composed as `tree` says, whose `mapping_time` is least, proved: of all assignments of views, cuts of the
/// resources and orders of branches that the definition has. Among equals the same on every platform.
///
/// - In a series the views of its tasks are eliminated one by one (sums of tables over tasks that have edges in common).
/// - A parallel composition becomes a table over the views of what its branches have edges to. For each entry the branches are
///   independent of each other: each has a frontier of (time, communication) on each box, and frontiers are joined, by sums one after
///   the other, by max(time) + communication side by side, dropping what is not below the best so far.
/// - Sub-trees are solved once per box, like ones on like boxes together (see `MappingModel`).
/// - Throws `invalid_input` on bad options, a tree that is not of `m`, negative costs or classes that do not match; `mapping_limit`, which is one, on
///   a table past `table_limit` (where many tasks depend on each other at once: edges from all of many to all of many), on more steps than `effort`,
///   and where it was stopped.
/// Source: machine mapping of Unity (Unger et al., OSDI 2022), made exact. Complexity, V views per task: V^2 per edge of a
/// chain; V^2 cases of a group between two tasks, in each O(V log V) per branch of one task, box and way to cut.
template <MappingModel M>
[[nodiscard]] machine_mapping_result machine_mapping(M const& m, graph::composition_tree const& tree, mapping_options const& options = {}) {
    validate(options);
    mapping::model_tables<M> tables(m);
    validate(tree, tables.task_class.size(), tables.edges);
    if (tree.parts.empty()) return {};
    return mapping::solver(tables, tree, options).solve();
}

/// The same for the composition tree that `decompose(m)` finds.
template <MappingModel M> [[nodiscard]] machine_mapping_result machine_mapping(M const& m, mapping_options const& options = {}) {
    return machine_mapping(m, decompose(m), options);
}

} // namespace parsearch::rewrite
