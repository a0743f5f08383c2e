#pragma once
/// Machine mapping of operator graphs: degrees and devices chosen for all operators, branches side by side where that pays.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/rewrite/joint/graph_pricer.hpp>
#include <parsearch/rewrite/mapping/machine_grid.hpp>
#include <parsearch/rewrite/mapping/machine_mapping.hpp>
#include <parsearch/space/configuration.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::rewrite {

/// The operators of a graph as a `MappingModel`. Tasks are the operators but for graph inputs, which cost nothing wherever they are (views of tensors
/// are tasks); a view is a configuration, which fits the boxes that hold all its shards. What a task and an edge cost is said by `choice_costs`: work
/// of the busiest device and the synchronisation of weights, and the time of the busiest link. Weights that several operators share are synchronised
/// for none. Tasks and edges are alike where their tables are. Boxes are alike where the views that fit them are, beside each other, equally far from
/// their corners and all costs between them equal: this is compared, number by number, not concluded from the topology.
class operator_mapping {
  public:
    struct view {
        std::uint32_t number = 0; ///< among the configurations of the operator
        resource_box box{};       ///< the smallest that holds it
    };

    /// Precondition: `costs` are of `g`. Complexity: O(boxes * tables) to find what is alike.
    operator_mapping(machine_grid const& grid, graph::dense_graph const& g, choice_costs costs);

    [[nodiscard]] resource_box machine() const noexcept { return machine_; }
    [[nodiscard]] std::size_t tasks() const noexcept { return operators_.size(); }
    [[nodiscard]] std::vector<graph::task_edge> const& edges() const noexcept { return edges_; }
    [[nodiscard]] std::vector<view> const& views(std::size_t task) const noexcept { return views_[task_class_[task]]; }
    [[nodiscard]] bool fits(std::size_t, view const& v, resource_box const& box) const noexcept { return box.contains(v.box); }
    [[nodiscard]] picoseconds task_cost(std::size_t task, view const& v) const noexcept {
        return picoseconds{costs_.own[operators_[task]][v.number]};
    }
    [[nodiscard]] picoseconds edge_cost(std::size_t edge, view const& from, view const& to) const noexcept {
        return (*costs_.pairs[edge_numbers_[edge]])[from.number * views(edges_[edge].second).size() + to.number];
    }
    [[nodiscard]] std::uint32_t task_class(std::size_t task) const noexcept { return task_class_[task]; }
    [[nodiscard]] std::uint32_t edge_class(std::size_t edge) const noexcept { return edge_class_[edge]; }
    [[nodiscard]] std::uint32_t box_class(resource_box const& box) const { return box_class_.at(box); }

    /// The operator that a task is.
    [[nodiscard]] std::uint32_t operator_of(std::size_t task) const noexcept { return operators_[task]; }
    /// The configurations of all operators of the graph under these views, one per task; of graph inputs their first.
    [[nodiscard]] space::flat_strategy strategy(std::span<std::uint32_t const> views) const;

  private:
    /// The views of class `c` that fit `box`, by position.
    [[nodiscard]] std::vector<std::uint32_t> fitting(std::size_t c, resource_box const& box) const;
    /// `part` as seen from the corner of `box`.
    [[nodiscard]] static resource_box within(resource_box part, resource_box const& box) noexcept {
        part.first_node -= box.first_node;
        part.first_device -= box.first_device;
        return part;
    }
    void find_alike_boxes();
    template <class Known> [[nodiscard]] bool alike(Known const& a, Known const& b) const {
        for (std::size_t c = 0; c < views_.size(); ++c) {
            if (a.fits[c].size() != b.fits[c].size()) return false;
            auto const& own = costs_.own[example_[c]];
            for (std::size_t n = 0; n < a.fits[c].size(); ++n) {
                auto const x = a.fits[c][n], y = b.fits[c][n];
                if (own[x] != own[y] || within(views_[c][x].box, a.box) != within(views_[c][y].box, b.box)) return false;
            }
        }
        for (auto const e : edge_examples_) {
            auto const from = task_class_[edges_[e].first], to = task_class_[edges_[e].second];
            auto const& table = *costs_.pairs[edge_numbers_[e]];
            auto const width = views_[to].size();
            for (std::size_t n = 0; n < a.fits[from].size(); ++n)
                for (std::size_t m = 0; m < a.fits[to].size(); ++m)
                    if (table[a.fits[from][n] * width + a.fits[to][m]] != table[b.fits[from][n] * width + b.fits[to][m]]) return false;
        }
        return true;
    }

    resource_box machine_;
    choice_costs costs_;
    std::vector<std::uint32_t> operators_, task_class_, edge_class_; // by task, by task, by edge
    std::vector<graph::task_edge> edges_;
    std::vector<std::size_t> edge_numbers_;  // in the graph
    std::vector<std::vector<view>> views_;   // by class of task
    std::vector<std::uint32_t> example_;     // by class of task: an operator
    std::vector<std::size_t> edge_examples_; // by class of edge: an edge
    std::map<resource_box, std::uint32_t> box_class_;
};
static_assert(MappingModel<operator_mapping>);

/// What mapping an operator graph may take.
struct operator_mapping_options {
    std::size_t views = 32;  ///< of an operator, at least 1; fewer where that is too many, see `map_operators`
    std::size_t per_box = 3; ///< configurations of an operator on as many devices as a box has, at least 1
    std::size_t cells = 12;  ///< of the machine, between which alone it is cut, at least 1: see `machine_grid`
    counted_synchronisation synchronisation{};
    mapping_options limits{.table_limit = std::uint64_t{1} << 22,
                           .effort = std::uint64_t{1} << 26}; ///< of the dynamic program, each time that it is tried
};

/// Throws `invalid_input` naming the option, its value and the rule.
void validate(operator_mapping_options const& o);

/// A graph mapped to a machine.
struct mapped_operators {
    space::flat_strategy strategy{}; ///< a configuration per operator; empty where the graph was not mapped
    picoseconds cost{};              ///< `mapping_time` of it
    std::size_t views = 0;           ///< the limit of views per operator with which it was found, or last tried
    std::uint64_t steps = 0;         ///< of the dynamic program, all that were made
    std::string refused{};           ///< why the graph was not mapped, or not with as many views as asked for; else empty
};

/// The views of `operator_views` for the operators of `g`, on the machine and in the space of `pricer`: best by `machine_mapping`. `also[n]` is a
/// strategy of `g` whose configurations are views too (what elimination found, say). Where the dynamic program would pass `limits`, it is tried with
/// half as many views, at least four; where that fails too, or it is stopped, there is no strategy. `pricer` remembers what operators and edges cost;
/// the dynamic program is run each time. Memory is not looked at. Deterministic. Throws `invalid_input` on options out of range or strategies of
/// another size, and what the oracle throws. Complexity: views^2 prices for each distinct edge, and that of `machine_mapping`.
[[nodiscard]] mapped_operators map_operators(graph_pricer& pricer, graph::dense_graph const& g, operator_mapping_options const& options = {},
                                             std::span<space::flat_strategy const> also = {});

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/joint/operator_mapping.ipp>
#endif
