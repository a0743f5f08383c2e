// expect: an observer handles no event of this search: it must be callable with one of search::proposed<C>
#include <vector>

#include <parsearch/search/exhaustive.hpp>
#include <parsearch/search/random_search.hpp>

struct engine {
    unsigned state;
    static constexpr unsigned min() { return 0; }
    static constexpr unsigned max() { return 0x7fffffff; }
    unsigned operator()() { return (state = state * 1103515245U + 12345U) >> 1; }
};

double cost(std::vector<int> const& strategy) { return strategy[0]; }

int main() {
    parsearch::search_problem problem(std::vector<std::vector<int>>{{0, 1}}, &cost);
    engine rng{1};
    auto const watch = [](parsearch::search::bound_raised<double> const&) {};
#ifdef PARSEARCH_FAIL
    auto const other = [](parsearch::search::bound_raised<float> const&) {}; // the costs are double
#else
    auto const other = [](parsearch::search::improved<double> const&) {};
#endif
    auto const drawn = parsearch::search::random_search(problem, std::vector<int>{0}, rng, {}, watch);
    return static_cast<int>(drawn.cost + parsearch::search::exhaustive(problem, std::vector<int>{0}, rng, {}, other).cost);
}
