// expect: parsearch::describe_device\(t, d\)
#include <parsearch/concepts/device_topology.hpp>

#include <string>
#include <vector>

struct cluster {
    std::vector<int> devices() const;
#ifdef PARSEARCH_FAIL
    std::string describe_device(int device) const;
#else
    parsearch::device_description describe_device(int device) const;
#endif
    std::vector<int> links() const;
    parsearch::link_description describe_link(int link) const;
    std::vector<int> route(int from, int to) const;
};

template <parsearch::DeviceTopology T> void plan(T const&);

void user(cluster const& t) { plan(t); }
