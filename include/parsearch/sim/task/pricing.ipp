#pragma once
// Asks a cost oracle for the durations of tasks on a dense topology, checked.

#include <parsearch/sim/task/pricing.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE pricing::pricing(topology::dense_topology const& topology, cost::any_oracle const& oracle, simulation_options const& options)
    : topology_(&topology), oracle_(oracle), transfers_(options.transfers), segment_(options.segment), replicas_(options.replicas) {
    for (std::uint32_t d = 0; d < topology.size(); ++d)
        if (topology.kind[d] >= example_.size()) example_.push_back(d); // kinds are numbered in order of appearance
    for (std::uint32_t l = 0; l < topology.links.size(); ++l) idle_.push_back(time_of_message(0, l));
}

PARSEARCH_INLINE std::int64_t pricing::shard(ops::shard_work const& work, std::size_t kind, std::string_view op) const {
    auto const place = [&] {
        auto const device = std::find(topology_->kind.begin(), topology_->kind.end(), kind) - topology_->kind.begin();
        return text("operator '", op, "' (", work.op->kind, "), ", name_of(work.pass), " on a device of kind '",
                    topology_->devices[static_cast<std::size_t>(device)].kind, "': ");
    };
    try {
        picoseconds const t = oracle_.shard_time(work, example_[kind]);
        return checked(t, [&] { return text("the cost oracle answers ", t.count(), " ps"); });
    } catch (invalid_input const& e) {
        throw invalid_input(place(), e.what());
    }
}

PARSEARCH_INLINE void pricing::append_route(std::uint32_t from, std::uint32_t to, byte_count bytes, std::vector<hop>& out) {
    auto const route = topology_->route(from, to);
    if (transfers_ == transfer_model::cut_through) return append_segments(route, bytes, out);
    std::int64_t latency = 0;
    for (auto const l : route) latency = saturating_sum(latency, idle_[l]);
    auto& known = times_of(bytes);
    for (auto const l : route) {
        auto const own = time_on(l, bytes, known);
        switch (transfers_) {
        case transfer_model::streaming: out.push_back({l, false, saturating_sum(own, latency - idle_[l])}); break;
        case transfer_model::fair_sharing: out.push_back({l, false, std::max<std::int64_t>(0, own - idle_[l])}); break;
        default: out.push_back({l, l != route.front(), own});
        }
    }
}

PARSEARCH_INLINE std::vector<hop> pricing::all_to_all_v(std::span<message const> messages) {
    std::int64_t latency = 0;
    bytes_on_.resize(idle_.size(), none);
    std::vector<hop> out;
    for (auto const& m : messages) {
        std::int64_t sum = 0;
        for (auto const l : topology_->route(m.from, m.to)) {
            sum = saturating_sum(sum, idle_[l]);
            if (bytes_on_[l] == none) {
                bytes_on_[l] = 0;
                out.push_back({l});
            }
            bytes_on_[l] += m.bytes;
        }
        latency = std::max(latency, sum);
    }
    std::sort(out.begin(), out.end(), [](hop const& a, hop const& b) { return a.link < b.link; });
    for (auto& h : out) h.duration = std::exchange(bytes_on_[h.link], none); // before an oracle can throw
    for (auto& h : out) h.duration = saturating_sum(time_of_message(h.duration, h.link), latency - idle_[h.link]);
    return out;
}

PARSEARCH_INLINE std::int64_t pricing::host_copy(byte_count bytes, std::uint32_t device) const {
    auto const& of = topology_->devices[device];
    auto const place = [&] { return text("a copy of ", bytes, " bytes between device ", device, " (", of.kind, ") and its host"); };
    auto const t = named(place, [&] { return oracle_.transfer_time(bytes, link_description{.rate = of.host_rate}); });
    return checked(t, [&] { return text("the cost oracle answers ", t.count(), " ps for ", place()); });
}

PARSEARCH_INLINE std::vector<hop> pricing::collective(collective_kind kind, byte_count bytes, std::vector<std::uint32_t> const& members) {
    return collective(kind, bytes, members, describe(members, kind == collective_kind::all_to_all));
}

PARSEARCH_INLINE std::vector<hop> pricing::all_reduce_of_replicas(byte_count bytes, std::vector<std::uint32_t> const& members) {
    if (replicas_ == 1) return collective(collective_kind::all_reduce, bytes, members);
    auto const& group = find(of_replicas_, members, [&] { return topology::describe_replicas(*topology_, members, replicas_); });
    return collective(collective_kind::all_reduce, bytes, members, group);
}

PARSEARCH_INLINE std::vector<hop> pricing::collective(collective_kind kind, byte_count bytes, std::vector<std::uint32_t> const& members,
                                                      topology::ring_group const& group) const {
    auto const place = [&] {
        auto out = text(name_of(kind), " of ", bytes, " bytes among ", group.shape.size, " devices: ", members.front());
        for (std::size_t i = 1; i < std::min<std::size_t>(members.size(), 8); ++i) out += text(", ", members[i]);
        return members.size() > 8 ? out + ", ..." : out;
    };
    auto const t = named(place, [&] { return oracle_.collective_time(kind, bytes, group.shape); });
    (void)checked(t, [&] { return text("the cost oracle answers ", t.count(), " ps for ", place()); });
    std::vector<hop> out;
    for (auto const& use : group.links) {
        double const volatile part = static_cast<double>(t.count()) * use.share; // volatile: not fused with the rounding below
        out.push_back({use.link, false, use.share >= 1 ? t.count() : static_cast<std::int64_t>(part + 0.5)});
    }
    return out;
}

PARSEARCH_INLINE void pricing::append_segments(topology::route_links const& route, byte_count bytes, std::vector<hop>& out) {
    auto const count = std::max<byte_count>(1, bytes / segment_ + (bytes % segment_ != 0));
    if (count > most_segments)
        throw invalid_input("a message of ", bytes, " bytes in segments of ", segment_, ": more than ", most_segments,
                            " segments, 'segment' must be larger");
    for (byte_count i = 0; i < count; ++i) {
        auto const part = std::min(segment_, bytes - i * segment_);
        auto& known = times_of(part);
        for (auto const l : route) out.push_back({l, l != route.front(), time_on(l, part, known)});
    }
}

PARSEARCH_INLINE topology::ring_group const& pricing::describe(std::vector<std::uint32_t> const& members, bool exchange) {
    if (exchange) return find(exchanges_, members, [&] { return topology::with_exchange(*topology_, members, describe(members, false)); });
    return find(groups_, members, [&] { return topology::describe_group(*topology_, members); });
}

PARSEARCH_INLINE std::vector<std::int64_t>& pricing::times_of(byte_count bytes) {
    for (std::size_t i = 0; i < messages_.size(); ++i)
        if (messages_[i].bytes == bytes) {
            if (i > 0) std::swap(messages_[i - 1], messages_[i]); // those asked for often move to the front
            return messages_[i > 0 ? i - 1 : 0].known;
        }
    if (messages_.size() < remembered_sizes) messages_.emplace_back();
    messages_.back().bytes = bytes;
    messages_.back().known.assign(idle_.size(), unknown);
    return messages_.back().known;
}

PARSEARCH_INLINE double collective_volume(collective_kind kind, double bytes, double members) noexcept {
    switch (kind) {
    case collective_kind::all_reduce: return 2 * (members - 1) * bytes;
    case collective_kind::all_to_all: return (members - 1) / members * bytes;
    case collective_kind::all_to_all_v: return bytes;
    default: return (members - 1) * bytes;
    }
}

} // namespace parsearch::sim
