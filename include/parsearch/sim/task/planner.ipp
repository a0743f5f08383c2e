#pragma once
// Plans the parts of an iteration under given configurations: times and places of an operator's shards, the movement along an edge,

#include <limits>
#include <map>

#include <parsearch/sim/task/planner.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE void planner::time_operator(std::uint32_t op, space::configuration const& c, std::vector<std::int64_t>& forward_times,
                                             std::vector<std::int64_t>& backward_times) {
    auto const& g = work_->graph;
    auto const& operation = g.operations[op];
    auto const degrees = c.degrees();
    require_running(stop_);
    forward_times.assign(price_.kinds(), 0);
    backward_times.assign(price_.kinds(), 0);
    if (operation.work == ops::work_class::source || operation.work == ops::work_class::view) return;
    bool const trains = work_->options.training && g.trains[op];
    // On kinds [first, end).
    auto const price = [&](ops::operation const& of, std::span<std::int32_t const> split, std::size_t first, std::size_t end) {
        auto const forward = ops::work_of(of, split, ops::pass::forward);
        auto const backward = trains ? ops::work_of(of, split, ops::pass::backward, g.input_gradients(op)) : ops::shard_work{};
        for (auto k = first; k < end; ++k) {
            forward_times[k] = price_.shard(forward, k, g.names[op]);
            if (trains) backward_times[k] = price_.shard(backward, k, g.names[op]);
        }
    };
    auto const cut = ops::cut_dim(operation, degrees);
    if (!cut) return price(operation, degrees, 0, price_.kinds());
    auto const sizes = largest_by_kind(operation, c, *cut);
    for (std::size_t k = 0; k < sizes.size(); ++k) {
        if (sizes[k] == 0) {
            price(operation, degrees, k, k + 1);
            continue;
        }
        auto const part = ops::on_samples(operation, degrees, *cut, sizes[k]);
        price(part.op, part.degrees(), k, k + 1);
    }
}

PARSEARCH_INLINE std::vector<std::int64_t> planner::largest_by_kind(ops::operation const& op, space::configuration const& c, std::uint32_t k) const {
    std::vector<std::int64_t> out(price_.kinds(), 0);
    auto const degrees = c.degrees();
    auto const inner = ops::shard_count(degrees.subspan(k + 1));
    auto const& d = op.dims[k];
    for (std::int64_t n = 0, shards = c.shards(); n < shards; ++n) {
        auto& most = out[work_->topology.kind[static_cast<std::size_t>(c.device(n))]];
        most = std::max(most, d.shares->part(d.extent, degrees[k], n / inner % degrees[k]).size());
    }
    return out;
}

PARSEARCH_INLINE void planner::place_operator(std::uint32_t op, space::configuration const& c, operator_plan& p) {
    p.devices.clear();
    for (std::int64_t n = 0, shards = c.shards(); n < shards; ++n) p.devices.push_back(static_cast<std::uint32_t>(c.device(n)));
    p.partial_outputs.clear();
    p.partial_bytes = 0;
    if (work_->graph.operations[op].work != ops::work_class::source) plan_unread_partial_sums(op, c, p);
}

PARSEARCH_INLINE planner::edge_times planner::times_of(std::uint32_t number, overlap_table const& t, space::configuration const& from,
                                                       space::configuration const& to) {
    auto const& g = work_->graph;
    auto const& e = g.edges[number];
    require_running(stop_);
    auto const element = ops::size_of(g.operations[e.producer].outputs[e.slot].type);
    edge_times out;
    out.consumers.resize(t.first_of_consumer.size() - 1);
    out.producers.resize(t.first_of_producer.size() - 1);
    auto const consumer = [&](std::uint32_t c, auto const& f) {
        for (auto i = t.first_of_consumer[c]; i < t.first_of_consumer[c + 1]; ++i) f(i);
    };
    auto const producer = [&](std::uint32_t p, auto const& f) {
        for (auto i = t.first_of_producer[p]; i < t.first_of_producer[p + 1]; ++i) f(t.by_producer[i]);
    };
    find_messages(t, element, [&](auto const& pair) { return std::pair(from.device(pair.producer), to.device(pair.consumer)); });
    out.last_there = busiest([&](auto const& f) {
        for (std::uint32_t i = 0; i < t.pairs.size(); ++i) f(i);
    });
    for (std::uint32_t c = 0; c < out.consumers.size(); ++c) out.consumers[c].there = busiest([&](auto const& f) { consumer(c, f); });
    for (std::uint32_t p = 0; p < out.producers.size(); ++p) {
        auto& least = out.producers[p].there;
        least = std::numeric_limits<std::int64_t>::max();
        producer(p, [&](std::uint32_t i) {
            std::int64_t longest = 0;
            for (auto h = first_hop_[i]; h < first_hop_[i + 1]; ++h) longest = std::max(longest, hops_[h].duration);
            least = std::min({least, longest, most_bound});
        });
        if (least == std::numeric_limits<std::int64_t>::max()) least = 0;
    }
    if (!work_->options.training || !g.carries_gradient(e)) return out;
    find_messages(t, element, [&](auto const& pair) { return std::pair(to.device(pair.consumer), from.device(pair.producer)); });
    out.last_back = busiest([&](auto const& f) {
        for (std::uint32_t i = 0; i < t.pairs.size(); ++i) f(i);
    });
    for (std::uint32_t c = 0; c < out.consumers.size(); ++c) out.consumers[c].back = busiest([&](auto const& f) { consumer(c, f); });
    for (std::uint32_t p = 0; p < out.producers.size(); ++p) out.producers[p].back = busiest([&](auto const& f) { producer(p, f); });
    return out;
}

