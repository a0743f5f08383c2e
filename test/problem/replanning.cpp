#include <parsearch/problem/replanning.hpp>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/kernel/starts.hpp>
#include <parsearch/search/mcmc.hpp>

#include "support/cases.hpp"
#include "support/naive_iteration.hpp"
#include "support/plain_topology.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

using namespace parsearch;

static_assert(SearchProblem<replanning, space::flat_strategy>);
static_assert(IncrementalEvaluator<replanning::evaluator_type, space::flat_strategy, space::configuration>);

namespace {

using wanted = constraints_of<graph::operator_graph, support::plain_topology>;

/// Of each weight tensor the elements that are on each device, by its handle.
using holdings = std::map<std::string, std::map<std::uint32_t, std::set<std::size_t>>>;
template <class P> holdings holdings_of(P const& p, space::flat_strategy const& s) {
    holdings out;
    for (std::size_t op = 0; op < p.size(); ++op) {
        auto const& operation = p.graph().operations[op];
        std::vector<std::int32_t> const degrees(s[op].degrees().begin(), s[op].degrees().end());
        for (std::size_t w = 0; w < operation.weights.size(); ++w) {
            auto const& name = operation.weights[w].parameter;
            auto& tensor = out[name.empty() ? text("of ", p.handle(op), ", ", w) : "named " + name];
            for (std::int64_t n = 0; n < s[op].shards(); ++n) {
                auto const mine = support::detail::elements(operation, operation.weights[w], degrees, n);
                auto& on = tensor[p.device(static_cast<std::size_t>(s[op].device(n)))];
                for (std::size_t e = 0; e < mine.size(); ++e)
                    if (mine[e]) on.insert(e);
            }
        }
    }
    return out;
}

/// Elements that are sent, and that no device has any more.
std::pair<std::int64_t, std::int64_t> missing(holdings const& before, holdings const& now, std::set<std::uint32_t> const& alive) {
    std::int64_t sent = 0, lost = 0;
    for (auto const& [name, devices] : now) {
        std::set<std::size_t> known, none;
        if (auto const at = before.find(name); at != before.end())
            for (auto const& [d, elements] : at->second)
                if (alive.contains(d)) known.insert(elements.begin(), elements.end());
        for (auto const& [d, elements] : devices)
            for (auto const e : elements) {
                bool const has = before.contains(name) && before.at(name).contains(d) && before.at(name).at(d).contains(e);
                if (!known.contains(e)) none.insert(e);
                else sent += !has;
            }
        lost += static_cast<std::int64_t>(none.size());
    }
    return {sent, lost};
}
} // namespace

