// expect: invocable<
#include <parsearch/concepts/evaluator.hpp>

#include <vector>

using strategy = std::vector<int>;

struct simulation {
#ifndef PARSEARCH_FAIL
    double operator()(strategy const& s);
#endif
};

template <parsearch::Evaluator<strategy> E> void measure(E const&);

void user(simulation const& e) { measure(e); }
