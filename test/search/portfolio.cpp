#include <parsearch/search/portfolio.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <optional>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/error.hpp>
#include <parsearch/search/additive_cost.hpp>
#include <parsearch/search/random_search.hpp>

#include "support/toys.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;

namespace {

// All strategies.
double least(toys::space const& x, auto evaluate) {
    toys::strategy s(x.size(), 0);
    double best = evaluate(s);
    for (bool more = true; more;) {
        more = false;
        for (std::size_t op = 0; op < s.size() && !more; ++op) {
            if (++s[op] < static_cast<int>(x[op].size())) more = true;
            else s[op] = 0;
        }
        best = std::min(best, evaluate(s));
    }
    return best;
}

struct told {
    std::vector<std::tuple<int, std::uint64_t, double>> events;
    void operator()(search::improved<double> const& e) { events.emplace_back(0, e.evaluation, e.cost); }
    void operator()(search::member_turn<double> const& e) { events.emplace_back(1, e.evaluation * 100 + e.member, e.best); }
    void operator()(search::bound_raised<double> const& e) { events.emplace_back(2, e.evaluation, e.bound); }
    void operator()(search::progress<double> const& e) { events.emplace_back(3, e.stats.evaluations, e.best); }
};

struct throwing {
    double operator()(toys::strategy const& s) const {
        if (s[0] == 2) throw std::runtime_error("no measurement");
        return s[0] + 5 * s[1];
    }
};

} // namespace

TEST_CASE("portfolio finds the optimum of small problems and ends by itself") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed ", seed);
        auto const x = toys::make_space(5, 3, 2);
        auto const problem = toys::table_problem<double>(x, seed, true);
        auto const best = least(x, problem.evaluator());
        for (bool const concurrent : {false, true}) {
            std::mt19937_64 rng{seed};
            // With the default patience of 2 rounds one of these forty runs ends before it.
            auto const found = search::portfolio(problem, toys::strategy(5, 0), rng, {.patience = 4, .concurrent = concurrent});
            CHECK(found.cost == best);
            CHECK(problem.evaluator()(found.best) == best);
            CHECK(!found.lower_bound);
            CHECK((found.reason == ps::stop_reason::no_improvement || found.reason == ps::stop_reason::exhausted));
        }
    }
}

TEST_CASE("threads: a portfolio is the same for any number, events and engine included") {
    auto const x = toys::make_space(7, 4, 3);
    auto const plain = toys::table_problem<double>(x, 3, true);
    toys::asked counts;
    auto const stepped = toys::incremental(plain, counts);
    auto const check = [&](auto const& problem, search::portfolio_options options) {
        std::optional<search::portfolio_options> first;
        std::vector<std::tuple<int, std::uint64_t, double>> events;
        std::optional<ps::search_result<toys::strategy, double>> result;
        std::uint64_t drawn = 0;
        for (std::uint64_t const threads : {1u, 2u, 3u, 8u}) {
            CAPTURE(threads);
            options.threads = threads;
            std::mt19937_64 rng{11};
            told observer;
            auto const found = search::portfolio(problem, toys::strategy(7, 0), rng, options, observer);
            if (!first) {
                first = options;
                events = observer.events;
                result = found;
                drawn = rng();
                CHECK(!events.empty());
                continue;
            }
            CHECK(observer.events == events);
            CHECK(found.best == result->best);
            CHECK(found.cost == result->cost);
            CHECK(found.reason == result->reason);
            CHECK(found.stats.evaluations == result->stats.evaluations);
            CHECK(found.stats.trajectory == result->stats.trajectory);
            CHECK(rng() == drawn);
        }
    };
    for (bool const concurrent : {false, true})
        for (std::uint64_t const evaluations : {50u, 1000u, 5000u}) {
            CAPTURE(concurrent);
            CAPTURE(evaluations);
            check(plain, {.evaluations = evaluations, .slice = 40, .concurrent = concurrent});
            check(toys::grouped(plain), {.evaluations = evaluations, .slice = 40, .concurrent = concurrent});
        }
    check(plain, {.slice = 100});
    check(toys::grouped(plain), {.slice = 100});
    // The counts of what an incremental toy was asked are not made for threads.
    std::mt19937_64 rng{11}, again{11};
    CHECK(search::portfolio(stepped, toys::strategy(7, 0), rng, {.evaluations = 3000}).stats.trajectory ==
          search::portfolio(plain, toys::strategy(7, 0), again, {.evaluations = 3000}).stats.trajectory);
    CHECK(counts.proposals > 0);
}

