#pragma once
// Greedy search: best responses of one operator at a time, until no operator can improve alone.

#include <parsearch/search/greedy.hpp>

namespace parsearch::search {

PARSEARCH_INLINE void validate(greedy_options const& o) {
    require_budget(budget_of(o), "greedy");
    if (o.candidates == 0) throw invalid_input("greedy: option 'candidates' is 0: must be at least 1");
    if (o.order && *o.order > visit_order::supplied)
        throw invalid_input("greedy: option 'order' is ", static_cast<int>(*o.order), ": must be numbered, shuffled or supplied");
    if (!o.coarse && !o.single) throw invalid_input("greedy: options 'coarse' and 'single' are false: one of them must be true");
}

} // namespace parsearch::search
