// What holds of all searches together: no bound that any of them reports is above the least cost that any of them finds.
#include <cstdint>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/search/dominator_dp.hpp>
#include <parsearch/search/exact.hpp>
#include <parsearch/search/exhaustive.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/search/portfolio.hpp>
#include <parsearch/search/random_search.hpp>
#include <parsearch/search/tempering.hpp>

#include "support/additive_toys.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;

namespace {

template <class C> struct outcome {
    C cost;
    std::optional<C> bound;
};

/// Every search on `problem`, some of them cut short; bounds as they are told count, too.
template <class C, class P> std::vector<outcome<C>> run_all(P const& problem, toys::strategy const& start, std::uint64_t seed) {
    std::vector<outcome<C>> out;
    auto told = search::on<search::bound_raised>([&](auto const& e) { out.push_back({e.best, e.bound}); });
    auto const run = [&](auto const& algorithm, auto options) {
        toys::splitmix rng{seed};
        auto const found = algorithm(problem, start, rng, options, told);
        CHECK(found.cost == problem.evaluator()(found.best));
        out.push_back({found.cost, found.lower_bound});
    };
    for (std::uint64_t const evaluations : {3U, 30U}) {
        run(search::exact, search::exact_options{.evaluations = evaluations, .walk = 0, .sweeps = 0});
        run(search::exact, search::exact_options{.walk = 0, .sweeps = 0, .nodes = evaluations});
        run(search::exhaustive, search::exhaustive_options{.evaluations = evaluations});
        run(search::random_search, search::random_options{.evaluations = evaluations});
        run(search::dominator_dp, search::dominator_dp_options{.evaluations = evaluations});
        run(search::portfolio, search::portfolio_options{.evaluations = evaluations, .slice = 8});
        run(search::greedy, search::greedy_options{.evaluations = evaluations});
        run(search::mcmc, search::mcmc_options{.evaluations = evaluations});
        run(search::tempering, search::tempering_options{.evaluations = evaluations});
    }
    run(search::exact, search::exact_options{});
    run(search::exhaustive, search::exhaustive_options{});
    run(search::dominator_dp, search::dominator_dp_options{});
    run(search::portfolio, search::portfolio_options{});
    return out;
}

template <class C> void check_bounds(std::uint64_t seed) {
    toys::splitmix rng{seed};
    auto const problem = toys::random_additive<C>(rng, 2 + static_cast<std::size_t>(seed % 4), 3);
    auto const all = run_all<C>(problem, toys::strategy(problem.space().size(), 0), seed);
    auto least = all.front().cost;
    for (auto const& one : all) least = std::min(least, one.cost);
    std::size_t bounds = 0;
    for (auto const& one : all) {
        if (!one.bound) continue;
        ++bounds;
        CHECK(!(least < *one.bound));
    }
    CHECK(bounds > 8);
    for (std::size_t n = all.size() - 4; n < all.size(); ++n) { // those that nothing cut short
        CHECK(all[n].cost == least);
        CHECK(all[n].bound == least);
    }
}

} // namespace

TEST_CASE("no bound of any search is above the least cost of all") {
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        INFO("seed ", seed);
        check_bounds<double>(seed);
        check_bounds<std::int64_t>(seed);
    }
}
