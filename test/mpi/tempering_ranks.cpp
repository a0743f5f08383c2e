#include <parsearch/mpi/tempering_ranks.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "support/diary.hpp"
#include "support/toys.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;
namespace mpi = parsearch::mpi;
using namespace std::chrono_literals;
using ps::stop_reason;

namespace {
using table = decltype(toys::table_problem<double>({}, 0, true));
static_assert(ps::Searcher<mpi::tempering_fn, table, toys::strategy, std::mt19937>);

int rank() { return boost::mpi::communicator().rank(); }

// The same as on the threads of one process; every rank gets it.
template <class P> void check_same(P const& problem, toys::strategy const& start, search::tempering_options options) {
    using cost = ps::problem_cost_t<P, toys::strategy>;
    options.progress_interval = 41;
    std::mt19937_64 engine{17};
    toys::diary<cost> told;
    auto const expected = search::tempering(problem, start, engine, options, told);
    for (std::uint64_t const threads : {1u, 3u}) {
        CAPTURE(threads);
        options.threads = threads;
        std::mt19937_64 rng{17};
        toys::diary<cost> heard;
        auto const found = mpi::tempering(problem, start, rng, options, heard);
        CHECK(toys::same_run(found, expected));
        CHECK(found.ended == expected.ended);
        CHECK(rng == engine);
        CHECK(!heard.elsewhere);
        if (rank() == 0) CHECK(heard.lines == told.lines);
        else CHECK(heard.lines.empty());
    }
}
} // namespace

TEST_CASE("tempering over ranks is that of threads, with all that is told") {
    auto const problem = toys::table_problem<double>(toys::make_space(9, 3, 4), 4, true);
    for (search::tempering_options const& o : {search::tempering_options{.evaluations = 3000},
                                               {.evaluations = 777, .replicas = 5, .exchange_interval = 7},
                                               {.evaluations = 1000, .replicas = 1},
                                               {.evaluations = 11, .replicas = 8},
                                               {.evaluations = 2000, .replicas = 3, .random_starts = 6},
                                               {.replicas = 4, .temperature = 3, .patience = 0.5, .min_evaluations = 300}}) {
        check_same(problem, toys::strategy(9, 0), o);
        check_same(toys::own_counts(problem), toys::strategy(9, 0), o);
    }
    check_same(ps::search_problem{toys::space{}, [](toys::strategy const&) { return 1; }}, {}, {});
    ps::search_problem const never{toys::make_space(3, 3), [](toys::strategy const&) { return std::numeric_limits<double>::infinity(); }};
    check_same(never, {0, 1, 2}, {.evaluations = 500});
}

TEST_CASE("what is wrong on rank 0, or thrown in a chain, is thrown on every rank") {
    auto const problem = toys::table_problem<double>(toys::make_space(8, 4), 5, true);
    std::mt19937_64 rng{1};
    CHECK_THROWS_WITH_AS(mpi::tempering(problem, toys::strategy(8, 0), rng, {.replicas = 0}),
                         "tempering: option 'replicas' is 0: must be between 1 and 1024", ps::invalid_input);
    ps::search_problem const failing{problem.space(), [cost = problem.evaluator()](toys::strategy const& s) {
                                         auto const c = cost(s);
                                         if (static_cast<int>(c) % 61 == 7) throw std::runtime_error("cost " + std::to_string(c));
                                         return c;
                                     }};
    int thrown = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        auto const run = [&](auto const& tempering) {
            std::mt19937_64 engine{seed};
            toys::diary<double> told;
            std::string message;
            try {
                tempering(failing, toys::strategy(8, 1), engine, {.evaluations = 600}, told);
            } catch (std::runtime_error const& e) {
                message = e.what();
                ++thrown;
            }
            return std::pair(message, told.lines);
        };
        auto const one = run(search::tempering);
        auto const many = run(mpi::tempering);
        CHECK(one.first == many.first);
        if (rank() == 0) CHECK(one.second == many.second);
    }
    CHECK(thrown > 0);
}

