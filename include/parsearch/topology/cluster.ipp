#pragma once
// The library's own device topology: devices, switches, links, and a route for every pair of devices.

#include <parsearch/topology/cluster.hpp>

namespace parsearch::topology {

PARSEARCH_INLINE std::string cluster::name_of_vertex(vertex v) const {
    switch (v.what) {
    case vertex::type::device: return text("device ", v.number);
    case vertex::type::network_switch: return switches_[v.number];
    case vertex::type::bus: break;
    }
    return "bus";
}

} // namespace parsearch::topology
