#include <parsearch/sim/simulator.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/problem/problem.hpp>

#include "support/cases.hpp"
#include "support/hand_network.hpp"
#include "support/naive_schedule.hpp"
#include "support/plain_topology.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using sim::discipline, sim::movement, sim::task_kind;
using support::find_task, support::op_named;

namespace {

/// Forward 100, backward 200, update 30 picoseconds, whatever the shard.
auto const round_times = [](ops::shard_work const& w, std::uint32_t) {
    return picoseconds{w.pass == ops::pass::forward ? 100 : w.pass == ops::pass::backward ? 200 : 30};
};
/// The same, and a collective takes 1000.
struct with_collectives {
    [[nodiscard]] picoseconds shard_time(ops::shard_work const& w, std::uint32_t d) const { return round_times(w, d); }
    [[nodiscard]] picoseconds collective_time(collective_kind, byte_count, collective_group const&) const { return picoseconds{1000}; }
};

problem_options pairwise(bool training = true) { return {.simulation = {.movement = movement::pairwise, .training = training}}; }

/// When the one task of a kind and label starts.
template <class S> std::int64_t starts(S const& s, task_kind kind, std::uint32_t op, std::uint32_t number = 0) {
    return s.schedule().start[find_task(s.tasks(), kind, op, number)];
}

graph::operator_graph chain(std::int64_t batch = 4) {
    graph::operator_graph g;
    auto x = g.add("fc1", ops::linear{.out = 10, .bias = false}, g.input("x", {{batch, 10}}));
    x = g.add("relu", ops::relu{}, x);
    g.add("fc2", ops::linear{.out = 10, .bias = false}, x);
    return g;
}

/// a feeds b and c, which feed d: tensors of 400 bytes.
graph::operator_graph diamond() {
    graph::operator_graph g;
    auto const a = g.add("a", ops::linear{.out = 100, .bias = false}, g.input("x", {{1, 8}}));
    auto const b = g.add("b", ops::relu{}, a);
    auto const c = g.add("c", ops::relu{}, a);
    g.add("d", ops::add{}, b, c);
    return g;
}

} // namespace

TEST_CASE("timeline: a chain on one device is the sum of its tasks") {
    auto const p = make_problem(chain(), support::mesh(1), round_times);
    auto simulator = p.simulator();
    // Three forward, three backward (relu's too), two updates.
    CHECK(simulator(support::all_on_first(p.graph())).count() == 3 * 100 + 3 * 200 + 2 * 30);
    CHECK(simulator.tasks().size() == 8);
}

TEST_CASE("timeline: inference has forward tasks only") {
    auto const p = make_problem(chain(), support::mesh(1), round_times, pairwise(false));
    auto simulator = p.simulator();
    CHECK(simulator(support::all_on_first(p.graph())).count() == 300);
    CHECK(simulator.tasks().size() == 3);
}

TEST_CASE("timeline: no backward where no gradient flows") {
    graph::operator_graph g;
    auto const x = g.add("before", ops::relu{}, g.input("x", {{4, 10}}));
    g.add("fc", ops::linear{.out = 10}, x);
    auto const p = make_problem(g, support::mesh(1), round_times);
    CHECK(p.simulator()(support::all_on_first(p.graph())).count() == 2 * 100 + 200 + 30);
}

