// expect: search_result<
#include <parsearch/concepts/searcher.hpp>

#include <cstdint>
#include <vector>

using strategy = std::vector<int>;

struct price {
    double operator()(strategy const& s);
};

struct engine {
    static constexpr std::uint64_t min() { return 0; }
    static constexpr std::uint64_t max() { return UINT64_MAX; }
    std::uint64_t operator()();
};

using problem = parsearch::search_problem<std::vector<std::vector<int>>, price>;

struct hill_climbing {
#ifdef PARSEARCH_FAIL
    strategy operator()(problem const& p, strategy const& start, engine& rng) const;
#else
    parsearch::search_result<strategy, double> operator()(problem const& p, strategy const& start, engine& rng) const;
#endif
};

template <parsearch::Searcher<problem, strategy, engine> F> void compare(F const&);

void user(hill_climbing const& f) { compare(f); }
