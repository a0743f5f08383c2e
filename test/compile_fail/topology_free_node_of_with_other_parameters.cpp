// expect: the topology has a function node_of that can not be called with a constant topology and a device
#include <array>

#include <parsearch/models/mlp.hpp>
#include <parsearch/problem/problem.hpp>

namespace ps = parsearch;

namespace mine {
struct gpu {
    int number = 0;
    friend bool operator==(gpu, gpu) = default;
};
struct pair_of_devices {
    std::array<gpu, 2> gpus{gpu{0}, gpu{1}};
    std::array<int, 2> cables{0, 1};
    [[nodiscard]] std::array<gpu, 2> const& devices() const { return gpus; }
    [[nodiscard]] std::array<int, 2> const& links() const { return cables; }
    [[nodiscard]] static ps::device_description describe_device(gpu) { return {.kind = "device"}; }
    [[nodiscard]] static ps::link_description describe_link(int) { return {.rate = {1e9}}; }
    [[nodiscard]] static std::array<int, 1> route(gpu, gpu to) { return {to.number}; }
};
#ifdef PARSEARCH_FAIL
inline int node_of(pair_of_devices const&, int device) { return device; }
#else
inline int node_of(pair_of_devices const&, gpu device) { return device.number; }
#endif
} // namespace mine
template <> struct std::hash<mine::gpu> {
    std::size_t operator()(mine::gpu d) const { return std::hash<int>{}(d.number); }
};

auto user() {
    return ps::make_problem(ps::models::mlp({.batch = 8}), mine::pair_of_devices{},
                            [](ps::ops::shard_work const&, mine::gpu) { return ps::picoseconds{1}; });
}
