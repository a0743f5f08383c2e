#pragma once
// What the joint search remembers from one invocation to the next.

#include <parsearch/core/error.hpp>
#include <parsearch/rewrite/joint/joint_cache.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE void joint_cache::require_like(parallelization const& problem) const {
    auto const &mine = base_->topology, &other = problem.topology();
    if (!(mine == other))
        throw invalid_input("joint: the cache is of a topology of ", mine.devices.size(), " devices and ", mine.links.size(),
                            " links, the problem's has ", other.devices.size(), " and ", other.links.size(),
                            ": must be the same ones, with the same routes and rings");
    if (!(base_->options == problem.options()))
        throw invalid_input("joint: the cache is of other options of simulation than the problem's: must be the same");
}

} // namespace parsearch::rewrite
