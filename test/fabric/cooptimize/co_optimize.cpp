#include <parsearch/fabric/cooptimize/co_optimize.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/fabric/cooptimize/usual_starts.hpp>
#include <parsearch/fabric/network/random_regular.hpp>
#include <parsearch/fabric/network/regular_networks.hpp>
#include <parsearch/fabric/wiring/wirings.hpp>
#include <parsearch/models/dlrm.hpp>
#include <parsearch/problem/constraints.hpp>
#include <parsearch/search/mcmc.hpp>

#include "support/cases.hpp"
#include "support/networks.hpp"
#include "support/random_network.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace std::chrono_literals;
using support::ten_gigabit;

namespace {

graph::operator_graph small_dlrm(std::int64_t batch) {
    return models::dlrm(
        {.dense = 64, .bottom = {128, 64}, .tables = {40'000, 40'000, 40'000, 40'000}, .features = 64, .bag = 4, .top = {256, 64}, .batch = batch});
}

/// A chain of so many proposals.
struct walk {
    std::uint64_t evaluations = 100;
    template <class P, class R> auto operator()(P const& p, space::flat_strategy start, R& rng) const {
        return search::mcmc(p, std::move(start), rng, {.evaluations = evaluations});
    }
};

} // namespace

TEST_CASE("co_optimize: never worse than what the searcher finds on a fabric that it knows, whatever the problem") {
    for (std::uint64_t seed = 0; seed < support::cases(std::uint64_t{40}); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 draw(seed);
        std::uint32_t const servers = 3 + static_cast<std::uint32_t>(uniform_index(draw, 4)),
                            degree = 2 + static_cast<std::uint32_t>(uniform_index(draw, 2));
        fabric::fabric_problem const problem(support::random_network(draw), servers,
                                             {.servers = support::slow_servers(1 + static_cast<std::uint32_t>(uniform_index(draw, 2)))});
        std::vector<fabric::start_fabric> starts{{fabric::fully_connected(servers, ten_gigabit)}, {fabric::circulant(servers, {1}, ten_gigabit)}};
        std::mt19937_64 rng(seed);
        auto const found = fabric::co_optimize(walk{60}, fabric::wirings{degree, ten_gigabit})(problem, {}, rng, {.rounds = 3, .starts = starts});
        REQUIRE(found.rounds.size() >= 3);
        auto least = picoseconds::max();
        for (auto const& r : found.rounds) {
            REQUIRE(r.after <= r.before);
            REQUIRE((r.last || r.round < 3));
            least = std::min(least, r.after);
        }
        REQUIRE(found.cost == least);
        REQUIRE(problem.on(found.best.wired).problem.evaluator()(found.best.strategy) == found.cost);
        // The rounds of the starts are what the searcher finds there, with the random numbers that are left.
        auto const of_start = [&](std::size_t start) {
            return std::find_if(found.rounds.begin(), found.rounds.end(), [&](auto const& r) { return r.start == start; });
        };
        for (std::size_t i = 0; i < starts.size(); ++i) {
            REQUIRE(of_start(i + 1) != found.rounds.end());
            REQUIRE(of_start(i + 1)->wired == starts[i].wired);
            REQUIRE(found.cost <= of_start(i + 1)->after);
        }
        // Deterministic.
        std::mt19937_64 again(seed);
        auto const twin = fabric::co_optimize(walk{60}, fabric::wirings{degree, ten_gigabit})(problem, {}, again, {.rounds = 3, .starts = starts});
        REQUIRE(twin.cost == found.cost);
        REQUIRE(twin.best.wired == found.best.wired);
        REQUIRE(twin.best.strategy == found.best.strategy);
        REQUIRE(twin.stats.trajectory == found.stats.trajectory);
        REQUIRE(again == rng);
    }
}

