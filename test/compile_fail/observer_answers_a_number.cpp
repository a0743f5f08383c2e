// expect: an observer must answer nothing, search::verdict
#include <parsearch/search/kernel/events.hpp>

namespace search = parsearch::search;

void user(search::improved<int> const& event) {
    int told = 0;
#ifdef PARSEARCH_FAIL
    auto observer = [&](search::improved<int> const&) { return ++told; };
#else
    auto observer = [&](search::improved<int> const&) { ++told; };
#endif
    (void)search::notify(event, observer);
}
