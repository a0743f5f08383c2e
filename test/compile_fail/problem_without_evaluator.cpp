// expect: p\.evaluator\(\)
#include <parsearch/concepts/search_problem.hpp>

#include <vector>

using strategy = std::vector<int>;

struct price {
    double operator()(strategy const& s);
};

struct problem {
    std::vector<std::vector<int>> space() const;
#ifndef PARSEARCH_FAIL
    price evaluator() const;
#endif
};

template <parsearch::SearchProblem<strategy> P> void search(P const&);

void user(problem const& p) { search(p); }
