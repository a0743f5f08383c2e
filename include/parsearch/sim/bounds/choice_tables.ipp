#pragma once
// What bounds on partial strategies are made of: for every operator the durations under each configuration of its space, for every edge the

#include <parsearch/sim/bounds/choice_tables.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE edge_delays delays_of(edge_plan const& p, std::size_t producers, std::size_t consumers, bool gradients) {
    edge_delays out(producers, consumers);
    if (!p.table) return out;
    auto const add = [&](std::span<hop const> hops, std::int64_t link_work::*pass) {
        for (auto const& h : hops) {
            auto at = std::find_if(out.links.begin(), out.links.end(), [&](auto const& l) { return l.link == h.link; });
            if (at == out.links.end()) at = out.links.insert(at, link_work{.link = h.link});
            (*at).*pass = saturating_sum((*at).*pass, h.duration);
        }
    };
    for (auto const& c : p.collectives) {
        add(c.forward, &link_work::forward);
        if (gradients) add(c.backward, &link_work::backward);
        if (!c.awaited) continue;
        for (auto const s : c.producers)
            for (auto const t : c.consumers) {
                out.raise_there(s, t, longest_hop(c.forward));
                if (gradients) out.raise_back(t, s, longest_hop(c.backward));
            }
    }
    for (std::size_t i = 0; i < p.table->pairs.size(); ++i) {
        if (p.collective_of[i] >= 0) continue;
        auto const& pair = p.table->pairs[i];
        auto const hops = [](std::vector<hop> const& all, std::vector<std::uint32_t> const& first, std::size_t n) {
            return std::span(all).subspan(first[n], first[n + 1] - first[n]);
        };
        auto const there = hops(p.forward, p.first_forward, i);
        add(there, &link_work::forward);
        out.raise_there(pair.producer, pair.consumer, longest_hop(there));
        if (!gradients) continue;
        auto const back = hops(p.backward, p.first_backward, i);
        add(back, &link_work::backward);
        out.raise_back(pair.consumer, pair.producer, longest_hop(back));
    }
    return out;
}

PARSEARCH_INLINE choice_tables::choice_tables(std::shared_ptr<workload const> const& w, choice_source const& space, table_limits const& limits)
    : planner_(w) {
    auto const& g = w->graph;
    std::size_t total = 0;
    for (std::size_t op = 0; op < g.size(); ++op) total += space.count(op);
    planner_.stop_at(limits.stop);
    if (total > limits.choices) return;
    choices_.resize(g.size());
    for (std::uint32_t op = 0; op < g.size(); ++op) add_choices(op, space);
    readers_.clear();
    edges_.resize(g.edges.size());
    std::size_t left = limits.pairs, delays_left = limits.delays;
    for (std::uint32_t e = 0; e < g.edges.size(); ++e) {
        auto const [producer, slot, consumer, input] = g.edges[e];
        if (g.operations[producer].work == ops::work_class::source) continue;
        auto const pairs = choices_[producer].size() * choices_[consumer].size();
        if (pairs > std::min(left, limits.pairs_per_edge)) continue;
        auto const delays = shards(producer) * shards(consumer);
        if (delays > delays_left) continue;
        left -= pairs;
        delays_left -= delays;
        bool const gradients = w->options.training && g.carries_gradient(g.edges[e]);
        edges_[e].reserve(pairs);
        for (auto const& from : choices_[producer])
            for (auto const& to : choices_[consumer])
                edges_[e].push_back(delays_of(planner_.plan_edge(e, from.configuration, from.plan, to.configuration, to.plan), from.forward.size(),
                                              to.forward.size(), gradients));
    }
}

PARSEARCH_INLINE void choice_tables::add_choices(std::uint32_t op, choice_source const& space) {
    auto const& w = planner_.input();
    for (std::size_t i = 0, n = space.count(op); i < n; ++i) {
        tabled_choice c{.configuration = space.choice(op, i), .plan = {}, .forward = {}, .backward = {}, .read = {}};
        space::validate(c.configuration, w.graph.operations[op], w.topology.size(), w.graph.names[op]);
        planner_.plan_operator(op, c.configuration, c.plan);
        for (auto const d : c.plan.devices) {
            c.forward.push_back(c.plan.forward[w.topology.kind[d]]);
            c.backward.push_back(c.plan.backward[w.topology.kind[d]]);
        }
        for (std::uint32_t input = 0; input < w.graph.operations[op].inputs.size(); ++input) {
            key_.assign(1, planner_.layout_of_input(op, input, c.configuration));
            key_.insert(key_.end(), c.plan.devices.begin(), c.plan.devices.end());
            c.read.push_back(readers_.try_emplace(key_, static_cast<std::uint32_t>(readers_.size())).first->second);
        }
        choices_[op].push_back(std::move(c));
    }
}

} // namespace parsearch::sim
