#pragma once
/// A composition tree as series of tasks and of groups of branches, with what each depends on and what is alike.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/series_parallel.hpp>
#include <parsearch/rewrite/mapping/mapping_tables.hpp>

namespace parsearch::rewrite::mapping {

/// The parts of a composition tree. A port of a part is a task that has an edge to one outside. The tables over which a series is solved have
/// variables: its own tasks, and the open ports of its groups: those that are ports of the series itself, and of two groups with an edge between
/// closed ports those of one. The other ports of a group are closed: they are decided with the group, given its scope: the views
/// of its open ports and of the variables that its closed ports have edges to.
class structure {
  public:
    struct child {
        bool group = false;
        std::uint32_t number = 0; ///< of the task or group
    };
    struct series {
        std::vector<child> children;
        std::uint32_t parent = none, within = none;    ///< the series above, and the group of it that this is a branch of
        std::uint32_t depth = 0, first = 0, tasks = 0; ///< its tasks are those at `first` and behind in the order of the leaves
        std::vector<std::uint32_t> edges{};            ///< between different children
        std::vector<std::uint32_t> ports{};            ///< tasks, in the order of the leaves
        std::vector<std::uint32_t> variables{};        ///< tasks: of its own, then the open ports of its groups
        std::vector<std::uint32_t> links{};            ///< edges between variables
        std::uint32_t same = 0;                        ///< the first series that is like it
    };
    struct outer_edge {
        std::uint32_t edge = 0, port = 0, other = 0; ///< number; tasks
        bool out = false;                            ///< from port to other
    };
    struct group {
        std::vector<std::uint32_t> branches; ///< series
        std::vector<outer_edge> outer{};     ///< all edges that leave it
        std::vector<std::uint32_t> ports{};  ///< tasks, branch by branch
        std::vector<std::uint32_t> open{};   ///< of the ports, in their order
        std::vector<outer_edge> closed{};    ///< the edges of closed ports, in the order of the ports
        std::vector<std::uint32_t> scope{};  ///< tasks: the open ports, then the others that closed ports have edges to
        std::uint32_t same = 0;              ///< the first group that is like it, its scope included
    };
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    structure(tables const& t, graph::composition_tree const& tree);

    std::vector<series> all_series; ///< the last is the root
    std::vector<group> all_groups;

  private:
    std::uint32_t make_series(std::uint32_t p);
    std::uint32_t make_group(std::uint32_t p);

    void sort_tasks(std::vector<std::uint32_t>& tasks) const {
        std::sort(tasks.begin(), tasks.end(), [&](auto a, auto b) { return place_[a] < place_[b]; });
        tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
    }
    static bool has(std::vector<std::uint32_t> const& list, std::uint32_t task) { return std::find(list.begin(), list.end(), task) != list.end(); }

    void place_edge(std::uint32_t e);
    void find_ports(group& g) {
        for (auto const b : g.branches) g.ports.insert(g.ports.end(), all_series[b].ports.begin(), all_series[b].ports.end());
    }

    void open_ports(series const& s);

    /// Two groups with edges between closed ports: those of one side are opened.
    struct junction {
        std::array<std::uint32_t, 2> groups{};
        std::array<std::vector<std::uint32_t>, 2> ends{}; // tasks: of the edges between them
        std::uint32_t side = 0;
    };
    [[nodiscard]] double views_of(std::vector<std::uint32_t> const& tasks) const {
        double out = 1;
        for (auto const t : tasks) out *= static_cast<double>(tables_.views(t));
        return out;
    }
    /// The size of the table of group `g` if the junctions are as they are.
    [[nodiscard]] double scope_views(std::uint32_t g, std::map<std::uint32_t, std::vector<junction*>> const& of_group) const;
    /// Gives the junctions of `list` the sides that make the tables of their groups smallest; whether that changes any.
    bool choose_sides(std::vector<junction*> const& list, std::map<std::uint32_t, std::vector<junction*>> const& of_group) const;

    void find_scope(std::uint32_t number);

    void find_variables(std::uint32_t number);

    tables const& tables_;
    graph::composition_tree const& tree_;
    std::vector<std::uint32_t> place_, home_; // of tasks: in the order of the leaves; the series that has them as children
    std::uint32_t leaves_ = 0;
    std::map<std::vector<std::uint32_t>, std::uint32_t> series_keys_, group_keys_;
};

} // namespace parsearch::rewrite::mapping

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/mapping/structure.ipp>
#endif
