#pragma once
/// What is mapped to a machine: tasks, their views, and costs; and the time that an assignment of views takes, by definition.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/ranges.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/series_parallel.hpp>
#include <parsearch/rewrite/mapping/resource_box.hpp>

namespace parsearch::rewrite {

/// A view of the tasks of `M`.
template <class M> using view_t = range_value_t<decltype(std::declval<M const&>().views(std::size_t{}))>;

/// A graph of tasks to be mapped to a machine:
/// - `m.machine()`, a `resource_box`: all resources;
/// - `m.edges()`, a sized random-access range of pairs (from, to), convertible to `task_edge`, of the tasks 0 to `m.tasks() - 1`; without cycles;
/// - `m.views(task)`, a sized random-access range: the views that the task may take, of any copyable type, each known by its position;
/// - `m.fits(task, view, box)`: whether all that the view uses lies in `box`; a view that fits a box fits all that contain it;
/// - `m.task_cost(task, view)` and `m.edge_cost(edge, from, to)`, `picoseconds`: the task's own time, and that of moving what edge number `edge`
///   carries between two views; not negative; `cost_traits<picoseconds>::infinity()` where that is not allowed.
///
/// A model may tell what is alike, as values of any ordered type, so that it is solved once (exactly: classes are compared, not hashes):
/// - `m.task_class(task)`: tasks of one class have as many views, which at equal positions fit the same boxes and cost the same;
/// - `m.edge_class(edge)`: edges of one class lead between tasks of the same classes and cost the same for views of equal positions;
/// - `m.box_class(box)`: for boxes of one class the views that fit, in the order of `views`, correspond one by one for every task, and
///   corresponding views, or pairs of them, cost the same and fit corresponding parts: on a machine of equal devices and links, size is
///   such a class where views are listed by shape first and start last.
template <class M>
concept MappingModel = requires(M const& m, std::size_t number, resource_box const& box) {
    { m.machine() } -> std::convertible_to<resource_box>;
    { m.tasks() } -> std::convertible_to<std::size_t>;
    requires SizedRandomAccessRange<decltype(m.edges())>;
    requires std::convertible_to<range_value_t<decltype(m.edges())>, graph::task_edge>;
    requires SizedRandomAccessRange<decltype(m.views(number))>;
    requires std::copyable<view_t<M>>;
    requires requires(view_t<M> const& view) {
        { m.fits(number, view, box) } -> std::convertible_to<bool>;
        { m.task_cost(number, view) } -> std::convertible_to<picoseconds>;
        { m.edge_cost(number, view, view) } -> std::convertible_to<picoseconds>;
    };
};

/// Options of the definition of time and of the search.
struct mapping_options {
    /// Parallel compositions of so many parts or fewer may be cut into any two groups; those of more only into neighbours, in the order
    /// of the composition tree. From 2 to 8.
    std::uint32_t free_branches = 4;
    /// The most entries of a table that the search makes; it refuses problems that need more. 8 bytes each.
    std::uint64_t table_limit = std::uint64_t{1} << 26;
    /// The most steps, about one per sum or comparison of two times, that the search makes; it refuses problems that need more.
    std::uint64_t effort = ~std::uint64_t{0};
    /// Asked about every 2^16 steps: where it answers true the search ends without a result. Empty: it is not interrupted.
    std::function<bool()> stopped{};
};

/// Thrown where a search would pass a limit of its options, or was stopped: there may be a mapping, but it was not found.
class mapping_limit : public invalid_input {
  public:
    template <class... Parts>
    explicit mapping_limit(std::uint64_t steps, Parts const&... parts) : invalid_input("machine mapping: ", parts...), steps_(steps) {}
    /// That were made until then.
    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

  private:
    std::uint64_t steps_;
};

/// Throws `invalid_input` naming the option, its value and the rule.
void validate(mapping_options const& o);

/// The edges of `m` as pairs of task numbers.
template <MappingModel M> [[nodiscard]] std::vector<graph::task_edge> edges_of(M const& m) {
    auto const& given = m.edges();
    std::vector<graph::task_edge> out;
    out.reserve(std::ranges::size(given));
    for (auto const& e : given) out.push_back(e);
    return out;
}

/// View number `n` of `task`.
template <MappingModel M> [[nodiscard]] view_t<M> view_number(M const& m, std::size_t task, std::size_t n) {
    auto const& views = m.views(task);
    return *(std::ranges::begin(views) + static_cast<std::iter_difference_t<iterator_t<decltype(views)>>>(n));
}

/// The composition tree of the tasks of `m` (see `graph::decompose`).
template <MappingModel M> [[nodiscard]] graph::composition_tree decompose(M const& m) {
    return graph::decompose(static_cast<std::size_t>(m.tasks()), edges_of(m));
}

/// The groups of parts that a parallel composition of `branches` parts is cut into, and how: number n < branches is part n alone, the last is
/// all; group number n is cut into `ways[n][..]`, two smaller groups each. See `mapping_options::free_branches`.
struct branch_groups {
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> ways;
    std::vector<std::vector<std::uint32_t>> members;

