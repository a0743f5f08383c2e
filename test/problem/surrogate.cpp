#include <parsearch/problem/surrogate.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/interruption.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/rnnlm.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/dominator_dp.hpp>
#include <parsearch/search/kernel/moves.hpp>
#include <parsearch/topology/nodes.hpp>

namespace ps = parsearch;

namespace {
template <class Net> auto problem_of(Net const& net, std::uint32_t nodes, std::uint32_t per_node) {
    auto const cluster = ps::topology::nodes({.count = nodes, .gpus_per_node = per_node, .device = ps::topology::p100_sxm});
    return ps::make_problem(net, cluster, ps::cost::roofline{cluster});
}
auto const small = ps::models::mlp({.features = 512, .hidden = {1024, 1024}, .batch = 64});
} // namespace

using surrogate_type = decltype(problem_of(small, 1, 1).surrogate());
static_assert(ps::TabledEvaluator<ps::evaluator_t<surrogate_type>, ps::space::flat_strategy, ps::space::configuration>);
static_assert(ps::search::has_additive_costs<decltype(problem_of(small, 1, 1)), ps::space::flat_strategy>);

TEST_CASE("on one device, where nothing runs beside anything else, the surrogate is the simulated time") {
    auto const problem = problem_of(small, 1, 1);
    auto const s = ps::data_parallel(problem);
    auto simulated = problem.evaluator();
    auto added = problem.surrogate().evaluator();
    CHECK(added(s) == simulated(s));
    CHECK(added(s) > ps::picoseconds::zero());
}

TEST_CASE("the surrogate's cost is the sum of its terms, in its space and outside") {
    auto const problem = problem_of(ps::models::inception_v3({.batch = 32}), 1, 4);
    auto const surrogate = problem.surrogate({.candidates = 3});
    auto evaluate = surrogate.evaluator(), other = surrogate.evaluator();
    auto const check = [&](ps::space::flat_strategy const& s) {
        std::int64_t sum = 0;
        for (std::size_t op = 0; op < s.size(); ++op) sum += other.operator_cost(op, s[op]).count();
        for (std::size_t n = 0; n < other.edges().size(); ++n) sum += other.edge_cost(n, s[other.edges()[n].from], s[other.edges()[n].to]).count();
        CHECK(evaluate(s).count() == sum);
    };
    check(ps::data_parallel(problem));
    std::mt19937_64 rng{7};
    ps::space::flat_strategy s;
    for (std::size_t op = 0; op < problem.size(); ++op) {
        auto const& all = problem.space().of(op);
        s.push_back(all[static_cast<std::size_t>(ps::uniform_index(rng, all.size()))]);
    }
    check(s);
    // Tables say what is computed without them: also those that repeats share.
    auto const none = problem.surrogate({.candidates = 1});
    auto computed = none.evaluator();
    for (std::size_t n = 0; n < other.edges().size(); ++n) {
        auto const [from, to] = other.edges()[n];
        auto const &a = surrogate.space()[from], &b = surrogate.space()[to];
        for (std::size_t i = 0; i < a.size(); ++i)
            for (std::size_t j = 0; j < b.size(); ++j) REQUIRE(other.edge_costs(n)[i * b.size() + j] == computed.edge_cost(n, a[i], b[j]));
    }
    for (std::size_t op = 0; op < problem.size(); ++op)
        for (std::size_t i = 0; i < surrogate.space()[op].size(); ++i)
            REQUIRE(other.operator_costs(op)[i] == computed.operator_cost(op, surrogate.space()[op][i]));
}

