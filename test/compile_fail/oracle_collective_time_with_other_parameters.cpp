// expect: the oracle has a member collective_time that can not be called as
#include <parsearch/models/mlp.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

namespace ps = parsearch;

struct measurements {
    template <class Device> ps::picoseconds shard_time(ps::ops::shard_work const&, Device const&) const { return ps::picoseconds{1}; }
#ifdef PARSEARCH_FAIL
    ps::picoseconds collective_time(ps::byte_count, ps::collective_group const&) const { return ps::picoseconds{1}; }
#else
    ps::picoseconds collective_time(ps::collective_kind, ps::byte_count, ps::collective_group const&) const { return ps::picoseconds{1}; }
#endif
};

auto user() { return ps::make_problem(ps::models::mlp({.batch = 8}), ps::topology::p100_cluster(1), measurements{}); }
