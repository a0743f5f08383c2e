// expect: e\.roll_back\(\)
#include <parsearch/concepts/evaluator.hpp>

#include <optional>
#include <span>
#include <vector>

using strategy = std::vector<int>;

struct simulation {
    double operator()(strategy const& s);
    double reset(strategy const& s);
    std::optional<double> propose(std::span<parsearch::change<int> const> changes, double bound);
    void commit();
#ifndef PARSEARCH_FAIL
    void roll_back();
#endif
};

template <parsearch::IncrementalEvaluator<strategy, int> E> void search(E const&);

void user(simulation const& e) { search(e); }
