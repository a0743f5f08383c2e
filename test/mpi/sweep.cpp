#include <parsearch/mpi/sweep.hpp>

#include <cstdint>
#include <random>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/search/mcmc.hpp>

#include "support/toys.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;
namespace mpi = parsearch::mpi;

TEST_CASE("every rank gets the whole table of a sweep, the same for any number of ranks") {
    std::vector<std::pair<std::size_t, std::uint64_t>> cells; // operators, seed
    for (std::size_t const operators : {3u, 5u, 8u})
        for (std::uint64_t seed = 0; seed < 3; ++seed) cells.emplace_back(operators, seed);
    std::uint64_t runs = 0;
    auto const run = [&](auto const& cell) {
        ++runs;
        std::mt19937_64 rng{cell.second};
        auto const problem = toys::table_problem<std::int64_t>(toys::make_space(cell.first, 4), 3, true);
        return search::mcmc(problem, toys::strategy(cell.first, 0), rng, {.evaluations = 200});
    };
    auto const found = mpi::sweep(cells, run);
    REQUIRE(found.size() == cells.size());
    auto const here = runs;
    for (std::size_t n = 0; n < cells.size(); ++n) {
        REQUIRE(found[n].has_value());
        CHECK(toys::same_run(*found[n], run(cells[n])));
    }
    auto const ranks = static_cast<std::uint64_t>(boost::mpi::communicator().size());
    CHECK(here <= (cells.size() + ranks - 1) / ranks);
    CHECK(mpi::sweep(std::vector<int>(), [](int n) { return n; }).empty());
}

TEST_CASE("the first cell that fails is told on every rank, and a stop leaves cells without an answer") {
    std::vector<int> const cells{0, 1, 2, 3, 4, 5};
    auto const failing = [](int n) {
        if (n == 4 || n == 5) throw ps::invalid_input("cell ", n);
        return n;
    };
    CHECK_THROWS_WITH_AS(static_cast<void>(mpi::sweep(cells, failing)), "cell 4", ps::invalid_input);
    std::stop_source stopped;
    if (boost::mpi::communicator().rank() == 0) stopped.request_stop();
    auto const found = mpi::sweep(
        cells, [](int n) { return n; }, stopped.get_token());
    for (std::size_t n = 0; n < cells.size(); ++n)
        CHECK(found[n].has_value() == (n % static_cast<std::size_t>(boost::mpi::communicator().size()) != 0));
}
