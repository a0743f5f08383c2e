// expect: t\.devices\(\)
#include <parsearch/concepts/device_topology.hpp>

#include <string>
#include <vector>

struct cluster {
#ifndef PARSEARCH_FAIL
    std::vector<int> devices() const;
#endif
    parsearch::device_description describe_device(int device) const;
    std::vector<int> links() const;
    parsearch::link_description describe_link(int link) const;
    std::vector<int> route(int from, int to) const;
};

template <parsearch::DeviceTopology T> void plan(T const&);

void user(cluster const& t) { plan(t); }
