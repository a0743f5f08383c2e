// expect: an observer handles no event of this search: it must be callable with one of search::proposed<C>
#include <vector>

#include <parsearch/search/mcmc.hpp>

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
#ifdef PARSEARCH_FAIL
    auto const watch = [](parsearch::search::improved<float> const&) {}; // the costs are double
#else
    auto const watch = [](parsearch::search::improved<double> const&) {};
#endif
    return static_cast<int>(parsearch::search::mcmc(problem, std::vector<int>{0}, rng, {}, watch).cost);
}
