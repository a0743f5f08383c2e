#include <parsearch/mpi/exact_ranks.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>

#include <boost/mpi/collectives.hpp>
#include <doctest/doctest.h>

#include "support/additive_toys.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;
namespace mpi = parsearch::mpi;
using namespace std::chrono_literals;
using ps::stop_reason;

namespace {
using additive = toys::additive_problem<std::int64_t>;
static_assert(ps::Searcher<mpi::exact_fn, additive, toys::strategy, std::mt19937>);

int rank() { return boost::mpi::communicator().rank(); }

// Takes ten thousands of nodes without a walk.
constexpr std::size_t width = 16;
additive large() {
    toys::splitmix rng{7};
    return toys::random_additive<std::int64_t>(rng, width, 10);
}
} // namespace

TEST_CASE("exact over ranks proves what one rank finds, however much waits in queues") {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        CAPTURE(seed);
        toys::splitmix rng{seed};
        auto const problem = toys::random_additive<std::int64_t>(rng, 2 + seed % 5, 4);
        for (std::uint64_t const open : {1u, 3u, 1u << 16}) {
            toys::splitmix engine{seed}, again{seed};
            search::exact_options const options{.walk = seed % 2 ? 0 : 20, .sweeps = seed % 3, .open = open};
            auto const found = mpi::exact(problem, toys::strategy(problem.space().size(), 0), engine, options);
            auto const expected = search::exact(problem, toys::strategy(problem.space().size(), 0), again, options);
            CHECK(found.reason == stop_reason::proved_optimal);
            CHECK(found.cost == expected.cost);
            CHECK(found.lower_bound == found.cost);
            CHECK(found.cost == problem.evaluator()(found.best));
            CHECK(engine.state == again.state);
            if (boost::mpi::communicator().size() == 1) CHECK(toys::same_run(found, expected));
        }
    }
}

TEST_CASE("the work is shared, whether it waits in a queue or on the way of a depth-first search") {
    auto const problem = large();
    toys::splitmix again{1};
    auto const expected = search::exact(problem, toys::strategy(width, 0), again, {.walk = 0, .sweeps = 0});
    REQUIRE(expected.stats.nodes > 10000);
    for (std::uint64_t const open : {1u, 1u << 16}) {
        toys::splitmix rng{1};
        mpi::traffic sent;
        mpi::setting const over{.counted = &sent};
        std::uint64_t told = 0;
        auto bound = std::numeric_limits<std::int64_t>::min();
        auto const found = mpi::exact_fn{over}(
            problem, toys::strategy(width, 0), rng, {.walk = 0, .sweeps = 0, .open = open},
            [&](search::improved<std::int64_t> const& e) {
                ++told;
                CHECK(e.cost < e.before);
            },
            [&](search::bound_raised<std::int64_t> const& e) {
                CHECK(e.bound > bound);
                CHECK(e.bound <= expected.cost);
                bound = e.bound;
            });
        CHECK(found.reason == stop_reason::proved_optimal);
        CHECK(found.cost == expected.cost);
        CHECK((told > 0) == (rank() == 0));
        // A rank that the others outran may have said little; all of them together have not.
        boost::mpi::communicator const world;
        auto const messages = boost::mpi::all_reduce(world, sent.messages, std::plus<>{});
        if (world.size() > 1) CHECK(messages > 4 * static_cast<std::uint64_t>(world.size()));
    }
}

TEST_CASE("budgets, a stop on any rank and what an evaluator throws end exact on all ranks") {
    auto const problem = large();
    auto const least = [&] {
        toys::splitmix rng{1};
        return search::exact(problem, toys::strategy(width, 0), rng).cost;
    }();
    auto const check = [&](auto const& found, stop_reason reason) {
        CHECK((found.reason == reason || found.reason == stop_reason::proved_optimal));
        CHECK(found.cost == problem.evaluator()(found.best));
        CHECK(found.cost >= least);
        CHECK(found.lower_bound.value() <= least);
    };
    toys::splitmix rng{1};
    check(mpi::exact(problem, toys::strategy(width, 0), rng, {.walk = 0, .sweeps = 0, .nodes = 2000}), stop_reason::evaluation_budget);
    check(mpi::exact(problem, toys::strategy(width, 0), rng, {.time = 5ms, .walk = 0, .sweeps = 0, .open = 1}), stop_reason::time_budget);
    for (int stopping = 0; stopping < boost::mpi::communicator().size(); ++stopping) {
        CAPTURE(stopping);
        std::stop_source source;
        if (rank() == stopping) source.request_stop();
        check(mpi::exact(problem, toys::strategy(width, 0), rng, {.stop = source.get_token(), .walk = 0, .sweeps = 0, .open = 1}),
              stop_reason::stop_requested);
    }
    CHECK_THROWS_WITH_AS(mpi::exact(problem, toys::strategy(width, 0), rng, {.open = 0}),
                         "exact: option 'open' is 0: must be at least 1, the empty strategy is kept", ps::invalid_input);
    struct failing : toys::additive<std::int64_t> {
        int* left;
        std::int64_t operator()(toys::strategy const& s) const {
            if (--*left == 0) throw std::runtime_error("enough");
            return toys::additive<std::int64_t>::operator()(s);
        }
    };
    int left = 40;
    ps::search_problem const throwing{problem.space(), failing{{problem.evaluator()}, &left}};
    std::string said;
    try {
        static_cast<void>(mpi::exact(throwing, toys::strategy(width, 0), rng, {.sweeps = 0}));
    } catch (std::runtime_error const& e) {
        said = e.what();
    }
    CHECK(said == "enough");
}

TEST_CASE("exact goes on from a checkpoint to the same optimum") {
    auto const problem = large();
    auto const path = std::filesystem::temp_directory_path() / ("parsearch_exact_" + std::to_string(boost::mpi::communicator().size()));
    mpi::setting over{.checkpoint = path.string(), .every = 0ns};
    toys::splitmix again{1};
    auto const expected = search::exact(problem, toys::strategy(width, 0), again);
    for (std::uint64_t const open : {1u, 20u, 1u << 16})
        for (std::uint64_t const nodes : {500u, 5000u}) {
            CAPTURE(open);
            CAPTURE(nodes);
            over.resume = false;
            toys::splitmix first{1}, second{1};
            search::exact_options options{.walk = 0, .sweeps = 0, .open = open, .nodes = nodes};
            auto const part = mpi::exact_fn{over}(problem, toys::strategy(width, 0), first, options);
            over.resume = true;
            options.nodes.reset();
            auto const found = mpi::exact_fn{over}(problem, toys::strategy(width, 0), second, options);
            CHECK(found.reason == stop_reason::proved_optimal);
            CHECK(found.cost == expected.cost);
            CHECK(found.lower_bound == found.cost);
            CHECK(found.stats.nodes >= 1);
            CHECK(part.cost >= found.cost);
        }
    if (rank() == 0) std::filesystem::remove(path);
}
