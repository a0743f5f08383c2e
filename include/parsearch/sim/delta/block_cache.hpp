#pragma once
/// Blocks made once per configuration: of operators, of edges per pair, of classes per combination of their members' configurations.
/// Repeats have theirs in common: the layers of a deep network take what one of them met.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <parsearch/sim/delta/blocks.hpp>
#include <parsearch/sim/delta/fold.hpp>
#include <parsearch/sim/delta/repeats.hpp>
#include <parsearch/sim/planner.hpp>

namespace parsearch::sim {

/// A multiplicative hash of the words of something.
struct word_hash {
    [[nodiscard]] static constexpr std::uint64_t step(std::uint64_t h, std::uint64_t word) noexcept {
        h = (h ^ word) * 0x9e3779b97f4a7c15;
        return h ^ (h >> 29);
    }
    [[nodiscard]] std::size_t operator()(std::vector<std::uint32_t> const& words) const noexcept {
        std::uint64_t h = words.size();
        for (auto const w : words) h = step(h, w);
        return static_cast<std::size_t>(h);
    }
    [[nodiscard]] std::size_t operator()(std::uint64_t word) const noexcept { return static_cast<std::size_t>(step(0, word)); }
    [[nodiscard]] std::size_t operator()(space::configuration const& c) const noexcept {
        std::uint64_t h = c.rank;
        for (std::uint32_t k = 0; k < c.rank; ++k)
            h = step(h, static_cast<std::uint64_t>(static_cast<std::uint32_t>(c.degree[k])) << 32 | static_cast<std::uint32_t>(c.stride[k]));
        h = step(h, static_cast<std::uint32_t>(c.start));
        for (auto const d : c.listed) h = step(h, static_cast<std::uint32_t>(d));
        return static_cast<std::size_t>(h);
    }
};

/// Makes blocks on first use and keeps them until `trim`. References stay valid until then. The oracle is asked for the first of operators that
/// repeat each other: it must cost alike what is described alike but for the names of parameters.
/// Throws what `planner` throws, and then keeps nothing of what was asked for.
template <class Oracle, class Device> class block_cache {
  public:
    /// `fold`: blocks are folded where all nodes are alike.
    block_cache(std::shared_ptr<workload<Oracle, Device> const> const& w, bool fold)
        : planner_(w), same_(find_repeats(w->graph, w->classes)), folding_(fold ? folding::of(w->topology) : std::nullopt), resources_{static_cast<std::uint32_t>(w->topology.size()), static_cast<std::uint32_t>(w->topology.links.size())},
          shapes_(w->graph.size()), operators_(w->graph.size()), edge_shapes_(w->graph.edges.size()), edge_times_(w->graph.edges.size()),
          edges_(w->graph.edges.size()), classes_(w->classes.size()) {}

    [[nodiscard]] resource_numbers const& resources() const noexcept { return resources_; }
    [[nodiscard]] workload<Oracle, Device> const& input() const noexcept { return planner_.input(); }
    /// An assembler of the plans of blocks.
    [[nodiscard]] assembler make_assembler() const { return planner_.make_assembler(); }
    [[nodiscard]] std::optional<folding> const& folds() const noexcept { return folding_; }
    /// What the blocks take, about.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

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
        build_operator(b, w.options.training && w.graph.trains[op], w.topology.kind, resources_);
        if (folding_ && w.graph.operations[op].work != ops::work_class::source) folding_->fold_operator(b);
        bytes_ += 16 * b.plan.devices.size() + b.parts.forward.bytes() + b.parts.backward.bytes() + b.parts.inside_forward.bytes() +
                  b.parts.all_backward_waits.bytes();
        b.built = true;
    }

    edge_shape const& shape_of_edge(std::uint32_t number, operator_blocks const& from, operator_blocks const& to) {
        number = same_.edges[number];
        auto const key = std::uint64_t{from.shape->id} << 32 | to.shape->id;
        auto& known = edge_shapes_[number];
        if (auto const at = known.find(key); at != known.end()) return at->second;
        auto shape = shape_of(planner_.overlaps(number, from.configuration, to.configuration), planner_.is_served(number, to.configuration));
        bytes_ += sizeof(edge_shape) + 32 + (shape.table ? 48 * shape.table->pairs.size() : 0);
        return known.emplace(key, std::move(shape)).first->second;
    }
    /// See `planner::times_of`; empty where no data move.
    typename planner<Oracle, Device>::edge_times const& times_of_edge(std::uint32_t number, operator_blocks const& from, operator_blocks const& to) {
        number = same_.edges[number];
        auto const key = std::uint64_t{from.id} << 32 | to.id;
        auto& known = edge_times_[number];
        if (auto const at = known.find(key); at != known.end()) return at->second;
        auto const& shape = shape_of_edge(number, from, to);
        typename planner<Oracle, Device>::edge_times times{};
        if (shape.table) times = planner_.times_of(number, *shape.table, from.configuration, to.configuration);
        bytes_ += sizeof times + 32 + 16 * (times.consumers.size() + times.producers.size());
        return known.emplace(key, std::move(times)).first->second;
    }

