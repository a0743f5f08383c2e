#include <parsearch/search/tempering.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "support/diary.hpp"
#include "support/toys.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;
using namespace std::chrono_literals;
using ps::stop_reason;

namespace {
using search_type = decltype(toys::table_problem<double>({}, 0, true));
static_assert(ps::Searcher<search::tempering_fn, search_type, toys::strategy, std::mt19937>);

template <class P> void check_same(P const& problem, toys::strategy const& start, search::tempering_options options) {
    using cost = ps::problem_cost_t<P, toys::strategy>;
    options.progress_interval = 41;
    auto const run = [&](std::uint64_t threads) {
        options.threads = threads;
        std::mt19937_64 rng{17};
        toys::diary<cost> told;
        auto result = search::tempering(problem, start, rng, options, told);
        return std::tuple(std::move(result), std::move(told), rng());
    };
    auto const one = run(1);
    for (std::uint64_t const threads : {2u, 3u, 8u}) {
        CAPTURE(threads);
        auto const many = run(threads);
        CHECK(toys::same_run(std::get<0>(one), std::get<0>(many)));
        CHECK(std::get<1>(one).lines == std::get<1>(many).lines);
        CHECK(!std::get<1>(many).elsewhere);
        CHECK(std::get<2>(one) == std::get<2>(many));
    }
}
} // namespace

TEST_CASE("threads: tempering finds the optimum of small problems and ends by itself") {
    for (bool const coupled : {false, true}) {
        auto const problem = toys::table_problem<int>(toys::make_space(7, 3, 3), 21, coupled);
        std::mt19937_64 rng{42};
        auto const r = search::tempering(problem, toys::strategy(7, 0), rng, {.relative_temperature = 0.01, .threads = 2});
        CHECK(r.cost == toys::brute_force(problem));
        CHECK(r.cost == problem.evaluator()(r.best));
        CHECK(r.reason == stop_reason::no_improvement);
        CHECK(!r.lower_bound);
    }
}

TEST_CASE("threads: tempering is the same for any number of threads") {
    auto const table = toys::table_problem<double>(toys::make_space(9, 3, 4), 4, true);
    for (search::tempering_options const& o : {search::tempering_options{.evaluations = 3000},
                                               {.evaluations = 777, .replicas = 5, .exchange_interval = 7},
                                               {.evaluations = 1000, .replicas = 1},
                                               {.evaluations = 11, .replicas = 8},
                                               {.evaluations = 2000, .temperature = 0, .ratio = 1},
                                               {.evaluations = 2000, .replicas = 3, .random_starts = 6},
                                               {.replicas = 4, .temperature = 3, .patience = 0.5, .min_evaluations = 300}}) {
        check_same(table, toys::strategy(9, 0), o);
        check_same(toys::own_counts(table), toys::strategy(9, 0), o);
    }
    check_same(ps::search_problem{toys::space{}, [](toys::strategy const&) { return 1; }}, {}, {});
    ps::search_problem const never{toys::make_space(3, 3), [](toys::strategy const&) { return std::numeric_limits<double>::infinity(); }};
    check_same(never, {0, 1, 2}, {.evaluations = 500});
}

TEST_CASE("tempering: plain and incremental evaluators give the same chains, and the trajectory is golden") {
    auto const table = toys::table_problem<double>(toys::make_space(9, 4), 8, true);
    toys::splitmix a{1}, b{1};
    auto const plain = search::tempering(table, toys::strategy(9, 0), a, {.evaluations = 3000});
    auto const stepped = search::tempering(toys::own_counts(table), toys::strategy(9, 0), b, {.evaluations = 3000});
    CHECK(toys::same_run(plain, stepped));
    CHECK(plain.stats.evaluations == 3000);
    CHECK(plain.stats.trajectory == 4577162933325952956);
}

TEST_CASE("tempering: every temperature has Boltzmann's distribution") {
    std::vector<double> const cost{0.0, 0.7, 1.1, 2.5};
    ps::search_problem const problem{toys::make_space(1, 4), [&](toys::strategy const& s) { return cost[static_cast<std::size_t>(s[0])]; }};
    constexpr std::size_t chains = 3;
    constexpr std::uint64_t interval = 30;
    toys::splitmix rng{5};
    std::uint64_t exchanges = 0;
    // Observers hear of one chain after the other. A state is left by an evaluated proposal only, and each is as likely from every state:
    // evaluations count the time spent in one.
    std::vector<std::vector<double>> visits(chains, std::vector<double>(cost.size()));
    std::vector<double> at(chains, 2.5);
    std::uint64_t last = 1;
    auto const chain_of = [](std::uint64_t evaluation) { return (evaluation - 2) / interval % chains; };
    search::tempering(
        problem, toys::strategy{3}, rng,
        {.evaluations = 1 + 6666 * chains * interval, .replicas = chains, .temperature = 0.6, .ratio = 1.5, .exchange_interval = interval},
        [&](search::proposed<double> const& e) {
            if (std::exchange(last, e.evaluation) == e.evaluation) return; // changes nothing
            auto const c = chain_of(e.evaluation);
            ++visits[c][static_cast<std::size_t>(std::find(cost.begin(), cost.end(), at[c]) - cost.begin())];
        },
        [&](search::accepted<double> const& e) { at[chain_of(e.evaluation)] = e.cost; },
        [&](search::exchanged<double> const& e) {
            ++exchanges;
            std::swap(at[e.colder], at[e.colder + 1]);
            REQUIRE(at[e.colder] == e.got);
            REQUIRE(at[e.colder + 1] == e.gave);
        });
    CHECK(exchanges > 1000);
    double temperature = 0.6;
    for (auto const& seen : visits) {
        double sum = 0;
        for (double const c : cost) sum += std::exp(-c / temperature);
        for (std::size_t n = 0; n < cost.size(); ++n) CHECK(std::abs(seen[n] / (6666.0 * interval) - std::exp(-cost[n] / temperature) / sum) < 0.006);
        temperature *= 1.5;
    }
}

