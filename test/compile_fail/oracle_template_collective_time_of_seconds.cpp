// expect: the oracle has a member collective_time that can not be called as
#include <parsearch/models/mlp.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

namespace ps = parsearch;

namespace mine {
struct measurements {
    template <class Device> ps::picoseconds shard_time(ps::ops::shard_work const&, Device const&) const { return ps::picoseconds{1}; }
#ifdef PARSEARCH_FAIL
    template <class Group> double collective_time(ps::collective_kind, ps::byte_count, Group const&) const { return 1; }
#else
    template <class Group> ps::picoseconds collective_time(ps::collective_kind, ps::byte_count, Group const&) const { return ps::picoseconds{1}; }
#endif
};
} // namespace mine

auto user() { return ps::make_problem(ps::models::mlp({.batch = 8}), ps::topology::p100_cluster(1), mine::measurements{}); }
