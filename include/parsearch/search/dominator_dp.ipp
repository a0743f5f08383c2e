#pragma once
// Exact search for additive costs: dynamic programming over the operators, cut at dominators.

#include <parsearch/core/error.hpp>
#include <parsearch/search/dominator_dp.hpp>

namespace parsearch::search {

PARSEARCH_INLINE void validate(dominator_dp_options const& o) {
    require_budget(budget_of(o), "dominator_dp");
    if (o.candidates == 0) throw invalid_input("dominator_dp: option 'candidates' is 0: must be at least 1");
    if (o.memory < (std::uint64_t{1} << 20))
        throw invalid_input("dominator_dp: option 'memory' is ", o.memory, " bytes: must be at least 1048576 (1 MiB)");
}

} // namespace parsearch::search
