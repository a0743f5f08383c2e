#pragma once
// Random search: independent uniform strategies, the baseline of every other search.

#include <parsearch/core/error.hpp>
#include <parsearch/search/random_search.hpp>

namespace parsearch::search {

PARSEARCH_INLINE void validate(random_options const& o) {
    require_budget(budget_of(o), "random");
    if (o.patience) require_fraction(*o.patience, "random", "patience");
    if (o.patience == 0.0 && !o.time && !o.evaluations && !o.stop.stop_possible())
        throw invalid_input("random: option 'patience' is 0, and none of 'time', 'evaluations' and 'stop' is set: one of them must end the search");
}

} // namespace parsearch::search