TEST_CASE("co_optimize: a fabric wired for the strategy is faster than one that is not") {
    fabric::fabric_problem const problem(small_dlrm(1024), 8, {.servers = support::slow_servers(2)});
    std::mt19937_64 rng{1};
    std::vector<fabric::co_round> told;
    std::size_t improvements = 0;
    auto const found = fabric::co_optimize(walk{400}, fabric::wirings{3, ten_gigabit})(
        problem, {}, rng,
        {.starts = {{fabric::random_regular(8, 3, 5, ten_gigabit)}, {fabric::ideal_switch(8, {{3 * 10e9 / 8}, picoseconds{1'000'000}}), false}}},
        [&](fabric::co_round const& r) { told.push_back(r); }, search::on<search::improved>([&](auto const&) { ++improvements; }));
    CHECK(told.size() == found.rounds.size());
    CHECK(improvements == found.stats.improved);
    CHECK(found.reason == stop_reason::exhausted);
    std::uint64_t evaluations = 0;
    for (auto const& r : found.rounds) evaluations += r.evaluations;
    CHECK(found.stats.evaluations > evaluations);
    CHECK(found.best.wired.switches == 0); // the switch was for starting only
    auto const random = std::find_if(found.rounds.begin(), found.rounds.end(), [](auto const& r) { return r.start == 1; });
    REQUIRE(random != found.rounds.end());
    CHECK(found.cost < random->after);
}

TEST_CASE("co_optimize: the better half of the starts goes on, each halving in an equal part of the budget, and the last search has the rest") {
    for (std::uint64_t seed = 0; seed < support::cases(std::uint64_t{24}); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 draw(seed);
        std::uint32_t const servers = 4 + static_cast<std::uint32_t>(uniform_index(draw, 4));
        fabric::fabric_problem const problem(support::random_network(draw), servers, {.servers = support::slow_servers(2)});
        auto const starts = fabric::usual_starts(servers, 3, ten_gigabit, seed);
        std::vector<std::uint64_t> parts;
        auto const searcher = [&](auto const& p, space::flat_strategy start, auto& rng, search::budget const& budget) {
            parts.push_back(*budget.evaluations);
            return search::mcmc(p, std::move(start), rng, {.evaluations = budget.evaluations});
        };
        std::uint64_t const all = 600 + uniform_index(draw, 400);
        auto const run = [&] {
            std::mt19937_64 rng(seed);
            return fabric::co_optimize(searcher, fabric::wirings{3, ten_gigabit})(problem, {}, rng, {.evaluations = all, .starts = starts});
        };
        auto const found = run();
        auto const& rounds = found.rounds;
        REQUIRE(parts.size() == rounds.size());
        REQUIRE_FALSE(rounds.front().final); // an ideal switch, for wirings of its traffic
        REQUIRE(parts.front() <= all / 16);
        REQUIRE(rounds.back().last);
        std::vector<std::vector<fabric::co_round>> passes(1); // a chain has a round in each, as long as it goes on
        for (auto const& r : rounds) {
            if (!r.final || r.last) continue;
            if (std::ranges::find(passes.back(), r.chain, &fabric::co_round::chain) != passes.back().end()) passes.emplace_back();
            passes.back().push_back(r);
        }
        REQUIRE(passes.front().size() >= starts.size() + 1); // the start, two wirings for what is found on the switch, the others
        REQUIRE(passes.front().size() <= starts.size() + 2);
        for (std::size_t p = 0; p < passes.size(); ++p) {
            for (auto const& r : passes[p]) {
                REQUIRE(r.round == p);
                REQUIRE(r.evaluations <= all * 3 / 8 / passes.size() / passes[p].size());
            }
            if (p + 1 == passes.size()) continue;
            REQUIRE(passes[p + 1].size() <= (passes[p].size() + 1) / 2); // fewer where several have come to one plan
            auto const goes_on = [&](auto const& r) {
                return std::ranges::find(passes[p + 1], r.chain, &fabric::co_round::chain) != passes[p + 1].end();
            };
            auto const goes_on_as = [&](auto const& other) { // it has come to the same plan
                return std::ranges::any_of(passes[p], [&](auto const& r) { return r.after == other.after && goes_on(r); });
            };
            for (auto const& r : passes[p])
                for (auto const& other : passes[p])
                    if (goes_on(r) && !goes_on_as(other)) REQUIRE(r.after <= other.after);
            for (auto const& r : passes[p + 1]) { // from where the chain was
                auto const was = std::ranges::find(passes[p], r.chain, &fabric::co_round::chain);
                REQUIRE(was != passes[p].end());
                REQUIRE(r.before <= was->after);
            }
        }
        REQUIRE(passes.size() <= 3); // fewer where all have come to one plan
        REQUIRE(found.stats.evaluations <= all);
        REQUIRE(parts.back() + 20 >= all * 7 / 16); // but for what wirings took
        REQUIRE(found.reason == stop_reason::evaluation_budget);
        auto least = picoseconds::max();
        for (auto const& r : rounds)
            if (r.final) least = std::min(least, r.after);
        REQUIRE(found.cost == least);
        REQUIRE(problem.on(found.best.wired).problem.evaluator()(found.best.strategy) == found.cost);
        REQUIRE(run().stats.trajectory == found.stats.trajectory);
    }
}