    branch_groups(std::size_t branches, std::uint32_t free_branches);
};

/// The time T(root, m.machine()) of the tasks of `m` under the views of numbers `views`, one per task, composed as `tree` says. T(part, box) is
/// - of a task: its cost under its view where that fits `box`, else infinite;
/// - of a series: the sum of T(p, box) over its parts p and of the costs of all edges between different parts: parts run one after the other,
///   and communication in between;
/// - of a parallel composition: T(all of its parts, box), where T(S, box) of one part is that of the part, and of several the least, over the
///   ways to cut S into two groups (`free_branches`), of T(S1, box) + T(S2, box), one after the other on all resources, and of
///   max(T(S1, a), T(S2, b)), side by side, for every cut of `box` in two between nodes or between devices of every node,
///   with a the lower part and b the upper one, and the other way round.
/// Infinite where no plan exists, or past 64 bits. Throws `invalid_input` on bad options, a tree that is not of `m`, or a view number out of range.
/// Source: the semantics of Unity's machine mapping (Unger et al., OSDI 2022), which tells parts of the resources apart by size alone; here by
/// place, and edges may lead between any parts of a series. Complexity: that of a naive recursion that remembers parts by box.
template <MappingModel M>
[[nodiscard]] picoseconds mapping_time(M const& m, graph::composition_tree const& tree, std::span<std::uint32_t const> views,
                                       mapping_options const& options = {}) {
    using traits = cost_traits<picoseconds>;
    validate(options);
    auto const tasks = static_cast<std::size_t>(m.tasks());
    auto const edges = edges_of(m);
    validate(tree, tasks, edges);
    if (views.size() != tasks) throw invalid_input("machine mapping: ", views.size(), " views for ", tasks, " tasks: must be one each");
    for (std::size_t v = 0; v < tasks; ++v)
        if (views[v] >= std::ranges::size(m.views(v)))
            throw invalid_input("machine mapping: view number ", views[v], " of task ", v, ": it has ", std::ranges::size(m.views(v)), " views");
    validate(m.machine(), "machine mapping");
    if (tree.parts.empty()) return picoseconds{0};

    auto const plus = [](picoseconds a, picoseconds b) { return a > traits::infinity() - b ? traits::infinity() : a + b; };
    auto const view_of = [&](std::size_t task) { return view_number(m, task, views[task]); };
    std::vector<picoseconds> between(tree.parts.size(), picoseconds{0}); // of the edges between parts of a series
    std::vector<std::size_t> parent(tree.parts.size(), tree.parts.size()), leaf(tasks);
    for (std::size_t p = 0; p < tree.parts.size(); ++p) {
        if (tree.parts[p].kind == graph::composition::task) leaf[tree.parts[p].task] = p;
        for (auto const c : tree.parts[p].parts) parent[c] = p;
    }
    for (std::size_t e = 0; e < edges.size(); ++e) {
        auto a = leaf[edges[e].first], b = leaf[edges[e].second];
        while (a != b) { // parents have larger numbers: the smaller one is not yet where they meet
            if (a < b) a = parent[a];
            else b = parent[b];
        }
        between[a] = plus(between[a], m.edge_cost(e, view_of(edges[e].first), view_of(edges[e].second)));
    }
    std::map<std::pair<std::size_t, resource_box>, picoseconds> known;
    auto const time = [&](auto const& self, std::size_t p, resource_box const& box) -> picoseconds {
        auto const& part = tree.parts[p];
        if (part.kind == graph::composition::task) {
            auto const view = view_of(part.task);
            return m.fits(part.task, view, box) ? picoseconds(m.task_cost(part.task, view)) : traits::infinity();
        }
        auto const [at, missing] = known.try_emplace({p, box});
        if (!missing) return at->second;
        picoseconds best = traits::infinity();
        if (part.kind == graph::composition::series) {
            best = between[p];
            for (auto const c : part.parts) best = plus(best, self(self, c, box));
        } else {
            branch_groups const groups(part.parts.size(), options.free_branches);
            std::map<std::pair<std::uint32_t, resource_box>, picoseconds> of_group;
            auto const grouped = [&](auto const& again, std::uint32_t g, resource_box const& in) -> picoseconds {
                if (g < part.parts.size()) return self(self, part.parts[g], in);
                auto const [place, fresh] = of_group.try_emplace({g, in});
                if (!fresh) return place->second;
                picoseconds least = traits::infinity();
                for (auto const& [x, y] : groups.ways[g]) {
                    least = std::min(least, plus(again(again, x, in), again(again, y, in)));
                    for (std::size_t n = 0; n < in.cuts(); ++n)
                        for (auto const& [a, b] : {std::pair{in.lower(n), in.upper(n)}, std::pair{in.upper(n), in.lower(n)}})
                            least = std::min(least, std::max(again(again, x, a), again(again, y, b)));
                }
                return place->second = least;
            };
            best = grouped(grouped, static_cast<std::uint32_t>(groups.ways.size() - 1), box);
        }
        return at->second = best;
    };
    return time(time, tree.parts.size() - 1, m.machine());
}

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/mapping/mapping_model.ipp>
#endif
