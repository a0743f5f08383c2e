#pragma once
// What a simulated iteration does to the network of its cluster.

#include <algorithm>

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/servers/network_report.hpp>
#include <parsearch/fabric/servers/server_cluster.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE network_report report_of(network const& n, topology::cluster const& c, sim::report const& r) {
    using end = topology::vertex::type;
    auto const link_count = static_cast<std::uint32_t>(c.links().size()), device_count = static_cast<std::uint32_t>(c.size());
    auto const directions = static_cast<std::uint32_t>(2 * n.links.size());
    auto const copies = r.tasks.resources - 1 - device_count - link_count; // to hosts and back, where activations are offloaded
    if ((copies != 0 && copies != 2 * device_count) || directions > link_count || r.carried.size() != r.tasks.size())
        throw invalid_input("report of a simulation with ", r.tasks.resources, " resources on a cluster of ", device_count, " devices and ",
                            link_count, " links, ", directions, " of a network: must be of this cluster");
    // Links that lead out of a device; of these, those to the network device of its server.
    std::vector<bool> first(link_count), leaves(link_count);
    for (std::uint32_t l = directions; l < link_count; ++l) {
        auto const& ends = c.ends_of(l);
        first[l] = ends.from.what == end::device;
        leaves[l] = first[l] && ends.to.what == end::network_switch && ends.to.number < n.servers; // its network devices are the first switches
    }

    network_report out;
    out.makespan = r.makespan;
    out.message_bytes.assign(directions, 0);
    out.collective_bytes.assign(directions, 0);
    auto const use_begin = r.utilisation.begin() + device_count;
    out.utilisation.assign(use_begin, use_begin + directions);
    double messages = 0, byte_hops = 0;
    std::uint32_t hops = 0;
    for (std::uint32_t t = 0; t < r.tasks.size();) {
        if (r.tasks.kind[t] == sim::task_kind::transfer) { // links of a message, or of its segment, come one after the other
            auto const link = r.tasks.resource[t] - device_count;
            auto const bytes = static_cast<double>(r.carried[t].bytes);
            if (link >= link_count) {
                ++t; // to a host or back
                continue;
            }
            if (leaves[link]) {
                messages += bytes;
                hops = 0;
            } else if (link < directions) {
                out.message_bytes[link] += bytes;
                byte_hops += bytes;
                out.max_message_hops = std::max(out.max_message_hops, ++hops);
            }
            ++t;
            continue;
        }
        if (r.tasks.kind[t] != sim::task_kind::collective) {
            ++t;
            continue;
        }
        // The links of one collective stand between two barriers. Each is held for the time of its bytes, plus, in an all-to-all-v, a latency, the
        // same for all. Each message leaves a device once, so that the links out of devices have all bytes together.
        auto last = t;
        double time_rate = 0, rates = 0; // of links out of devices
        auto const rate_of = [&](std::uint32_t task) { return c.describe_link(r.tasks.resource[task] - device_count).rate.bytes_per_second; };
        for (; last < r.tasks.size() && r.tasks.kind[last] == sim::task_kind::collective; ++last) {
            if (!first[r.tasks.resource[last] - device_count]) continue;
            time_rate += static_cast<double>(r.tasks.duration[last]) * rate_of(last);
            rates += rate_of(last);
        }
        auto const& what = r.carried[t];
        auto const volume = sim::collective_volume(what.collective, static_cast<double>(what.bytes), what.devices);
        bool const exchange = what.collective == collective_kind::all_to_all_v;
        constexpr double per_second = 1e12; // picoseconds
        auto const latency = exchange && rates > 0 ? std::max(0.0, (time_rate - volume * per_second) / rates) : 0.0;
        auto const held = time_rate - latency * rates;
        for (; t < last; ++t) {
            if (!(held > 0)) continue;
            auto const bytes = volume * (std::max(0.0, static_cast<double>(r.tasks.duration[t]) - latency) * rate_of(t) / held);
            auto const passed = r.tasks.resource[t] - device_count;
            if (leaves[passed]) out.demanded += bytes;
            if (passed < directions) out.collective_bytes[passed] += bytes;
        }
    }
    out.demanded += messages;
    for (link_direction l = 0; l < directions; ++l) out.carried += out.bytes(l);
    if (messages > 0) out.mean_message_hops = byte_hops / messages;

    std::uint64_t pairs = 0, all_hops = 0;
    for (std::uint32_t a = 0; a < device_count; ++a)
        for (std::uint32_t b = 0; b < device_count; ++b) {
            if (c.node_of(a) == c.node_of(b)) continue;
            auto const route = c.route(a, b);
            auto const count = static_cast<std::uint32_t>(std::ranges::count_if(route, [&](auto l) { return l < directions; }));
            ++pairs;
            all_hops += count;
            out.max_pair_hops = std::max(out.max_pair_hops, count);
        }
    if (pairs > 0) out.mean_pair_hops = static_cast<double>(all_hops) / static_cast<double>(pairs);
    return out;
}

} // namespace parsearch::fabric
