#pragma once
// How warm a Metropolis chain is: a given temperature, one in proportion to the least cost, or one that aims at an acceptance.

#include <parsearch/search/chain/temperature.hpp>

namespace parsearch::search {

PARSEARCH_INLINE void temperature_rule::worsened(bool accepted) {
    ++unimproved_;
    if (!adapts_) return;
    ++worse_;
    accepted_ += accepted ? 1 : 0;
    if (worse_ < interval) return;
    adapt(static_cast<double>(accepted_) - goal_);
    worse_ = accepted_ = 0;
}

} // namespace parsearch::search
