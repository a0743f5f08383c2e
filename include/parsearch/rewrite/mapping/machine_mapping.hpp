#pragma once
/// Machine mapping: views for all tasks of a graph such that it takes the least time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
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

    machine_mapping_result solve();

  private:
    using series = structure::series;
    using key = std::pair<std::uint32_t, std::uint32_t>; // what is like it first, class of the box

    /// The least time of series number `s` on `box`, by the views of its ports that fit it, the last fastest.
    std::vector<time> const& table(std::uint32_t s, resource_box const& box);

    /// Finds views for the tasks of series number `s`, its ports having `views`; the time.
    time trace(std::uint32_t s, resource_box const& box, std::span<std::uint32_t const> views, machine_mapping_result& out);

    static std::uint32_t variable(series const& s, std::uint32_t task) {
        return static_cast<std::uint32_t>(std::find(s.variables.begin(), s.variables.end(), task) - s.variables.begin());
    }

    /// The sum to be minimised over the variables of a series, those in `views` fixed: they have one value.
    elimination make(series const& s, resource_box const& box, std::span<std::uint32_t const> views);

    /// The least of the time of a group and of the communication of its closed ports, by the views of its scope that fit `box`.
    std::vector<time> const& group_table(structure::group const& g, resource_box const& box);

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

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/mapping/machine_mapping.ipp>
#endif