TEST_CASE("timeline: a diamond on two devices") {
    auto const p = make_problem(diamond(), support::mesh(2), round_times, pairwise());
    auto const& g = p.graph();
    auto const a = op_named(g, "a"), b = op_named(g, "b"), c = op_named(g, "c"), d = op_named(g, "d");
    auto s = support::all_on_first(g);
    s[c] = space::whole(g.operations[c], 1);
    auto simulator = p.simulator();
    auto const cost = simulator(s);
    CHECK(starts(simulator, task_kind::forward, a) == 0);
    CHECK(starts(simulator, task_kind::forward, b) == 100);
    CHECK(starts(simulator, task_kind::forward, c) == 500);  // 400 bytes on the link from 100
    CHECK(starts(simulator, task_kind::forward, d) == 1000); // 600, and 400 bytes back
    CHECK(starts(simulator, task_kind::backward, d) == 1100);
    CHECK(starts(simulator, task_kind::backward, b) == 1300);
    CHECK(starts(simulator, task_kind::backward, c) == 1700); // gradient of d sent from 1300
    CHECK(starts(simulator, task_kind::backward, a) == 2300); // c ends at 1900, 400 bytes back
    CHECK(starts(simulator, task_kind::update, a) == 2500);
    CHECK(cost.count() == 2530);
    // Two messages forward, two backward, 400 bytes each.
    auto const bytes = simulator.traffic();
    CHECK(bytes[static_cast<std::size_t>(sim::traffic_kind::activation)] == 800);
    CHECK(bytes[static_cast<std::size_t>(sim::traffic_kind::gradient)] == 800);
    CHECK(bytes[static_cast<std::size_t>(sim::traffic_kind::partial_sum)] == 0);
    CHECK(bytes[static_cast<std::size_t>(sim::traffic_kind::weight_gradient)] == 0);
}

TEST_CASE("timeline: messages over one link queue up, ties in the order of the tasks") {
    graph::operator_graph g;
    auto const a = g.add("a", ops::linear{.out = 100, .bias = false}, g.input("x", {{1, 8}}));
    g.add("b", ops::relu{}, a);
    g.add("c", ops::relu{}, a);
    for (auto const order : {discipline::fifo, discipline::in_order}) {
        auto options = pairwise(false);
        options.simulation.discipline = order;
        auto const p = make_problem(g, support::shared_medium(3), round_times, options);
        auto s = support::all_on_first(p.graph());
        s[2] = space::whole(p.graph().operations[2], 1);
        s[3] = space::whole(p.graph().operations[3], 2);
        auto simulator = p.simulator();
        CHECK(simulator(s).count() == 1000);
        CHECK(starts(simulator, task_kind::forward, 2) == 500); // message on the link [100, 500)
        CHECK(starts(simulator, task_kind::forward, 3) == 900); // message on the link [500, 900)
    }
}

TEST_CASE("timeline: a message streams through the links of its route") {
    // Two hops of latency 7: each link is held for the 400 bytes and the latency of the whole route.
    graph::operator_graph g;
    auto const a = g.add("a", ops::linear{.out = 100, .bias = false}, g.input("x", {{1, 8}}));
    g.add("b", ops::relu{}, a);
    auto const p = make_problem(g, support::line(3, 1, 7), round_times, pairwise(false));
    auto s = support::all_on_first(p.graph());
    s[2] = space::whole(p.graph().operations[2], 2);
    auto simulator = p.simulator();
    CHECK(simulator(s).count() == 100 + 414 + 100);
    CHECK(support::count_tasks(simulator.tasks(), task_kind::transfer) == 2);
}

TEST_CASE("timeline: a message by every transfer model") {
    // a on device 0 [0, 100), then 400 bytes over links of 1 and 2 bytes per ps with latencies 7 and 3, then b on device 1.
    graph::operator_graph g;
    g.add("b", ops::relu{}, g.add("a", ops::linear{.out = 100, .bias = false}, g.input("x", {{1, 8}})));
    support::plain_topology t(2);
    auto const slow = t.add_link(1, 7), fast = t.add_link(2, 3);
    t.routes[0][1] = t.routes[1][0] = {slow, fast};
    auto const arrival = [&](sim::transfer_model m, byte_count segment) {
        auto const p = make_problem(g, t, [](ops::shard_work const&, std::uint32_t) { return picoseconds{100}; },
                                    {.simulation = {.training = false, .transfers = m, .segment = segment}});
        auto s = support::all_on_first(p.graph());
        s[2].start = 1;
        auto simulator = p.simulator();
        auto const makespan = simulator.simulate(s).count();
        auto evaluator = p.evaluator();
        CHECK(evaluator.reset(s).count() == makespan);
        return makespan - 200;
    };
    CHECK(arrival(sim::transfer_model::streaming, 1) == 7 + 400 + 3);
    CHECK(arrival(sim::transfer_model::store_and_forward, 1) == 7 + 400 + 3 + 200);
    // Two segments of 200: the second leaves the first link at 2 * (7 + 200); its head has entered the other link by then.
    CHECK(arrival(sim::transfer_model::cut_through, 200) == 2 * (7 + 200));
    CHECK(arrival(sim::transfer_model::cut_through, 1 << 20) == 7 + 400);
    CHECK(arrival(sim::transfer_model::fair_sharing, 1) == 7 + 3 + 400);
}