TEST_CASE("co_optimize: with one round each, starts that may not be the result are wired for all the same") {
    fabric::fabric_problem const problem(small_dlrm(256), 6, {.servers = support::slow_servers(1)});
    std::vector<fabric::start_fabric> const starts{{fabric::ideal_switch(6, {{3 * 10e9 / 8}, picoseconds{1'000'000}}), false},
                                                   {fabric::ideal_switch(6, {{9 * 10e9 / 8}, picoseconds{1'000'000}}), false}};
    for (auto const evaluations : {std::uint64_t{1}, std::uint64_t{40}, std::uint64_t{900}}) {
        CAPTURE(evaluations);
        std::mt19937_64 rng{3};
        auto const searcher = [&](auto const& p, space::flat_strategy start, auto& r, search::budget const& budget) {
            return search::mcmc(p, std::move(start), r, {.evaluations = budget.evaluations});
        };
        auto const found = fabric::co_optimize(searcher, fabric::wirings{3, ten_gigabit})(
            problem, {}, rng, {.evaluations = evaluations, .rounds = 1, .rewirings = 0, .starts = starts});
        CHECK(found.best.wired.switches == 0);
        std::vector<std::size_t> final_rounds(3, 0);
        for (auto const& r : found.rounds) final_rounds[r.start] += r.final && !r.last;
        CHECK(final_rounds[0] == 1);
        if (evaluations == 900) CHECK(final_rounds == std::vector<std::size_t>{1, 2, 2});
    }
    // Stopped before it began, and out of time: there is a plan all the same.
    std::stop_source stop;
    stop.request_stop();
    for (auto const& o : {fabric::co_options{.stop = stop.get_token(), .starts = starts}, fabric::co_options{.time = 1ns, .starts = starts}}) {
        std::mt19937_64 rng{3};
        auto const found = fabric::co_optimize(walk{5}, fabric::wirings{3, ten_gigabit})(problem, {}, rng, o);
        CHECK(found.best.wired.switches == 0);
        CHECK(problem.on(found.best.wired).problem.evaluator()(found.best.strategy) == found.cost);
    }
}

