#include <parsearch/concepts/searcher.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;

namespace searcher_test {

using strategy = std::vector<int>;
inline constexpr auto product = [](strategy const& s) { return static_cast<double>(s[0]) * s[1]; };
using problem = search_problem<std::vector<std::vector<int>>, std::remove_const_t<decltype(product)>>;
using result = search_result<strategy, double>;
using engine = std::mt19937_64;

/// Draws a hundred strategies and keeps the best.
struct random_search {
    template <class P, class S, RandomBits R>
        requires SearchProblem<P, S>
    search_result<S, problem_cost_t<P, S>> operator()(P const& p, S const& start, R& rng) const {
        auto price = p.evaluator();
        search_result<S, problem_cost_t<P, S>> out{start, price(start), std::nullopt, {}, stop_reason::evaluation_budget};
        for (S s = start; out.stats.evaluations < 100; ++out.stats.evaluations) {
            for (std::size_t op = 0; op < p.space().size(); ++op) {
                auto const& choices = p.space()[op];
                set_configuration(s, op, choices[uniform_index(rng, choices.size())]);
            }
            if (auto const cost = price(s); cost < out.cost) out.best = s, out.cost = cost;
        }
        return out;
    }
};
struct returns_strategy {
    strategy operator()(problem const&, strategy const&, engine&) const;
};
struct returns_other_cost {
    search_result<strategy, int> operator()(problem const&, strategy const&, engine&) const;
};
struct without_rng {
    result operator()(problem const&, strategy const&) const;
};
struct changes_itself {
    result operator()(problem const&, strategy const&, engine&);
};

template <class F> constexpr bool is_searcher = Searcher<F, problem, strategy, engine>;
static_assert(is_searcher<random_search> && is_searcher<std::function<result(problem const&, strategy const&, engine&)>>);
static_assert(is_searcher<result (*)(problem const&, strategy, engine&)>);
static_assert(!is_searcher<returns_strategy> && !is_searcher<returns_other_cost> && !is_searcher<without_rng>);
static_assert(!is_searcher<changes_itself>, "a search keeps nothing from one call to the next");
static_assert(!is_searcher<int> && !is_searcher<void>);
static_assert(!Searcher<random_search, problem, strategy, int>, "int is no engine");
static_assert(!Searcher<random_search, int, strategy, engine>, "int is no problem");
static_assert(!Searcher<random_search, problem, std::string, engine>, "text is no strategy");

} // namespace searcher_test

TEST_CASE("searcher: a search is a function, and its result unpacks") {
    using namespace searcher_test;
    problem const p({{4, 2, 9}, {5, 3}}, product);
    engine rng{1};
    auto const compare = []<Searcher<problem, strategy, engine> F>(F const& f, problem const& q, engine& r) { return f(q, strategy{9, 5}, r); };
    auto const [best, cost, lower_bound, stats, reason, ended] = compare(random_search{}, p, rng);
    CHECK(best == strategy{2, 3});
    CHECK(cost == 6);
    CHECK_FALSE(lower_bound.has_value());
    CHECK(stats.evaluations == 100);
    CHECK(name_of(reason) == "evaluation budget");
    CHECK(ended == reason);
}

TEST_CASE("searcher: every reason has a name of its own") {
    CHECK(name_of(stop_reason::exhausted) == "exhausted");
    CHECK(name_of(stop_reason::time_budget) == "time budget");
    CHECK(name_of(stop_reason::stop_requested) == "stop requested");
    CHECK(name_of(stop_reason::proved_optimal) == "proved optimal");
    CHECK(name_of(stop_reason::no_improvement) == "no improvement");
    CHECK(name_of(stop_reason::observer) == "ended by an observer");
    CHECK(name_of(stop_reason::nothing_feasible) == "nothing feasible");
}

TEST_CASE("searcher: counts of the parts of a search add up, and nothing else") {
    search_stats whole{.evaluations = 1, .proposals = 20, .accepted = 300, .improved = 7, .trajectory = 9, .seconds = 0.5, .nodes = 4000};
    add_counts(whole, {.evaluations = 2, .proposals = 30, .accepted = 400, .improved = 8, .trajectory = 3, .seconds = 1.5, .nodes = 5000});
    CHECK(whole.evaluations == 3);
    CHECK(whole.proposals == 50);
    CHECK(whole.accepted == 700);
    CHECK(whole.nodes == 9000);
    CHECK(whole.improved == 7);
    CHECK(whole.seconds == 0.5);
    CHECK(whole.trajectory == 9);
}
