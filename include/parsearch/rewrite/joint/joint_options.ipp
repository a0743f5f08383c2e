#pragma once
// The options of `joint`.

#include <parsearch/core/error.hpp>
#include <parsearch/rewrite/joint/joint_options.hpp>
#include <parsearch/search/kernel/search_options.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE void validate(joint_options const& o) {
    search::require_budget(search::budget_of(o), "joint");
    if (!(o.alpha >= 1 && o.alpha <= 1e6)) throw invalid_input("joint: option 'alpha' is ", o.alpha, ": must be from 1 to 1e6");
    if (o.segment_operators < 1) throw invalid_input("joint: option 'segment_operators' is 0: must be at least 1");
    if (o.beam < 1) throw invalid_input("joint: option 'beam' is 0: must be at least 1");
    validate(o.pricing);
}

} // namespace parsearch::rewrite