TEST_CASE("timeline: zero durations") {
    auto const p = make_problem(
        diamond(), support::mesh(2), [](auto const&, std::uint32_t) { return picoseconds{0}; }, pairwise());
    auto s = support::all_on_first(p.graph());
    CHECK(p.simulator()(s).count() == 0);
    s[op_named(p.graph(), "c")].start = 1;
    CHECK(p.simulator()(s).count() == 4 * 400); // the messages alone: there and back, twice
}

TEST_CASE("timeline: gradients are summed while backward goes on") {
    auto const p = make_problem(chain(), support::mesh(2), with_collectives{});
    auto const& g = p.graph();
    auto s = support::all_on_first(g);
    for (std::size_t op = 1; op < g.size(); ++op) s[op] = support::split(g.operations[op], "s", {0, 1});
    auto simulator = p.simulator();
    auto const cost = simulator(s);
    auto const fc1 = op_named(g, "fc1"), fc2 = op_named(g, "fc2");
    // Forward to 300, backward of fc2 to 500: its all-reduce [500, 1500) beside the backward of relu and fc1 to 900. The all-reduce of
    // fc1 waits for the links, [1500, 2500).
    CHECK(starts(simulator, task_kind::backward, fc1, 0) == 700);
    CHECK(starts(simulator, task_kind::update, fc2, 0) == 1500);
    CHECK(starts(simulator, task_kind::update, fc2, 1) == 1500);
    CHECK(starts(simulator, task_kind::update, fc1, 1) == 2500);
    CHECK(cost.count() == 2530);
    // Two all-reduces of 400 bytes between two devices move 2 * 400 each.
    CHECK(simulator.traffic()[static_cast<std::size_t>(sim::traffic_kind::weight_gradient)] == 1600);
}

TEST_CASE("timeline: the gradient of shared weights is summed once, after its last use") {
    graph::operator_graph g;
    auto x = g.add("step1", ops::linear{.out = 10, .bias = false, .parameter = "w"}, g.input("x", {{4, 10}}));
    g.add("step2", ops::linear{.out = 10, .bias = false, .parameter = "w"}, x);
    auto const p = make_problem(g, support::mesh(2), with_collectives{});
    auto s = support::all_on_first(p.graph());
    for (std::size_t op = 1; op < s.size(); ++op) s[op] = support::split(p.graph().operations[op], "s", {0, 1});
    auto simulator = p.simulator();
    // Forward to 200, backward to 600, one all-reduce [600, 1600), one update on each device.
    CHECK(simulator(s).count() == 1630);
    CHECK(support::count_tasks(simulator.tasks(), task_kind::collective) == 2); // one per link of the ring
    CHECK(support::count_tasks(simulator.tasks(), task_kind::update) == 2);
    CHECK(simulator.traffic()[static_cast<std::size_t>(sim::traffic_kind::weight_gradient)] == 2 * 400);
    for (auto const& m : simulator.memory()) CHECK(m.weights == 400);
}

TEST_CASE("timeline: steps of a shared weight on different devices") {
    // Step 1 on device 0, step 2 on device 1: both hold the weights, so there is an all-reduce between them.
    graph::operator_graph g;
    auto x = g.add("step1", ops::linear{.out = 10, .bias = false, .parameter = "w"}, g.input("x", {{4, 10}}));
    g.add("step2", ops::linear{.out = 10, .bias = false, .parameter = "w"}, x);
    auto const p = make_problem(g, support::mesh(2), with_collectives{});
    auto s = support::all_on_first(p.graph());
    s[2].start = 1;
    auto simulator = p.simulator();
    // 100, message of 160 bytes, 100, 200, message of 160, 200, all-reduce 1000, update 30.
    CHECK(simulator(s).count() == 100 + 160 + 100 + 200 + 160 + 200 + 1000 + 30);
}

