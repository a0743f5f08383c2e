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
    block_cache(std::shared_ptr<workload const> const& w, bool fold, std::stop_token stop = {})
        : planner_(w, unlimited), same_(find_repeats(w->graph, w->classes)), symmetry_(fold ? symmetry::of(w->topology) : std::nullopt),
          resources_{static_cast<std::uint32_t>(w->topology.size()), static_cast<std::uint32_t>(w->topology.links.size())}, shapes_(w->graph.size()),
          operators_(w->graph.size()), edge_shapes_(w->graph.edges.size()), edge_times_(w->graph.edges.size()), edges_(w->graph.edges.size()),
          classes_(w->classes.size()) {
        planner_.stop_at(std::move(stop));
    }

    [[nodiscard]] resource_numbers const& resources() const noexcept { return resources_; }
    [[nodiscard]] workload const& input() const noexcept { return planner_.input(); }
    /// An assembler of the plans of blocks.
    [[nodiscard]] assembler make_assembler() const { return planner_.make_assembler(); }
    [[nodiscard]] std::optional<symmetry> const& folds() const noexcept { return symmetry_; }
    /// What the blocks take, about.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_ + planner_.table_bytes(); }

    /// The operator's shape and, where it was needed before, its blocks.
    operator_blocks& of_operator(std::uint32_t op, space::configuration const& c) {
        op = same_.operators[op];
        auto& known = operators_[op];
        if (auto const at = known.find(c); at != known.end()) return *at->second;
        auto b = std::make_unique<operator_blocks>();
        b->id = next_id_++;
        b->configuration = c;
        b->shape = &shape_of_operator(op, c);
        b->everywhere = covers_devices(c);
        bytes_ += sizeof *b + sizeof c + 32;
        return *known.emplace(c, std::move(b)).first->second;
    }
    /// Makes the blocks of `b`, which is of operator `op`.
    void build(std::uint32_t op, operator_blocks& b) {
        if (b.built) return;
        op = same_.operators[op];
        auto const& w = input();
        b.plan = {};
        b.parts = {};
        b.plan.forward = b.shape->forward;
        b.plan.backward = b.shape->backward;
        planner_.place_operator(op, b.configuration, b.plan);
        find_layouts(op, b);
        build_operator(b, w.options.training && w.graph.trains[op], w.topology.kind, resources_);
        if (symmetry_ && w.graph.operations[op].work != ops::work_class::source) symmetry_->fold_operator(b);
        b.ends = ends_of(b);
        bytes_ += 16 * b.plan.devices.size() + b.parts.forward.bytes() + b.parts.backward.bytes() + b.parts.inside_forward.bytes() +
                  b.parts.all_backward_waits.bytes();
        b.built = true;
    }

    edge_shape const& shape_of_edge(std::uint32_t number, operator_blocks const& from, operator_blocks const& to) {
        number = same_.edges[number];
        auto const key = std::uint64_t{from.shape->id} << 32 | to.shape->id;
        auto& known = edge_shapes_[number];
        if (auto const at = known.find(key); at != known.end()) return at->second;
        auto shape = shape_of(planner_.overlaps(number, from.configuration, to.configuration));
        bytes_ += sizeof(edge_shape) + 32;
        return known.emplace(key, std::move(shape)).first->second;
    }
    /// See `planner::times_of`.
    planner::edge_times const& times_of_edge(std::uint32_t number, operator_blocks const& from, operator_blocks const& to) {
        number = same_.edges[number];
        auto const key = std::uint64_t{from.id} << 32 | to.id;
        auto& known = edge_times_[number];
        if (auto const at = known.find(key); at != known.end()) return at->second;
        auto const& shape = shape_of_edge(number, from, to);
        auto times = planner_.times_of(number, *shape.table, from.configuration, to.configuration);
        bytes_ += sizeof times + 32 + 16 * (times.consumers.size() + times.producers.size());
        return known.emplace(key, std::move(times)).first->second;
    }

    /// Whether the readers of two edges of one tensor, which are built, read the same parts of it on the same devices, shard by shard.
    [[nodiscard]] bool read_alike(std::uint32_t a, operator_blocks const& by_a, std::uint32_t b, operator_blocks const& by_b) const {
        auto const& edges = input().graph.edges;
        return by_a.read[edges[a].input] == by_b.read[edges[b].input] && by_a.plan.devices == by_b.plan.devices;
    }

    /// Both ends are built. Edges that move the same parts between the same places have theirs in common, until they are trimmed.
    edge_blocks const& of_edge(std::uint32_t number, operator_blocks const& from, operator_blocks const& to) {
        number = same_.edges[number];
        auto const key = std::uint64_t{from.id} << 32 | to.id;
        auto& known = edges_[number];
        if (auto const at = known.find(key); at != known.end()) return *at->second;
        auto const& g = input().graph;
        auto const& e = g.edges[number];
        auto const& shape = shape_of_edge(number, from, to);
        bool const moves = g.operations[e.producer].work != ops::work_class::source;
        bool const gradients = input().options.training && g.carries_gradient(e);
        bool const shares = moves && !g.operations[e.consumer].inputs[e.input].passed_on; // else its reader's times matter
        key_.clear();
        if (shares) {
            auto const table = reinterpret_cast<std::uintptr_t>(shape.table.get()); // the plan keeps it
            auto const element = ops::size_of(g.operations[e.producer].outputs[e.slot].type);
            key_ = {static_cast<std::uint32_t>(table), static_cast<std::uint32_t>(std::uint64_t{table} >> 32), from.ends, to.ends,
                    static_cast<std::uint32_t>(element) << 1 | std::uint32_t{gradients}};
            bytes_ += 150; // two entries of maps
            if (auto const at = alike_.find(key_); at != alike_.end()) return *known.emplace(key, at->second).first->second;
        }
        auto b = std::make_shared<edge_blocks>();
        b->plan = planner_.plan_edge(number, from.configuration, from.plan, to.configuration, to.plan);
        build_edge(*b, shape, from, to, gradients, resources_);
        if (symmetry_) symmetry_->fold_edge(*b, from, to);
        bytes_ += sizeof *b + 2 * (b->parts.forward.bytes() + b->parts.backward.bytes()) + 16 * (b->plan.forward.size() + b->plan.backward.size()) +
                  12 * b->plan.collective_of.size();
        for (auto const* d : {&b->parts.forward_waits, &b->parts.inside_forward, &b->parts.consumer_waits, &b->parts.consumer_local,
                              &b->parts.backward_waits, &b->parts.inside_backward, &b->parts.producer_waits, &b->parts.producer_local})
            bytes_ += d->bytes();
        if (shares) alike_.emplace(key_, b);
        return *known.emplace(key, std::move(b)).first->second;
    }

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
    [[nodiscard]] class_plan plan_of(std::uint32_t c, class_blocks const& b) const {
        auto out = b.plan;
        out.members = input().classes[c];
        if (out.members == b.plan.members) return out;
        auto const rename = [&](std::vector<shard_ref>& shards) {
            for (auto& s : shards) s.op = out.members[number_of(b.plan.members, s.op)];
        };
        for (auto& g : out.sync.groups) rename(g.contributors);
        for (auto& h : out.sync.held) rename(h.contributors);
        for (auto& server : out.servers)
            for (auto& client : server.clients) rename(client.contributors);
        return out;
    }

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
    operator_shape const& shape_of_operator(std::uint32_t op, space::configuration const& c) {
        space::configuration key{.rank = c.rank, .degree = c.degree};
        auto const& operation = input().graph.operations[op];
        if (auto const k = ops::cut_dim(operation, c.degrees())) // then the largest shard of a kind depends on where the shards are
            for (auto const size : planner_.largest_by_kind(operation, c, *k)) {
                key.listed.push_back(static_cast<std::int32_t>(size >> 31));
                key.listed.push_back(static_cast<std::int32_t>(size & 0x7fffffff));
            }
        auto& known = shapes_[op];
        if (auto const at = known.find(key); at != known.end()) return *at->second;
        auto shape = std::make_unique<operator_shape>();
        shape->id = next_id_++;
        planner_.time_operator(op, c, shape->forward, shape->backward);
        shape->shortest_forward = *std::min_element(shape->forward.begin(), shape->forward.end());
        shape->shortest_backward = *std::min_element(shape->backward.begin(), shape->backward.end());
        shape->memory = memory_of(input().graph.operations[op], c.degrees());
        return *known.emplace(std::move(key), std::move(shape)).first->second;
    }

    /// Split dims, the smallest stride first, count through all devices.
    [[nodiscard]] bool covers_devices(space::configuration const& c) const noexcept {
        if (!c.listed.empty() || c.start != 0 || c.shards() != static_cast<std::int64_t>(resources_.devices)) return false;
        for (std::int64_t stride = 1; stride < static_cast<std::int64_t>(resources_.devices);) {
            std::int32_t degree = 0;
            for (std::uint32_t k = 0; k < c.rank; ++k)
                if (c.degree[k] > 1 && c.stride[k] == stride) degree = c.degree[k];
            if (degree == 0) return false;
            stride *= degree;
        }
        return true;
    }

    /// See `operator_blocks::ends`. A number is never used for others.
    std::uint32_t ends_of(operator_blocks const& b) {
        key_.clear();
        auto const add = [&](std::vector<std::uint32_t> const& list) {
            key_.push_back(static_cast<std::uint32_t>(list.size()));
            key_.insert(key_.end(), list.begin(), list.end());
        };
        add(b.plan.devices);
        for (operator_parts const* parts : {&b.parts, static_cast<operator_parts const*>(b.folded.get())}) {
            key_.push_back(parts ? parts->forward.size() + 1 : 0);
            key_.push_back(parts ? parts->backward.size() + 1 : 0);
        }
        if (b.folded) add(b.fold_forward), add(b.fold_backward);
        auto const [at, added] = ends_.try_emplace(key_, next_id_);
        if (added) ++next_id_, bytes_ += 64 + 4 * key_.size();
        return at->second;
    }

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
