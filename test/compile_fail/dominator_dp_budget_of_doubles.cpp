// expect: a budget of memory needs costs that are integers, or durations of integers
#include <vector>

#include <parsearch/search/dominator_dp.hpp>

struct engine {
    unsigned state;
    static constexpr unsigned min() { return 0; }
    static constexpr unsigned max() { return 0x7fffffff; }
    unsigned operator()() { return (state = state * 1103515245U + 12345U) >> 1; }
};

#ifndef PARSEARCH_FAIL
using cost = int;
#else
using cost = double;
#endif

struct costs {
    cost operator()(std::vector<int> const& s) const { return s[0] + s[1]; }
    cost operator_cost(std::size_t, int c) const { return c; }
    cost edge_cost(std::size_t, int, int) const { return 0; }
    std::vector<parsearch::operator_pair> edges() const { return {{0, 1}}; }
    parsearch::byte_count operator_memory(std::size_t, int c) const { return c; }
    parsearch::byte_count memory_budget() const { return 1; }
};

int main() {
    parsearch::search_problem problem(std::vector<std::vector<int>>{{0, 1}, {0, 1}}, costs{});
    engine rng{1};
    return static_cast<int>(parsearch::search::dominator_dp(problem, std::vector<int>{0, 0}, rng).cost);
}