TEST_CASE("timeline: partial sums reach their reader as messages") {
    graph::operator_graph g;
    auto const a = g.add("a", ops::linear{.out = 100, .bias = false}, g.input("x", {{1, 8}}));
    g.add("b", ops::relu{}, a);
    auto const p = make_problem(g, support::mesh(2), round_times, pairwise());
    auto s = support::all_on_first(p.graph());
    s[1] = support::split(p.graph().operations[1], "k", {0, 1});
    auto simulator = p.simulator();
    // Both halves to 100, the partial sum of device 1 on the link [100, 500), b [500, 600) and back [600, 800), its gradient to
    // device 1 [800, 1200), backward there to 1400, update to 1430. The weights are split: no all-reduce.
    CHECK(simulator(s).count() == 1430);
    CHECK(simulator.traffic()[static_cast<std::size_t>(sim::traffic_kind::partial_sum)] == 400);
    CHECK(simulator.traffic()[static_cast<std::size_t>(sim::traffic_kind::gradient)] == 400);
    CHECK(support::count_tasks(simulator.tasks(), task_kind::collective) == 0);
}

TEST_CASE("timeline: partial sums among three devices are a reduction, their gradient a broadcast") {
    graph::operator_graph g;
    auto const a = g.add("a", ops::linear{.out = 100, .bias = false}, g.input("x", {{1, 9}}));
    g.add("b", ops::relu{}, a);
    auto const p = make_problem(g, support::mesh(3), with_collectives{});
    auto s = support::all_on_first(p.graph());
    s[1] = support::split(p.graph().operations[1], "k", {0, 1, 2});
    auto simulator = p.simulator();
    CHECK(simulator(s).count() == 100 + 1000 + 100 + 200 + 1000 + 200 + 30);
    CHECK(simulator.traffic()[static_cast<std::size_t>(sim::traffic_kind::partial_sum)] == 2 * 400);
    CHECK(simulator.traffic()[static_cast<std::size_t>(sim::traffic_kind::gradient)] == 2 * 400);
}

TEST_CASE("timeline: partial sums that no operator reads are summed all the same") {
    graph::operator_graph g;
    g.add("a", ops::linear{.out = 100, .bias = false}, g.input("x", {{1, 8}}));
    auto const p = make_problem(g, support::mesh(2), with_collectives{}, pairwise(false));
    auto s = support::all_on_first(p.graph());
    s[1] = support::split(p.graph().operations[1], "k", {1, 0});
    auto simulator = p.simulator();
    CHECK(simulator(s).count() == 1100);
    CHECK(simulator.traffic()[static_cast<std::size_t>(sim::traffic_kind::partial_sum)] == 800);
    s[1] = support::split(p.graph().operations[1], "k", {1, 1}); // on one device there is nothing to move
    CHECK(simulator(s).count() == 200);
}

TEST_CASE("timeline: backward of partial sums that no operator reads begins when they are summed") {
    graph::operator_graph g;
    g.add("a", ops::linear{.out = 100, .bias = false}, g.input("x", {{1, 8}}));
    auto const p = make_problem(g, support::mesh(2), with_collectives{}, pairwise());
    auto s = support::all_on_first(p.graph());
    s[1] = support::split(p.graph().operations[1], "k", {1, 0});
    // Both halves to 100, their sum to 1100, backward to 1300, update to 1330.
    CHECK(p.simulator()(s).count() == 1330);
    CHECK(p.evaluator()(s).count() == 1330);
}

