#pragma once
/// What a simulated iteration does to the network of its cluster.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/fabric/network/link_index.hpp>
#include <parsearch/fabric/network/network.hpp>
#include <parsearch/sim/report.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/sim/task/pricing.hpp>
#include <parsearch/topology/cluster.hpp>

namespace parsearch::fabric {

/// Traffic of one iteration on the links of a network; vectors are by `link_direction`. Host links and those inside servers are no links of it.
/// A message's bytes are counted on every link of its path, exactly. A collective is counted as the simulator has it hold links: over its rings (an
/// all-to-all: between all pairs) whatever algorithm its time is of. Its bytes (`sim::collective_volume`) are dealt to links as its tasks' times
/// say, exact but for the rounding of these to picoseconds; those of an all-to-all-v where the time of a message is latency and bytes / rate.
struct network_report {
    picoseconds makespan{};
    std::vector<double> message_bytes, collective_bytes;
    std::vector<double> utilisation; ///< busy share of the makespan
    double demanded = 0;             ///< bytes that leave servers for others: of messages, and of each hop of a ring between two servers
    double carried = 0;              ///< bytes on all links of the network together: those of a path of h links h times
    double mean_message_hops = 0;    ///< links of the network that a message between servers passes, weighted by bytes; 0 without such messages
    std::uint32_t max_message_hops = 0;
    double mean_pair_hops = 0; ///< the same of the routes of all ordered pairs of devices on different servers, each counted once
    std::uint32_t max_pair_hops = 0;

    [[nodiscard]] double bytes(link_direction l) const { return message_bytes[l] + collective_bytes[l]; }
    /// Bytes that links carry per byte demanded: the links of a path, on the average over bytes. 1 where all have links of their own (and where
    /// nothing is demanded), 2 where all pass one switch.
    [[nodiscard]] double bandwidth_tax() const noexcept { return demanded > 0 ? carried / demanded : 1; }
};

/// The report of `r`, a simulation on cluster `c`, which `server_cluster` made of network `n`. Throws `invalid_input` where their devices or links
/// are not as many. Complexity: O(tasks + links + pairs of devices * hops).
[[nodiscard]] network_report report_of(network const& n, topology::cluster const& c, sim::report const& r);

} // namespace parsearch::fabric

#ifndef PARSEARCH_COMPILED
#include <parsearch/fabric/servers/network_report.ipp>
#endif
