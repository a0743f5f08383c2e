// expect: an evaluator with a budget must have both operator_memory and memory_budget
#include <vector>

#include <parsearch/search/dominator_dp.hpp>

struct engine {
    unsigned state;
    static constexpr unsigned min() { return 0; }
    static constexpr unsigned max() { return 0x7fffffff; }
    unsigned operator()() { return (state = state * 1103515245U + 12345U) >> 1; }
};

struct costs {
    int operator()(std::vector<int> const& s) const { return s[0] + s[1]; }
    int operator_cost(std::size_t, int c) const { return c; }
    int edge_cost(std::size_t, int, int) const { return 0; }
    std::vector<parsearch::operator_pair> edges() const { return {{0, 1}}; }
    int operator_memory(std::size_t, int c) const { return c; }
#ifndef PARSEARCH_FAIL
    int memory_budget() const { return 2; }
#else
    int memory_buget() const { return 2; }
#endif
};

int main() {
    parsearch::search_problem problem(std::vector<std::vector<int>>{{0, 1}, {0, 1}}, costs{});
    engine rng{1};
    return parsearch::search::dominator_dp(problem, std::vector<int>{0, 0}, rng).cost;
}
