#include <parsearch/sim/delta_simulator.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/task/assemble.hpp>

#include "support/cases.hpp"
#include "support/hand_network.hpp"
#include "support/naive_schedule.hpp"
#include "support/plain_topology.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using sim::discipline, sim::memory_policy, sim::movement, sim::synchronisation;
using support::problem_shape, support::simulation_difference;

namespace {

using strategy = std::vector<space::configuration>;
using changes = std::vector<change<space::configuration>>;
constexpr auto infinite = cost_traits<picoseconds>::infinity();

/// Forward 100, backward 200, update 30 picoseconds, whatever the shard.
auto const round_times = [](ops::shard_work const& w, std::uint32_t) {
    return picoseconds{w.pass == ops::pass::forward ? 100 : w.pass == ops::pass::backward ? 200 : 30};
};

/// a feeds b and c, which feed d: tensors of 400 bytes.
graph::operator_graph diamond() {
    graph::operator_graph g;
    auto const a = g.add("a", ops::linear{.out = 100, .bias = false}, g.input("x", {{1, 8}}));
    auto const b = g.add("b", ops::relu{}, a);
    auto const c = g.add("c", ops::relu{}, a);
    g.add("d", ops::add{}, b, c);
    return g;
}

using delta = sim::delta_simulator;

/// What `propose` must answer for a strategy that costs `exact`.
std::optional<picoseconds> within(picoseconds exact, picoseconds bound) { return exact > bound ? std::nullopt : std::optional(exact); }

/// A configuration of operator `op`; where `even`, mostly one that uses all devices, often samples over all of them.
template <class P> space::configuration draw_configuration(std::mt19937_64& rng, P const& p, std::size_t op, double free, bool even) {
    auto const devices = p.topology().size();
    if (even && bernoulli(rng, 0.6)) return space::data_parallel(p.graph(), devices)[op];
    auto c = support::random_configuration(rng, p.graph().operations[op], p.space()[op], devices, bernoulli(rng, free));
    auto const& dims = p.graph().operations[op].dims;
    if (even && !dims.empty() && bernoulli(rng, 0.4)) { // one dim over all devices
        auto const k = uniform_index(rng, dims.size());
        auto one = space::whole(p.graph().operations[op]);
        one.degree[k] = static_cast<std::int32_t>(devices);
        one.stride[k] = 1;
        if (ops::can_be_in(dims[k], one.degree[k])) return one;
    }
    if (even && bernoulli(rng, 0.9))
        for (int tries = 0; tries < 30 && c.shards() != static_cast<std::int64_t>(devices); ++tries)
            c = support::random_configuration(rng, p.graph().operations[op], p.space()[op], devices, false);
    return c;
}

/// A configuration for some operators: for one, several or all, now and then the one that it has.
template <class P> changes draw_changes(std::mt19937_64& rng, P const& p, strategy const& s, double free, bool even = false) {
    changes out;
    auto const add = [&](std::size_t op) {
        out.push_back({op, bernoulli(rng, 0.05)  ? s[op]
                           : bernoulli(rng, 0.2) ? support::read_as_another(rng, p, s, op)
                                                 : draw_configuration(rng, p, op, free, even)});
    };
    auto const kind = uniform_index(rng, 20);
    if (kind < 12) add(uniform_index(rng, s.size()));
    else
        for (std::size_t op = s.size(); op-- > 0;)
            if (bernoulli(rng, kind < 18 ? 0.2 : 1)) add(op);
    return out;
}
strategy with(strategy s, changes const& all) {
    for (auto const& c : all) s[c.op] = c.configuration;
    return s;
}

/// A bound at or near the exact cost, at the current cost, far below, or none.
picoseconds draw_bound(std::mt19937_64& rng, picoseconds exact, picoseconds current) {
    switch (uniform_index(rng, 8)) {
    case 0:
    case 1: return exact;
    case 2:
    case 3: return exact - picoseconds{1};
    case 4: return current;
    case 5: return exact / static_cast<std::int64_t>(1 + uniform_index(rng, 8));
    case 6: return exact == infinite ? exact : exact + picoseconds{1};
    default: return infinite;
    }
}

struct walk_options {
    int steps = 60;
    double free = 0.1;  ///< share of configurations outside the space
    int look_every = 5; ///< steps between comparisons of all that can be read
    bool even = false;  ///< most configurations use all devices
    sim::delta_options delta{};
};
struct walk_counts {
    int within = 0, above = 0, infeasible = 0, committed_unknown = 0, folded = 0, together = 0, rings = 0;
};

/// A walk of proposals through the strategies of `p`, each held to the full simulation.
template <class P> void walk(std::mt19937_64& rng, P const& p, walk_options const& o, walk_counts& counts) {
    auto simulator = sim::delta_simulator(p.work, o.delta);
    auto full = p.simulator();
    strategy s;
    for (std::size_t op = 0; op < p.size(); ++op) s.push_back(draw_configuration(rng, p, op, o.free, o.even));
    auto cost = full(s);
    REQUIRE(simulator.reset(s) == cost);
    for (int step = 0; step < o.steps; ++step) {
        INFO("step ", step);
        if (bernoulli(rng, 0.04)) { // another start
            s = bernoulli(rng, 0.5) ? with(s, draw_changes(rng, p, s, o.free, o.even)) : support::random_strategy(rng, p, o.even ? 0 : o.free);
            cost = full(s);
            REQUIRE(simulator.reset(s) == cost);
        }
        auto const drawn = draw_changes(rng, p, s, o.free, o.even);
        auto const next = with(s, drawn);
        auto const exact = full(next);
        auto const bound = draw_bound(rng, exact, cost);
        auto const answer = simulator.propose(drawn, bound);
        REQUIRE(answer == within(exact, bound));
        ++(exact == infinite ? counts.infeasible : answer ? counts.within : counts.above);
        if (bernoulli(rng, 0.4)) {
            simulator.commit();
            counts.committed_unknown += !answer || exact == infinite;
            s = next;
            cost = exact;
        } else {
            simulator.roll_back();
        }
        if (step % o.look_every == 0) {
            auto fresh = p.simulator();
            (void)fresh.simulate(s);
            REQUIRE(simulation_difference(simulator, fresh) == "");
            counts.folded += simulator.scheduled_tasks() < fresh.tasks().size();
            for (std::uint32_t e = 0; e < fresh.plan().carrier.size(); ++e) counts.together += fresh.plan().carrier[e] != e;
            for (auto const& e : fresh.plan().edges)
                counts.rings += static_cast<int>(std::ranges::count(e.collectives, false, &sim::collective_plan::awaited));
        }
    }
}

problem_shape random_shape(std::mt19937_64& rng, std::size_t operators) {
    return {.devices = static_cast<std::uint32_t>(1 + uniform_index(rng, 8)), .operators = operators, .kinds = bernoulli(rng, 0.4)};
}

/// Walks of as many seeds under random options, which `alter` changes.
template <class Alter> walk_counts walks(std::uint64_t seeds, std::size_t operators, walk_options const& o, Alter const& alter) {
    walk_counts counts;
    for (std::uint64_t seed = 0; seed < support::cases(seeds); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto options = support::random_options(rng);
        auto shape = random_shape(rng, operators);
        support::mixed_oracle oracle{bernoulli(rng, 0.5) ? 1 : 100};
        alter(rng, options, shape, oracle);
        INFO(name_of(options.discipline), " ", name_of(options.movement), " ", name_of(options.synchronisation), " overlap ", options.overlap,
             " training ", options.training, " devices ", shape.devices, " grain ", oracle.grain);
        auto const p = support::random_workload(rng, options, shape, oracle);
        walk(rng, p, o, counts);
    }
    return counts;
}
auto const as_drawn = [](auto&&...) {};

} // namespace

