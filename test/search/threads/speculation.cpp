#include <parsearch/search/threads/speculation.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/search/mcmc.hpp>

#include "support/diary.hpp"
#include "support/toys.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;
using namespace std::chrono_literals;
using ps::stop_reason;

namespace {

// One run, and all that can be told of it.
template <class C> struct account {
    ps::search_result<toys::strategy, C> result;
    toys::diary<C> told;
    std::uint64_t engine_after;
};
template <class P> auto run(P const& problem, toys::strategy const& start, std::uint64_t seed, search::mcmc_options options, std::uint64_t threads) {
    using cost = ps::problem_cost_t<P, toys::strategy>;
    options.threads = threads;
    std::mt19937_64 rng{seed};
    toys::diary<cost> told;
    auto result = search::mcmc(problem, start, rng, options, told);
    return account<cost>{std::move(result), std::move(told), rng()};
}

template <class P> void check_same(P const& problem, toys::strategy const& start, std::uint64_t seed, search::mcmc_options options) {
    options.progress_interval = 37;
    auto const one = run(problem, start, seed, options, 1);
    for (std::uint64_t const threads : {2u, 3u, 4u, 8u}) {
        CAPTURE(seed);
        CAPTURE(threads);
        auto const many = run(problem, start, seed, options, threads);
        CHECK(toys::same_run(one.result, many.result));
        CHECK(one.told.lines == many.told.lines);
        CHECK(!many.told.elsewhere);
        CHECK(one.engine_after == many.engine_after);
    }
}

// A move with a history: it takes the operators in turn, and its number tells how often it was called.
struct turning_move {
    std::uint64_t calls = 0;
    template <class X, class S, class R>
    std::optional<std::uint64_t> operator()(X const& space, S const&, R& rng, std::vector<ps::change<int>>& out) {
        auto const op = static_cast<std::size_t>(calls++ % space.size());
        out.push_back({op, search::choice(space, op, ps::uniform_index(rng, search::choice_count(space, op)))});
        return calls;
    }
};
static_assert(!search::MemorylessMove<turning_move, toys::space, toys::strategy, std::mt19937_64>);
static_assert(search::MemorylessMove<search::uniform_move, toys::space, toys::strategy, std::mt19937_64>);

} // namespace

TEST_CASE("threads: the same chain at every temperature, with plain and incremental evaluators") {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
        auto const problem = toys::table_problem<double>(toys::make_space(9, 3, 4), seed, true);
        for (double const temperature : {0.0, 2.0, 20.0, 1e9}) {
            CAPTURE(temperature);
            search::mcmc_options const options{.evaluations = 1500, .temperature = temperature};
            check_same(problem, toys::strategy(9, 0), seed, options);
            check_same(toys::own_counts(problem), toys::strategy(9, 0), seed, options);
        }
    }
}

TEST_CASE("threads: the same chain with random budgets, resets, temperatures and starts") {
    std::mt19937_64 draw{20250721};
    for (int n = 0; n < 25; ++n) {
        CAPTURE(n);
        auto const problem = toys::own_counts(toys::table_problem<int>(toys::make_space(1 + ps::uniform_index(draw, 12), 2, 4), draw(), true));
        search::mcmc_options o{.evaluations = 1 + ps::uniform_index(draw, 1000)};
        if (ps::bernoulli(draw, 0.5)) o.reset_interval = ps::uniform_index(draw, 60);
        if (ps::bernoulli(draw, 0.3)) o.target_acceptance = 0.05 * static_cast<double>(ps::uniform_index(draw, 11));
        if (ps::bernoulli(draw, 0.3)) o.patience = 0.3, o.min_evaluations = 100;
        if (ps::bernoulli(draw, 0.5)) o.random_starts = ps::uniform_index(draw, 6);
        if (ps::bernoulli(draw, 0.5)) o.race_length = 1 + ps::uniform_index(draw, 100);
        if (ps::bernoulli(draw, 0.5)) o.racing_starts = ps::uniform_index(draw, 6);
        o.relative_temperature = 0.01 * static_cast<double>(ps::uniform_index(draw, 10));
        if (o.relative_temperature == 0) o.target_acceptance = std::nullopt;
        o.reheat_interval = ps::uniform_index(draw, 50);
        check_same(problem, toys::strategy(problem.space().size(), 0), draw(), o);
    }
}