TEST_CASE("candidates are few, of the space or of experts") {
    auto const problem = problem_of(small, 2, 4);
    auto const surrogate = problem.surrogate({.candidates = 20});
    auto const expert = ps::data_parallel(problem);
    for (std::size_t op = 0; op < problem.size(); ++op) {
        auto const& candidates = surrogate.space()[op];
        CHECK(candidates.size() <= 20 + 5); // data_parallel, one_weird_trick, tensor_parallel of 2, 4 and 8
        CHECK(std::find(candidates.begin(), candidates.end(), expert[op]) != candidates.end());
        for (std::size_t n = 0; n < candidates.size(); ++n)
            CHECK(std::find(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(n), candidates[n]) ==
                  candidates.begin() + static_cast<std::ptrdiff_t>(n));
    }
    auto const now = std::chrono::steady_clock::now();
    CHECK_THROWS_AS((void)problem.surrogate(20, now), ps::interrupted);
    auto const in_time = problem.surrogate(20, now + std::chrono::hours{1});
    CHECK(in_time.space() == surrogate.space());
    CHECK(in_time.evaluator()(expert) == surrogate.evaluator()(expert));
    CHECK_THROWS_WITH_AS((void)problem.surrogate({.candidates = 0}), "surrogate option candidates is 0: must be at least 1", ps::invalid_input);
}

TEST_CASE("time ends the making of a surrogate: the start is the answer") {
    auto const problem = problem_of(ps::models::inception_v3({.batch = 64}), 2, 4);
    auto const moving = ps::search::with_moves(problem, ps::search::uniform_move{});
    auto const start = ps::data_parallel(problem);
    std::mt19937_64 rng{1};
    auto took = std::chrono::steady_clock::duration::max();
    for (int n = 0; n < 2; ++n) {
        auto const begin = std::chrono::steady_clock::now();
        (void)problem.surrogate();
        took = std::min(took, std::chrono::steady_clock::now() - begin);
    }
    auto const check = [&](auto const& p) {
        static_assert(requires(std::optional<std::chrono::steady_clock::time_point> end) { p.surrogate(std::uint64_t{1}, end); });
        auto const found = ps::search::dominator_dp(p, start, rng, {.time = took / 4});
        CHECK(found.reason == ps::stop_reason::time_budget);
        CHECK(found.best == start);
        CHECK(found.stats.evaluations == 1);
    };
    check(problem);
    check(moving);
}

TEST_CASE("what a surrogate takes is told in evaluations: by candidates, devices and shards, equal layers once") {
    auto const of = [](auto const& problem, std::uint64_t candidates) {
        return problem.surrogate_evaluations(candidates, ps::data_parallel(problem));
    };
    auto const one = problem_of(small, 1, 4);
    CHECK(of(one, 12) > 0);
    CHECK(of(one, 24) > of(one, 12));
    CHECK(of(problem_of(small, 4, 4), 12) > of(one, 12)); // on sixteen devices terms cost more, though strategies have more shards
    ps::space::flat_strategy alone;
    for (auto const& op : one.graph().operations) alone.push_back(ps::space::whole(op, 0));
    CHECK(one.surrogate_evaluations(12, alone) > 2 * of(one, 12)); // of strategies with few shards more are priced meanwhile
    auto const unrolled = [](std::int64_t layers) {
        return problem_of(ps::models::mlp({.features = 512, .hidden = std::vector<std::int64_t>(static_cast<std::size_t>(layers), 512), .batch = 64}),
                          1, 4);
    };
    CHECK(of(unrolled(24), 12) < of(unrolled(12), 12)); // the same tables, longer evaluations
    CHECK(of(one, ~std::uint64_t{0}) == std::uint64_t{1} << 62);
    CHECK(ps::search::with_moves(one, ps::search::uniform_move{}).surrogate_evaluations(12, alone) == one.surrogate_evaluations(12, alone));
}

TEST_CASE("exact search runs on simulated problems and answers no worse than the start") {
    std::mt19937_64 rng{1};
    auto const check = [&](auto const& problem) {
        auto const start = ps::data_parallel(problem);
        auto evaluate = problem.evaluator();
        auto const found = ps::search::dominator_dp(problem, start, rng);
        CHECK(found.cost <= evaluate(start));
        CHECK(found.cost == evaluate(found.best));
        CHECK(found.reason == ps::stop_reason::exhausted);
        CHECK(!found.lower_bound);
        auto const surrogate = problem.surrogate();
        auto const least = ps::search::dominator_dp(surrogate, start, rng);
        CHECK(least.reason == ps::stop_reason::proved_optimal);
        CHECK(found.cost == std::min(evaluate(start), evaluate(least.best)));
    };
    check(problem_of(small, 1, 4));
    check(problem_of(ps::models::rnnlm({}), 1, 2)); // weights that operators share
}
