// expect: o\.shard_time\(w, d\)
#include <parsearch/concepts/cost_oracle.hpp>

struct shard {};
struct device {};

struct measurements {
#ifndef PARSEARCH_FAIL
    parsearch::picoseconds shard_time(shard const&, device const&) const;
#endif
    parsearch::picoseconds transfer_time(parsearch::byte_count, parsearch::link_description const&) const;
};

template <parsearch::CostOracle<shard, device> O> void plan(O const&);

void user(measurements const& o) { plan(o); }