TEST_CASE("co_optimize: where servers that talk are far apart, a change of the wiring brings them together") {
    // All operators alternate between two servers that are four hops apart on a ring of eight.
    fabric::fabric_problem const problem(small_dlrm(1024), 8, {.servers = support::slow_servers(1)});
    space::flat_strategy apart;
    for (auto const& op : problem.graph().operations) apart.push_back(space::whole(op, apart.size() % 2 == 0 ? 0 : 4));
    auto const ring = [](fabric::demand const&) { return fabric::circulant(8, {1}, ten_gigabit); };
    auto const rounds = [&](std::uint64_t rewirings) {
        std::mt19937_64 rng{5};
        auto const stay = [](auto const& p, space::flat_strategy start, auto& r) {
            return search::mcmc(p, std::move(start), r, {.evaluations = 1, .problem_starts = false});
        };
        return fabric::co_optimize(stay, ring)(problem, {fabric::circulant(8, {1}, ten_gigabit), apart}, rng, {.rewirings = rewirings});
    };
    auto const kept = rounds(0), changed = rounds(100);
    CHECK_FALSE(kept.rounds.back().last);
    CHECK(changed.rounds.back().last);
    CHECK(changed.cost < kept.cost);
    for (std::size_t i = 0; i < kept.rounds.size(); ++i) CHECK(changed.rounds[i].after == kept.rounds[i].after);
}

TEST_CASE("co_optimize: what rewiring costs may be more than what it saves") {
    fabric::fabric_problem const problem(small_dlrm(256), 6, {.servers = support::slow_servers(1)});
    auto const present = fabric::circulant(6, {1}, ten_gigabit);
    auto const run = [&](std::int64_t iterations) {
        std::mt19937_64 rng{3};
        return fabric::co_optimize(walk{200}, fabric::wirings{2, ten_gigabit})(problem, {}, rng,
                                                                               {.rounds = 2,
                                                                                .rewirings = 0,
                                                                                .starts = {{present}},
                                                                                .present = present,
                                                                                .rewiring = {.reconfiguration_time = 10s, .iterations = iterations}});
    };
    auto const once = run(1), often = run(1'000'000'000'000);
    CHECK(fabric::same_wiring(once.best.wired, present));
    CHECK(once.cost == problem.on(present).problem.evaluator()(once.best.strategy));
    CHECK(often.cost <= once.cost);
    for (auto const& r : once.rounds)
        if (!fabric::same_wiring(r.wired, present)) CHECK(r.after >= 10s);
}

TEST_CASE("co_optimize: finders of one's own, budgets, a stop") {
    fabric::fabric_problem const problem(small_dlrm(128), 4, {.servers = support::slow_servers(1)});
    std::mt19937_64 rng{3};
    // A found topology will do, and a network. On one that never changes rounds go on until one improves nothing.
    auto const found = [](fabric::demand const& d) { return fabric::topology_finder(d, 4, 2); };
    auto const fixed = [](fabric::demand const&) { return fabric::fully_connected(4, ten_gigabit); };
    CHECK(fabric::co_optimize(walk{50}, found)(problem, {}, rng).rounds.size() >= 1);
    auto const on_one = fabric::co_optimize(walk{50}, fixed)(problem, {}, rng, {.rounds = 50}).rounds;
    REQUIRE(on_one.size() > 1);
    REQUIRE(on_one.size() < 50);
    for (std::size_t i = 1; i + 1 < on_one.size(); ++i) CHECK(on_one[i].after < on_one[i - 1].after);
    CHECK(on_one.back().after >= on_one[on_one.size() - 2].after);
    auto const budgeted = fabric::co_optimize(walk{50}, fixed)(
        problem, {}, rng, {.evaluations = 60, .starts = {{fabric::circulant(4, {1}, ten_gigabit)}, {fabric::circulant(4, {2, 1}, ten_gigabit)}}});
    CHECK(budgeted.reason == stop_reason::evaluation_budget);
    CHECK(budgeted.rounds.size() == 2);
    std::stop_source stop;
    stop.request_stop();
    auto const stopped =
        fabric::co_optimize(walk{50}, fixed)(problem, {}, rng, {.stop = stop.get_token(), .starts = {{fabric::circulant(4, {1}, ten_gigabit)}}});
    CHECK(stopped.reason == stop_reason::stop_requested);
    CHECK(stopped.rounds.size() == 1); // there is a plan all the same
    CHECK(!stopped.best.strategy.empty());
    CHECK(fabric::co_optimize(walk{50}, fixed)(problem, {}, rng, {.time = 0ns, .starts = {{fabric::circulant(4, {1}, ten_gigabit)}}}).reason ==
          stop_reason::time_budget);
}

