// expect: s\.set_configuration\(op, c\)
#include <parsearch/concepts/strategy.hpp>

#include <cstddef>

struct plan_of_ours {
    int configuration_of(std::size_t op) const;
#ifndef PARSEARCH_FAIL
    void set_configuration(std::size_t op, int c);
#endif
    friend bool operator==(plan_of_ours const&, plan_of_ours const&) = default;
};

template <parsearch::Strategy<int> S> void improve(S const&);

void user(plan_of_ours const& s) { improve(s); }
