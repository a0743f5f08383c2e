#pragma once
// What it costs to rewire a fabric.

#include <algorithm>

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/network/reconfigurable.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE bool same_wiring(network const& x, network const& y) {
    auto const sorted = [](network const& n) {
        auto out = n.links;
        for (auto& l : out)
            if (l.a > l.b) std::swap(l.a, l.b);
        auto const key = [](network_link const& l) { return std::tuple(l.a, l.b, l.wires, l.each.rate.bytes_per_second, l.each.latency); };
        std::sort(out.begin(), out.end(), [&](auto const& p, auto const& q) { return key(p) < key(q); });
        return out;
    };
    return x.servers == y.servers && x.switches == y.switches && sorted(x) == sorted(y);
}

PARSEARCH_INLINE picoseconds rewiring_time(reconfigurable_options const& o, network const& present, network const& wanted) {
    if (o.reconfiguration_time < picoseconds{0})
        throw invalid_input("reconfiguration time of ", o.reconfiguration_time.count(), " ps: must not be negative");
    if (o.iterations < 1) throw invalid_input("a wiring kept for ", o.iterations, " iterations: must be at least one");
    if (same_wiring(present, wanted)) return picoseconds{0};
    auto const time = o.reconfiguration_time.count();
    return picoseconds{time / o.iterations + (time % o.iterations != 0)};
}

} // namespace parsearch::fabric