TEST_CASE("threads: what an evaluator throws in a replica comes at one place") {
    auto const table = toys::table_problem<double>(toys::make_space(8, 4), 5, true);
    ps::search_problem const failing{table.space(), [cost = table.evaluator()](toys::strategy const& s) {
                                         auto const c = cost(s);
                                         if (static_cast<int>(c) % 61 == 7) throw std::runtime_error("cost " + std::to_string(c));
                                         return c;
                                     }};
    int thrown = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        auto const run = [&](std::uint64_t threads) {
            std::mt19937_64 rng{seed};
            toys::diary<double> told;
            std::string message;
            try {
                search::tempering(failing, toys::strategy(8, 1), rng, {.evaluations = 600, .threads = threads}, told);
            } catch (std::runtime_error const& e) {
                message = e.what();
                ++thrown;
            }
            return std::tuple(message, told.lines);
        };
        CHECK((run(1) == run(4)));
    }
    CHECK(thrown > 10);
}

TEST_CASE("threads: tempering ends soon after its time or a stop") {
    ps::search_problem const slow{toys::make_space(8, 4), [](toys::strategy const& s) {
                                      std::this_thread::sleep_for(1ms);
                                      return s[0] + s[1];
                                  }};
    auto const begin = std::chrono::steady_clock::now();
    toys::splitmix rng{3};
    auto const r = search::tempering(slow, toys::strategy(8, 1), rng, {.time = 30ms, .exchange_interval = 100'000, .threads = 3});
    CHECK(r.reason == stop_reason::time_budget);
    std::stop_source source;
    std::jthread const stopper([&] {
        std::this_thread::sleep_for(20ms);
        source.request_stop();
    });
    auto const stopped = search::tempering(slow, toys::strategy(8, 1), rng, {.stop = source.get_token(), .exchange_interval = 100'000, .threads = 3});
    CHECK(stopped.reason == stop_reason::stop_requested);
    CHECK(std::chrono::steady_clock::now() - begin < 3s);
}

TEST_CASE("threads: tempering that was cut short is tempering of as many evaluations") {
    auto const table = toys::table_problem<double>(toys::make_space(9, 4), 6, true);
    std::mt19937_64 draw{20261121};
    int first_round = 0;
    for (int n = 0; n < 200; ++n) {
        CAPTURE(n);
        search::tempering_options options{.replicas = 1 + ps::uniform_index(draw, 5), .exchange_interval = 1 + ps::uniform_index(draw, 40)};
        options.threads = 1 + ps::uniform_index(draw, 3);
        auto const seed = draw();
        auto const after = 1 + ps::uniform_index(draw, n % 2 == 0 ? 50 : 300);
        auto const run = [&](auto const& problem, search::tempering_options const& o) {
            std::mt19937_64 rng{seed};
            return search::tempering(problem, toys::strategy(9, 0), rng, o);
        };
        auto const runs = toys::check_cut(table, options, after, run, n % 3 == 0);
        REQUIRE(runs.has_value()); // the stop is what ended it
        auto const& [cut, again] = *runs;
        CHECK(again.stats.proposals == cut.stats.proposals);
        first_round += cut.stats.evaluations > 1 && cut.stats.evaluations <= options.replicas * options.exchange_interval;
    }
    CHECK(first_round > 20);
}

TEST_CASE("tempering: options out of range are refused") {
    auto const problem = toys::table_problem<double>(toys::make_space(3, 3), 3, true);
    toys::splitmix rng{1};
    auto const run = [&](search::tempering_options const& options) { return search::tempering(problem, toys::strategy(3, 0), rng, options); };
    CHECK_THROWS_WITH_AS(run({.replicas = 0}), "tempering: option 'replicas' is 0: must be between 1 and 1024", ps::invalid_input);
    CHECK_THROWS_WITH_AS(run({.ratio = 0.5}), "tempering: option 'ratio' is 0.5: must be at least 1", ps::invalid_input);
    CHECK_THROWS_WITH_AS(run({.exchange_interval = 0}), "tempering: option 'exchange_interval' is 0: must be at least 1", ps::invalid_input);
    CHECK_THROWS_WITH_AS(run({.evaluations = 0}), "tempering: option 'evaluations' is 0: must be at least 1, the start is priced too",
                         ps::invalid_input);
    CHECK_THROWS_WITH_AS(run({.temperature = -1}), "tempering: option 'temperature' is -1: must be finite and not negative", ps::invalid_input);
    CHECK_THROWS_WITH_AS(run({.threads = 1025}), "tempering: option 'threads' is 1025: must be at most 1024, or 0 for as many as the machine has",
                         ps::invalid_input);
    CHECK_THROWS_WITH_AS(run({.patience = 0}),
                         "tempering: option 'patience' is 0, and none of 'time', 'evaluations' and 'stop' is set: one of them must end the search",
                         ps::invalid_input);
}
