#pragma once
// What the options of all searches share: the budget, and the checks made once before a search starts.

#include <parsearch/search/kernel/search_options.hpp>

namespace parsearch::search {

PARSEARCH_INLINE void require_budget(budget const& b, std::string_view algorithm) {
    if (b.time && *b.time < std::chrono::nanoseconds::zero())
        throw invalid_input(algorithm, ": option 'time' is ", b.time->count(), " ns: must not be negative");
    if (b.evaluations && *b.evaluations == 0)
        throw invalid_input(algorithm, ": option 'evaluations' is 0: must be at least 1, the start is priced too");
}

} // namespace parsearch::search