TEST_CASE("a stop on any rank, a time budget and observers end all ranks with the best so far") {
    auto const problem = toys::table_problem<double>(toys::make_space(9, 4), 8, true);
    for (int stopping = 0; stopping < boost::mpi::communicator().size(); ++stopping) {
        CAPTURE(stopping);
        std::stop_source source;
        std::uint64_t calls = 0;
        ps::search_problem const cutting{problem.space(), [&, cost = problem.evaluator()](toys::strategy const& s) {
                                             if (++calls == 400 && rank() == stopping) source.request_stop();
                                             return cost(s);
                                         }};
        std::mt19937_64 rng{3}, again{3};
        auto const cut = mpi::tempering(cutting, toys::strategy(9, 0), rng, {.stop = source.get_token()});
        CHECK(cut.reason == stop_reason::stop_requested);
        auto const whole = search::tempering(problem, toys::strategy(9, 0), again, {.evaluations = cut.stats.evaluations});
        CHECK(whole.best == cut.best);
        CHECK(whole.stats.evaluations == cut.stats.evaluations);
        CHECK(whole.stats.trajectory == cut.stats.trajectory);
    }
    std::mt19937_64 rng{3};
    auto const timed = mpi::tempering(problem, toys::strategy(9, 0), rng, {.time = 30ms});
    CHECK(timed.reason == stop_reason::time_budget);
    CHECK(timed.cost == problem.evaluator()(timed.best));
    auto const ended = mpi::tempering(problem, toys::strategy(9, 0), rng, {.evaluations = 100000}, [&](search::improved<double> const& e) {
        return e.evaluation > 100 ? search::verdict::end : search::verdict::go_on;
    });
    CHECK((ended.reason == stop_reason::observer || ended.stats.evaluations == 100000));
}

TEST_CASE("tempering goes on from a checkpoint to the result of an undisturbed run") {
    auto const problem = toys::table_problem<double>(toys::make_space(9, 3, 4), 4, true);
    auto const path = std::filesystem::temp_directory_path() / ("parsearch_tempering_" + std::to_string(boost::mpi::communicator().size()));
    mpi::setting over{.checkpoint = path.string(), .every = 0ns};
    search::tempering_options const options{.evaluations = 5000, .replicas = 5, .random_starts = 2};
    std::mt19937_64 engine{5};
    auto const expected = search::tempering(problem, toys::strategy(9, 0), engine, options);
    for (std::uint64_t const part : {300u, 1700u, 4000u}) {
        CAPTURE(part);
        if (rank() == 0) std::filesystem::remove(path);
        auto shorter = options;
        shorter.evaluations = part;
        std::mt19937_64 first{5}, second{5};
        over.resume = false;
        mpi::tempering_fn{over}(problem, toys::strategy(9, 0), first, shorter);
        // Fewer ranks go on.
        over.resume = true;
        boost::mpi::communicator const world;
        over.world = world.split(world.rank() == 0 ? 0 : 1);
        if (world.rank() == 0) {
            auto const found = mpi::tempering_fn{over}(problem, toys::strategy(9, 0), second, options);
            CHECK(toys::same_run(found, expected));
            CHECK(second == engine);
        }
        over.world.reset();
        second = std::mt19937_64{5};
        auto const found = mpi::tempering_fn{over}(problem, toys::strategy(9, 0), second, options);
        CHECK(toys::same_run(found, expected));
        CHECK(second == engine);
    }
    auto other = options;
    other.replicas = 6;
    std::mt19937_64 rng{5}, another{6};
    CHECK_THROWS_AS(mpi::tempering_fn{over}(problem, toys::strategy(9, 0), rng, other), ps::invalid_input);
    CHECK_THROWS_WITH_AS(mpi::tempering_fn{over}(problem, toys::strategy(9, 0), another, options), doctest::Contains("engine (seed)"),
                         ps::invalid_input);
    if (rank() == 0) std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
    CHECK_THROWS_AS(mpi::tempering_fn{over}(problem, toys::strategy(9, 0), rng, options), ps::invalid_input);
    if (rank() == 0) std::filesystem::remove(path);
}