TEST_CASE("co_optimize: constraints hold on all networks") {
    auto const model = small_dlrm(128);
    using handle = operator_handle_t<graph::operator_graph>;
    auto const dense = graph::read_graph(model);
    std::vector<handle> tables;
    for (std::size_t op = 0; op < dense.graph.size(); ++op)
        if (dense.graph.operations[op].kind == "embedding_bag") tables.push_back(dense.handles[op]);
    REQUIRE(tables.size() == 4);
    constraints<handle, std::uint32_t> wanted;
    wanted.pin(tables[0], "whole @2").limit(tables[1], "s", 2).leave_out(1);
    wanted.forbid([last = tables[2]](handle of, ops::operation const&, space::configuration const& c) { return of == last && c.shards() > 1; });
    fabric::fabric_problem const problem(model, 4, {.servers = support::slow_servers(1)}, fabric::make_roofline{}, wanted);
    std::mt19937_64 rng{3};
    auto const found = fabric::co_optimize(walk{60}, fabric::wirings{2, ten_gigabit})(problem, {}, rng, {.rounds = 2});
    auto const on = problem.on(found.best.wired).problem;
    CHECK(on.topology().size() == 3);
    CHECK(problem.devices() == 3);
    CHECK(on.keeps_constraints(found.best.strategy));
    auto const number = [&](handle of) { return static_cast<std::size_t>(std::ranges::find(dense.handles, of) - dense.handles.begin()); };
    CHECK(found.best.strategy[number(tables[0])].device(0) == 2);
    CHECK(found.best.strategy[number(tables[0])].shards() == 1);
    CHECK(found.best.strategy[number(tables[1])].degree[0] <= 2);
    CHECK(found.best.strategy[number(tables[2])].shards() == 1);
    wanted.pin(handle{99}, "whole");
    CHECK(support::refusal([&] {
              return fabric::fabric_problem(model, 4, {}, fabric::make_roofline{}, wanted).servers();
          }).starts_with("constraints: pin names an operator that is none of the "));
}

TEST_CASE("co_optimize: mistakes are named") {
    fabric::fabric_problem const problem(small_dlrm(128), 4, {.servers = support::slow_servers(1)});
    std::mt19937_64 rng{3};
    auto const refused = [&](fabric::co_options const& o) {
        return support::refusal([&] { return fabric::co_optimize(walk{20}, fabric::wirings{2, ten_gigabit})(problem, {}, rng, o).rounds.size(); });
    };
    CHECK(refused({.rounds = 0}) == "co_optimize: option 'rounds' is 0: must be at least 1");
    CHECK(refused({.evaluations = 0}) == "co_optimize: option 'evaluations' is 0: must be at least 1, the start is priced too");
    CHECK(refused({.starts = {{fabric::fully_connected(5, ten_gigabit)}}}) == "network 'fully connected' of 5 servers: the problem has 4");
    CHECK(refused({.present = fabric::fully_connected(4, ten_gigabit), .rewiring = {.iterations = 0}}) ==
          "a wiring kept for 0 iterations: must be at least one");
    CHECK(support::refusal([&] {
              return fabric::co_optimize(walk{20}, [](fabric::demand const&) { return std::vector<fabric::network>{}; })(problem, {}, rng)
                  .rounds.size();
          }) == "co_optimize: the finder made no network: must be at least one");
    CHECK(support::refusal([&] { return fabric::fabric_problem(small_dlrm(128), 65536, {.servers = support::slow_servers(65536)}).devices(); }) ==
          "65536 servers of 65536 GPUs: a cluster holds from 1 to 8192 devices");
    CHECK(support::refusal([&] { return fabric::fabric_problem(small_dlrm(128), 0, {.servers = support::slow_servers(1)}).devices(); }) ==
          "fabric problem of 0 servers: must be at least one");
}