TEST_CASE("delta_simulator: a diamond by hand") {
    auto const p = make_problem(diamond(), support::mesh(2), round_times, {.simulation = {.movement = movement::pairwise}});
    auto const c = support::op_named(p.graph(), "c");
    auto const s = support::all_on_first(p.graph());
    auto simulator = p.evaluator();
    CHECK(simulator.reset(s).count() == 4 * 300 + 30);
    auto there = s[c];
    there.start = 1;
    CHECK(simulator.propose(c, there, infinite) == picoseconds{2530}); // see "timeline: a diamond on two devices" in simulator.cpp
    simulator.roll_back();
    CHECK(simulator.propose(c, there, picoseconds{2530}) == picoseconds{2530});
    simulator.roll_back();
    CHECK(simulator.propose(c, there, picoseconds{2529}) == std::nullopt);
    simulator.commit();
    CHECK(simulator.schedule().makespan == 2530);
    CHECK(simulator.tasks().size() == 4 + 4 + 1 + 4);
    CHECK(simulator.traffic()[static_cast<std::size_t>(sim::traffic_kind::gradient)] == 800);
    CHECK(simulator.propose(c, s[c], picoseconds{1230}) == picoseconds{1230});
    simulator.commit();
    CHECK(simulator.schedule().makespan == 1230);
    CHECK(simulator(s).count() == 1230);
}

