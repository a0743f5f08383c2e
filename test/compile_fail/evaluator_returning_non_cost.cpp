// expect: cost_traits<
#include <parsearch/concepts/evaluator.hpp>

#include <vector>

using strategy = std::vector<int>;

struct timeline {};

struct simulation {
#ifdef PARSEARCH_FAIL
    timeline operator()(strategy const& s);
#else
    double operator()(strategy const& s);
#endif
};

template <parsearch::Evaluator<strategy> E> void measure(E const&);

void user(simulation const& e) { measure(e); }
