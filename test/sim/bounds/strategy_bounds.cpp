#include <parsearch/sim/bounds/strategy_bounds.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/concepts/bounded_evaluator.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/sim/bounds/work_bound.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/random_problem.hpp"

using namespace parsearch;

namespace {
using evaluator = sim::delta_simulator;
static_assert(BoundedEvaluator<evaluator, space::flat_strategy, space::strategy_space>);

template <class P> space::flat_strategy strategy_of(P const& p, std::vector<std::size_t> const& choices) {
    space::flat_strategy s;
    for (std::size_t op = 0; op < choices.size(); ++op) s.push_back(search::choice(p.space(), op, choices[op]));
    return s;
}
/// A random strategy of the space, as numbers of configurations; some operators read as others do.
template <class P> std::vector<std::size_t> draw_choices(std::mt19937_64& rng, P const& p) {
    std::vector<std::size_t> out;
    for (std::size_t op = 0; op < p.size(); ++op) out.push_back(static_cast<std::size_t>(uniform_index(rng, p.space()[op].size())));
    for (std::size_t op = 0; op < p.size(); ++op) {
        if (!bernoulli(rng, 0.4)) continue;
        auto const wanted = support::read_as_another(rng, p, strategy_of(p, out), op);
        for (std::size_t i = 0; i < p.space()[op].size(); ++i) {
            auto const c = search::choice(p.space(), op, i);
            bool same = std::ranges::equal(c.degrees(), wanted.degrees());
            for (std::int64_t n = 0; same && n < c.shards(); ++n) same = c.device(n) == wanted.device(n);
            if (same) out[op] = i;
        }
    }
    return out;
}

/// Fixes operators in a random or the topological order; at each step the bound is compared with the cost of random completions, and at the
/// end with the strategy's own.
template <class P> std::size_t check_bounds(std::mt19937_64& rng, P const& p, sim::table_limits const& limits, double& tightness) {
    auto simulator = p.simulator();
    auto bounds =
        sim::strategy_bounds(std::make_shared<std::remove_cvref_t<decltype(simulator.input())> const>(simulator.input()), p.space(), limits);
    auto const root = bounds.value();
    auto const kept = draw_choices(rng, p);
    std::vector<std::size_t> order(bounds.order().begin(), bounds.order().end());
    if (bernoulli(rng, 0.5))
        for (std::size_t n = order.size(); n > 1; --n) std::swap(order[n - 1], order[static_cast<std::size_t>(uniform_index(rng, n))]);
    std::vector<bool> fixed(p.size(), false);
    std::size_t compared = 0;
    auto const compare = [&] {
        auto const bound = bounds.value();
        for (int n = 0; n < 2; ++n) {
            auto completed = draw_choices(rng, p);
            for (std::size_t op = 0; op < completed.size(); ++op)
                if (fixed[op]) completed[op] = kept[op];
            auto const cost = simulator(strategy_of(p, completed));
            REQUIRE(bound <= cost);
            REQUIRE(root <= cost);
            ++compared;
        }
        return bound;
    };
    std::vector<picoseconds> values{compare()};
    for (auto const op : order) {
        bounds.fix(op, kept[op]);
        fixed[op] = true;
        values.push_back(compare());
    }
    auto const cost = simulator(strategy_of(p, kept));
    REQUIRE(values.back() <= cost);
    if (cost.count() > 0 && cost < picoseconds::max()) tightness += static_cast<double>(values.back().count()) / static_cast<double>(cost.count());
    else tightness += 1;
    // Taken back one by one, the bounds are what they were.
    for (auto i = order.size(); i-- > 0;) {
        REQUIRE(bounds.value() == values[i + 1]);
        bounds.release(order[i]);
    }
    REQUIRE(bounds.value() == values.front());
    return compared;
}
} // namespace

