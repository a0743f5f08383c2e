// expect: the oracle has a function collective_time that can not be called as
#include <parsearch/models/mlp.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

namespace ps = parsearch;

namespace mine {
struct measurements {
    template <class Device> ps::picoseconds shard_time(ps::ops::shard_work const&, Device const&) const { return ps::picoseconds{1}; }
};
#ifdef PARSEARCH_FAIL
inline ps::picoseconds collective_time(measurements const&, ps::byte_count, ps::collective_group const&) { return ps::picoseconds{1}; }
#else
inline ps::picoseconds collective_time(measurements const&, ps::collective_kind, ps::byte_count, ps::collective_group const&) {
    return ps::picoseconds{1};
}
#endif
} // namespace mine

auto user() { return ps::make_problem(ps::models::mlp({.batch = 8}), ps::topology::p100_cluster(1), mine::measurements{}); }
