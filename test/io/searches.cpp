#include <parsearch/io/searches.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <parsearch/concepts/search_problem.hpp>

#include "support/refusal.hpp"

using namespace parsearch;
using support::refusal;

namespace {
/// Distance of digits from a target, with a hump between.
auto make_problem() {
    std::vector<std::vector<int>> const digits(12, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    return search_problem{digits, [](std::vector<int> const& s) {
                              double cost = 1;
                              for (std::size_t i = 0; i < s.size(); ++i) cost += (s[i] - static_cast<int>(i % 10)) * (s[i] - static_cast<int>(i % 10));
                              return cost;
                          }};
}
auto run(io::search_options const& options, std::uint64_t seed = 3) {
    std::mt19937_64 rng{seed};
    return io::run_search(options, make_problem(), std::vector<int>(12, 0), rng);
}
} // namespace

TEST_CASE("searches are run by name with reflected options") {
    for (std::string const name : {"mcmc", "greedy"}) {
        CAPTURE(name);
        auto options = io::default_options(name);
        CHECK(io::search_name(options) == name);
        io::visit_search(options, [](auto const& entry, auto& chosen) { io::set_option(chosen, "evaluations", "5000", entry.name); });
        auto const found = run(options);
        CHECK(found.cost == 1);
        CHECK(found.stats.evaluations <= 5000);
    }
    CHECK(io::search_names() == "mcmc, greedy");
}

TEST_CASE("the result is that of the search called by hand") {
    std::mt19937_64 rng{9};
    auto const by_hand = search::mcmc(make_problem(), std::vector<int>(12, 0), rng, {.evaluations = 700, .relative_temperature = 0.1});
    io::search_options const options = search::mcmc_options{.evaluations = 700, .relative_temperature = 0.1};
    auto const by_name = run(options, 9);
    CHECK(by_name.best == by_hand.best);
    CHECK(by_name.stats.trajectory == by_hand.stats.trajectory);
}

TEST_CASE("a search that ended by time is repeated by its evaluations") {
    // Ended elsewhere: a budget of evaluations alone would change how often the chain returns to its best.
    search::mcmc_options timed{.time = std::chrono::milliseconds{20}, .relative_temperature = 0.5};
    io::search_options options = timed;
    io::fix_derived(options);
    auto const first = run(options);
    REQUIRE(first.reason == stop_reason::time_budget);
    auto& o = std::get<search::mcmc_options>(options);
    CHECK(o.reset_interval == 100);
    o.time.reset();
    o.evaluations = first.stats.evaluations;
    auto const again = run(options);
    CHECK(again.best == first.best);
    CHECK(again.stats.trajectory == first.stats.trajectory);
    CHECK(again.stats.evaluations == first.stats.evaluations);
}

TEST_CASE("observers are told") {
    std::uint64_t told = 0;
    std::mt19937_64 rng{1};
    auto count = search::on<search::proposed>([&](auto const&) { ++told; });
    auto const found = io::run_search(search::mcmc_options{.evaluations = 300}, make_problem(), std::vector<int>(12, 0), rng, count);
    CHECK(told == found.stats.proposals);
}

TEST_CASE("an unknown search or a bad option is refused") {
    CHECK(refusal([] { return io::default_options("anneal"); }) == "search 'anneal' is not known: must be one of mcmc, greedy");
    CHECK(refusal([] { return run(search::mcmc_options{.relative_temperature = -1}); }).starts_with("mcmc: option 'relative_temperature' is -1: must be"));
}
