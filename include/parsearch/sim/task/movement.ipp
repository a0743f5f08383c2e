#pragma once
// Data movement along one edge of the graph, for given configurations at both ends: messages and collectives.

#include <algorithm>

#include <parsearch/sim/task/movement.hpp>

namespace parsearch::sim::detail {

PARSEARCH_INLINE bool collective_members(exchange const& x, std::span<std::uint32_t const> producer_devices,
                                         std::span<std::uint32_t const> consumer_devices, std::vector<std::uint32_t>& members) {
    std::vector<std::uint32_t> from, to;
    for (auto const p : x.producers) from.push_back(producer_devices[p]);
    for (auto const c : x.consumers) to.push_back(consumer_devices[c]);
    make_set(from);
    make_set(to);
    members.clear();
    std::set_union(from.begin(), from.end(), to.begin(), to.end(), std::back_inserter(members));
    bool const rooted = x.forward == collective_kind::broadcast || x.forward == collective_kind::reduce;
    return members.size() >= 3 && members.size() == (rooted ? std::max(from.size(), to.size()) : std::min(from.size(), to.size()));
}

PARSEARCH_INLINE std::vector<message_group> message_groups(overlap_table const& t, std::span<std::int32_t const> collective_of,
                                                           std::span<std::uint32_t const> producer_devices,
                                                           std::span<std::uint32_t const> consumer_devices) {
    auto const producers = static_cast<std::uint32_t>(t.first_of_producer.size() - 1),
               consumers = static_cast<std::uint32_t>(t.first_of_consumer.size() - 1);
    joined_sets sets(producers + consumers);
    for (std::size_t i = 0; i < t.pairs.size(); ++i)
        if (collective_of[i] < 0) sets.join(t.pairs[i].producer, producers + t.pairs[i].consumer);
    std::vector<std::uint32_t> messages(sets.size(), 0); // of roots
    for (std::size_t i = 0; i < t.pairs.size(); ++i)
        if (collective_of[i] < 0)
            messages[sets.root(t.pairs[i].producer)] += producer_devices[t.pairs[i].producer] != consumer_devices[t.pairs[i].consumer];
    std::vector<std::uint32_t> number(sets.size(), 0); // of roots, from 1
    std::vector<message_group> out;
    auto const group_of = [&](std::uint32_t v) -> message_group* {
        auto const r = sets.root(v);
        if (messages[r] < 2) return nullptr;
        if (number[r] == 0) {
            out.emplace_back();
            number[r] = static_cast<std::uint32_t>(out.size());
        }
        return &out[number[r] - 1];
    };
    for (std::uint32_t p = 0; p < producers; ++p)
        if (auto* const g = group_of(p)) g->producers.push_back(p);
    for (std::uint32_t c = 0; c < consumers; ++c)
        if (auto* const g = group_of(producers + c)) g->consumers.push_back(c);
    for (std::uint32_t i = 0; i < t.pairs.size(); ++i)
        if (collective_of[i] < 0)
            if (auto* const g = group_of(t.pairs[i].producer)) g->pairs.push_back(i);
    return out;
}

/// Takes as much off `links` as is on its way while others compute: up to `time` of each link. Returns what was taken.
PARSEARCH_INLINE std::vector<hop> take_off(std::vector<hop>& links, std::int64_t time) {
    std::vector<hop> taken, left;
    for (auto h : links) {
        auto const part = std::min(h.duration, time);
        if (part > 0) taken.push_back({h.link, h.follows, part});
        h.duration -= part;
        if (part == 0 || h.duration > 0) left.push_back(h);
    }
    links = std::move(left);
    return taken;
}

PARSEARCH_INLINE collective_plan part_ring(collective_plan& c, ring_times const& times) {
    auto const n = static_cast<std::int64_t>(c.size);
    collective_plan beside{c.producers, c.consumers, {}, {}, c.forward_kind, c.backward_kind, 0, c.size, 0, 0, false};
    auto const part = [&](std::vector<hop>& links, std::vector<hop>& hidden, std::int64_t computed, std::int64_t later, byte_count& bytes,
                          byte_count& bytes_beside) {
        auto const all = longest_hop(links);
        auto time = computed - computed / n - (computed % n != 0);
        time = later > 0 && all > time / later ? 0 : time - later * all;
        hidden = take_off(links, time);
        double const volatile share = all > 0 ? static_cast<double>(longest_hop(hidden)) / static_cast<double>(all) : 0; // not fused with the product
        bytes_beside = static_cast<byte_count>(static_cast<double>(bytes) * share);
        bytes -= bytes_beside;
    };
    if (!c.backward.empty() && times.again) {
        for (auto const& h : c.forward) {
            auto at = std::ranges::find(c.backward, h.link, &hop::link);
            if (at == c.backward.end()) at = c.backward.insert(at, hop{.link = h.link});
            at->duration = saturating_sum(at->duration, h.duration);
        }
        c.again = c.bytes;
        c.backward_bytes += c.again;
    }
    part(c.forward, beside.forward, times.forward, times.forward_later, c.bytes, beside.bytes);
    part(c.backward, beside.backward, times.backward, times.backward_later, c.backward_bytes, beside.backward_bytes);
    return beside;
}

} // namespace parsearch::sim::detail
