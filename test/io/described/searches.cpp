#include <parsearch/io/described/searches.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/search/additive_cost.hpp>

#include "support/refusal.hpp"

using namespace parsearch;
using support::refusal;

namespace {
/// Distance of digits from a target, with a hump between.
auto make_problem() {
    std::vector<std::vector<int>> const digits(12, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    return search_problem{digits, [](std::vector<int> const& s) {
                              double cost = 1;
                              for (std::size_t i = 0; i < s.size(); ++i)
                                  cost += (s[i] - static_cast<int>(i % 10)) * (s[i] - static_cast<int>(i % 10));
                              return cost;
                          }};
}
auto run(io::search_options const& options, std::uint64_t seed = 3) {
    std::mt19937_64 rng{seed};
    return io::run_search(options, make_problem(), std::vector<int>(12, 0), rng);
}
} // namespace

TEST_CASE("searches are run by name with reflected options") {
    for (std::string const name : {"mcmc", "greedy", "tempering"}) {
        CAPTURE(name);
        auto options = io::default_options(name);
        CHECK(io::search_name(options) == name);
        io::visit_search(options, [](auto const& entry, auto& chosen) { io::set_option(chosen, "evaluations", "5000", entry.name); });
        auto const found = run(options);
        CHECK(found.cost == 1);
        CHECK(found.stats.evaluations <= 5000);
    }
    CHECK(io::search_names() == "portfolio, mcmc, greedy, dominator_dp, exact, exhaustive, random, tempering, joint");
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

TEST_CASE("baselines run on any problem; exact search is refused where no bounds are known") {
    CHECK(run(search::random_options{.evaluations = 200}).stats.evaluations == 200);
    CHECK(run(search::exhaustive_options{.evaluations = 200}).stats.evaluations == 200);
    CHECK(refusal([] { return run(search::exact_options{}); }) == "search 'exact' does not run on this problem: its evaluator knows no lower bounds");
}

TEST_CASE("an unknown search or a bad option is refused") {
    CHECK(refusal([] { return io::default_options("anneal"); }) ==
          "search 'anneal' is not known: must be one of portfolio, mcmc, greedy, dominator_dp, exact, exhaustive, random, tempering, joint");
    CHECK(refusal([] { return run(search::dominator_dp_options{}); }) ==
          "search 'dominator_dp' does not run on this problem: its costs are not additive, and it has no surrogate()");
    CHECK(refusal([] { return run(rewrite::joint_options{}); }) ==
          "search 'joint' does not run on this problem: it finds another graph, and a strategy of that");
    CHECK(refusal([] {
              return run(search::mcmc_options{.relative_temperature = -1});
          }).starts_with("mcmc: option 'relative_temperature' is -1: must be"));
}

TEST_CASE("exact search is run by name on additive problems") {
    search::additive_problem<int> const problem({{{3, 1}, {2, 5}}, {{0, 1}}, {{0, 9, 9, 0}}});
    std::mt19937_64 rng{1};
    auto options = io::default_options("dominator_dp");
    io::visit_search(options, [](auto const& entry, auto& chosen) { io::set_option(chosen, "memory", "2000000", entry.name); });
    auto const found = io::run_search(options, problem, problem.first(), rng);
    CHECK(found.cost == 5);
    CHECK(found.reason == stop_reason::proved_optimal);
}

TEST_CASE("the options of joint are set by name, those of pricing among them") {
    auto options = io::default_options("joint");
    io::visit_search(options, [](auto const& entry, auto& chosen) {
        for (auto const& [name, value] : {std::pair{"candidates", "12"}, {"alpha", "1.25"}, {"effort", "0"}, {"time", "3s"}})
            io::set_option(chosen, name, value, entry.name);
    });
    auto const& o = std::get<rewrite::joint_options>(options);
    CHECK(o.pricing.candidates == 12);
    CHECK(o.pricing.effort == 0);
    CHECK(o.alpha == 1.25);
    CHECK(o.time == std::chrono::seconds{3});
    auto const changed = io::settings_of(o, true);
    CHECK(changed == std::vector<io::setting>{{"time", "3s"}, {"alpha", "1.25"}, {"candidates", "12"}, {"effort", "0"}});
    CHECK(refusal([&] {
              io::visit_search(options, [](auto const& entry, auto& chosen) { io::set_option(chosen, "candidates", "many", entry.name); });
          }).starts_with("joint: option 'candidates' is 'many': must be an integer"));
}