TEST_CASE("timeline: an update waits for the gradients of its own weights") {
    // All is on one device: an update waits for its own backward alone.
    auto const p = make_problem(chain(), support::mesh(2), with_collectives{});
    auto s = support::all_on_first(p.graph());
    auto simulator = p.simulator();
    (void)simulator(s);
    auto const fc1 = op_named(p.graph(), "fc1"), fc2 = op_named(p.graph(), "fc2");
    // Backward of fc2 ends at 500 and makes its update and relu's backward ready: the smaller number first.
    CHECK(starts(simulator, task_kind::backward, op_named(p.graph(), "relu")) == 500);
    CHECK(starts(simulator, task_kind::update, fc2) == 700);
    CHECK(starts(simulator, task_kind::backward, fc1) == 730);
    CHECK(starts(simulator, task_kind::update, fc1) == 930);
}

namespace {

/// For each computation, those whose results it needs, through whatever moves them.
std::map<std::pair<task_kind, std::uint64_t>, std::set<std::pair<task_kind, std::uint64_t>>> needs(sim::task_graph const& t) {
    auto const name = [&](std::uint32_t i) { return std::pair{t.kind[i], std::uint64_t{t.label[i].op} << 32 | t.label[i].number}; };
    std::map<std::pair<task_kind, std::uint64_t>, std::set<std::pair<task_kind, std::uint64_t>>> out;
    std::function<void(std::uint32_t, std::set<std::pair<task_kind, std::uint64_t>>&)> collect = [&](std::uint32_t i, auto& into) {
        for (auto const p : t.before(i)) {
            if (t.kind[p] <= task_kind::update) into.insert(name(p));
            else collect(p, into);
        }
    };
    for (std::uint32_t i = 0; i < t.size(); ++i)
        if (t.kind[i] <= task_kind::update) collect(i, out[name(i)]);
    return out;
}

} // namespace

TEST_CASE("simulator: schedules of random problems keep the rules and are the naive ones") {
    for (auto const order : {discipline::fifo, discipline::in_order})
        for (auto const how : {movement::pairwise, movement::collective})
            for (std::uint64_t seed = 0; seed < 150; ++seed) {
                INFO("seed ", seed, ' ', name_of(order), ' ', name_of(how));
                std::mt19937_64 rng(seed);
                auto const size = static_cast<std::uint32_t>(1 + uniform_index(rng, 6));
                auto const p =
                    support::random_problem(rng, {.movement = how, .discipline = order, .memory = sim::memory_policy::ignore}, {.devices = size});
                auto simulator = p.simulator();
                auto const makespan = simulator(support::random_strategy(rng, p, 0.2));
                auto const& tasks = simulator.tasks();
                REQUIRE(makespan.count() == simulator.schedule().makespan);
                REQUIRE(support::broken_rule(tasks, simulator.schedule()) == "");
                auto const naive = support::naive_schedule(tasks, order);
                REQUIRE(naive.start == simulator.schedule().start);
                REQUIRE(naive.makespan == makespan.count());
                std::int64_t sum = 0;
                for (auto const d : tasks.duration) sum += d;
                if (size == 1) REQUIRE(makespan.count() == sum);
                REQUIRE(makespan.count() <= sum);
            }
}

TEST_CASE("simulator: collectives join the same computations as messages") {
    std::size_t collectives = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed), again(seed);
        auto const p = support::random_problem(rng, {.movement = movement::pairwise}, {.devices = 6});
        auto const q = support::random_problem(again, {.movement = movement::collective}, {.devices = 6});
        auto const s = support::random_strategy(rng, p, 0.2);
        auto pairs = p.simulator();
        auto groups = q.simulator();
        (void)pairs(s);
        (void)groups(s);
        REQUIRE(needs(pairs.tasks()) == needs(groups.tasks()));
        collectives += support::count_tasks(groups.tasks(), task_kind::barrier) > support::count_tasks(pairs.tasks(), task_kind::barrier);
    }
    CHECK(collectives > 20); // the property is not empty
}