TEST_CASE("portfolio keeps to its budgets") {
    auto const problem = toys::table_problem<double>(toys::make_space(6, 4), 5, true);
    auto const check = [](auto const& of, bool concurrent) {
        for (std::uint64_t evaluations = 1; evaluations < 200; evaluations += 7) {
            CAPTURE(evaluations);
            std::mt19937_64 rng{2};
            auto const found = search::portfolio(of, toys::strategy(6, 0), rng, {.evaluations = evaluations, .slice = 20, .concurrent = concurrent});
            CHECK(found.stats.evaluations <= evaluations);
            CHECK(found.reason == ps::stop_reason::evaluation_budget);
        }
    };
    for (bool const concurrent : {false, true}) {
        check(problem, concurrent);
        check(toys::grouped(problem), concurrent);
    }
    std::mt19937_64 rng{2};
    CHECK(search::portfolio(problem, toys::strategy(6, 0), rng, {.time = std::chrono::nanoseconds{0}}).reason == ps::stop_reason::time_budget);
    std::stop_source source;
    source.request_stop();
    CHECK(search::portfolio(problem, toys::strategy(6, 0), rng, {.stop = source.get_token()}).reason == ps::stop_reason::stop_requested);
}

TEST_CASE("a portfolio visits groups of operators first, from the start in each round, with more candidates each time") {
    // Operators that differ from their neighbours cost more than a better configuration saves, and 0 is the worst.
    auto const least_of_all = [](toys::strategy const& s) {
        double sum = 1000;
        for (std::size_t op = 0; op < s.size(); ++op) {
            sum -= s[op];
            if (op > 0 && s[op] != s[op - 1]) sum += 100;
        }
        return sum;
    };
    toys::grouped const problem(ps::search_problem{toys::make_space(8, 40), least_of_all});
    struct turns {
        std::vector<std::uint64_t> evaluations, slices; ///< at the beginning of each turn of greedy; of the turns of mcmc
        std::size_t last = 9;
        std::uint64_t began = 0;
        void operator()(search::member_turn<double> const& e) {
            if (last == 2) slices.push_back(e.evaluation - began);
            if (e.member == 0 || last == 0) evaluations.push_back(e.evaluation);
            last = e.member;
            began = e.evaluation;
        }
    } turns;
    std::mt19937_64 rng{4};
    auto const found = search::portfolio(problem, toys::strategy(8, 0), rng, {.evaluations = 4000, .slice = 10}, turns);
    CHECK(found.cost == 1000 - 8 * 39);
    std::vector<std::uint64_t> greedy;
    for (std::size_t n = 0; n + 1 < turns.evaluations.size(); n += 2) greedy.push_back(turns.evaluations[n + 1] - turns.evaluations[n]);
    REQUIRE(greedy.size() >= 3);
    REQUIRE(turns.slices.size() >= 3);
    // 16 candidates of 40 for each of two halves and four pairs, at most ten times; then 32; then all.
    CHECK(greedy[0] > 6 * 16 / 2);
    CHECK(greedy[0] <= 10 * 6 * 16);
    CHECK(greedy[1] > greedy[0] / 2);
    CHECK(turns.slices[0] >= greedy[0]); // though the first slice is 10
    // Improvements are told of the whole search alone: each better than all before.
    double best = problem.evaluator()(toys::strategy(8, 0));
    std::mt19937_64 again{4};
    (void)search::portfolio(problem, toys::strategy(8, 0), again, {.evaluations = 4000, .slice = 10}, [&](search::improved<double> const& e) {
        CHECK(e.cost < best);
        best = e.cost;
    });
    CHECK(best == found.cost);
}

namespace {
/// `mcmc` that begins apart, and tells what its turns began and ended with.
struct lone_chain : search::mcmc_fn {
    struct turn {
        toys::strategy from, best;
        double cost;
        std::uint64_t evaluations;
    };
    static constexpr ps::search_traits traits{.draws_moves = true, .apart = true};
    std::vector<turn>* turns;

