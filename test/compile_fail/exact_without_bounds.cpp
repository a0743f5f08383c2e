// expect: exact needs lower bounds: the problem's evaluator must be a BoundedEvaluator \(e\.bounds\(space\)\) or an AdditiveEvaluator
#include <cstddef>
#include <vector>

#include <parsearch/search/exact.hpp>

struct engine {
    unsigned state;
    static constexpr unsigned min() { return 0; }
    static constexpr unsigned max() { return 0x7fffffff; }
    unsigned operator()() { return (state = state * 1103515245U + 12345U) >> 1; }
};

using spaces = std::vector<std::vector<int>>;

// A measurement.
struct measured {
    double operator()(std::vector<int> const& strategy) const { return strategy[0]; }
#ifndef PARSEARCH_FAIL
    struct nothing_known {
        void fix(std::size_t, std::size_t) {}
        void release(std::size_t) {}
        double value() const { return 0; }
    };
    nothing_known bounds(spaces const&) const { return {}; }
#endif
};

int main() {
    parsearch::search_problem problem(spaces{{0, 1}}, measured{});
    engine rng{1};
    return static_cast<int>(parsearch::search::exact(problem, std::vector<int>{0}, rng).cost);
}