TEST_CASE("delta_simulator: a collective and messages of one edge meet on a link") {
    // Shards on devices 0, 1, 2 exchange everything: a collective. Those on 3 and 4 send messages, ready at the same time on the same link,
    // but of larger numbers than the collective's task, which waits for its barrier.
    graph::operator_graph g;
    g.add("b", ops::relu{}, g.add("a", ops::linear{.out = 3, .bias = false}, g.input("x", {{6, 4}})));
    auto const p = make_problem(g, support::shared_medium(6), round_times, {.simulation = {.training = false}});
    auto s = support::all_on_first(p.graph());
    s[1].degree[0] = 2; // s2 o3
    s[1].degree[1] = 3;
    s[1].listed = {0, 1, 2, 3, 4, 5};
    s[2] = support::split(p.graph().operations[2], "s", {0, 1, 2, 3, 3, 4});
    auto simulator = p.evaluator();
    auto full = p.simulator();
    CHECK(simulator.reset(s) == full(s));
    REQUIRE(support::count_tasks(full.tasks(), sim::task_kind::collective) == 1);
    REQUIRE(support::count_tasks(full.tasks(), sim::task_kind::transfer) > 2);
    CHECK(simulation_difference(simulator, full) == "");
}

TEST_CASE("delta_simulator: walks on small networks under all options") {
    auto const counts = walks(500, 8, {}, as_drawn);
    CHECK(counts.within > support::cases(5000));
    CHECK(counts.above > support::cases(5000));
    CHECK(counts.together > support::cases(1000));
    CHECK(counts.committed_unknown > support::cases(2000));
}

TEST_CASE("delta_simulator: walks under every transfer model") {
    for (auto const model : {sim::transfer_model::store_and_forward, sim::transfer_model::cut_through, sim::transfer_model::fair_sharing}) {
        INFO(name_of(model));
        auto const counts = walks(60, 8, {.steps = 30}, [&](auto& rng, auto& options, auto&, auto&) {
            options.transfers = model;
            options.segment = static_cast<byte_count>(1 + uniform_index(rng, 2000));
        });
        CHECK(counts.within > support::cases(200));
        CHECK(counts.above > support::cases(200));
    }
}

TEST_CASE("delta_simulator: walks on networks of hundreds of tasks") {
    auto const counts = walks(60, 60, {.steps = 80, .free = 0.05, .look_every = 8},
                              [](auto& rng, auto&, auto& shape, auto&) { shape.devices = static_cast<std::uint32_t>(4 + uniform_index(rng, 5)); });
    CHECK(counts.within > support::cases(1000));
    CHECK(counts.above > support::cases(1000));
}

namespace {
/// Halves, thirds and sums of features, so that many a shard has no part in what moves along an edge.
graph::operator_graph random_slices(std::mt19937_64& rng) {
    graph::operator_graph g;
    std::vector<graph::tensor_ref> tensors{g.add("first", ops::linear{.out = 12, .bias = false}, g.input("x", {{4, 12}}))};
    for (int made = 0; made < 8; ++made) {
        auto const x = tensors[uniform_index(rng, tensors.size())], y = tensors[uniform_index(rng, tensors.size())];
        auto const features = g.shape(x).extents[1];
        auto const name = text("op", made);
        switch (uniform_index(rng, 4)) {
        case 0: tensors.push_back(g.add(name, ops::concat{.axis = 1}, x, y)); break;
        case 1: tensors.push_back(g.add(name, ops::linear{.out = 12, .bias = false}, x)); break;
        default: {
            auto const part = features % 3 == 0 ? features / 3 : features / 2;
            if (features < 4) break;
            auto const parts = g.add(name, ops::split{.axis = 1, .sizes = {part, features - part}}, x);
            tensors.push_back(parts[0]);
            tensors.push_back(parts[1]);
        }
        }
    }
    return g;
}
} // namespace

namespace {
/// Branches of different lengths that share their weights, so that some is synchronised while others have not begun.
graph::operator_graph random_branches(std::mt19937_64& rng) {
    graph::operator_graph g;
    for (int branch = 0; branch < 3; ++branch) {
        auto x = g.input(text("x", branch), {{4, 4}});
        auto const length = 1 + uniform_index(rng, branch == 0 ? 6 : 2);
        for (std::uint64_t i = 0; i < length; ++i) {
            auto const weights = bernoulli(rng, 0.6) ? text("shared", uniform_index(rng, 2)) : std::string{};
            x = g.add(text("op", branch, '.', i), ops::linear{.out = 4, .bias = false, .parameter = weights}, x);
        }
    }
    return g;
}
} // namespace