PARSEARCH_INLINE edge_plan planner::plan_edge(std::uint32_t number, space::configuration const& from, operator_plan const& made,
                                              space::configuration const& to, operator_plan const& read) {
    auto const& g = work_->graph;
    auto const& e = g.edges[number];
    require_running(stop_);
    if (g.operations[e.producer].work == ops::work_class::source) return {};
    auto const& output = g.operations[e.producer].outputs[e.slot];
    return sim::plan_edge(overlaps(number, from, to), ops::size_of(output.type), made.devices, read.devices, work_->options.movement,
                          work_->options.training && g.carries_gradient(e), price_, ring_times_of(e, from, to, read));
}

PARSEARCH_INLINE std::optional<ring_times> planner::ring_times_of(graph::edge const& e, space::configuration const& from,
                                                                  space::configuration const& to, operator_plan const& read) const {
    auto const& g = work_->graph;
    auto const &made = g.operations[e.producer], &reads = g.operations[e.consumer];
    auto const& input = reads.inputs[e.input];
    if (!input.passed_on) return std::nullopt;
    ring_times out{.again = ops::ring_parts(reads, input, to.degrees()) > 1};
    auto const& output = made.outputs[e.slot];
    for (std::size_t k = 0; k < made.dims.size(); ++k)
        for (std::size_t a = 0; a < output.axes.size() && from.degree[k] > 1; ++a)
            if (std::ranges::find(output.axes[a].terms, k, &ops::term::dim) != output.axes[a].terms.end() && input.axes[a].terms.empty()) return out;
    if (read.forward.empty()) return out;
    out.forward = out.backward = std::numeric_limits<std::int64_t>::max();
    for (auto const d : read.devices) {
        out.forward = std::min(out.forward, read.forward[work_->topology.kind[d]]);
        out.backward = std::min(out.backward, read.backward[work_->topology.kind[d]]);
    }
    auto const mine = std::max<std::int64_t>(1, ops::elements_of(input));
    auto const same = [&](graph::edge const& o) { return reads.inputs[o.input].passed_on && o.producer == e.producer && o.slot == e.slot; };
    auto const first = std::ranges::find_if(g.in(e.consumer), same)->input; // which may move it for the others
    for (auto const& other : g.in(e.consumer)) {
        auto const& its = reads.inputs[other.input];
        if (!its.passed_on || same(other)) continue;
        (other.input > first ? out.forward_later : out.backward_later) += std::max<std::int64_t>(1, (ops::elements_of(its) + mine - 1) / mine);
    }
    return out;
}

PARSEARCH_INLINE void planner::plan_unread_partial_sums(std::uint32_t op, space::configuration const& c, operator_plan& p) {
    auto const& g = work_->graph;
    auto const& operation = g.operations[op];
    for (std::uint32_t slot = 0; slot < operation.outputs.size(); ++slot) {
        auto const& output = operation.outputs[slot];
        auto const read = std::any_of(g.out(op).begin(), g.out(op).end(), [&](auto e) { return g.edges[e].slot == slot; });
        if (read || ops::partial_sums(operation, output, c.degrees()) == 1) continue;
        auto const made = layout_of_output(operation, output, c.degrees());
        std::map<region, std::vector<std::uint32_t>, region_order> parts; // of each copy by itself, which counts as an axis
        for (std::uint32_t n = 0; n < made.regions.size(); ++n) {
            std::int64_t const copy = made.copy.empty() ? 0 : made.copy[n];
            region r{{copy, copy + 1}};
            r.insert(r.end(), made.regions[n].begin(), made.regions[n].end());
            if (elements_of(r) > 0) parts[std::move(r)].push_back(n);
        }
        for (auto const& [part, shards] : parts) {
            std::vector<std::uint32_t> members;
            for (auto const n : shards) members.push_back(p.devices[n]);
            make_set(members);
            if (members.size() < 2) continue;
            auto const bytes = elements_of(part) * ops::size_of(output.type);
            p.partial_outputs.push_back({shards,
                                         {},
                                         price_.collective(collective_kind::all_reduce, bytes, members),
                                         {},
                                         collective_kind::all_reduce,
                                         collective_kind::all_reduce,
                                         bytes,
                                         static_cast<std::uint32_t>(members.size()),
                                         bytes});
            p.partial_bytes += collective_volume(collective_kind::all_reduce, static_cast<double>(bytes), static_cast<double>(members.size()));
        }
    }
}

} // namespace parsearch::sim
