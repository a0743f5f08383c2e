#pragma once
/// A view of the delta simulator: the schedule and memory of a strategy, on all resources or on one of each class of resources.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/sim/delta/block_graph.hpp>
#include <parsearch/sim/delta/engine.hpp>
#include <parsearch/sim/delta/place_blocks.hpp>
#include <parsearch/sim/delta/task_blocks.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/memory/memory_ledger.hpp>

namespace parsearch::sim {

/// Where a strategy is priced that treats all resources apart, or, folded, all nodes alike. Only one view has the current strategy: another is
/// *behind* by what was committed meanwhile, and catches up before it is used. The graphs must outlive it.
class schedule_view {
  public:
    schedule_view(block_graph const& g, graph::dense_graph const& network, std::size_t class_count, simulation_options const& options,
                  resource_numbers const& r, bool folds);

    template <class Blocks> [[nodiscard]] auto const& parts(Blocks const& b) const noexcept { return folded ? *b.folded : b.parts; }
    void set_operator_memory(std::uint32_t op, operator_blocks const* b) {
        if (b && (!folded || b->folded)) memory.set_operator(op, {&b->shape->memory, &parts(*b).devices});
        else memory.set_operator(op, {});
    }
    void set_class_memory(std::uint32_t c, class_blocks const* b) { memory.set_class(c, b && (!folded || b->folded) ? &parts(*b).memory : nullptr); }

    /// These operators and classes, as pairs whose first is the number, and edges were committed elsewhere.
    template <class Operators, class Edges, class Classes> void fall_behind(Operators const& operators, Edges const& edges, Classes const& classes) {
        for (auto const& [op, b] : operators) note(op, old_operators_, operators_);
        for (auto const& e : edges) note(e.number, old_edges_, edges_);
        for (auto const& [c, b] : classes) note(c, old_classes_, classes_);
    }
    /// Nothing of the current strategy is here. `edges`: the blocks of each edge, none where it has none.
    template <class Edges> void fall_behind_in_all(Edges const& edges) {
        for (std::uint32_t i = 0; i < old_operators_.size(); ++i) note(i, old_operators_, operators_);
        for (std::uint32_t i = 0; i < old_edges_.size(); ++i)
            if (edges[i]) note(i, old_edges_, edges_);
        for (std::uint32_t i = 0; i < old_classes_.size(); ++i) note(i, old_classes_, classes_);
    }
    [[nodiscard]] bool is_behind() const noexcept { return !(operators_.empty() && edges_.empty() && classes_.empty()); }
    /// Takes up what was committed elsewhere, of the blocks in use, but for what cannot be placed here: a proposal comes in its place.
    template <class Operators, class Edges, class Carriers, class Classes>
    void catch_up(Operators const& operators, Edges const& edges, Carriers const& carriers, Classes const& classes) {
        if (!is_behind()) return;
        auto const take = [&](std::vector<std::uint32_t>& list, std::vector<char>& old, auto const& blocks, auto const& has_tasks, auto const& set) {
            std::erase_if(list, [&](std::uint32_t i) {
                if (folded && !blocks[i]->folded && has_tasks(i)) return false;
                old[i] = 0;
                set(i, *blocks[i]);
                return true;
            });
        };
        auto const computes = [&](std::uint32_t op) { return graph_->operators[op].forward != block_graph::none; };
        auto const always = [](std::uint32_t) { return true; };
        take(operators_, old_operators_, operators, computes, [&](auto op, auto const& b) {
            set_operator_memory(op, &b);
            if (computes(op)) sim::place(schedule, *graph_, op, parts(b));
        });
        take(edges_, old_edges_, edges, always, [&](auto e, auto const& b) { sim::place(schedule, *graph_, e, parts(b), carriers[e]); });
        take(classes_, old_classes_, classes, always, [&](auto c, auto const& b) {
            set_class_memory(c, &b);
            sim::place(schedule, *graph_, c, parts(b));
        });
        memory.settle();
        schedule.commit();
    }
    /// The current strategy is all here.
    void is_up_to_date() noexcept;

    bool folded;
    std::unique_ptr<task_list> all_backward = std::make_unique<task_list>();
    engine schedule;
    memory_ledger memory;

  private:
    static void note(std::uint32_t i, std::vector<char>& old, std::vector<std::uint32_t>& list) {
        if (!std::exchange(old[i], 1)) list.push_back(i);
    }

    block_graph const* graph_;
    std::vector<char> old_operators_, old_edges_, old_classes_; ///< what changed since, as flags and lists
    std::vector<std::uint32_t> operators_{}, edges_{}, classes_{};
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/delta/schedule_view.ipp>
#endif