TEST_CASE("delta_simulator: walks on branches that share weights") {
    walk_counts counts;
    for (std::uint64_t seed = 0; seed < support::cases(300u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto options = support::random_options(rng);
        options.training = true;
        auto const topology = support::random_topology(rng, random_shape(rng, 0));
        auto const p = support::make_workload_problem(random_branches(rng), topology, support::mixed_oracle{bernoulli(rng, 0.5) ? 1 : 20}, options);
        walk(rng, p, {}, counts);
    }
    CHECK(counts.within > support::cases(3000));
    CHECK(counts.above > support::cases(3000));
}

TEST_CASE("delta_simulator: walks on networks of slices") {
    walk_counts counts;
    for (std::uint64_t seed = 0; seed < support::cases(200u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const options = support::random_options(rng);
        auto const topology = support::random_topology(rng, random_shape(rng, 0));
        auto const p = support::make_workload_problem(random_slices(rng), topology, support::mixed_oracle{}, options);
        walk(rng, p, {}, counts);
    }
    CHECK(counts.within > support::cases(2000));
    CHECK(counts.above > support::cases(2000));
}

TEST_CASE("delta_simulator: walks where most times are zero or tie") {
    auto const counts = walks(150, 10, {}, [](auto&, auto&, auto&, auto& oracle) { oracle.grain = 300; });
    CHECK(counts.within > support::cases(1500));
}

TEST_CASE("delta_simulator: walks where strategies treat nodes alike, folded and not, with a cache and without") {
    auto const counts = walks(320, 10, {.free = 0.01, .even = true}, [](auto& rng, auto& options, auto& shape, auto&) {
        shape.devices = bernoulli(rng, 0.6) ? 4 : 8;
        shape.nodes = 4;
        shape.kinds = bernoulli(rng, 0.2);
        shape.memory = bernoulli(rng, 0.3) ? 4000 : shape.memory;
        options.memory = static_cast<memory_policy>(uniform_index(rng, 3));
        options.memory_penalty = 2;
    });
    CHECK(counts.folded > support::cases(500));
    CHECK(counts.within > support::cases(3000));
    auto const four_nodes = [](auto&, auto&, auto& shape, auto&) { shape.devices = shape.nodes = 4; };
    CHECK(walks(50, 10, {.free = 0.01, .even = true, .delta = {.cache_bytes = 0}}, four_nodes).folded > support::cases(40) / 8);
    CHECK(walks(50, 10, {.free = 0.01, .even = true, .delta = {.fold = false}}, four_nodes).folded == 0);
}

TEST_CASE("delta_simulator: walks where inputs are passed on in rings") {
    auto const counts = walks(200, 10, {.free = 0.01, .even = true}, [](auto& rng, auto& options, auto& shape, auto&) {
        options.movement = bernoulli(rng, 0.5) ? sim::movement::collective : sim::movement::grouped;
        shape.devices = 4;
        shape.nodes = bernoulli(rng, 0.5) ? 1 : 4;
        shape.passed_on = 1;
    });
    CHECK(counts.rings > (support::sanitized ? 0 : support::cases(50)));
    CHECK(counts.within > support::cases(2000));
}

TEST_CASE("delta_simulator: walks with memory that does not suffice") {
    for (auto const policy : {memory_policy::penalise, memory_policy::reject}) {
        INFO(name_of(policy));
        auto const counts = walks(150, 8, {}, [&](auto& rng, auto& options, auto& shape, auto&) {
            options.memory = policy;
            options.memory_penalty = bernoulli(rng, 0.2) ? 0 : bernoulli(rng, 0.2) ? 1e13 : 3.5;
            shape.memory = static_cast<byte_count>(uniform_index(rng, 6000));
        });
        CHECK(counts.within > support::cases(500));
        CHECK(counts.above > support::cases(500));
        if (policy == memory_policy::reject) CHECK(counts.infeasible > support::cases(500));
    }
}

TEST_CASE("delta_simulator: walks with a cache that keeps nothing") {
    auto const counts = walks(100, 12, {.delta = {.cache_bytes = 0}}, as_drawn);
    CHECK(counts.within > support::cases(1000));
}

namespace {

/// Times up to the most that an oracle may answer, beside short ones.
struct vast_oracle {
    [[nodiscard]] picoseconds shard_time(ops::shard_work const& w, std::uint32_t) const {
        return time_of(static_cast<std::int64_t>(w.flops + w.bytes));
    }
    [[nodiscard]] picoseconds transfer_time(byte_count bytes, link_description const&) const { return time_of(bytes / 16); }
    [[nodiscard]] picoseconds collective_time(collective_kind, byte_count bytes, collective_group const&) const { return time_of(bytes / 32); }

  private:
    [[nodiscard]] static picoseconds time_of(std::int64_t n) {
        return picoseconds{n % 7 == 0 ? std::int64_t{1} << 60 : n % 5 == 0 ? std::int64_t{1} << 58 : n % 100};
    }
};

} // namespace

TEST_CASE("delta_simulator: walks where sums of times pass 64 bits") {
    walk_counts counts;
    int saturated = 0, small = 0;
    for (std::uint64_t seed = 0; seed < support::cases(150u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto options = support::random_options(rng);
        auto const shape = random_shape(rng, 6);
        auto const p = support::random_workload(rng, options, shape, vast_oracle{});
        walk(rng, p, {.look_every = 2}, counts);
        auto const cost = p.simulator()(support::random_strategy(rng, p));
        saturated += cost == infinite;
        small += cost.count() < std::int64_t{1} << 59;
    }
    CHECK(counts.infeasible > support::cases(200)); // whose cost stays at the largest value
    CHECK(counts.within > support::cases(500));
    CHECK(saturated >= support::cases(5));
    CHECK(small > 5);
}

TEST_CASE("delta_simulator: a makespan and a penalty that together pass 64 bits") {
    // 3.8 * 2^61 picoseconds of penalty, and tasks of 2^60.
    auto topology = support::mesh(2);
    topology.device[0].memory = topology.device[1].memory = 0;
    auto const vast = [](ops::shard_work const&, std::uint32_t) { return picoseconds{std::int64_t{1} << 60}; };
    graph::operator_graph g;
    g.add("fc", ops::linear{.out = 4, .bias = false}, g.input("x", {{4, 4}}));
    auto const p = make_problem(g, topology, vast, {.simulation = {.training = false, .memory_penalty = 0x3.8p61 / 192}});
    auto const s = support::all_on_first(p.graph());
    REQUIRE(p.simulator()(s) == infinite);
    auto simulator = p.evaluator();
    CHECK(simulator.reset(s) == infinite);
    CHECK(simulator.propose({}, infinite) == infinite);
    simulator.roll_back();
    CHECK(simulator.propose({}, infinite - picoseconds{1}) == std::nullopt);
}

TEST_CASE("delta_simulator: an operator graph of inputs alone costs nothing") {
    graph::operator_graph g;
    g.input("x", {{4, 4}});
    auto const p = make_problem(g, support::mesh(2), round_times);
    auto simulator = p.evaluator();
    CHECK(simulator.reset(support::all_on_first(p.graph())).count() == 0);
    for (auto const bound : {picoseconds{0}, picoseconds{5}, infinite}) {
        CHECK(simulator.propose({}, bound) == picoseconds{0});
        simulator.roll_back();
    }
    CHECK(simulator.propose({}, picoseconds{-1}) == std::nullopt);
    simulator.roll_back();
    CHECK(simulator.tasks().size() == 0);
}

TEST_CASE("delta_simulator: its schedules are the naive ones") {
    for (std::uint64_t seed = 0; seed < support::cases(100u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const options = support::random_options(rng);
        auto const p = support::random_workload(rng, options, random_shape(rng, 8), support::mixed_oracle{seed % 2 ? 1 : 100});
        auto simulator = sim::delta_simulator(p.work);
        auto s = support::random_strategy(rng, p, 0.2);
        simulator.reset(s);
        for (int step = 0; step < 5; ++step) {
            auto const drawn = draw_changes(rng, p, s, 0.2);
            s = with(s, drawn);
            REQUIRE(simulator.propose(drawn, infinite));
            simulator.commit();
        }
        REQUIRE(support::broken_rule(simulator.tasks(), simulator.schedule()) == "");
        auto const naive = support::naive_schedule(simulator.tasks(), options.discipline);
        REQUIRE(naive.ready == simulator.schedule().ready);
        REQUIRE(naive.start == simulator.schedule().start);
        REQUIRE(naive.makespan == simulator.schedule().makespan);
    }
}

TEST_CASE("delta_simulator: what is rolled back leaves no trace") {
    for (std::uint64_t seed = 0; seed < support::cases(80u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto options = support::random_options(rng);
        options.memory = memory_policy::penalise;
        auto shape = random_shape(rng, seed % 4 ? 10 : 40);
        shape.memory = 3000;
        auto const p = support::random_workload(rng, options, shape, support::mixed_oracle{seed % 2 ? 1 : 100});
        auto s = support::random_strategy(rng, p, 0.1);
        auto simulator = sim::delta_simulator(p.work);
        auto cost = simulator.reset(s);
        for (int round = 0; round < 6; ++round) {
            auto untouched = simulator; // never sees what is rolled back
            for (int step = 0; step < 6; ++step) {
                (void)simulator.propose(draw_changes(rng, p, s, 0.1), draw_bound(rng, cost, cost));
                simulator.roll_back();
            }
            REQUIRE(simulation_difference(simulator, untouched) == "");
            auto const drawn = draw_changes(rng, p, s, 0.1);
            auto const bound = draw_bound(rng, cost, cost);
            REQUIRE(simulator.propose(drawn, bound) == untouched.propose(drawn, bound));
            simulator.commit();
            untouched.commit();
            REQUIRE(simulation_difference(simulator, untouched) == "");
            s = with(s, drawn);
            cost = simulator.reset(s);
            REQUIRE(untouched.reset(s) == cost);
        }
    }
}

TEST_CASE("delta_simulator: what is read is the current strategy's between proposals") {
    std::mt19937_64 rng(5);
    auto const p = support::random_workload(rng, {}, {.devices = 4, .operators = 12});
    auto s = support::random_strategy(rng, p);
    auto simulator = sim::delta_simulator(p.work);
    simulator.reset(s);
    for (int step = 0; step < 200; ++step) {
        auto full = p.simulator();
        (void)full.simulate(s);
        // Read before and after what is dropped; a second time, which makes nothing anew.
        REQUIRE(simulation_difference(simulator, full) == "");
        REQUIRE(simulation_difference(simulator, full) == "");
        auto const drawn = draw_changes(rng, p, s, 0.1);
        (void)simulator.propose(drawn, step % 3 ? infinite : picoseconds{0});
        if (step % 2) {
            simulator.commit();
            s = with(s, drawn);
        } else {
            simulator.roll_back();
        }
    }
    CHECK(simulator.plan().operators.size() == p.size());
    CHECK(&simulator.input() == p.work.get());
}

TEST_CASE("delta_simulator: copies are independent") {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const p = support::random_workload(rng, support::random_options(rng), {.devices = 4});
        auto const a = support::random_strategy(rng, p), b = support::random_strategy(rng, p);
        auto const cost_a = p.simulator()(a), cost_b = p.simulator()(b);
        auto first = sim::delta_simulator(p.work);
        auto without = first; // without a strategy
        CHECK(support::refusal([&] { return without.propose({}, infinite); }) != "");
        REQUIRE(first.reset(a) == cost_a);
        auto second = std::make_unique<decltype(first)>(first);
        REQUIRE(second->propose({}, infinite) == cost_a);
        second->roll_back();
        REQUIRE((*second)(b) == cost_b); // leaves the current strategy
        REQUIRE(second->propose({}, infinite) == cost_a);
        second->roll_back();
        REQUIRE(second->reset(b) == cost_b);
        auto third = *second;
        REQUIRE(simulation_difference(third, *second) == "");
        second.reset();
        REQUIRE(first.propose({}, infinite) == cost_a);
        first.roll_back();
        auto fresh = p.simulator();
        (void)fresh(b);
        REQUIRE(simulation_difference(third, fresh) == "");
        (void)fresh(a);
        REQUIRE(simulation_difference(first, fresh) == "");
        // Assigned.
        third = first;
        REQUIRE(simulation_difference(third, fresh) == "");
        auto& self = third;
        third = self;
        REQUIRE(third.propose({}, infinite) == cost_a);
        third.roll_back();
        // Moved.
        auto moved = std::move(third);
        auto const drawn = draw_changes(rng, p, a, 0);
        REQUIRE(moved.propose(drawn, infinite) == p.simulator()(with(a, drawn)));
        moved.roll_back();
        REQUIRE(simulation_difference(moved, fresh) == "");
        first = std::move(moved);
        REQUIRE(first(b) == cost_b);
    }
}

TEST_CASE("delta_simulator: outlives its problem and what that was made of") {
    auto simulator = [] {
        auto const p = make_problem(diamond(), support::mesh(2), round_times);
        return p.evaluator();
    }();
    auto const s = support::all_on_first(simulator.input().graph);
    CHECK(simulator(s).count() == 1230);
    CHECK(simulator.propose({}, picoseconds{1229}) == std::nullopt);
}

TEST_CASE("delta_simulator: stays usable after an oracle that threw or answered a negative time") {
    constexpr std::int64_t enough = 1 << 30;
    std::size_t failures = 0;
    for (std::uint64_t seed = 0; seed < support::cases(100u); ++seed)
        for (bool const throws : {true, false}) {
            INFO("seed ", seed, " throws ", throws);
            std::mt19937_64 rng(seed);
            auto const left = std::make_shared<std::int64_t>(enough);
            auto const p = support::random_workload(rng, support::random_options(rng), {}, support::failing_oracle{left, throws});
            auto simulator = sim::delta_simulator(p.work, {.cache_bytes = seed % 3 ? std::size_t{1} << 20 : 0});
            auto const fails = [&](auto const& price) {
                *left = static_cast<std::int64_t>(uniform_index(rng, 20));
                bool failed = false;
                try {
                    price();
                } catch (invalid_input const& e) {
                    REQUIRE_FALSE(throws);
                    REQUIRE(std::string(e.what()).find("must be from 0 to") != std::string::npos);
                    failed = true;
                } catch (std::runtime_error const&) {
                    REQUIRE(throws);
                    failed = true;
                }
                *left = enough;
                failures += failed;
                return failed;
            };
            // The first reset too: without a strategy then.
            auto s = support::random_strategy(rng, p, 0.2);
            if (fails([&] { (void)simulator.reset(s); })) {
                REQUIRE(support::refusal([&] { return simulator.propose({}, infinite); }) != "");
                REQUIRE(simulator.reset(s) == p.simulator()(s));
            }
            for (int step = 0; step < 10; ++step) {
                INFO("step ", step);
                // A proposal, its commit or another start that may fail, which leaves the current strategy.
                auto const wanted = draw_changes(rng, p, s, 0.3);
                auto const there = with(s, wanted);
                if (bernoulli(rng, 0.7)) {
                    auto const exact = p.simulator()(there);
                    auto const bound = draw_bound(rng, exact, exact);
                    std::optional<picoseconds> answer;
                    bool const failed = fails([&] { answer = simulator.propose(wanted, bound); });
                    if (!failed) REQUIRE(answer == within(exact, bound));
                    if (!failed && bernoulli(rng, 0.3) && !fails([&] { simulator.commit(); })) s = there;
                    else if (!failed || bernoulli(rng, 0.5)) simulator.roll_back();
                } else if (!fails([&] { (void)simulator.reset(there); })) {
                    s = there;
                }
                // What follows is exact.
                auto const drawn = bernoulli(rng, 0.5) ? wanted : draw_changes(rng, p, s, 0.3);
                auto const next = with(s, drawn);
                auto const exact = p.simulator()(next);
                auto const bound = draw_bound(rng, exact, exact);
                REQUIRE(simulator.propose(drawn, bound) == within(exact, bound));
                if (bernoulli(rng, 0.5)) {
                    simulator.commit();
                    s = next;
                } else {
                    simulator.roll_back();
                }
                auto fresh = p.simulator();
                (void)fresh.simulate(s);
                REQUIRE(simulation_difference(simulator, fresh) == "");
            }
        }
    CHECK(failures > support::cases(200));
}

namespace {
/// Fails for messages while it is down; shared by all copies.
struct flaky_oracle {
    std::shared_ptr<bool> down;
    [[nodiscard]] picoseconds shard_time(ops::shard_work const& w, std::uint32_t) const { return picoseconds{static_cast<std::int64_t>(w.bytes)}; }
    [[nodiscard]] picoseconds transfer_time(byte_count bytes, link_description const&) const {
        if (*down) throw std::runtime_error("no such measurement");
        return picoseconds{bytes};
    }
};
} // namespace

TEST_CASE("delta_simulator: an oracle that throws while bounds are looked for leaves no trace in them") {
    std::size_t failures = 0;
    for (std::uint64_t seed = 0; seed < support::cases(120u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const down = std::make_shared<bool>(false);
        auto const p = support::random_workload(rng, {}, {.devices = 3}, flaky_oracle{down});
        auto const s = support::random_strategy(rng, p);
        auto simulator = sim::delta_simulator(p.work);
        auto const cost = simulator.reset(s);
        for (int step = 0; step < 20; ++step) {
            auto const op = uniform_index(rng, s.size());
            auto const c = support::random_configuration(rng, p.graph().operations[op], p.space()[op], 3, bernoulli(rng, 0.2));
            *down = true;
            try {
                (void)simulator.propose(op, c, cost);
            } catch (std::runtime_error const&) {
                ++failures;
            }
            *down = false;
            simulator.roll_back();
            REQUIRE(simulator.propose({}, cost) == cost);
            simulator.roll_back();
            auto const drawn = draw_changes(rng, p, s, 0.1);
            auto const exact = p.simulator()(with(s, drawn));
            REQUIRE(simulator.propose(drawn, exact) == exact);
            simulator.roll_back();
        }
    }
    CHECK(failures > support::cases(100)); // that many of the proposals needed the oracle
}

TEST_CASE("delta_simulator: refused proposals and strategies leave the current strategy") {
    auto const p = make_problem(diamond(), support::mesh(2), round_times);
    auto const& g = p.graph();
    auto simulator = p.evaluator();
    changes wanted{{1, space::whole(g.operations[1], 1)}};
    auto const refused = [&] { return support::refusal([&] { return simulator.propose(wanted, infinite); }); };
    CHECK(refused() == "delta_simulator: propose without a current strategy: reset must come first");
    CHECK(support::refusal([&] { return simulator.tasks(); }) == "delta_simulator: read without a current strategy: reset must come first");
    auto const s = support::all_on_first(g);
    auto const cost = simulator.reset(s);
    wanted.push_back({5, space::whole(g.operations[1])});
    CHECK(refused() == "change of operator number 5: the graph has 5 operators");
    wanted[1] = {2, space::whole(g.operations[2], -1)};
    CHECK(refused() == "operator 'b' (relu): configuration puts shard 0 on device -1: the topology has 2");
    wanted[1] = {4, space::whole(g.operations[4])};
    wanted[1].configuration.degree[1] = 101;
    CHECK(refused() == "operator 'd' (add): configuration splits dim 'c' of extent 100 by 101: must be from 1 to the extent");
    auto bad = s;
    bad[2].start = 2;
    CHECK(support::refusal([&] { return simulator.reset(bad); }) ==
          "operator 'b' (relu): configuration puts shard 0 on device 2: the topology has 2");
    bad.pop_back();
    CHECK(support::refusal([&] { return simulator(bad); }) == "a strategy of 4 configurations: the graph has 5 operators, must be one each");
    auto full = p.simulator();
    (void)full(s);
    CHECK(simulation_difference(simulator, full) == "");
    CHECK(simulator.propose({}, infinite) == cost);
    simulator.roll_back();
    // A refusal leaves no proposal open.
    REQUIRE(simulator.propose(std::span(wanted).first(1), infinite) != cost);
    simulator.roll_back();
    CHECK(refused() != "");
    CHECK(simulator.propose({}, infinite) == cost);
}

TEST_CASE("delta_simulator: reset drops what was proposed") {
    std::mt19937_64 rng(11);
    auto const p = support::random_workload(rng, {}, {});
    auto const s = support::random_strategy(rng, p);
    auto simulator = sim::delta_simulator(p.work);
    auto const cost = simulator.reset(s);
    for (int step = 0; step < 50; ++step) {
        (void)simulator.propose(draw_changes(rng, p, s, 0.1), step % 2 ? infinite : cost / 2);
        REQUIRE(simulator.reset(s) == cost);
        REQUIRE(simulator.propose({}, cost) == cost);
        simulator.roll_back();
    }
}

TEST_CASE("delta_simulator: more memory than a device has, under each policy") {
    // Everything on device 0, which needs 160 + 160 + 0 + 192 + 512 bytes; 2 forward, 2 backward, 1 update.
    graph::operator_graph g;
    g.add("relu", ops::relu{}, g.add("fc", ops::linear{.out = 8}, g.input("x", {{4, 4}})));
    auto topology = support::mesh(2);
    auto const ten = [](ops::shard_work const&, std::uint32_t) { return picoseconds{10}; };
    for (auto const policy : {memory_policy::ignore, memory_policy::penalise, memory_policy::reject})
        for (byte_count const missing : {0, 1, 7}) {
            INFO(name_of(policy), " ", missing);
            topology.device[0].memory = 1024 - missing;
            topology.device[1].memory = 0;
            auto const p = make_problem(g, topology, ten, {.simulation = {.memory = policy, .memory_penalty = 3, .memory_kept_free = 0}});
            auto simulator = p.evaluator();
            auto const s = support::all_on_first(p.graph());
            auto const cost = simulator.reset(s);
            if (missing == 0 || policy == memory_policy::ignore) CHECK(cost.count() == 50);
            else if (policy == memory_policy::penalise) CHECK(cost.count() == 50 + 3 * 2 * missing);
            else CHECK(cost == infinite);
            CHECK(simulator.schedule().makespan == 50);
            CHECK(simulator(s) == cost);
            CHECK(simulator.propose({}, infinite) == cost);
            simulator.roll_back();
            CHECK(simulator.propose({}, cost) == cost);
            simulator.roll_back();
            CHECK(simulator.propose({}, cost - picoseconds{1}) == std::nullopt);
            simulator.roll_back();
            CHECK(simulator.memory()[0].total() == 1024);
        }
}

TEST_CASE("delta_simulator: a proposal is ended before the next, and nothing is kept that was not proposed") {
    auto const p = make_problem(diamond(), support::mesh(2), round_times);
    auto const& g = p.graph();
    auto simulator = p.evaluator();
    changes const wanted{{1, space::whole(g.operations[1], 1)}};
    auto const propose = [&] { return support::refusal([&] { return simulator.propose(wanted, infinite); }); };
    auto const commit = [&] { return support::refusal([&] { return simulator.commit(), true; }); };
    simulator.reset(support::all_on_first(g));
    CHECK(commit() == "delta_simulator: commit without a proposal: propose must come first");
    REQUIRE(simulator.propose(wanted, infinite));
    CHECK(propose() == "delta_simulator: propose while a proposal is open: commit or roll_back must end it first");
    CHECK(support::refusal([&] { return simulator(support::all_on_first(g)); }) ==
          "delta_simulator: a strategy while a proposal is open: commit or roll_back must end it first");
    simulator.commit();
    CHECK(commit() == "delta_simulator: commit without a proposal: propose must come first");
    simulator.roll_back();                              // nothing to drop
    CHECK_FALSE(simulator.propose({}, picoseconds{0})); // above its bound, and open all the same
    CHECK(propose().starts_with("delta_simulator: propose while a proposal is open"));
    simulator.roll_back();
    CHECK(simulator.propose(wanted, infinite));
}
