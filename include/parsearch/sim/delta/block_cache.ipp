#pragma once
// Blocks made once per configuration: of operators, of edges per pair, of classes per combination of their members' configurations.

#include <parsearch/sim/delta/block_cache.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE block_cache::block_cache(std::shared_ptr<workload const> const& w, bool fold, std::stop_token stop)
    : planner_(w, unlimited), same_(find_repeats(w->graph, w->classes)), symmetry_(fold ? symmetry::of(w->topology) : std::nullopt),
      resources_{static_cast<std::uint32_t>(w->topology.size()), static_cast<std::uint32_t>(w->topology.links.size())}, shapes_(w->graph.size()),
      operators_(w->graph.size()), edge_shapes_(w->graph.edges.size()), edge_times_(w->graph.edges.size()), edges_(w->graph.edges.size()),
      classes_(w->classes.size()) {
    planner_.stop_at(std::move(stop));
}

PARSEARCH_INLINE operator_blocks& block_cache::of_operator(std::uint32_t op, space::configuration const& c) {
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

PARSEARCH_INLINE void block_cache::build(std::uint32_t op, operator_blocks& b) {
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

PARSEARCH_INLINE edge_shape const& block_cache::shape_of_edge(std::uint32_t number, operator_blocks const& from, operator_blocks const& to) {
    number = same_.edges[number];
    auto const key = std::uint64_t{from.shape->id} << 32 | to.shape->id;
    auto& known = edge_shapes_[number];
    if (auto const at = known.find(key); at != known.end()) return at->second;
    auto shape = shape_of(planner_.overlaps(number, from.configuration, to.configuration));
    bytes_ += sizeof(edge_shape) + 32;
    return known.emplace(key, std::move(shape)).first->second;
}

PARSEARCH_INLINE planner::edge_times const& block_cache::times_of_edge(std::uint32_t number, operator_blocks const& from, operator_blocks const& to) {
    number = same_.edges[number];
    auto const key = std::uint64_t{from.id} << 32 | to.id;
    auto& known = edge_times_[number];
    if (auto const at = known.find(key); at != known.end()) return at->second;
    auto const& shape = shape_of_edge(number, from, to);
    auto times = planner_.times_of(number, *shape.table, from.configuration, to.configuration);
    bytes_ += sizeof times + 32 + 16 * (times.consumers.size() + times.producers.size());
    return known.emplace(key, std::move(times)).first->second;
}

PARSEARCH_INLINE edge_blocks const& block_cache::of_edge(std::uint32_t number, operator_blocks const& from, operator_blocks const& to) {
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

PARSEARCH_INLINE class_plan block_cache::plan_of(std::uint32_t c, class_blocks const& b) const {
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

PARSEARCH_INLINE operator_shape const& block_cache::shape_of_operator(std::uint32_t op, space::configuration const& c) {
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

PARSEARCH_INLINE bool block_cache::covers_devices(space::configuration const& c) const noexcept {
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

PARSEARCH_INLINE std::uint32_t block_cache::ends_of(operator_blocks const& b) {
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

} // namespace parsearch::sim
