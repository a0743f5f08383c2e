// expect: a < b
#include <parsearch/concepts/evaluator.hpp>

#include <vector>

using strategy = std::vector<int>;

struct money {
    double euros;
    friend bool operator==(money, money) = default;
#ifndef PARSEARCH_FAIL
    friend auto operator<=>(money, money) = default;
#endif
};

template <> struct parsearch::cost_traits<money> {
    static money infinity();
    static double value(money m);
    static money raised(money m, double by);
};

struct bill {
    money operator()(strategy const& s);
};

template <parsearch::Evaluator<strategy> E> void measure(E const&);

void user(bill const& e) { measure(e); }
