#pragma once
/// The costs of a mapping model as numbers, read when they are first needed and shared by what is alike.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/rewrite/mapping/mapping_model.hpp>
#include <parsearch/rewrite/mapping/resource_box.hpp>

namespace parsearch::rewrite::mapping {

/// A time in picoseconds.
using time = std::int64_t;
inline constexpr time never = cost_traits<picoseconds>::infinity().count();

/// The sum of two times that are not negative; what is past 64 bits is never.
[[nodiscard]] constexpr time plus(time a, time b) noexcept { return a > never - b ? never : a + b; }

/// Numbers for values, in the order in which they come.
template <class T> class numbering {
  public:
    [[nodiscard]] std::uint32_t of(T const& value) { return numbers_.emplace(value, static_cast<std::uint32_t>(numbers_.size())).first->second; }

  private:
    std::map<T, std::uint32_t> numbers_;
};

/// Keeps a search within the limits of its options, which must live as long. What refuses throws `mapping_limit`.
class meter {
  public:
    explicit meter(mapping_options const& options) : options_(&options) {}

    [[nodiscard]] mapping_options const& options() const noexcept { return *options_; }
    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
    /// Counts steps; refuses more than there may be, and to go on where the search is to stop.
    void spend(std::uint64_t steps) {
        steps_ += steps;
        if (steps_ > next_) check();
    }
    /// The product of numbers of views; refuses tables of so many entries where that passes the limit.
    [[nodiscard]] std::size_t entries(std::span<std::size_t const> sizes) const;

  private:
    void check();

    mapping_options const* options_;
    std::uint64_t steps_ = 0, next_ = 0;
};

/// A mapping model by numbers. Views are known by their positions. Tables are filled by what derives from it.
class tables {
  public:
    tables() = default;
    tables(tables const&) = delete;
    tables& operator=(tables const&) = delete;
    virtual ~tables() = default;

    resource_box machine{};
    std::vector<graph::task_edge> edges;
    std::vector<std::uint32_t> task_class, edge_class;
    std::vector<std::vector<time>> costs; ///< by class of task, then by view

    /// The number of views of `task`.
    [[nodiscard]] std::size_t views(std::uint32_t task) const { return costs[task_class[task]].size(); }

    /// The costs of edge number `edge` by views: those of the first view of `from` first; where `turned`, of `to`.
    [[nodiscard]] time const* edge_costs(std::uint32_t edge, bool turned);
    /// The views of `task` that fit `box`, ascending, and the position of each view among these (views(task) where it does not fit).
    struct fitting {
        std::vector<std::uint32_t> views, place;
    };
    [[nodiscard]] fitting const& fits(std::uint32_t task, resource_box const& box);
    /// A number for the class of `box`.
    [[nodiscard]] virtual std::uint32_t box_class(resource_box const& box) = 0;

  protected:
    virtual void read_edge(std::uint32_t edge, std::vector<time>& table) = 0;
    [[nodiscard]] virtual bool fits_view(std::uint32_t task, std::uint32_t view, resource_box const& box) = 0;

    std::map<std::uint32_t, std::array<std::vector<time>, 2>> edge_costs_; // by class
    std::map<std::pair<std::uint32_t, resource_box>, fitting> fitting_;
};

/// The tables of a model; refers to it. Throws `invalid_input` on a negative cost, a class of tasks whose numbers of views differ or of edges
/// that lead between different classes.
template <MappingModel M> class model_tables final : public tables {
  public:
    explicit model_tables(M const& m) : m_(m) {
        machine = m.machine();
        validate(machine, "machine mapping");
        edges = edges_of(m);
        auto const tasks = static_cast<std::uint32_t>(m.tasks());
        for (std::uint32_t t = 0; t < tasks; ++t) {
            if constexpr (has_task_class) task_class.push_back(task_classes_.of(m.task_class(t)));
            else task_class.push_back(t);
            auto const& list = m.views(t);
            auto const count = static_cast<std::size_t>(std::ranges::size(list));
            if (task_class[t] == costs.size()) {
                costs.emplace_back();
                views_.emplace_back();
                for (auto const& view : list) {
                    costs.back().push_back(checked(m.task_cost(t, view), "of task ", t));
                    views_.back().push_back(view);
                }
            } else if (count != views(t)) {
                throw invalid_input("machine mapping: task ", t, " has ", count, " views, the first task of its class ", views(t),
                                    ": must be as many");
            }
        }
        std::vector<graph::task_edge> ends; // by class of edge, the classes of its ends
        for (std::uint32_t e = 0; e < edges.size(); ++e) {
            if (edges[e].first >= tasks || edges[e].second >= tasks)
                throw invalid_input("task graph: edge number ", e, " leads from ", edges[e].first, " to ", edges[e].second, ": the graph has ", tasks,
                                    " tasks");
            if constexpr (has_edge_class) edge_class.push_back(edge_classes_.of(m.edge_class(e)));
            else edge_class.push_back(e);
            graph::task_edge const classes{task_class[edges[e].first], task_class[edges[e].second]};
            if (edge_class[e] == ends.size()) ends.push_back(classes);
            else if (ends[edge_class[e]] != classes)
                throw invalid_input("machine mapping: edge number ", e, " is of the class of one that leads between tasks of other classes");
        }
    }

    [[nodiscard]] std::uint32_t box_class(resource_box const& box) override {
        if constexpr (has_box_class) return box_classes_.of(m_.box_class(box));
        else return box_classes_.of(box);
    }

  protected:
    void read_edge(std::uint32_t edge, std::vector<time>& table) override {
        auto const& from = views_[task_class[edges[edge].first]];
        auto const& to = views_[task_class[edges[edge].second]];
        table.reserve(from.size() * to.size());
        for (auto const& a : from)
            for (auto const& b : to) table.push_back(checked(m_.edge_cost(edge, a, b), "of edge number ", edge));
    }
    [[nodiscard]] bool fits_view(std::uint32_t task, std::uint32_t view, resource_box const& box) override {
        return m_.fits(task, views_[task_class[task]][view], box);
    }

  private:
    static constexpr bool has_task_class = requires(M const& m) { m.task_class(std::size_t{}); };
    static constexpr bool has_edge_class = requires(M const& m) { m.edge_class(std::size_t{}); };
    static constexpr bool has_box_class = requires(M const& m) { m.box_class(resource_box{}); };
    static auto task_class_type() {
        if constexpr (has_task_class) return std::remove_cvref_t<decltype(std::declval<M const&>().task_class(std::size_t{}))>{};
        else return 0u;
    }
    static auto edge_class_type() {
        if constexpr (has_edge_class) return std::remove_cvref_t<decltype(std::declval<M const&>().edge_class(std::size_t{}))>{};
        else return 0u;
    }
    static auto box_class_type() {
        if constexpr (has_box_class) return std::remove_cvref_t<decltype(std::declval<M const&>().box_class(resource_box{}))>{};
        else return resource_box{};
    }

    [[nodiscard]] static time checked(picoseconds cost, char const* what, std::size_t number) {
        if (cost < picoseconds{0}) throw invalid_input("machine mapping: the cost ", what, number, " is ", cost.count(), " ps: must not be negative");
        return cost.count();
    }

    M const& m_;
    std::vector<std::vector<view_t<M>>> views_; // by class of task
    numbering<decltype(task_class_type())> task_classes_;
    numbering<decltype(edge_class_type())> edge_classes_;
    numbering<decltype(box_class_type())> box_classes_;
};

} // namespace parsearch::rewrite::mapping

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/mapping/mapping_tables.ipp>
#endif