TEST_CASE("simulator: the answer depends on the strategy alone") {
    for (std::uint64_t seed = 0; seed < 25; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const how = seed % 2 ? movement::pairwise : movement::collective;
        auto const p = support::random_problem(rng, {.movement = how}, {.devices = static_cast<std::uint32_t>(2 + uniform_index(rng, 5))});
        auto walked = p.simulator();
        auto s = support::random_strategy(rng, p);
        for (int step = 0; step < 300; ++step) {
            for (auto n = uniform_index(rng, 3); n-- > 0;) {
                auto const op = uniform_index(rng, s.size());
                s[op] = support::random_configuration(rng, p.graph().operations[op], p.space()[op], p.topology().size(), bernoulli(rng, 0.2));
            }
            auto const cost = walked(s);
            if (step % 10) continue;
            auto fresh = p.simulator();
            REQUIRE(fresh(s) == cost);
            REQUIRE(support::simulation_difference(fresh, walked) == "");
        }
    }
}

TEST_CASE("simulator: the task graph stays where strategy and parts do, whatever was planned or refused since") {
    int stayed = 0, made = 0;
    for (std::uint64_t seed = 0; seed < support::cases(100u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const p = support::random_problem(rng, support::random_options(rng), {.devices = 3});
        std::array const strategies{support::random_strategy(rng, p), support::random_strategy(rng, p)};
        std::array<std::vector<std::uint32_t>, 2> parts; // of one all are
        for (std::size_t op = 0; op < p.size(); ++op) parts[1].push_back(static_cast<std::uint32_t>(uniform_index(rng, 2)));
        auto walked = p.simulator();
        std::optional<std::pair<std::size_t, std::size_t>> last; // strategy and parts, where nothing was planned since
        for (int step = 0; step < 20; ++step) {
            if (bernoulli(rng, 0.2)) {
                auto bad = strategies[uniform_index(rng, 2)];
                bad.back().start = 3;
                REQUIRE(support::refusal([&] { (void)walked.assemble(bad); }) != "");
                last.reset();
            }
            if (bernoulli(rng, 0.2)) {
                (void)walked.plan(strategies[uniform_index(rng, 2)]);
                last.reset();
            }
            std::pair const now{uniform_index(rng, 2), uniform_index(rng, 2)};
            auto const before = walked.assembled();
            auto const& tasks = walked.assemble(strategies[now.first], parts[now.second]);
            if (last == now) REQUIRE(walked.assembled() == before);
            stayed += walked.assembled() == before;
            made += walked.assembled() != before;
            last = now;
            auto fresh = p.simulator();
            (void)fresh.assemble(strategies[now.first], parts[now.second]);
            REQUIRE(tasks.predecessors == fresh.tasks().predecessors);
            REQUIRE(tasks.duration == fresh.tasks().duration);
            REQUIRE(tasks.resource == fresh.tasks().resource);
            REQUIRE(walked.memory() == fresh.memory());
        }
    }
    CHECK(stayed > support::cases(200));
    CHECK(made > support::cases(600));
}

TEST_CASE("simulator: copies are independent") {
    std::mt19937_64 rng(7);
    auto const p = support::random_problem(rng, {}, {.devices = 4});
    auto const a = support::random_strategy(rng, p), b = support::random_strategy(rng, p);
    auto first = p.simulator();
    auto const cost_a = first(a);
    auto second = std::make_unique<decltype(first)>(first);
    auto const cost_b = (*second)(b);
    auto third = *second;
    auto fresh = p.simulator();
    CHECK(support::simulation_difference(first, [&] {
              auto f = p.simulator();
              (void)f(a);
              return f;
          }()) == "");
    CHECK(first(a) == cost_a);
    CHECK((*second)(a) == cost_a);
    second.reset();
    CHECK(third(b) == cost_b);
    CHECK(fresh(b) == cost_b);
    CHECK(support::simulation_difference(third, fresh) == "");
}

TEST_CASE("simulator: outlives its problem and what that was made of") {
    auto simulator = [] {
        auto const p = make_problem(chain(), support::mesh(2), round_times);
        return p.simulator();
    }();
    CHECK(simulator(support::all_on_first(simulator.input().graph)).count() == 960);
}

TEST_CASE("simulator: stays usable after an oracle that threw or answered a negative time") {
    constexpr std::int64_t enough = 1 << 30;
    std::size_t failures = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed)
        for (bool const throws : {true, false}) {
            INFO("seed ", seed);
            std::mt19937_64 rng(seed);
            auto const left = std::make_shared<std::int64_t>(enough);
            auto const p = make_problem(support::random_network(rng), support::mesh(4), support::failing_oracle{left, throws},
                                        {.simulation = {.movement = seed % 2 ? movement::pairwise : movement::collective}});
            auto simulator = p.simulator();
            for (int step = 0; step < 12; ++step) {
                auto const s = support::random_strategy(rng, p, 0.2);
                *left = static_cast<std::int64_t>(uniform_index(rng, 40));
                try {
                    (void)simulator(s);
                } catch (invalid_input const& e) {
                    REQUIRE_FALSE(throws);
                    REQUIRE(std::string(e.what()).find("must be from 0 to") != std::string::npos);
                    ++failures;
                } catch (std::runtime_error const&) {
                    REQUIRE(throws);
                    ++failures;
                }
                *left = enough;
                // The same strategy again, or another that has parts of it in common.
                auto next = s;
                if (bernoulli(rng, 0.5)) {
                    auto const op = uniform_index(rng, s.size());
                    next[op] = support::random_configuration(rng, p.graph().operations[op], p.space()[op], 4, false);
                }
                auto const cost = simulator(next);
                auto fresh = p.simulator();
                REQUIRE(fresh(next) == cost);
                REQUIRE(support::simulation_difference(fresh, simulator) == "");
            }
        }
    CHECK(failures > 200);
}

