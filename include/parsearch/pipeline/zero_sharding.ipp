#pragma once
// States of weights that the devices with copies of them share (`sharded_states`): what a device keeps, and what they move.

#include <algorithm>
#include <map>
#include <set>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/pipeline/zero_sharding.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE std::vector<weight_sharing> share_weights(sim::class_plan const& c, sharded_states sharded, topology::dense_topology const& t,
                                                           sim::pricing& price) {
    std::vector<weight_sharing> out;
    for (std::size_t i = 0; i < c.sync.groups.size(); ++i) {
        auto const& group = c.sync.groups[i];
        std::map<std::uint32_t, std::vector<std::uint32_t>> copies; // devices by node
        for (auto const d : group.devices) copies[sharded == sharded_states::parameters_within_nodes ? t.node[d] : 0].push_back(d);
        auto const parts = copies.begin()->second.size();
        bool const one_copy = sharded != sharded_states::parameters_within_nodes || copies.size() * group.replicas == 1;
        if (one_copy || std::ranges::any_of(copies, [&](auto const& copy) { return copy.second.size() != parts; })) {
            out.push_back({.parts = group.holders(), .weights = c.all_reduce[i], .gradients = c.all_reduce[i]});
            if (group.bytes != group.gradients) out.back().weights = price.all_reduce_of_replicas(group.bytes, group.devices);
            continue;
        }
        auto& sharing = out.emplace_back(weight_sharing{.parts = parts});
        auto const append = [](std::vector<sim::hop>& to, std::vector<sim::hop> const& hops) { to.insert(to.end(), hops.begin(), hops.end()); };
        if (parts > 1)
            for (auto const& [node, devices] : copies) {
                append(sharing.weights, price.collective(collective_kind::all_reduce, group.bytes, devices));
                append(sharing.gradients, price.collective(collective_kind::all_reduce, group.gradients, devices));
            }
        auto const whole = static_cast<byte_count>(parts);
        for (std::size_t part = 0; part < parts; ++part) {
            std::vector<std::uint32_t> same;
            for (auto const& [node, devices] : copies) same.push_back(devices[part]);
            std::ranges::sort(same);
            append(sharing.across, price.all_reduce_of_replicas(group.gradients / whole + (group.gradients % whole != 0), same));
        }
    }
    return out;
}

PARSEARCH_INLINE double own_share(sim::sync_plan const& plan, sim::held_weights const& held, std::span<weight_sharing const> sharing) noexcept {
    double shared = 0, own = 0;
    for (auto const group : held.groups) {
        auto const elements = static_cast<double>(plan.groups[group].elements);
        shared += elements;
        own += elements / static_cast<double>(sharing.empty() ? plan.groups[group].holders() : sharing[group].parts);
    }
    auto const all = static_cast<double>(held.elements);
    return all > 0 ? (all - shared + own) / all : 1;
}

PARSEARCH_INLINE void shard_optimizer_memory(sim::simulation_options const& options, sim::iteration_plan const& plan, sharing_plan const& sharing,
                                             std::vector<sim::memory_use>& use) {
    std::vector<double> state(use.size(), 0);
    auto const states = sim::cost_of(options.optimizer).states;
    for (std::size_t c = 0; c < plan.classes.size(); ++c) {
        auto const& sync = plan.classes[c].sync;
        for (auto const& h : sync.held)
            state[h.device] += static_cast<double>(sim::optimizer_memory(h, states)) * own_share(sync, h, sharing_of(sharing, c));
    }
    for (std::size_t d = 0; d < use.size(); ++d) use[d].optimizer = static_cast<byte_count>(state[d] + 0.5);
}

PARSEARCH_INLINE void shard_block_memory(pipelining const& how, sim::iteration_plan const& plan, sharing_plan const& sharing,
                                         std::vector<sim::memory_use>& use) {
    auto const shard = [&](byte_count sim::held_weights::*size, byte_count sim::memory_use::*of) {
        std::vector<double> kept(use.size(), 0);
        std::vector<std::map<std::uint32_t, double>> gathered(use.size()); // by block: bytes of others
        for (std::size_t k = 0; k < plan.classes.size(); ++k) {
            auto const& c = plan.classes[k];
            std::set<std::uint32_t> blocks;
            for (auto const op : c.members) blocks.insert(how.block_of(op));
            for (auto const& h : c.sync.held) {
                auto const bytes = static_cast<double>(h.*size), own = bytes * own_share(c.sync, h, sharing_of(sharing, k));
                kept[h.device] += own;
                for (auto const b : blocks) gathered[h.device][b] += bytes - own;
            }
        }
        for (std::size_t d = 0; d < use.size(); ++d) {
            double first = 0, second = 0;
            for (auto const& [block, bytes] : gathered[d]) {
                second = std::max(second, std::min(first, bytes));
                first = std::max(first, bytes);
            }
            // What two blocks have in common is there once.
            use[d].*of = std::min(use[d].*of, static_cast<byte_count>(kept[d] + first + second + 0.5));
        }
    };
    shard(&sim::held_weights::gradients, &sim::memory_use::gradients);
    if (how.sharded >= sharded_states::parameters) shard(&sim::held_weights::bytes, &sim::memory_use::weights);
}

PARSEARCH_INLINE void shard_updates(sim::iteration_plan const& plan, sharing_plan const& sharing, sim::task_graph& tasks) {
    for (std::uint32_t t = 0; t < tasks.size(); ++t) {
        auto const& who = tasks.label[t];
        double part = 1;
        if (tasks.kind[t] == sim::task_kind::update) {
            auto const c = plan.class_of[who.op];
            auto const& sync = plan.classes[c].sync;
            part = own_share(sync, sync.held[who.number], sharing_of(sharing, c));
        } else if (tasks.kind[t] == sim::task_kind::collective && who.traffic == sim::traffic_kind::weight_gradient) {
            auto const& group = plan.classes[plan.class_of[who.op]].sync.groups[who.number];
            part = static_cast<double>(group.gradients + group.bytes) / static_cast<double>(2 * group.gradients);
        }
        double const volatile time = static_cast<double>(tasks.duration[t]) * part; // volatile: not fused with the rounding
        if (part < 1) tasks.duration[t] = static_cast<std::int64_t>(time + 0.5);
    }
}

} // namespace parsearch::pipeline