    template <class P, class S, class R, class... Os>
        requires ps::SearchProblem<P, S>
    auto operator()(P const& problem, S start, R& rng, search::mcmc_options const& options, Os&&... observers) const {
        auto const from = start;
        auto found = search::mcmc_fn::operator()(problem, std::move(start), rng, options, observers...);
        turns->push_back({from, found.best, found.cost, found.stats.evaluations - 1});
        return found;
    }
};
} // namespace

TEST_CASE("a member that begins apart goes on from what it found itself, with its share of all evaluations") {
    auto const table = toys::table_problem<double>(toys::make_space(30, 12, 3), 5, true);
    toys::grouped const problem(table);
    toys::strategy const start(30, 0);
    std::size_t again = 0, elsewhere = 0; // begun again at the start, and from a random strategy
    for (std::uint64_t run = 0; run < 16; ++run) {
        bool const concurrent = run % 2 == 1;
        CAPTURE(run);
        std::vector<lone_chain::turn> turns;
        search::portfolio_of const mine(search::member("near", search::mcmc, search::mcmc_options{}),
                                        search::member("apart", lone_chain{{}, &turns}, search::mcmc_options{.problem_starts = false}, 0.2));
        std::vector<std::pair<std::uint64_t, std::size_t>> began; // evaluations, member
        std::vector<double> best;                                 // then
        std::mt19937_64 rng{7 + run};
        auto const found = mine(problem, start, rng, {.evaluations = 20'000, .slice = 100, .concurrent = concurrent, .threads = 1},
                                search::on<search::member_turn>([&](auto const& e) {
                                    began.emplace_back(e.evaluation, e.member);
                                    best.push_back(e.best);
                                }));
        REQUIRE(turns.size() > 2);
        std::optional<double> own;
        for (std::size_t n = 0; n < turns.size(); ++n) {
            if (own) CHECK(turns[n].from == turns[n - 1].best);
            else if (n == 0) CHECK(turns[n].from == start);
            else ++(turns[n].from == start ? again : elsewhere);
            CHECK(turns[n].cost >= found.cost);
            if (own && turns[n].cost >= *own) own.reset();
            else own = turns[n].cost;
        }
        if (concurrent) continue;
        // It has more than its share only while it is what improves on the best, or after a round in which nobody did.
        std::uint64_t used = 0;
        std::size_t turn = 0, within = 0;
        bool gained = false;
        std::vector<double> rounds; // the best when they began
        for (std::size_t n = 0; n < began.size() && turn < turns.size(); ++n) {
            if (began[n].second == 0) rounds.push_back(best[n]);
            if (began[n].second == 0) continue;
            bool const stale = rounds.size() > 1 && rounds.back() == rounds[rounds.size() - 2];
            if (!stale && !gained) { // 100: the least slice
                CHECK(used + std::max<std::uint64_t>(100, turns[turn].evaluations) <= began[n].first / 5 + 1);
                used += turns[turn].evaluations;
                ++within;
            }
            gained = turns[turn].cost < best[n];
            ++turn;
        }
        CHECK(within > 0);
    }
    CHECK(again > 0);
    CHECK(elsewhere > 0);
}

namespace {
/// Uses up its slice, and improves on the best in the turns that it is told to.
struct slow_search {
    static constexpr ps::search_traits traits{};
    std::vector<std::uint64_t>* slices;
    std::vector<bool> improves;

    template <class P, class S, class R, class... Os>
        requires ps::SearchProblem<P, S>
    auto operator()(P const& problem, S start, R&, search::random_options const& options, Os&&...) const {
        auto const turn = slices->size();
        slices->push_back(*options.evaluations - 1);
        if (turn < improves.size() && improves[turn]) --start[0];
        ps::search_result<S, double> out{.best = start, .cost = problem.evaluator()(start)};
        out.stats.evaluations = *options.evaluations;
        out.reason = out.ended = ps::stop_reason::evaluation_budget;
        return out;
    }
};
} // namespace

TEST_CASE("slices double after turns that improved, and all after a round in which none did") {
    ps::search_problem const problem{toys::make_space(1, 50), [](toys::strategy const& s) { return static_cast<double>(s[0]); }};
    std::vector<std::uint64_t> one, other;
    search::portfolio_of const mine(search::member("one", slow_search{&one, {true, false, false, true}}, search::random_options{}),
                                    search::member("other", slow_search{&other, {false, true, false, false}}, search::random_options{}));
    std::mt19937_64 rng{1};
    auto const found = mine(problem, toys::strategy(1, 9), rng, {.evaluations = 4000, .slice = 10, .patience = 3});
    CHECK(found.cost == 9 - 3);
    CHECK(found.reason == ps::stop_reason::no_improvement);
    // Rounds: the first improves, the other does, neither, the first, neither, neither, neither.
    CHECK(one == std::vector<std::uint64_t>{10, 20, 20, 40, 80, 160, 320});
    CHECK(other == std::vector<std::uint64_t>{10, 10, 20, 40, 40, 80, 160});
    one.clear();
    other.clear();
    (void)mine(problem, toys::strategy(1, 9), rng, {.evaluations = 4000, .slice = 10, .patience = 3, .concurrent = true, .threads = 1});
    CHECK(one == std::vector<std::uint64_t>{10, 20, 40, 80, 160, 320, 640});
    CHECK(other == one);
}

TEST_CASE("a proof of one member is the portfolio's") {
    search::additive_problem<double> const problem({{{4, 1}, {2, 3}, {6, 2}}, {{0, 1}, {0, 2}, {1, 2}}, {{0, 5, 5, 0}, {0, 5, 5, 0}, {0, 5, 5, 0}}});
    for (bool const concurrent : {false, true}) {
        std::mt19937_64 rng{1};
        told observer;
        auto const found = search::portfolio(problem, problem.first(), rng, {.concurrent = concurrent}, observer);
        CHECK(found.cost == 6);
        CHECK(found.lower_bound == 6);
        CHECK(found.reason == ps::stop_reason::proved_optimal);
        bool raised = false;
        for (auto const& [kind, at, value] : observer.events) raised = raised || (kind == 2 && value == 6);
        CHECK(raised);
    }
}

namespace {
/// A cost that is no sum, and a surrogate that tells how many candidates it was asked for; it knows the first ones alone.
struct surrogate_toy {
    search::additive_problem<int> all;
    std::vector<std::uint64_t>* asked;

    [[nodiscard]] auto const& space() const { return all.space(); }
    [[nodiscard]] auto evaluator() const {
        return [costs = all.costs()](search::numbered_strategy const& s) {
            int most = 0;
            for (std::size_t op = 0; op < s.size(); ++op) most = std::max(most, costs.operator_cost(op, s[op]));
            return most;
        };
    }
    [[nodiscard]] search::additive_problem<int> surrogate(std::uint64_t candidates = 64) const {
        asked->push_back(candidates);
        std::vector<std::vector<int>> own;
        for (std::size_t op = 0; op < all.costs().size(); ++op) {
            auto const list = all.costs().operator_costs(op);
            own.emplace_back(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(list.size(), candidates)));
        }
        return search::additive_problem<int>({std::move(own), {}, {}});
    }
};

/// The later a configuration the less it costs: where all are known there is nothing to find.
search::additive_problem<int> falling_costs() {
    std::vector<std::vector<int>> own(40);
    for (auto& list : own)
        for (int c = 0; c < 60; ++c) list.push_back(1000 - c);
    return search::additive_problem<int>({std::move(own), {}, {}});
}
} // namespace