TEST_CASE("no completion of a partial strategy costs less than its bound") {
    std::mt19937_64 rng{20260807};
    std::size_t compared = 0;
    double tightness = 0;
    int problems = 0;
    for (; compared < support::cases(std::size_t{12'000}); ++problems) {
        CAPTURE(problems);
        auto const p = support::random_problem_of_any_kind(rng);
        // Every third problem has edges and classes that are not tabulated.
        sim::table_limits const limits = bernoulli(rng, 0.3) ? sim::table_limits{.pairs_per_edge = 40, .pairs = 200} : sim::table_limits{};
        compared += check_bounds(rng, p, limits, tightness);
    }
    MESSAGE("seed 20260807: " << compared << " completions of " << problems << " problems; a whole strategy's bound is " << 100 * tightness / problems
                              << "% of its cost");
    CHECK(tightness / problems > 0.7);
}

TEST_CASE("a space beyond the limits is bounded by its least work alone, and durations near 64 bits are not") {
    std::mt19937_64 rng{1};
    auto const p = support::random_problem(rng, {}, {.devices = 2, .operators = 6});
    auto simulator = p.simulator();
    auto const work = std::make_shared<std::remove_cvref_t<decltype(simulator.input())> const>(simulator.input());
    sim::planner planner(work);
    sim::strategy_bounds none(work, p.space(), {.choices = 3});
    none.fix(0, 0);
    CHECK(none.value() == sim::work_bound(planner, p.space()));
    none.release(0);
    auto const endless = [](ops::shard_work const&, std::uint32_t) { return picoseconds{std::int64_t{1} << 59}; };
    struct oracle {
        decltype(endless) f;
        picoseconds shard_time(ops::shard_work const& w, std::uint32_t d) const { return f(w, d); }
        picoseconds transfer_time(byte_count, link_description const&) const { return picoseconds{1}; }
    };
    auto const long_ones = support::random_problem(rng, {}, {.devices = 2, .operators = 6}, oracle{endless});
    auto evaluate = long_ones.evaluator();
    auto bounds = evaluate.bounds(long_ones.space());
    for (auto const op : bounds.order()) bounds.fix(op, 0);
    CHECK(bounds.value() == picoseconds::zero());
}

TEST_CASE("a whole strategy on one device is bounded by its cost exactly") {
    auto const cluster = topology::p100_cluster(1);
    auto const p = make_problem(models::mlp({}), cluster, cost::roofline{cluster});
    auto evaluate = p.evaluator();
    auto bounds = evaluate.bounds(p.space());
    std::vector<space::configuration> s;
    for (std::size_t op = 0; op < p.size(); ++op) {
        bounds.fix(op, 0);
        s.push_back(p.space()[op][0]);
        REQUIRE(s.back().shards() == 1);
        REQUIRE(s.back().device(0) == 0);
    }
    CHECK(bounds.value() == evaluate(s));
}

TEST_CASE("synchronisation and updates that take nearly for ever overflow nothing") {
    struct oracle {
        std::int64_t sync, update;
        picoseconds shard_time(ops::shard_work const& w, std::uint32_t) const { return picoseconds{w.pass == ops::pass::update ? update : 7}; }
        picoseconds transfer_time(byte_count, link_description const&) const { return picoseconds{1}; }
        picoseconds collective_time(collective_kind, byte_count, collective_group const&) const { return picoseconds{sync}; }
    };
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng{seed};
        auto const options = support::random_options(rng);
        constexpr auto huge = std::int64_t{1} << 60; // the most that is accepted
        auto const p = support::random_problem(rng, options, {.devices = 3, .operators = 6},
                                               oracle{bernoulli(rng, 0.5) ? huge : 5, bernoulli(rng, 0.5) ? huge : 5});
        auto evaluate = p.evaluator();
        auto bounds = evaluate.bounds(p.space());
        space::flat_strategy s;
        for (std::size_t op = 0; op < p.size(); ++op) s.push_back(p.space()[op][0]);
        auto const cost = p.simulator()(s);
        for (auto const op : bounds.order()) {
            CHECK(bounds.value() <= cost);
            CHECK(bounds.value() >= picoseconds::zero());
            bounds.fix(op, 0);
        }
        CHECK(bounds.value() <= cost);
        CHECK(bounds.value() >= picoseconds::zero());
    }
}
