#include <parsearch/search/kernel/session.hpp>

#include <array>
#include <limits>
#include <new>

#include <doctest/doctest.h>

#include "support/toys.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;

namespace {
template <class P> void check_pricer(P const& problem) {
    toys::strategy const start{0, 1, 2, 0};
    search::pricer<P, toys::strategy> p(problem, start);
    double const at_start = p.price();
    CHECK(at_start == problem.evaluator()(start));

    std::array<ps::change<int>, 2> const what{{{1, 2}, {3, 1}}};
    toys::strategy const changed{0, 2, 2, 1};
    double const at_changed = problem.evaluator()(changed);
    REQUIRE(at_changed != at_start);
    double const infinity = std::numeric_limits<double>::infinity();

    CHECK(p.propose(what, infinity) == at_changed);
    p.drop();
    CHECK(p.current() == start);
    CHECK(p.propose(what, at_changed) == at_changed); // the bound itself is allowed
    p.drop();
    CHECK(!p.propose(what, at_changed - 0.5));
    p.drop();
    CHECK(p.current() == start);
    CHECK(p.propose(what, infinity) == at_changed);
    p.keep();
    CHECK(p.current() == changed);
    std::array<ps::change<int>, 1> const back{{{3, 0}}};
    CHECK(p.propose(back, infinity) == problem.evaluator()(toys::strategy{0, 2, 2, 0}));
    p.drop();
    p.jump(start);
    CHECK(p.propose(what, infinity) == at_changed);
    p.drop();
}
} // namespace

TEST_CASE("plain and incremental evaluators are priced alike") {
    auto const problem = toys::table_problem<double>(toys::make_space(4, 3), 6, true);
    static_assert(!search::pricer<std::remove_const_t<decltype(problem)>, toys::strategy>::incremental);
    check_pricer(problem);

    toys::asked counts;
    auto const stepped = toys::incremental(problem, counts);
    static_assert(search::pricer<std::remove_const_t<decltype(stepped)>, toys::strategy>::incremental);
    check_pricer(stepped);
    CHECK(counts.whole == 3); // the test's own
    CHECK(counts.resets == 2);
    CHECK(counts.proposals == 6);
    CHECK(counts.above_bound == 1);
    CHECK(counts.commits == 1);
    CHECK(counts.roll_backs == 5);
}

TEST_CASE("a plain evaluator that throws inside a session leaves nothing but the exception") {
    int calls = 0;
    ps::search_problem const problem{toys::make_space(2, 2), [&calls](toys::strategy const&) {
                                         if (++calls == 2) throw std::runtime_error("measurement failed");
                                         return 1.0;
                                     }};
    search::session<std::remove_const_t<decltype(problem)>, toys::strategy> run("test", problem, {0, 0}, {}, {}, 0);
    std::array<ps::change<int>, 1> const what{{{0, 1}}};
    CHECK_THROWS_WITH(static_cast<void>(run.propose(what, 1.0, {})), "measurement failed");
    CHECK(run.best_cost() == 1.0);
}

TEST_CASE("what cuts an evaluation short ends the session with the best so far, and is not counted") {
    for (bool const memory : {false, true}) {
        CAPTURE(memory);
        int calls = 0;
        ps::search_problem const problem{toys::make_space(2, 4), [&](toys::strategy const& s) {
                                             if (++calls == 3 && memory) throw std::bad_alloc();
                                             if (calls == 3) throw ps::interrupted();
                                             return 10.0 - s[0];
                                         }};
        search::session<std::remove_const_t<decltype(problem)>, toys::strategy> run("test", problem, {0, 0}, {}, {}, 0);
        std::array<ps::change<int>, 1> const first{{{0, 1}}}, second{{{0, 2}}};
        CHECK(run.propose(first, 10.0, {}));
        run.keep();
        CHECK(!run.was_cut());
        CHECK(!run.propose(second, 9.0, {}));
        run.drop();
        CHECK(run.was_cut());
        CHECK(run.current() == toys::strategy{1, 0});
        auto const reason = memory ? ps::stop_reason::out_of_memory : ps::stop_reason::stop_requested;
        CHECK(run.due() == reason);
        CHECK(!run.propose(second, 9.0, {})); // also where it could be priced now
        run.keep();
        auto const found = run.finish(*run.due());
        CHECK(found.best == toys::strategy{1, 0});
        CHECK(found.cost == 9.0);
        CHECK(found.stats.evaluations == 2);
        CHECK(found.stats.proposals == 1);
        CHECK(found.ended == reason);
    }
}

TEST_CASE("costs that are not numbers are refused with the number of the evaluation") {
    double const nan = std::numeric_limits<double>::quiet_NaN();
    int calls = 0;
    ps::search_problem const problem{toys::make_space(2, 2), [&](toys::strategy const&) { return ++calls == 3 ? nan : 1.0; }};
    using problem_type = std::remove_const_t<decltype(problem)>;
    search::session<problem_type, toys::strategy> run("test", problem, {0, 0}, {}, {}, 0);
    std::array<ps::change<int>, 1> const what{{{0, 1}}};
    CHECK(run.propose(what, 1.0, {}));
    run.drop();
    CHECK_THROWS_WITH_AS(static_cast<void>(run.propose(what, 1.0, {})),
                         "test: evaluation number 3 answered a cost that does not equal itself (NaN): costs must be totally ordered",
                         ps::invalid_input);
    calls = 2;
    CHECK_THROWS_WITH_AS((search::session<problem_type, toys::strategy>("test", problem, {0, 0}, {}, {}, 0)),
                         "test: evaluation number 1 answered a cost that does not equal itself (NaN): costs must be totally ordered",
                         ps::invalid_input);
}

TEST_CASE("a session keeps the highest lower bound and tells of each rise") {
    auto const problem = toys::table_problem<double>(toys::make_space(3, 2), 4, false);
    std::vector<std::pair<std::optional<double>, double>> told;
    auto observer = search::on<search::bound_raised>([&](auto const& e) { told.emplace_back(e.before, e.bound); });
    search::session<std::remove_const_t<decltype(problem)>, toys::strategy, decltype(observer)> run("test", problem, toys::strategy{0, 0, 0}, {}, {},
                                                                                                    0, observer);
    CHECK(!run.lower_bound());
    run.raise_bound(2);
    run.raise_bound(1);
    run.raise_bound(2);
    run.raise_bound(3);
    CHECK(told == std::vector<std::pair<std::optional<double>, double>>{{std::nullopt, 2.0}, {2.0, 3.0}});
    CHECK_THROWS_AS(run.raise_bound(std::numeric_limits<double>::quiet_NaN()), ps::invalid_input);
    CHECK(run.finish(ps::stop_reason::exhausted).lower_bound == 3);
}