TEST_CASE("simulator: refused strategies leave it usable") {
    auto const p = make_problem(chain(), support::mesh(2), round_times, pairwise());
    auto const good = support::all_on_first(p.graph());
    auto simulator = p.simulator();
    auto const cost = simulator(good);
    auto bad = good;
    bad[1].degree[0] = 5;
    CHECK(support::refusal([&] { return simulator(bad); }) ==
          "operator 'fc1' (linear): configuration splits dim 's' of extent 4 by 5: must be from 1 to the extent");
    bad = good;
    bad[2].start = 2;
    CHECK(support::refusal([&] { return simulator(bad); }) == "operator 'relu' (relu): configuration puts shard 0 on device 2: the topology has 2");
    bad.pop_back();
    CHECK(support::refusal([&] { return simulator(bad); }) == "a strategy of 3 configurations: the graph has 4 operators, must be one each");
    CHECK(simulator(good) == cost);
}

TEST_CASE("simulator: what an oracle answers wrongly is named") {
    auto const p = make_problem(chain(), support::mesh(2),
                                [](ops::shard_work const& w, std::uint32_t) { return picoseconds{w.pass == ops::pass::backward ? -5 : 5}; });
    CHECK(support::refusal([&] { return p.simulator()(support::all_on_first(p.graph())); }) ==
          "operator 'fc1' (linear), backward on a device of kind 'gpu': the cost oracle answers -5 ps: must be from 0 to 1152921504606846976 (13 "
          "days)");
}

TEST_CASE("simulator: several edges between two operators, and an operator that reads a tensor twice") {
    graph::operator_graph g;
    auto const a = g.add("a", ops::linear{.out = 8, .bias = false}, g.input("x", {{1, 8}}));
    auto const halves = g.add("halves", ops::split{.axis = 1, .sizes = {4, 4}}, a);
    g.add("joined", ops::concat{.axis = 1}, halves[1], halves[0]);
    auto const twice = g.add("twice", ops::multiply{}, a, a);
    (void)twice;
    auto const p = make_problem(g, support::mesh(2), round_times, pairwise(false));
    auto s = support::all_on_first(p.graph());
    s[op_named(p.graph(), "joined")].start = 1;
    s[op_named(p.graph(), "twice")].start = 1;
    auto simulator = p.simulator();
    (void)simulator(s);
    // joined: two messages of 16 bytes; twice: one of 32, which serves both inputs.
    CHECK(support::count_tasks(simulator.tasks(), task_kind::transfer) == 3);
    CHECK(simulator.traffic()[static_cast<std::size_t>(sim::traffic_kind::activation)] == 64);
}
