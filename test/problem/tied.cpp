#include <parsearch/problem/tied.hpp>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/refusal.hpp"

namespace ps = parsearch;
namespace space = parsearch::space;
using support::refusal;

static_assert(ps::SearchProblem<ps::tied_parallelization, space::flat_strategy>);
static_assert(
    ps::IncrementalEvaluator<ps::evaluator_t<ps::tied_parallelization>, space::flat_strategy, ps::problem_configuration_t<ps::tied_parallelization>>);

namespace {
ps::parallelization gpt(space::space_options options = {}) {
    auto const cluster = ps::topology::dgx_a100(1);
    return ps::make_problem(ps::models::gpt({.layers = 4, .hidden = 256, .heads = 8, .sequence = 32, .vocabulary = 512, .batch = 8}), cluster,
                            ps::cost::roofline{cluster}, {.space = std::move(options)});
}
} // namespace

TEST_CASE("tied: costs are those of the whole strategy, change by change") {
    auto const problem = gpt();
    ps::tied_parallelization const tied(problem);
    auto const& ties = tied.ties();
    CHECK(ties.any());
    CHECK(ties.size() < problem.size());
    std::mt19937_64 rng{5};
    auto full = problem.simulator();
    auto priced = tied.evaluator();
    auto now = ties.gather(ps::data_parallel(problem));
    CHECK(ties.keeps(ties.spread(now)));
    REQUIRE(priced.reset(now) == full(ties.spread(now)));
    for (int round = 0; round < 200; ++round) {
        auto const group = static_cast<std::size_t>(ps::uniform_index(rng, ties.size()));
        auto const choices = tied.space()[group];
        auto next = now;
        next[group] = choices[static_cast<std::uint32_t>(ps::uniform_index(rng, choices.size()))];
        ps::change<space::configuration> const change{group, next[group]};
        auto const cost = priced.propose(std::span(&change, 1), ps::cost_traits<ps::picoseconds>::infinity());
        REQUIRE(cost == full(ties.spread(next)));
        if (ps::bernoulli(rng, 0.5)) {
            priced.commit();
            now = next;
        } else {
            priced.roll_back();
        }
    }
    REQUIRE(priced(now) == full(ties.spread(now)));
}

TEST_CASE("tied: searches find regular strategies, from the regular ones of experts") {
    auto const problem = gpt();
    ps::tied_parallelization const tied(problem);
    CHECK(tied.starts().size() + 1 == problem.starts().size()); // one has layers on the devices in turn
    std::mt19937_64 rng{7};
    auto const start = tied.ties().gather(ps::data_parallel(problem));
    auto const from = problem.simulator()(ps::data_parallel(problem));
    for (bool const chain : {true, false}) {
        auto const found =
            chain ? ps::search::mcmc(tied, start, rng, {.evaluations = 500}) : ps::search::greedy(tied, start, rng, {.evaluations = 500});
        auto const whole = tied.ties().spread(found.best);
        CHECK(found.cost <= from);
        CHECK(found.cost == problem.simulator()(whole));
        CHECK(tied.ties().keeps(whole));
        CHECK(!problem.space().first_outside(whole));
    }
}

TEST_CASE("tied: where the first of a group has other configurations, the others stay together") {
    auto const problem = gpt({.allows = [](std::string_view name, auto const&, auto const degrees) {
        return name != "block1.mlp.1" || ps::ops::shard_count(degrees) == 1;
    }});
    ps::operator_ties const ties(ps::graph::first_repeats(problem.graph()), problem.space());
    std::vector<std::size_t> sizes;
    for (std::size_t g = 0; g < ties.size(); ++g) {
        CHECK((g == 0 || ties.of(g - 1).front() < ties.of(g).front()));
        if (problem.graph().names[ties.of(g).front()].ends_with(".mlp.1")) sizes.push_back(ties.of(g).size());
    }
    CHECK(sizes == std::vector<std::size_t>{1, 3});
}

TEST_CASE("tied: an operator with other configurations is alone, and ties must be of the graph") {
    auto const problem = gpt({.allows = [](std::string_view name, auto const&, auto const degrees) {
        return name != "block3.mlp.1" || ps::ops::shard_count(degrees) == 1;
    }});
    ps::tied_parallelization const tied(problem);
    auto const& ties = tied.ties();
    std::vector<std::string> alone;
    for (std::size_t g = 0; g < ties.size(); ++g)
        if (auto const op = ties.of(g).front(); ties.of(g).size() == 1 && problem.graph().names[op].starts_with("block"))
            alone.push_back(problem.graph().names[op]);
    CHECK(alone == std::vector<std::string>{"block3.mlp.1"});
    // Those of all blocks stay tied.
    auto const pinned = gpt({.allows = [](std::string_view name, auto const&, auto const degrees) {
        return !name.ends_with(".mlp.1") || ps::ops::shard_count(degrees) == 1;
    }});
    CHECK(ps::tied_parallelization(pinned).ties().size() + 1 == ties.size());

    std::vector<std::uint32_t> first(problem.size(), 0);
    first.pop_back();
    CHECK(refusal([&] { return ps::operator_ties(first, problem.space()).size(); }) ==
          ps::text("ties of ", first.size(), " operators: the space has ", problem.size(), ", must be one each"));
    first.assign(problem.size(), 0);
    first[1] = 1;
    first[4] = 3;
    CHECK(refusal([&] { return ps::operator_ties(first, problem.space()).size(); }) ==
          "ties: operator number 4 is tied to number 3: must be the first of its group, tied to itself");
    first[4] = 0;
    first[2] = 3;
    CHECK(refusal([&] { return ps::operator_ties(first, problem.space()).size(); }) ==
          "ties: operator number 2 is tied to number 3: must be the first of its group, tied to itself");
}
