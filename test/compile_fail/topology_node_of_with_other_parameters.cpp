// expect: the topology has a member node_of that can not be called with a device
#include <array>

#include <parsearch/models/mlp.hpp>
#include <parsearch/problem/problem.hpp>

namespace ps = parsearch;

struct pair_of_devices {
    std::array<int, 2> numbers{0, 1};
    [[nodiscard]] std::array<int, 2> const& devices() const { return numbers; }
    [[nodiscard]] std::array<int, 2> const& links() const { return numbers; }
    [[nodiscard]] static ps::device_description describe_device(int) { return {.kind = "device"}; }
    [[nodiscard]] static ps::link_description describe_link(int) { return {.rate = {1e9}}; }
    [[nodiscard]] static std::array<int, 1> route(int, int to) { return {to}; }
#ifdef PARSEARCH_FAIL
    [[nodiscard]] static int node_of(int device, int socket) { return device + socket; }
#else
    [[nodiscard]] static int node_of(int device) { return device; }
#endif
};

auto user() {
    return ps::make_problem(ps::models::mlp({.batch = 8}), pair_of_devices{}, [](ps::ops::shard_work const&, int) { return ps::picoseconds{1}; });
}