TEST_CASE("state_moves: what devices lack, element by element") {
    std::int64_t moved = 0, lost = 0;
    for (std::uint64_t seed = 1; seed <= support::cases(300u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const topology = support::random_topology(rng, {.devices = 5});
        bool const inference = bernoulli(rng, 0.3); // caches move, too
        auto network = graph::read_graph(support::random_network(rng, 5)).graph;
        if (inference) network = support::with_caches(rng, std::move(network));
        problem_options const options{
            .simulation = {.training = !inference, .optimizer = bernoulli(rng, 0.5) ? sim::optimizer::adam : sim::optimizer::sgd}};
        auto const from = make_problem(network, topology, support::mixed_oracle{}, options);
        constraints_of<graph::dense_graph, support::plain_topology> gone;
        for (std::uint32_t d = 1; d < 5; ++d)
            if (bernoulli(rng, 0.4)) gone.leave_out(d);
        auto const to = make_problem(network, topology, support::mixed_oracle{}, options, gone);
        auto const before = support::random_strategy(rng, from, 0.5), now = support::random_strategy(rng, to, 0.5);
        std::set<std::uint32_t> alive;
        for (std::uint32_t d = 0; d < to.topology().size(); ++d) alive.insert(to.device(d));

        state_moves moves(from, before, to);
        auto const got = moves(now);
        auto const [sent, none] = missing(holdings_of(from, before), holdings_of(to, now), alive);
        bool const states = !inference && options.simulation.optimizer == sim::optimizer::adam;
        auto const element = 4 * (1 + (states ? 2 : 0)); // all weights are f32
        REQUIRE(got.bytes == sent * element);
        REQUIRE(got.lost == none * element);
        REQUIRE((got.time.count() == 0 || got.bytes > 0));
        REQUIRE(state_moves(from, before, from)(before) == moved_states{});
        moved += got.bytes > 0;
        lost += got.lost > 0;
    }
    CHECK(moved > 50);
    CHECK(lost > 10);
}

TEST_CASE("state_moves: who sends, and how long it takes") {
    graph::operator_graph g;
    (void)g.add("fc", ops::linear{.out = 8, .bias = false}, g.input("in", {{4, 16}}));
    auto topology = support::mesh(4, 1.0, 10);
    topology.node = {0, 0, 1, 1};
    auto const p = make_problem(g, topology, support::mixed_oracle{});
    auto const on = [&](std::int32_t degree, std::vector<std::int32_t> which) {
        auto s = space::one_device(p.graph());
        s[1].degree[1] = degree; // outputs
        s[1].listed = std::move(which);
        return s;
    };
    auto const samples = [&](std::vector<std::int32_t> which) {
        auto s = on(1, std::move(which));
        s[1].degree[0] = static_cast<std::int32_t>(s[1].listed.size());
        return s;
    };
    // 8 x 16 elements of 4 bytes on device 0, wanted on all: three messages of 512 bytes, each on a link of its own.
    CHECK(state_moves(p, samples({0}), p)(samples({0, 1, 2, 3})) == moved_states{.bytes = 1536, .time = picoseconds(522)});
    // Both halves are on one device of each node: the others have them from their own.
    CHECK(state_moves(p, samples({1, 2}), p)(samples({0, 1, 2, 3})) == moved_states{.bytes = 1024, .time = picoseconds(522)});
    // A half of each device comes from the other.
    CHECK(state_moves(p, on(2, {0, 1}), p)(on(2, {1, 0})) == moved_states{.bytes = 512, .time = picoseconds(266)});
    CHECK(state_moves(p, on(2, {0, 1}), p)(samples({0, 1})) == moved_states{.bytes = 512, .time = picoseconds(266)});
    // Without device 0 its half is lost.
    auto const rest = make_problem(g, topology, support::mixed_oracle{}, {}, wanted{}.leave_out(0));
    auto const alone = samples({2});
    CHECK(state_moves(p, on(2, {0, 1}), rest)(alone) == moved_states{.bytes = 256, .lost = 256, .time = picoseconds(266)});
    // An operator that is new has no state yet.
    graph::operator_graph other;
    (void)other.add("fc", ops::linear{.out = 4, .bias = false}, other.input("in", {{4, 16}}));
    auto const smaller = make_problem(other, topology, support::mixed_oracle{});
    CHECK(state_moves(p, samples({0}), smaller)(samples({0})) == moved_states{.lost = 256});
}

TEST_CASE("replanning: a proposal costs what the whole strategy costs") {
    for (std::uint64_t seed = 1; seed <= support::cases(40u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const topology = support::random_topology(rng, {.devices = 4});
        auto const network = support::random_network(rng, 6);
        auto const from = make_problem(network, topology, support::mixed_oracle{});
        auto const to = make_problem(network, topology, support::mixed_oracle{}, {}, wanted{}.leave_out(3));
        replanning const p(from, support::random_strategy(rng, from, 0.5), to, 1 + uniform_index(rng, 20));
        auto incremental = p.evaluator(), whole = p.evaluator();
        auto simulator = to.simulator();
        auto now = support::random_strategy(rng, to, 0.5);
        auto cost = incremental.reset(now);
        for (int step = 0; step < 40; ++step) {
            REQUIRE(cost == whole(now));
            REQUIRE(cost >= simulator(now));
            std::vector<change<space::configuration>> changes;
            auto next = now;
            for (auto n = 1 + uniform_index(rng, 3); n-- > 0;) {
                auto const op = uniform_index(rng, to.size());
                changes.push_back({op, support::random_configuration(rng, to.graph().operations[op], to.space()[op], 3, bernoulli(rng, 0.5))});
                next[op] = changes.back().configuration;
            }
            auto const expected = whole(next);
            auto const bound = bernoulli(rng, 0.3) ? expected + picoseconds(static_cast<std::int64_t>(uniform_index(rng, 3)) - 1)
                                                   : cost_traits<picoseconds>::infinity();
            auto const got = incremental.propose(changes, bound);
            REQUIRE(got == (expected > bound ? std::nullopt : std::optional(expected)));
            if (got && bernoulli(rng, 0.6)) {
                incremental.commit();
                now = next;
                cost = *got;
            } else {
                incremental.roll_back();
            }
        }
    }
}

TEST_CASE("replanning: few iterations keep what is there, many pay for what is better") {
    graph::operator_graph g;
    (void)g.add("fc", ops::linear{.out = 64, .bias = false}, g.input("in", {{64, 64}}));
    auto const topology = support::mesh(4, 0.001);
    auto const p = make_problem(g, topology, support::mixed_oracle{}, {.simulation = {.training = false}});
    auto const plan = space::one_device(p.graph());
    std::mt19937_64 rng{1};
    auto const best = search::greedy(p, plan, rng).best;
    CHECK(best[1].shards() > 1);
    replanning const soon(p, plan, p, 1), long_after(p, plan, p, std::uint64_t{1} << 40);
    CHECK(soon.start() == plan);
    auto const kept = search::greedy(soon, soon.start(), rng);
    CHECK(kept.best[1] == plan[1]);
    CHECK(kept.cost == p.evaluator()(plan));
    auto const changed = search::greedy(long_after, long_after.start(), rng);
    CHECK(changed.best[1].shards() == best[1].shards());
    CHECK(changed.cost == p.evaluator()(changed.best) + picoseconds(1));
    CHECK(long_after.change_to(changed.best).bytes > 0);
    CHECK(search::mcmc(long_after, changed.best, rng, {.evaluations = 100}).cost <= changed.cost);
}

TEST_CASE("replanning: what is wrong is refused") {
    graph::operator_graph g;
    (void)g.add("fc", ops::linear{.out = 8}, g.input("in", {{4, 16}}));
    auto const topology = support::mesh(2);
    auto const p = make_problem(g, topology, support::mixed_oracle{});
    auto const plan = space::one_device(p.graph());
    CHECK(support::refusal([&] { return replanning(p, plan, p, 0).space().size(); }) ==
          "replanning: the change is to be paid for by 0 iterations: must be at least 1");
    auto bad = plan;
    bad[1].start = 2;
    CHECK(support::refusal([&] { return state_moves(p, bad, p).classes(); }) ==
          "operator 'fc' (linear): configuration puts shard 0 on device 2: the topology has 2");
    replanning const r(p, plan, p, 5);
    // A price is a start where there is none; a start drops what is proposed.
    auto other = plan;
    other[1].start = 1;
    auto priced = r.evaluator();
    CHECK(priced(plan) == priced.reset(plan));
    auto fresh = r.evaluator();
    (void)fresh(plan);
    change<space::configuration> const away{1, other[1]};
    auto const moved = fresh.propose({&away, 1}, cost_traits<picoseconds>::infinity());
    CHECK(moved == priced(other));
    CHECK(fresh.reset(other) == *moved);
    CHECK(fresh.propose({&away, 1}, cost_traits<picoseconds>::infinity()) == *moved);
    fresh.commit();
    CHECK(fresh(plan) == priced(plan));
    auto e = r.evaluator();
    auto const cost = e.reset(plan);
    change<space::configuration> const wrong{1, bad[1]}, nobody{7, bad[1]};
    auto const infinite = cost_traits<picoseconds>::infinity();
    CHECK(support::refusal([&] { return e.propose({&wrong, 1}, infinite); }).find("puts shard 0 on device 2") != std::string::npos);
    CHECK(support::refusal([&] { return e.propose({&nobody, 1}, infinite); }) == "change of operator number 7: the graph has 2 operators");
    change<space::configuration> const same{1, plan[1]};
    CHECK(e.propose({&same, 1}, infinite) == cost);
}
