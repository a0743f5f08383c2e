#pragma once
// What the failure of any one wire of a network does to a plan.

#include <cmath>

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/network/hops.hpp>
#include <parsearch/fabric/servers/wire_failures.hpp>

namespace parsearch::fabric {

namespace detail {

/// Gives up the rings of `n` in which `a` and `b` are neighbours, but for those whose servers have no other.
inline void give_up_rings(network& n, std::uint32_t a, std::uint32_t b) {
    auto const broken = [&](std::vector<std::uint32_t> const& ring) {
        for (std::size_t i = 0; i < ring.size(); ++i)
            if (auto const next = ring[(i + 1) % ring.size()]; (ring[i] == a && next == b) || (ring[i] == b && next == a)) return true;
        return false;
    };
    auto const servers_of = [](std::vector<std::uint32_t> ring) {
        std::ranges::sort(ring);
        return ring;
    };
    std::vector<std::vector<std::uint32_t>> whole; // the servers of each ring that stays
    for (auto const& ring : n.rings)
        if (!broken(ring)) whole.push_back(servers_of(ring));
    std::erase_if(n.rings, [&](auto const& ring) { return broken(ring) && std::ranges::find(whole, servers_of(ring)) != whole.end(); });
}

} // namespace detail

PARSEARCH_INLINE std::optional<network> without_wire(network const& n, std::uint32_t link, bandwidth wire) {
    if (link >= n.links.size()) throw invalid_input("without_wire: link ", link, " of ", n.links.size(), ": must be one of them");
    if (!(wire.bytes_per_second > 0)) throw invalid_input("without_wire: a wire of ", wire.bytes_per_second, " B/s: must be positive");
    validate(n);
    auto out = n;
    auto const& failed = n.links[link];
    if (failed.wires > 1) {
        out.links[link] = bundle_of(failed, failed.wires - 1);
        return out;
    }
    auto const wires = std::round(failed.each.rate.bytes_per_second / wire.bytes_per_second);
    if (wires >= 2) {
        auto const left = (wires - 1) / wires;
        out.links[link].each.rate.bytes_per_second *= left;
        out.links[link].each.reduction.bytes_per_second *= left;
        return out;
    }
    out.links.erase(out.links.begin() + link);
    auto const joins = [&](network_link const& l) { return std::minmax(l.a, l.b) == std::minmax(failed.a, failed.b); };
    if (std::ranges::none_of(out.links, joins)) detail::give_up_rings(out, failed.a, failed.b);
    auto const hops = hops_from(0, neighbours_of(out.vertices(), out.links));
    if (std::ranges::find(hops.begin(), hops.begin() + n.servers, unreached) != hops.begin() + n.servers) return std::nullopt;
    std::vector<std::uint32_t> number(n.vertices()); // of what is reached, the servers first as before
    std::uint32_t reached = 0;
    for (std::uint32_t v = 0; v < n.vertices(); ++v) {
        number[v] = reached;
        if (hops[v] != unreached) ++reached;
    }
    std::erase_if(out.links, [&](auto const& l) { return hops[l.a] == unreached; });
    for (auto& l : out.links) {
        l.a = number[l.a];
        l.b = number[l.b];
    }
    out.switches = reached - n.servers;
    return out;
}

PARSEARCH_INLINE failure_summary summary_of(std::vector<wire_failure> const& failures, std::size_t links, picoseconds time) {
    failure_summary out{.links = static_cast<std::uint32_t>(links), .tried = static_cast<std::uint32_t>(failures.size())};
    double sum = 0;
    for (auto const& f : failures) {
        if (!f.time) {
            ++out.cut_off;
            continue;
        }
        auto const times = static_cast<double>(f.time->count()) / static_cast<double>(time.count());
        sum += times;
        if (out.worst && times <= *out.worst) continue;
        out.worst = times;
        out.worst_link = f.link;
    }
    if (out.worst) out.mean = std::min(*out.worst, sum / (out.tried - out.cut_off)); // rounded, equal ones are
    return out;
}

} // namespace parsearch::fabric
