// expect: a == b
#include <parsearch/concepts/device_topology.hpp>

#include <cstddef>
#include <functional>
#include <vector>

struct gpu {
    int number;
#ifndef PARSEARCH_FAIL
    friend bool operator==(gpu, gpu) = default;
#endif
};

template <> struct std::hash<gpu> {
    std::size_t operator()(gpu d) const { return std::hash<int>{}(d.number); }
};

struct cluster {
    std::vector<gpu> devices() const;
    parsearch::device_description describe_device(gpu device) const;
    std::vector<int> links() const;
    parsearch::link_description describe_link(int link) const;
    std::vector<int> route(gpu from, gpu to) const;
};

template <parsearch::DeviceTopology T> void plan(T const&);

void user(cluster const& t) { plan(t); }
