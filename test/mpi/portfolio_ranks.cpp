#include <parsearch/mpi/portfolio_ranks.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/additive_toys.hpp"
#include "support/diary.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;
namespace mpi = parsearch::mpi;
using namespace std::chrono_literals;
using ps::stop_reason;

namespace {
using table = decltype(toys::table_problem<std::int64_t>({}, 0, true));
static_assert(ps::Searcher<mpi::portfolio_fn, table, toys::strategy, std::mt19937>);

int rank() { return boost::mpi::communicator().rank(); }

// With what tells of turns.
struct told : toys::diary<std::int64_t> {
    std::vector<std::vector<std::uint64_t>> turns;
    using toys::diary<std::int64_t>::operator();
    void operator()(search::member_turn<std::int64_t> const& e) { turns.push_back({e.evaluation, e.member}); }
};

template <class P> void check_same(P const& problem, toys::strategy const& start, search::portfolio_options options) {
    std::mt19937_64 engine{11}, rng{11};
    told one, many;
    auto const expected = search::portfolio(problem, start, engine, options, one);
    auto const found = mpi::portfolio(problem, start, rng, options, many);
    CHECK(toys::same_run(found, expected));
    CHECK(found.lower_bound == expected.lower_bound);
    CHECK(rng == engine);
    if (rank() != 0) return;
    CHECK(many.lines == one.lines);
    CHECK(many.turns == one.turns);
    CHECK(!many.elsewhere);
}
} // namespace

TEST_CASE("a portfolio over ranks is that of threads, members in turn or at once") {
    auto const plain = toys::table_problem<std::int64_t>(toys::make_space(7, 4, 3), 3, true);
    for (bool const concurrent : {false, true}) {
        CAPTURE(concurrent);
        for (std::uint64_t const evaluations : {50u, 1000u, 5000u})
            check_same(plain, toys::strategy(7, 0), {.evaluations = evaluations, .slice = 40, .concurrent = concurrent});
        check_same(toys::grouped(plain), toys::strategy(7, 0), {.evaluations = 2000, .slice = 40, .concurrent = concurrent});
        check_same(plain, toys::strategy(7, 0), {.slice = 100, .concurrent = concurrent, .threads = 2});
    }
    toys::splitmix rng{3};
    auto const additive = toys::random_additive<std::int64_t>(rng, 5, 4);
    check_same(additive, toys::strategy(5, 0), {.concurrent = true});
}

TEST_CASE("a stop on any rank and a time budget end a portfolio with the best so far") {
    auto const problem = toys::table_problem<std::int64_t>(toys::make_space(9, 4), 8, true);
    for (bool const concurrent : {false, true})
        for (int stopping = 0; stopping < boost::mpi::communicator().size(); ++stopping) {
            CAPTURE(concurrent);
            CAPTURE(stopping);
            std::stop_source source;
            std::atomic<std::uint64_t> calls = 0;
            ps::search_problem const cutting{problem.space(), [&, cost = problem.evaluator()](toys::strategy const& s) {
                                                 if (++calls == 300 && rank() == stopping) source.request_stop();
                                                 return cost(s);
                                             }};
            std::mt19937_64 rng{3};
            auto const cut =
                mpi::portfolio(cutting, toys::strategy(9, 0), rng, {.stop = source.get_token(), .patience = 0, .concurrent = concurrent});
            CHECK(cut.reason == stop_reason::stop_requested);
            CHECK(cut.cost == problem.evaluator()(cut.best));
            auto const timed = mpi::portfolio(problem, toys::strategy(9, 0), rng, {.time = 30ms, .concurrent = concurrent});
            CHECK(timed.reason == stop_reason::time_budget);
        }
}

TEST_CASE("a portfolio goes on from a checkpoint to the result of an undisturbed run") {
    auto const path = std::filesystem::temp_directory_path() / ("parsearch_portfolio_" + std::to_string(boost::mpi::communicator().size()));
    mpi::setting over{.checkpoint = path.string(), .every = 0ns};
    auto const check = [&](auto const& problem, bool concurrent) {
        CAPTURE(concurrent);
        search::portfolio_options const options{.evaluations = 5000, .slice = 40, .concurrent = concurrent};
        std::mt19937_64 engine{5};
        auto const expected = search::portfolio(problem, toys::strategy(9, 0), engine, options);
        for (std::uint64_t const stop_after : {300u, 1700u, 3000u}) {
            CAPTURE(stop_after);
            std::mt19937_64 first{5}, second{5};
            over.resume = false;
            // Ended by an observer, as nothing of the state may depend on the budget.
            mpi::portfolio_fn{over}(problem, toys::strategy(9, 0), first, options, [&](search::member_turn<std::int64_t> const& e) {
                return e.evaluation >= stop_after ? search::verdict::end : search::verdict::go_on;
            });
            over.resume = true;
            auto const found = mpi::portfolio_fn{over}(problem, toys::strategy(9, 0), second, options);
            CHECK(toys::same_run(found, expected));
            CHECK(second == engine);
        }
        if (rank() == 0) std::filesystem::remove(path);
    };
    auto const table = toys::table_problem<std::int64_t>(toys::make_space(9, 3, 4), 4, true);
    for (bool const concurrent : {false, true}) {
        check(table, concurrent);
        check(toys::grouped(table), concurrent); // some members begin apart
    }
}
