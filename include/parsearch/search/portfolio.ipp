#pragma once
// Several searches that share what they find: the best strategy and the best lower bound.

#include <parsearch/core/error.hpp>
#include <parsearch/search/portfolio.hpp>

namespace parsearch::search {

PARSEARCH_INLINE void validate(portfolio_options const& o) {
    require_budget(budget_of(o), "portfolio");
    require_threads(o.threads, "portfolio");
    if (o.slice == 0 || o.slice > portfolio_options::most_slice)
        throw invalid_input("portfolio: option 'slice' is ", o.slice, ": must be between 1 and ", portfolio_options::most_slice);
    if (o.patience == std::uint64_t{0} && !o.time && !o.evaluations && !o.stop.stop_possible())
        throw invalid_input(
            "portfolio: option 'patience' is 0, and none of 'time', 'evaluations' and 'stop' is set: one of them must end the search");
}

} // namespace parsearch::search
