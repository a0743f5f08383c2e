#pragma once
// Activations on the host: what segments keep there between forward and backward, and how long it takes over the link.

#include <parsearch/core/error.hpp>
#include <parsearch/pipeline/offloading.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE void add_offloaded(offload_plan const& parts, pipelining const& how, std::vector<byte_count>& use) {
    struct bytes {
        byte_count largest = 0, under_way = 0;
    };
    std::map<std::uint32_t, bytes> on; // by device
    for (auto const& [where, part] : parts) {
        auto& of_device = on[where.first];
        of_device.largest = std::max(of_device.largest, part.bytes);
        of_device.under_way += part.bytes * in_flight(how.launching(), where.second.first);
    }
    for (auto const& [d, b] : on) use[d] += std::min(2 * b.largest, b.under_way);
}

PARSEARCH_INLINE void validate(offload_plan const& parts, graph::dense_graph const& g, std::vector<device_description> const& devices) {
    for (auto const& [where, part] : parts)
        if (!(devices[where.first].host_rate.bytes_per_second > 0))
            throw invalid_input("pipeline: operator '", g.names[part.op], "' is offloaded from device ", where.first, " (", devices[where.first].kind,
                                "), whose rate to its host is not known: 'host_rate' must be positive");
}

} // namespace parsearch::pipeline
