#pragma once
/// A DAG of tasks as a tree of series and parallel compositions.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <boost/dynamic_bitset/dynamic_bitset.hpp>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/topological_order.hpp>

namespace parsearch::graph {

/// An edge of a graph of tasks: from, to.
using task_edge = std::pair<std::uint32_t, std::uint32_t>;

/// What a part of a `composition_tree` is.
enum class composition : std::uint8_t {
    task,    ///< one task
    series,  ///< its parts run one after the other
    parallel ///< its parts are independent of each other
};

/// A tree whose leaves are the tasks of a DAG, each once. Edges of the DAG between parts of a series lead from earlier to later ones, not
/// only to the next; parts of a parallel composition have no edges between them. In normal form compositions have two or more parts,
/// none of the same kind.
struct composition_tree {
    struct part {
        composition kind = composition::task;
        std::uint32_t task = 0;             ///< of a task
        std::vector<std::uint32_t> parts{}; ///< of a composition: numbers below its own
        friend bool operator==(part const&, part const&) = default;
    };
    std::vector<part> parts{}; ///< the last is the root; empty where there are no tasks

    friend bool operator==(composition_tree const&, composition_tree const&) = default;
};

/// A topological order of tasks 0 to tasks - 1, smallest number first among what is ready. Throws `invalid_input` on an edge to or from
/// a task that is not there, or a cycle.
[[nodiscard]] std::vector<std::uint32_t> task_order(std::size_t tasks, std::span<task_edge const> edges);

/// Checks that `tree` is one of the DAG of `edges`, in normal form. Throws `invalid_input` naming the part and the rule.
void validate(composition_tree const& tree, std::size_t tasks, std::span<task_edge const> edges);

namespace detail {
/// Modular decomposition of the order that a DAG generates.
class decomposition {
  public:
    using set = boost::dynamic_bitset<>;

    decomposition(std::size_t tasks, std::span<task_edge const> edges);

    composition_tree tree() {
        if (!order_.empty()) add(of(set(order_.size()).set()));
        return std::move(out_);
    }

  private:
    /// A tree that is not yet numbered.
    struct node {
        composition kind = composition::task;
        std::size_t task = 0;
        std::vector<node> parts{};
    };

    node of(set const& tasks);
    node compose(composition kind, std::vector<set> const& parts) {
        node out{kind, 0, {}};
        for (auto const& p : parts) append(out, of(p));
        return out;
    }
    static void append(node& to, node part) {
        if (part.kind != to.kind) to.parts.push_back(std::move(part));
        else
            for (auto& p : part.parts) to.parts.push_back(std::move(p));
    }
    /// Components of those that are comparable, or of those that are not, by their first tasks. The latter are in the order that they have:
    /// each precedes all of the next.
    [[nodiscard]] std::vector<set> components(set left, bool incomparable) const;
    /// Whether all of `s` are before `v`, or all behind, or none comparable.
    [[nodiscard]] bool alike(set const& s, std::size_t v) const {
        return s.is_subset_of(before_[v]) || s.is_subset_of(after_[v]) || (!s.intersects(before_[v]) && !s.intersects(after_[v]));
    }
    /// The maximal proper modules (sets whose members are alike to each task outside), by first task, where `tasks` are connected by
    /// comparability as well as by incomparability: then these are disjoint (Gallai 1967).
    [[nodiscard]] std::vector<set> modules(set const& tasks) const;
    /// The smallest module of `tasks` that holds `s`.
    [[nodiscard]] set closure(set s, set const& tasks) const;
    node in_levels(std::vector<set> const& modules);

    std::uint32_t add(node const& n);

    std::vector<std::uint32_t> order_;
    std::vector<set> before_, after_; // of places in the order: all that precede, all that follow
    composition_tree out_;
};
} // namespace detail

/// The composition tree of the order that the DAG generates. Tasks are compared by whether a path leads from one to the other, so that an
/// edge beside a path (a residual connection) changes nothing.
///
/// - Tasks that fall apart into sets without a path between them: parallel. Sets of which each precedes all of the next (among them
///   the segments between tasks that are comparable to all, the post-dominators): series. So far the tree is unique.
/// - Neither (the order has the shape of an N, it is not series-parallel): of its maximal modules, each decomposed by itself, those that are
///   equally far from the beginning, counted in modules on the longest path, make a level; the levels are in series, the modules of a level
///   parallel. That runs some independent tasks one after the other; it allows all that running the modules in sequence would.
/// - Throws `invalid_input` as `task_order`.
/// Sources: Valdes, Tarjan, Lawler, The recognition of series parallel digraphs, SIAM J. Comput. 1982; Gallai, Transitiv orientierbare
/// Graphen, 1967 (modules). Complexity: O(V E / 64) words for the closure; O(V^2 / 64) per level of the tree where it is
/// series-parallel, up to O(V^3 / 64) for one that is not.
[[nodiscard]] inline composition_tree decompose(std::size_t tasks, std::span<task_edge const> edges) {
    return detail::decomposition(tasks, edges).tree();
}

} // namespace parsearch::graph

#ifndef PARSEARCH_COMPILED
#include <parsearch/graph/series_parallel.ipp>
#endif
