#pragma once
/// Blocks made once per configuration: of operators, of edges per pair, of classes per combination of their members' configurations.
/// Repeats have theirs in common: the layers of a deep network take what one of them met.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/samples.hpp>
#include <parsearch/sim/delta/repeats.hpp>
#include <parsearch/sim/delta/symmetry.hpp>
#include <parsearch/sim/delta/task_blocks.hpp>
#include <parsearch/sim/task/planner.hpp>
#include <parsearch/sim/task/word_hash.hpp>

namespace parsearch::sim {

/// Makes blocks on first use and keeps them until `trim`. References stay valid until then. The oracle is asked for the first of operators that
/// repeat each other: its answer must not depend on the names of parameters.
/// Throws what `planner` throws, and then keeps nothing of what was asked for.
class block_cache {
  public:
    /// `fold`: blocks are folded where all nodes are alike.
    block_cache(std::shared_ptr<workload const> const& w, bool fold, std::stop_token stop = {});

    [[nodiscard]] resource_numbers const& resources() const noexcept { return resources_; }
    [[nodiscard]] workload const& input() const noexcept { return planner_.input(); }
    /// An assembler of the plans of blocks.
    [[nodiscard]] assembler make_assembler() const { return planner_.make_assembler(); }
    [[nodiscard]] std::optional<symmetry> const& folds() const noexcept { return symmetry_; }
    /// What the blocks take, about.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_ + planner_.table_bytes(); }

    /// The operator's shape and, where it was needed before, its blocks.
    operator_blocks& of_operator(std::uint32_t op, space::configuration const& c);
    /// Makes the blocks of `b`, which is of operator `op`.
    void build(std::uint32_t op, operator_blocks& b);

    edge_shape const& shape_of_edge(std::uint32_t number, operator_blocks const& from, operator_blocks const& to);
    /// See `planner::times_of`.
    planner::edge_times const& times_of_edge(std::uint32_t number, operator_blocks const& from, operator_blocks const& to);

    /// Whether the readers of two edges of one tensor, which are built, read the same parts of it on the same devices, shard by shard.
    [[nodiscard]] bool read_alike(std::uint32_t a, operator_blocks const& by_a, std::uint32_t b, operator_blocks const& by_b) const {
        auto const& edges = input().graph.edges;
        return by_a.read[edges[a].input] == by_b.read[edges[b].input] && by_a.plan.devices == by_b.plan.devices;
    }

    /// Both ends are built. Edges that move the same parts between the same places have theirs in common, until they are trimmed.
    edge_blocks const& of_edge(std::uint32_t number, operator_blocks const& from, operator_blocks const& to);

    /// `member(op)` answers the blocks of a member. The plan of what is answered names the members of the first class that asked; see `plan_of`.
    template <class Member> class_blocks const& of_class(std::uint32_t c, Member const& member) {
        auto const& w = input();
        key_.clear();
        for (auto const op : w.classes[c]) key_.push_back(member(op).id);
        auto& known = classes_[same_.classes[c]];
        if (auto const at = known.find(key_); at != known.end()) return *at->second;
        auto b = std::make_unique<class_blocks>();
        b->plan.members = w.classes[c];
        planner_.plan_class([&](std::uint32_t op) -> space::configuration const& { return member(op).configuration; },
                            [&](std::uint32_t op) -> operator_plan const& { return member(op).plan; }, b->plan);
        bytes_ += sizeof *b;
        if (w.options.training) {
            build_class(
                *b, w.options.overlap, [&](std::uint32_t op) { return member(op).parts.backward.size(); }, resources_);
            bytes_ += 2 * (b->parts.sync.bytes() + b->parts.update.bytes() + b->parts.inside_sync.bytes() + b->parts.update_waits_sync.bytes());
            for (auto const& d : b->parts.sync_waits) bytes_ += sizeof d + 2 * d.bytes();
            for (auto const& d : b->parts.update_waits) bytes_ += sizeof d + 2 * d.bytes();
        }
        auto const states = cost_of(w.options.optimizer).states;
        for (auto const& h : b->plan.sync.held) {
            b->parts.memory.push_back({h.device, weight_memory(h, w.options, states)});
            bytes_ += sizeof h + 4 * h.groups.size() + 8 * h.contributors.size() + 16;
        }
        if (symmetry_) symmetry_->fold_class(*b, member);
        return *known.emplace(key_, std::move(b)).first->second;
    }

    /// The plan of class `c` with its own members.
    [[nodiscard]] class_plan plan_of(std::uint32_t c, class_blocks const& b) const;

    /// Forgets all but what the ranges of pointers name, of each operator, edge and class.
    template <class Operators, class Edges, class Classes> void trim(Operators const& operators, Edges const& edges, Classes const& classes) {
        keep_only(operators_, operators);
        keep_only(edges_, edges);
        keep_only(classes_, classes);
        for (auto& known : edge_times_) known.clear();
        for (auto& known : edge_shapes_) known.clear();
        alike_.clear(); // tables are made anew
        ends_.clear();
        planner_.forget();
        for (std::uint32_t op = 0; op < operators_.size(); ++op)
            for (auto& [c, b] : operators_[op])
                if (b->built) find_layouts(op, *b);
        bytes_ = 0; // what the limit allows is beside the current strategy
    }

  private:
    void find_layouts(std::uint32_t op, operator_blocks& b) {
        b.read.clear();
        for (std::uint32_t i = 0; i < input().graph.operations[op].inputs.size(); ++i)
            b.read.push_back(planner_.layout_of_input(op, i, b.configuration));
    }
    operator_shape const& shape_of_operator(std::uint32_t op, space::configuration const& c);

    /// Split dims, the smallest stride first, count through all devices.
    [[nodiscard]] bool covers_devices(space::configuration const& c) const noexcept;

    /// See `operator_blocks::ends`. A number is never used for others.
    std::uint32_t ends_of(operator_blocks const& b);

    template <class Maps, class Named> static void keep_only(Maps& all, Named const& named) {
        std::unordered_set<void const*> const keep(named.begin(), named.end());
        for (auto& known : all) std::erase_if(known, [&](auto const& entry) { return !keep.contains(entry.second.get()); });
    }

    static constexpr auto unlimited = std::numeric_limits<std::size_t>::max(); ///< by the planner: `bytes` counts its tables

    planner planner_;
    repeats same_;
    std::optional<symmetry> symmetry_;
    resource_numbers resources_;
    std::uint32_t next_id_ = 0;
    std::size_t bytes_ = 0;
    std::vector<std::unordered_map<space::configuration, std::unique_ptr<operator_shape>, word_hash>> shapes_; ///< few: never forgotten
    std::vector<std::unordered_map<space::configuration, std::unique_ptr<operator_blocks>, word_hash>> operators_;
    std::vector<std::unordered_map<std::uint64_t, edge_shape, word_hash>> edge_shapes_;
    std::vector<std::unordered_map<std::uint64_t, planner::edge_times, word_hash>> edge_times_;
    std::vector<std::unordered_map<std::uint64_t, std::shared_ptr<edge_blocks>, word_hash>> edges_;
    std::unordered_map<std::vector<std::uint32_t>, std::shared_ptr<edge_blocks>, word_hash> alike_; ///< by table, ends, size of elements, gradients
    std::unordered_map<std::vector<std::uint32_t>, std::uint32_t, word_hash> ends_;
    std::vector<std::unordered_map<std::vector<std::uint32_t>, std::unique_ptr<class_blocks>, word_hash>> classes_;
    std::vector<std::uint32_t> key_;
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/delta/block_cache.ipp>
#endif
