// expect: the problem's costs are not additive: its evaluator must have operator_cost, edges and edge_cost
#include <vector>

#include <parsearch/search/dominator_dp.hpp>

struct engine {
    unsigned state;
    static constexpr unsigned min() { return 0; }
    static constexpr unsigned max() { return 0x7fffffff; }
    unsigned operator()() { return (state = state * 1103515245U + 12345U) >> 1; }
};

struct costs {
    double operator()(std::vector<int> const& s) const { return s[0] + s[1]; }
#ifndef PARSEARCH_FAIL
    double operator_cost(std::size_t, int c) const { return c; }
    double edge_cost(std::size_t, int, int) const { return 0; }
    std::vector<parsearch::operator_pair> edges() const { return {{0, 1}}; }
#endif
};

int main() {
    parsearch::search_problem problem(std::vector<std::vector<int>>{{0, 1}, {0, 1}}, costs{});
    engine rng{1};
    return static_cast<int>(parsearch::search::dominator_dp(problem, std::vector<int>{0, 0}, rng).cost);
}