    /// Both ends are built.
    edge_blocks const& of_edge(std::uint32_t number, operator_blocks const& from, operator_blocks const& to) {
        number = same_.edges[number];
        auto const key = std::uint64_t{from.id} << 32 | to.id;
        auto& known = edges_[number];
        if (auto const at = known.find(key); at != known.end()) return *at->second;
        auto const& w = input();
        auto const& shape = shape_of_edge(number, from, to);
        auto b = std::make_unique<edge_blocks>();
        b->plan = planner_.plan_edge(number, from.configuration, from.plan, to.configuration, to.plan);
        build_edge(*b, shape, from, to, w.options.training && w.graph.carries_gradient(w.graph.edges[number]), resources_);
        if (folding_) folding_->fold_edge(*b, from, to);
        bytes_ += sizeof *b + 2 * (b->parts.forward.bytes() + b->parts.backward.bytes()) + 16 * (b->plan.forward.size() + b->plan.backward.size()) +
                  12 * b->plan.collective_of.size();
        for (auto const* d : {&b->parts.forward_waits, &b->parts.inside_forward, &b->parts.consumer_waits, &b->parts.consumer_local,
                              &b->parts.backward_waits, &b->parts.inside_backward, &b->parts.producer_waits, &b->parts.producer_local})
            bytes_ += d->bytes();
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
            build_class(*b, w.options.overlap, [&](std::uint32_t op) { return member(op).parts.backward.size(); }, resources_);
            bytes_ += 2 * (b->parts.sync.bytes() + b->parts.update.bytes() + b->parts.inside_sync.bytes() + b->parts.update_waits_sync.bytes());
            for (auto const& d : b->parts.sync_waits) bytes_ += sizeof d + 2 * d.bytes();
            for (auto const& d : b->parts.update_waits) bytes_ += sizeof d + 2 * d.bytes();
        }
        auto const states = cost_of(w.options.optimizer).states;
        for (auto const& h : b->plan.sync.held) {
            b->parts.memory.push_back({h.device, weight_memory(h, w.options, states)});
            bytes_ += sizeof h + 4 * h.groups.size() + 8 * h.contributors.size() + 16;
        }
        if (folding_) folding_->fold_class(*b, member);
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
        planner_.forget();
        bytes_ = 0; // what the limit allows is beside the current strategy
    }

  private:
    operator_shape const& shape_of_operator(std::uint32_t op, space::configuration const& c) {
        space::configuration key{.rank = c.rank, .degree = c.degree};
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

    template <class Maps, class Named> static void keep_only(Maps& all, Named const& named) {
        std::unordered_set<void const*> const keep(named.begin(), named.end());
        for (auto& known : all) std::erase_if(known, [&](auto const& entry) { return !keep.contains(entry.second.get()); });
    }

    planner<Oracle, Device> planner_;
    repeats same_;
    std::optional<folding> folding_;
    resource_numbers resources_;
    std::uint32_t next_id_ = 0;
    std::size_t bytes_ = 0;
    std::vector<std::unordered_map<space::configuration, std::unique_ptr<operator_shape>, word_hash>> shapes_; ///< few: never forgotten
    std::vector<std::unordered_map<space::configuration, std::unique_ptr<operator_blocks>, word_hash>> operators_;
    std::vector<std::unordered_map<std::uint64_t, edge_shape, word_hash>> edge_shapes_;
    std::vector<std::unordered_map<std::uint64_t, typename planner<Oracle, Device>::edge_times, word_hash>> edge_times_;
    std::vector<std::unordered_map<std::uint64_t, std::unique_ptr<edge_blocks>, word_hash>> edges_;
    std::vector<std::unordered_map<std::vector<std::uint32_t>, std::unique_ptr<class_blocks>, word_hash>> classes_;
    std::vector<std::uint32_t> key_;
};

} // namespace parsearch::sim
