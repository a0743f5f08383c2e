// expect: parsearch::shard_time\(o, work, device\)
#include <parsearch/concepts/cost_oracle.hpp>

struct shard {};
struct device {};

struct measurements {
#ifdef PARSEARCH_FAIL
    double shard_time(shard const&, device const&) const;
#else
    parsearch::picoseconds shard_time(shard const&, device const&) const;
#endif
};

template <parsearch::CostOracle<shard, device> O> void plan(O const&);

void user(measurements const& o) { plan(o); }