TEST_CASE("threads: the same chain where it ends by itself, from infeasible starts, and with nothing to choose") {
    auto const rare = [](toys::strategy const& s) { // feasible where all agree on 1 or 2
        bool const feasible = s[0] == s[1] && s[1] == s[2] && s[0] > 0;
        return feasible ? 10.0 - s[0] : std::numeric_limits<double>::infinity();
    };
    check_same(ps::search_problem{toys::make_space(3, 3), rare}, {0, 1, 2}, 4, {});
    check_same(ps::search_problem{toys::make_space(3, 3), rare}, {0, 1, 2}, 5, {.random_starts = 5});
    check_same(ps::search_problem{toys::make_space(3, 3), [](toys::strategy const&) { return std::numeric_limits<double>::infinity(); }}, {0, 1, 2},
               4, {});
    check_same(ps::search_problem{toys::make_space(4, 1), [](toys::strategy const&) { return 1; }}, {0, 0, 0, 0}, 4, {});
    check_same(ps::search_problem{toys::space{}, [](toys::strategy const&) { return 1; }}, {}, 4, {});
}

TEST_CASE("threads: the same chain with moves that remember what they drew") {
    auto const problem = toys::table_problem<double>(toys::make_space(7, 4), 11, true);
    check_same(search::with_moves(problem, turning_move{}), toys::strategy(7, 0), 1, {.evaluations = 2000, .temperature = 10});
    check_same(search::with_moves(problem, turning_move{}, search::uniform_move{}), toys::strategy(7, 0), 2, {.evaluations = 2000, .temperature = 3});
}

TEST_CASE("threads: evaluators of very different speed") {
    // Some strategies take a hundred times as long as others: answers come in another order than the proposals.
    auto const problem = toys::table_problem<double>(toys::make_space(6, 4), 2, true);
    ps::search_problem const uneven{problem.space(), [cost = problem.evaluator()](toys::strategy const& s) {
                                        auto const until = std::chrono::steady_clock::now() + ((s[0] + s[3]) % 3 == 0 ? 300us : 3us);
                                        while (std::chrono::steady_clock::now() < until) {
                                        }
                                        return cost(s);
                                    }};
    check_same(uneven, toys::strategy(6, 0), 3, {.evaluations = 600, .temperature = 5});
    // Waiting threads fall asleep.
    ps::search_problem const slow{problem.space(), [cost = problem.evaluator()](toys::strategy const& s) {
                                      std::this_thread::sleep_for(s[1] == 0 ? 2ms : 100us);
                                      return cost(s);
                                  }};
    check_same(slow, toys::strategy(6, 0), 3, {.evaluations = 60, .temperature = 5});
}

TEST_CASE("threads: proposals are priced at the same time") {
    auto const problem = toys::table_problem<double>(toys::make_space(12, 4), 2, true);
    std::atomic<int> now = 0, most = 0;
    ps::search_problem const watched{problem.space(), [&, cost = problem.evaluator()](toys::strategy const& s) {
                                         int const others = now.fetch_add(1) + 1;
                                         for (int seen = most.load(); seen < others && !most.compare_exchange_weak(seen, others);) {
                                         }
                                         std::this_thread::sleep_for(1ms);
                                         now.fetch_sub(1);
                                         return cost(s);
                                     }};
    std::mt19937_64 rng{1};
    search::mcmc(watched, toys::strategy(12, 0), rng, {.evaluations = 200, .temperature = 0, .threads = 4});
    CHECK(most == 4);
}

TEST_CASE("threads: what an evaluator throws comes where one thread would throw it") {
    auto const table = toys::table_problem<double>(toys::make_space(8, 4), 5, true);
    ps::search_problem const failing{table.space(), [cost = table.evaluator()](toys::strategy const& s) {
                                         auto const c = cost(s);
                                         if (static_cast<int>(c) % 61 == 7) throw std::runtime_error("cost " + std::to_string(c));
                                         return c;
                                     }};
    ps::search_problem const not_a_number{table.space(), [cost = table.evaluator()](toys::strategy const& s) {
                                              auto const c = cost(s);
                                              return static_cast<int>(c) % 61 == 7 ? std::numeric_limits<double>::quiet_NaN() : c;
                                          }};
    int thrown = 0;
    auto const check = [&](auto const& problem) {
        for (std::uint64_t seed = 0; seed < 30; ++seed) {
            auto const result_of = [&](std::uint64_t threads) {
                std::mt19937_64 rng{seed};
                toys::diary<double> told;
                std::string message;
                try {
                    search::mcmc(problem, toys::strategy(8, 1), rng, {.evaluations = 300, .temperature = 10, .threads = threads}, told);
                } catch (std::exception const& e) {
                    message = e.what();
                    ++thrown;
                }
                return std::tuple(message, told.lines, rng());
            };
            auto const one = result_of(1);
            CAPTURE(seed);
            for (std::uint64_t const threads : {2u, 4u}) CHECK((one == result_of(threads)));
        }
    };
    check(failing);
    check(toys::own_counts(failing));
    check(not_a_number);
    CHECK(thrown > 30);

    // A move that throws, and one that names what does not exist.
    auto const failing_move = [](int way) {
        return [way](auto const& space, auto const& s, auto& rng, std::vector<ps::change<int>>& out) {
            auto const op = static_cast<std::size_t>(ps::uniform_index(rng, space.size()));
            if (s[op] == 3 && ps::bernoulli(rng, 0.05)) {
                if (way == 0) throw std::runtime_error("move");
                out.push_back({space.size(), 0});
                return true;
            }
            out.push_back({op, static_cast<int>(ps::uniform_index(rng, 4))});
            return true;
        };
    };
    check(search::with_moves(table, failing_move(0)));
    check(search::with_moves(table, failing_move(1)));
}

