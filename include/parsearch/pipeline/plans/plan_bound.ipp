#pragma once
// A lower bound on all plans: with any number of micro-batches and stages, whatever is shared, computed again or offloaded.

#include <algorithm>
#include <limits>

#include <parsearch/pipeline/plans/plan_bound.hpp>
#include <parsearch/sim/bounds/work_bound.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE picoseconds plan_bound(parallelization const& problem, partition_options const& options, std::stop_token const& stop) {
    plan_rules const rules(problem, options);
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    auto least = most;
    for (std::uint64_t n = 1; n <= rules.most_micro_batches(); ++n) {
        if (!rules.divide_samples(n)) continue;
        auto const count = static_cast<std::int64_t>(n);
        auto const part = micro_batch_problem(problem, count);
        sim::planner planner(part.workload());
        planner.stop_at(stop);
        auto const each = sim::work_bound(planner, part.space()).count();
        least = std::min(least, each > most / count ? most : count * each);
    }
    return picoseconds{least};
}

} // namespace parsearch::pipeline
