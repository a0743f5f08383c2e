// expect: SizedRandomAccessRange
#include <parsearch/concepts/search_problem.hpp>

#include <list>
#include <vector>

using strategy = std::vector<int>;

struct price {
    double operator()(strategy const& s);
};

struct problem {
#ifdef PARSEARCH_FAIL
    std::vector<std::list<int>> space() const;
#else
    std::vector<std::vector<int>> space() const;
#endif
    price evaluator() const;
};

template <parsearch::SearchProblem<strategy> P> void search(P const&);

void user(problem const& p) { search(p); }