TEST_CASE("threads: an evaluator that cannot be made on another thread") {
    struct picky {
        toys::space x = toys::make_space(5, 3);
        std::thread::id home = std::this_thread::get_id();
        toys::space const& space() const { return x; }
        auto evaluator() const {
            if (std::this_thread::get_id() != home) throw std::runtime_error("not here");
            return [](toys::strategy const& s) {
                std::this_thread::sleep_for(100us); // the others get their turn
                return s[0];
            };
        }
    };
    toys::splitmix rng{1};
    CHECK_THROWS_WITH_AS(search::mcmc(picky{}, toys::strategy(5, 0), rng, {.evaluations = 1000, .threads = 3}), "not here", std::runtime_error);
}

TEST_CASE("threads: time budgets and stop tokens end soon, and whatever ends it the engine has drawn what the chain has seen") {
    auto const table = toys::table_problem<double>(toys::make_space(8, 4), 5, true);
    ps::search_problem const slow{table.space(), [cost = table.evaluator()](toys::strategy const& s) {
                                      std::this_thread::sleep_for(1ms);
                                      return cost(s);
                                  }};
    auto const begin = std::chrono::steady_clock::now();
    // Time may end a chain after proposals that change nothing, which an evaluation budget never waits for: then it is tried again.
    bool compared = false;
    for (int attempt = 0; attempt < 30 && !compared; ++attempt) {
        std::mt19937_64 timed{6};
        auto const r = search::mcmc(slow, toys::strategy(8, 0), timed, {.time = 50ms, .reset_interval = 100, .threads = 4});
        CHECK(r.reason == stop_reason::time_budget);
        CHECK(r.stats.seconds >= 0.05);
        std::mt19937_64 counted{6};
        auto const again = search::mcmc(table, toys::strategy(8, 0), counted, {.evaluations = r.stats.evaluations, .reset_interval = 100});
        CHECK(again.stats.trajectory == r.stats.trajectory);
        CHECK(again.best == r.best);
        compared = again.stats.proposals == r.stats.proposals;
        if (compared) CHECK(timed() == counted());
    }
    CHECK(compared);

    std::stop_source source;
    std::jthread const stopper([&] {
        std::this_thread::sleep_for(20ms);
        source.request_stop();
    });
    std::mt19937_64 rng{6};
    CHECK(search::mcmc(slow, toys::strategy(8, 0), rng, {.stop = source.get_token(), .threads = 4}).reason == stop_reason::stop_requested);
    CHECK(std::chrono::steady_clock::now() - begin < 30s);
}

TEST_CASE("threads: refused and defaulted numbers") {
    auto const table = toys::table_problem<double>(toys::make_space(4, 4), 5, true);
    struct fixed_engine : toys::splitmix {
        explicit fixed_engine(std::uint64_t seed) : toys::splitmix{seed} {}
        fixed_engine(fixed_engine const&) = delete;
        fixed_engine& operator=(fixed_engine const&) = delete;
    };
    fixed_engine fixed{3};
    toys::splitmix free{3}, all{3};
    CHECK_THROWS_WITH_AS(search::mcmc(table, toys::strategy(4, 0), fixed, {.evaluations = 9, .threads = 2}),
                         "mcmc: option 'threads' is 2: must be 1 with a random engine that cannot be copied", ps::invalid_input);
    CHECK_THROWS_WITH_AS(search::mcmc(table, toys::strategy(4, 0), free, {.evaluations = 9, .threads = 5000}),
                         "mcmc: option 'threads' is 5000: must be at most 1024, or 0 for as many as the machine has", ps::invalid_input);
    CHECK(fixed.state == 3);
    auto const one = search::mcmc(table, toys::strategy(4, 0), fixed, {.evaluations = 500});
    CHECK(toys::same_run(one, search::mcmc(table, toys::strategy(4, 0), free, {.evaluations = 500})));
    CHECK(toys::same_run(one, search::mcmc(table, toys::strategy(4, 0), all, {.evaluations = 500, .threads = 0})));
}
