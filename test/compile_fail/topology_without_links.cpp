// expect: t\.links\(\)
#include <parsearch/concepts/device_topology.hpp>

#include <string>
#include <vector>

struct cluster {
    std::vector<int> devices() const;
    parsearch::device_description describe_device(int device) const;
#ifndef PARSEARCH_FAIL
    std::vector<int> links() const;
#endif
    parsearch::link_description describe_link(int link) const;
    std::vector<int> route(int from, int to) const;
};

template <parsearch::DeviceTopology T> void plan(T const&);

void user(cluster const& t) { plan(t); }
