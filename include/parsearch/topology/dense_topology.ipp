#pragma once
// Reads any `DeviceTopology` once into dense arrays, checked: what cost models and simulators run on.

#include <algorithm>

#include <parsearch/topology/dense_topology.hpp>

namespace parsearch::topology {

PARSEARCH_INLINE void validate(link_description const& link, std::string_view where) {
    double const rate = link.rate.bytes_per_second;
    if (!(rate > 0) || rate > std::numeric_limits<double>::max())
        throw invalid_input(where, " has a bandwidth of ", rate, " B/s: must be positive and finite");
    constexpr picoseconds day = std::chrono::hours(24);
    if (link.latency < picoseconds{0} || link.latency > day)
        throw invalid_input(where, " has a latency of ", link.latency.count(), " ps: must not be negative nor above a day");
    double const reduction = link.reduction.bytes_per_second;
    if (!(reduction >= 0) || reduction > std::numeric_limits<double>::max())
        throw invalid_input(where, " has a rate of reduction of ", reduction, " B/s: must be finite and not negative");
}

PARSEARCH_INLINE dense_topology part_of(dense_topology const& t, std::vector<bool> const& used) {
    dense_topology out{.devices = {}, .kind = {}, .node = {}, .links = t.links};
    detail::numbering<std::uint32_t> kinds, nodes;
    std::vector<std::size_t> kept;
    for (std::size_t d = 0; d < t.size(); ++d) {
        if (!used[d]) continue;
        kept.push_back(d);
        out.devices.push_back(t.devices[d]);
        out.kind.push_back(kinds(t.kind[d]));
        out.node.push_back(nodes(t.node[d]));
    }
    out.routes = t.routes.part(kept);
    for (auto const& ring : t.rings) {
        std::vector<std::uint32_t> left;
        for (auto const at : ring)
            if (auto const node = nodes.find(at)) left.push_back(*node);
        if (left.size() > 1) out.rings.push_back(std::move(left));
    }
    return out;
}

PARSEARCH_INLINE dense_topology first_devices(dense_topology const& t, std::size_t devices) {
    std::vector<bool> used(t.size(), false);
    std::fill_n(used.begin(), devices, true);
    auto out = part_of(t, used);
    out.rings.clear();
    constexpr auto none = detail::handle_numbers<std::uint32_t>::none;
    std::vector<std::uint32_t> number(t.links.size(), none);
    out.routes.for_each_link([&](auto l) { number[l] = 0; });
    out.links.clear();
    for (std::size_t l = 0; l < t.links.size(); ++l) {
        if (number[l] == none) continue;
        number[l] = static_cast<std::uint32_t>(out.links.size());
        out.links.push_back(t.links[l]);
    }
    out.routes = out.routes.with_links(number);
    return out;
}

PARSEARCH_INLINE std::size_t devices_per_node(dense_topology const& t) {
    auto const& node = t.node;
    if (node.empty()) return 0;
    auto const first = static_cast<std::size_t>(std::count(node.begin(), node.end(), node.front()));
    bool regular = node.size() % first == 0;
    for (std::size_t d = 0; d < node.size(); ++d) regular = regular && node[d] == d / first;
    return regular ? first : 0;
}

} // namespace parsearch::topology