TEST_CASE("a portfolio asks surrogates for more candidates from round to round") {
    std::vector<std::uint64_t> asked;
    surrogate_toy const problem{falling_costs(), &asked};
    search::portfolio_of const mine(search::member("dp", search::dominator_dp, search::dominator_dp_options{.candidates = 12}),
                                    search::member("random", search::random_search, search::random_options{}));
    std::mt19937_64 rng{1};
    auto const found = mine(problem, problem.all.first(), rng, {.evaluations = 20'000});
    CHECK(asked == std::vector<std::uint64_t>{12, 24, 48, 64});
    CHECK(found.cost == 1000 - 59);
    for (bool const concurrent : {false, true}) {
        asked.clear();
        std::mt19937_64 again{1};
        CHECK(mine(problem, problem.all.first(), again, {.evaluations = 20'000, .concurrent = concurrent, .threads = 1}).cost == found.cost);
        CHECK(asked == std::vector<std::uint64_t>{12, 24, 48, 64});
    }
    // When it asks is told by evaluations, so a search that time ended is that of as many.
    for (int const milliseconds : {2, 10, 50}) {
        std::mt19937_64 first{1}, second{1};
        auto const cut = mine(problem, problem.all.first(), first, {.time = std::chrono::milliseconds(milliseconds)});
        auto const whole = mine(problem, problem.all.first(), second, {.evaluations = cut.stats.evaluations});
        CHECK(whole.cost == cut.cost);
        CHECK(whole.stats.trajectory == cut.stats.trajectory);
        CHECK(whole.best == cut.best);
    }
    // Where the others have priced enough before its turn it skips what it would have had in earlier ones; and it waits for that.
    search::portfolio_of const behind(search::member("random", search::random_search, search::random_options{}),
                                      search::member("dp", search::dominator_dp, search::dominator_dp_options{.candidates = 12}));
    for (bool const concurrent : {false, true}) {
        asked.clear();
        std::mt19937_64 one{1}, two{1};
        (void)mine(problem, problem.all.first(), one, {.evaluations = 20'000, .slice = 8192, .concurrent = concurrent});
        CHECK(asked == std::vector<std::uint64_t>{64});
        asked.clear();
        (void)behind(problem, problem.all.first(), two, {.evaluations = 60'000, .slice = 8192, .concurrent = concurrent});
        CHECK(asked == std::vector<std::uint64_t>{64});
    }
    // Who asks for as many from the beginning is not asked again.
    asked.clear();
    search::portfolio_of const wide(search::member("dp", search::dominator_dp, search::dominator_dp_options{.candidates = 80}),
                                    search::member("random", search::random_search, search::random_options{}));
    CHECK(wide(problem, problem.all.first(), rng, {.evaluations = 20'000}).cost == found.cost);
    CHECK(asked == std::vector<std::uint64_t>{80});
}

namespace {
/// The same, with a word on what that takes.
struct dear_surrogate : surrogate_toy {
    std::uint64_t evaluations;
    [[nodiscard]] std::uint64_t surrogate_evaluations(std::uint64_t, search::numbered_strategy const&) const { return evaluations; }
};
} // namespace

TEST_CASE("a surrogate is made when as many evaluations were made as it takes, or before a search ends that found nothing else") {
    std::vector<std::uint64_t> asked;
    search::portfolio_of const mine(search::member("random", search::random_search, search::random_options{}),
                                    search::member("dp", search::dominator_dp, search::dominator_dp_options{.candidates = 12}));
    for (bool const concurrent : {false, true})
        for (std::uint64_t const evaluations : {5'000u, 1'000'000u}) {
            CAPTURE(concurrent);
            CAPTURE(evaluations);
            dear_surrogate const problem{{falling_costs(), &asked}, evaluations};
            asked.clear();
            std::mt19937_64 rng{1};
            std::uint64_t began = 0;
            auto const found =
                mine(problem, problem.all.first(), rng, {.evaluations = 20'000, .concurrent = concurrent},
                     search::on<search::member_turn>([&](auto const& e) { began = e.member == 1 && began == 0 ? e.evaluation : began; }));
            CHECK(asked.empty() == (evaluations > 20'000));
            if (asked.empty()) continue;
            CHECK(asked == std::vector<std::uint64_t>{64});
            CHECK(began >= evaluations);
            CHECK(found.cost == 1000 - 59);
        }
    dear_surrogate const problem{{falling_costs(), &asked}, 1'000'000'000};
    std::mt19937_64 rng{1};
    asked.clear();
    CHECK(mine(problem, problem.all.first(), rng, {.patience = 2}).cost < 1000);
    CHECK(!asked.empty());
}

TEST_CASE("a portfolio of one's own") {
    auto const x = toys::make_space(4, 3);
    auto const problem = toys::table_problem<double>(x, 9, true);
    search::portfolio_of const mine(search::member("guess", search::random_search, search::random_options{}),
                                    search::member("walk", search::mcmc, search::mcmc_options{.temperature = 5.0}));
    CHECK(mine.names() == std::array<std::string_view, 2>{"guess", "walk"});
    std::mt19937_64 rng{4};
    std::vector<std::size_t> members;
    auto const found = mine(problem, toys::strategy(4, 0), rng, {.evaluations = 2000},
                            search::on<search::member_turn>([&](auto const& e) { members.push_back(e.member); }));
    CHECK(found.cost == least(x, problem.evaluator()));
    CHECK(!members.empty());
    for (auto const m : members) CHECK(m < 2);
}

TEST_CASE("threads: what a member throws reaches the caller") {
    ps::search_problem const problem(toys::make_space(2, 3), throwing{});
    for (bool const concurrent : {false, true}) {
        std::mt19937_64 rng{4};
        CHECK_THROWS_WITH_AS(search::portfolio(problem, toys::strategy(2, 0), rng, {.concurrent = concurrent, .threads = 2}), "no measurement",
                             std::runtime_error);
    }
}

TEST_CASE("threads: a portfolio whose evaluations are interrupted, or run out of memory, answers the best so far") {
    for (bool const concurrent : {false, true})
        for (bool const memory : {false, true}) {
            CAPTURE(concurrent);
            CAPTURE(memory);
            std::atomic<int> calls = 0;
            auto const table = toys::table_problem<double>(toys::make_space(9, 4), 6, true);
            ps::search_problem const problem(toys::make_space(9, 4), [&, cost = table.evaluator()](toys::strategy const& s) mutable {
                if (++calls > 400 && memory) throw std::bad_alloc();
                if (calls > 400) throw ps::interrupted();
                return cost(s);
            });
            std::mt19937_64 rng{4};
            toys::strategy const start(9, 0);
            auto const found = search::portfolio(problem, start, rng, {.slice = 50, .concurrent = concurrent, .threads = 2});
            CHECK(found.cost == table.evaluator()(found.best));
            CHECK(found.cost < table.evaluator()(start));
        }
}

TEST_CASE("threads: a portfolio that was cut short is the portfolio of as many evaluations") {
    auto const table = toys::table_problem<double>(toys::make_space(9, 4), 6, true);
    std::mt19937_64 draw{20261121};
    int first_round = 0, later = 0;
    for (int n = 0; n < 150; ++n) {
        CAPTURE(n);
        search::portfolio_options options{
            .slice = 10 + ps::uniform_index(draw, 60), .concurrent = n % 3 != 0, .threads = 1 + ps::uniform_index(draw, 3)};
        CAPTURE(options.concurrent);
        auto const seed = draw();
        auto const after = 1 + ps::uniform_index(draw, ps::uniform_index(draw, 2) == 0 ? 200 : 2000);
        auto const run = [&](auto const& problem, search::portfolio_options const& o) {
            std::mt19937_64 rng{seed};
            return search::portfolio(problem, toys::strategy(9, 0), rng, o);
        };
        auto const runs = n % 4 == 0 ? toys::check_cut(toys::grouped(table), options, after, run, n % 8 == 0)
                                     : toys::check_cut(table, options, after, run, n % 5 == 0);
        if (!runs) continue; // nothing was left to find
        auto const& [cut, again] = *runs;
        CHECK(again.stats.proposals <= cut.stats.proposals); // but for some that changed nothing, behind the last evaluation
        (cut.stats.evaluations < 4 * options.slice ? first_round : later) += 1;
    }
    CHECK(first_round > 20);
    CHECK(later > 20);
}

TEST_CASE("portfolio refuses options out of range") {
    auto const problem = toys::table_problem<double>(toys::make_space(2, 2), 1, false);
    auto const refused = [&](search::portfolio_options const& o) {
        std::mt19937_64 rng{1};
        try {
            (void)search::portfolio(problem, toys::strategy(2, 0), rng, o);
        } catch (ps::invalid_input const& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(refused({.slice = 0}) == "portfolio: option 'slice' is 0: must be between 1 and 1099511627776");
    CHECK(refused({.patience = 0}).starts_with("portfolio: option 'patience' is 0, and none of"));
    CHECK(refused({.evaluations = 0}).starts_with("portfolio: option 'evaluations' is 0"));
    CHECK(refused({.threads = 5000}).starts_with("portfolio: option 'threads' is 5000"));
    for (double const share : {0.0, -1.0, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
        CAPTURE(share);
        search::portfolio_of const mine(search::member("mine", search::mcmc, search::mcmc_options{}, share));
        std::mt19937_64 rng{1};
        CHECK_THROWS_WITH_AS((void)mine(problem, toys::strategy(2, 0), rng, {}),
                             ps::text("portfolio: member 'mine' has the share ", share, ": must be above 0, at most 1").c_str(), ps::invalid_input);
    }
}
