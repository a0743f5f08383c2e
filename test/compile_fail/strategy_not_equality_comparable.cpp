// expect: a == b
#include <parsearch/concepts/strategy.hpp>

#include <cstddef>

struct plan_of_ours {
    int configuration_of(std::size_t op) const;
    void set_configuration(std::size_t op, int c);
#ifndef PARSEARCH_FAIL
    friend bool operator==(plan_of_ours const&, plan_of_ours const&) = default;
#endif
};

template <parsearch::Strategy<int> S> void improve(S const&);

void user(plan_of_ours const& s) { improve(s); }
