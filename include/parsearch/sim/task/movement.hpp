#pragma once
/// Data movement along one edge of the graph, for given configurations at both ends: messages and collectives.

#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/joined_sets.hpp>
#include <parsearch/core/make_set.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/sim/task/overlap.hpp>
#include <parsearch/sim/task/pricing.hpp>

namespace parsearch::sim {

/// A collective among shards, forward and (for gradients) backward.
struct collective_plan {
    std::vector<std::uint32_t> producers, consumers; ///< shard numbers
    std::vector<hop> forward, backward;
    collective_kind forward_kind{}, backward_kind{};
    byte_count bytes = 0;          ///< of the tensor, as `collective_kind` counts them
    std::uint32_t size = 0;        ///< devices
    byte_count backward_bytes = 0; ///< the same of `backward`
    byte_count again = 0;          ///< of these, what backward brings once more, as readers kept a part of it
    bool awaited = true;           ///< false: it is on its way while its readers compute, see `ring_times`
};

/// What the readers of a tensor that is passed on in a ring (`ops::operand::passed_on`) compute meanwhile.
struct ring_times {
    bool again = false;                                 ///< readers keep their own part alone
    std::int64_t forward = 0, backward = 0;             ///< picoseconds of a shard
    std::int64_t forward_later = 0, backward_later = 0; ///< how many such tensors as large come after it in a pass, of the same readers
};

/// How the pairs of an overlap table move: within a device, as messages, or in a collective.
struct edge_plan {
    std::shared_ptr<overlap_table const> table{};
    std::vector<hop> forward{}, backward{};                       ///< links of the messages, pair by pair
    std::vector<std::uint32_t> first_forward{}, first_backward{}; ///< hops of pair i: [first[i], first[i + 1]); none: local or in a collective
    std::vector<std::int32_t> collective_of{};                    ///< of each pair; -1: message or local
    std::vector<collective_plan> collectives{};
    std::array<double, traffic_kinds> bytes{}; ///< moved in one iteration
};

namespace detail {

/// The devices of an exchange when a collective serves it: three or more, the same on both sides (a ring through devices that hold
/// nothing, or want nothing, moves more than messages do). The one device of a broadcast or reduce is to be among the others.
bool collective_members(exchange const& x, std::span<std::uint32_t const> producer_devices, std::span<std::uint32_t const> consumer_devices,
                        std::vector<std::uint32_t>& members);

/// Shards that hang together through pairs of no collective, and their messages.
struct message_group {
    std::vector<std::uint32_t> producers, consumers, pairs; ///< shard numbers, ascending; numbers of pairs, those on one device too
};

/// The groups of two messages or more. Complexity: O(pairs), but for the inverse of Ackermann's function.
std::vector<message_group> message_groups(overlap_table const& t, std::span<std::int32_t const> collective_of,
                                          std::span<std::uint32_t const> producer_devices, std::span<std::uint32_t const> consumer_devices);

/// Parts an all-gather into what readers wait for, which `c` becomes, and what they do not, which is returned. Of n parts a shard computes on its own
/// and all others but the last while the next one comes: (n - 1) / n of its time. So computing and moving take together as long as n - 1 steps, each
/// as long as the longer of both, and a last part. Backward is alike, and beside summing up gradients may bring the parts once more.
[[nodiscard]] collective_plan part_ring(collective_plan& c, ring_times const& times);
} // namespace detail

/// Plans the movement of an edge of element size `element_bytes`. `gradients`: it also carries gradients backward.
/// `ring`: of a tensor that is passed on.
template <class Pricing>
[[nodiscard]] edge_plan plan_edge(std::shared_ptr<overlap_table const> table, byte_count element_bytes,
                                  std::span<std::uint32_t const> producer_devices, std::span<std::uint32_t const> consumer_devices, movement policy,
                                  bool gradients, Pricing& price, std::optional<ring_times> const& ring = {}) {
    edge_plan plan{.table = std::move(table)};
    auto const& t = *plan.table;
    plan.collective_of.assign(t.pairs.size(), -1);
    auto const forward_traffic = [&](bool partial) -> double& {
        return plan.bytes[static_cast<std::size_t>(partial ? traffic_kind::partial_sum : traffic_kind::activation)];
    };
    auto& gradient_traffic = plan.bytes[static_cast<std::size_t>(traffic_kind::gradient)];
    if (policy != movement::pairwise) {
        std::vector<std::int32_t> number(t.exchanges.size(), -1);
        std::vector<std::uint32_t> members;
        std::vector<collective_plan> beside;
        for (std::size_t i = 0; i < t.exchanges.size(); ++i) {
            auto const& x = t.exchanges[i];
            if (!detail::collective_members(x, producer_devices, consumer_devices, members)) continue;
            auto const bytes = x.elements * element_bytes;
            number[i] = static_cast<std::int32_t>(plan.collectives.size());
            collective_plan c{x.producers, x.consumers, price.collective(x.forward, bytes, members), {},   x.forward,
                              x.backward,  bytes,       static_cast<std::uint32_t>(members.size()),  bytes};
            auto const size = static_cast<double>(members.size());
            forward_traffic(x.partial) += collective_volume(x.forward, static_cast<double>(bytes), size);
            if (gradients) {
                c.backward = price.collective(x.backward, bytes, members);
                gradient_traffic += collective_volume(x.backward, static_cast<double>(bytes), size);
            }
            if (ring && x.forward == collective_kind::all_gather) {
                if (gradients && ring->again) gradient_traffic += collective_volume(x.forward, static_cast<double>(bytes), size);
                if (auto other = detail::part_ring(c, *ring); !other.forward.empty() || !other.backward.empty()) beside.push_back(std::move(other));
            }
            plan.collectives.push_back(std::move(c));
        }
        std::ranges::move(beside, std::back_inserter(plan.collectives));
        for (std::size_t i = 0; i < t.pairs.size(); ++i)
            if (t.exchange_of[i] >= 0) plan.collective_of[i] = number[static_cast<std::size_t>(t.exchange_of[i])];
    }
    if (policy == movement::grouped)
        for (auto& group : detail::message_groups(t, plan.collective_of, producer_devices, consumer_devices)) {
            std::vector<message> there, back;
            std::vector<std::uint32_t> members;
            for (auto const p : group.producers) members.push_back(producer_devices[p]);
            for (auto const s : group.consumers) members.push_back(consumer_devices[s]);
            make_set(members);
            collective_plan c{std::move(group.producers),
                              std::move(group.consumers),
                              {},
                              {},
                              collective_kind::all_to_all_v,
                              collective_kind::all_to_all_v,
                              0,
                              0,
                              0};
            for (auto const i : group.pairs) {
                plan.collective_of[i] = static_cast<std::int32_t>(plan.collectives.size());
                auto const from = producer_devices[t.pairs[i].producer], to = consumer_devices[t.pairs[i].consumer];
                if (from == to) continue;
                auto const bytes = t.pairs[i].elements * element_bytes;
                c.bytes += bytes;
                there.push_back({from, to, bytes});
                back.push_back({to, from, bytes});
            }
            c.size = static_cast<std::uint32_t>(members.size());
            c.backward_bytes = c.bytes;
            c.forward = price.all_to_all_v(there);
            forward_traffic(t.partial) += static_cast<double>(c.bytes);
            if (gradients) {
                c.backward = price.all_to_all_v(back);
                gradient_traffic += static_cast<double>(c.bytes);
            }
            plan.collectives.push_back(std::move(c));
        }
    plan.first_forward.assign(1, 0);
    plan.first_backward.assign(1, 0);
    for (std::size_t i = 0; i < t.pairs.size(); ++i) {
        auto const from = producer_devices[t.pairs[i].producer], to = consumer_devices[t.pairs[i].consumer];
        if (plan.collective_of[i] < 0 && from != to) {
            auto const bytes = t.pairs[i].elements * element_bytes;
            price.append_route(from, to, bytes, plan.forward);
            forward_traffic(t.partial) += static_cast<double>(bytes);
            if (gradients) {
                price.append_route(to, from, bytes, plan.backward);
                gradient_traffic += static_cast<double>(bytes);
            }
        }
        plan.first_forward.push_back(static_cast<std::uint32_t>(plan.forward.size()));
        plan.first_backward.push_back(static_cast<std::uint32_t>(plan.backward.size()));
    }
    return plan;
}

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/task/movement.ipp>
#endif
