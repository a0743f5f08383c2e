// expect: an observer handles no event of this search
#include <random>

#include <parsearch/rewrite/joint/joint.hpp>

namespace ps = parsearch;

void user(ps::parallelization const& problem, std::mt19937_64& rng) {
#ifdef PARSEARCH_FAIL
    auto const observer = [](ps::search::proposed<ps::picoseconds> const&) {};
#else
    auto const observer = [](ps::rewrite::rewritten_graph const&) {};
#endif
    (void)ps::rewrite::joint(problem, {}, rng, {}, observer);
}
