#include <parsearch/sim/task/planner.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "support/hand_network.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using sim::movement, sim::synchronisation;

namespace {

using times = std::vector<std::int64_t>;
using list = std::vector<std::uint32_t>;

/// Forward 100, backward 200, update 30; ten times that on the odd devices, which are of another kind.
struct two_speeds {
    [[nodiscard]] picoseconds shard_time(ops::shard_work const& w, std::uint32_t d) const {
        return picoseconds{(w.pass == ops::pass::forward ? 100 : w.pass == ops::pass::backward ? 200 : 30) * (d % 2 ? 10 : 1)};
    }
    [[nodiscard]] picoseconds collective_time(collective_kind, byte_count, collective_group const&) const { return picoseconds{1000}; }
};

/// x[4, 8] -> before: relu -> fc: 4 features, no bias -> flat: a view.
auto small(std::uint32_t devices, sim::simulation_options const& options = {}) {
    graph::operator_graph g;
    auto const x = g.add("before", ops::relu{}, g.input("x", {{4, 8}}));
    g.add("flat", ops::flatten{}, g.add("fc", ops::linear{.out = 4, .bias = false}, x));
    auto t = support::mesh(devices);
    for (std::uint32_t d = 1; d < devices; d += 2) t.device[d].kind = "other";
    return support::make_workload_problem(g, t, two_speeds{}, options);
}

template <class P> sim::operator_plan operator_plan_of(P const& p, std::uint32_t op, space::configuration const& c) {
    sim::planner planner(p.work);
    sim::operator_plan out;
    planner.plan_operator(op, c, out);
    return out;
}

bool same(std::vector<sim::hop> const& a, std::vector<sim::hop> const& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](auto const& x, auto const& y) { return x.link == y.link && x.duration == y.duration; });
}
bool same(std::vector<sim::collective_plan> const& a, std::vector<sim::collective_plan> const& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](auto const& x, auto const& y) {
        return x.producers == y.producers && x.consumers == y.consumers && same(x.forward, y.forward) && same(x.backward, y.backward) &&
               x.bytes == y.bytes && x.backward_bytes == y.backward_bytes && x.awaited == y.awaited;
    });
}
bool same(sim::operator_plan const& a, sim::operator_plan const& b) {
    return a.devices == b.devices && a.forward == b.forward && a.backward == b.backward && same(a.partial_outputs, b.partial_outputs) &&
           a.partial_bytes == b.partial_bytes;
}
bool same(sim::edge_plan const& a, sim::edge_plan const& b) {
    return !a.table == !b.table && same(a.forward, b.forward) && same(a.backward, b.backward) && a.first_forward == b.first_forward &&
           a.first_backward == b.first_backward && a.collective_of == b.collective_of && same(a.collectives, b.collectives) && a.bytes == b.bytes;
}
bool same(sim::class_plan const& a, sim::class_plan const& b) {
    return a.members == b.members && a.update == b.update && a.sync.groups.size() == b.sync.groups.size() &&
           a.sync.held.size() == b.sync.held.size() && a.servers.size() == b.servers.size() &&
           std::equal(a.all_reduce.begin(), a.all_reduce.end(), b.all_reduce.begin(), b.all_reduce.end(),
                      [](auto const& x, auto const& y) { return same(x, y); });
}

/// The whole plan of a strategy.
template <class Planner, class S> sim::iteration_plan plan_all(Planner& planner, S const& s) {
    auto const& w = planner.input();
    sim::iteration_plan out;
    out.operators.resize(s.size());
    for (std::uint32_t op = 0; op < s.size(); ++op) planner.plan_operator(op, s[op], out.operators[op]);
    out.carrier = planner.carriers([&](std::uint32_t op) -> space::configuration const& { return s[op]; },
                                   [&](std::uint32_t op) -> sim::operator_plan const& { return out.operators[op]; });
    for (std::uint32_t e = 0; e < w.graph.edges.size(); ++e) {
        auto const from = w.graph.edges[e].producer, to = w.graph.edges[e].consumer;
        out.edges.emplace_back();
        if (out.carrier[e] == e) out.edges.back() = planner.plan_edge(e, s[from], out.operators[from], s[to], out.operators[to]);
    }
    for (auto const& members : w.classes) {
        auto& c = out.classes.emplace_back();
        c.members = members;
        planner.plan_class([&](std::uint32_t op) -> space::configuration const& { return s[op]; },
                           [&](std::uint32_t op) -> sim::operator_plan const& { return out.operators[op]; }, c);
    }
    return out;
}
bool same(sim::iteration_plan const& a, sim::iteration_plan const& b) {
    auto const each = [](auto const& x, auto const& y) { return same(x, y); };
    return std::equal(a.operators.begin(), a.operators.end(), b.operators.begin(), b.operators.end(), each) &&
           std::equal(a.edges.begin(), a.edges.end(), b.edges.begin(), b.edges.end(), each) && a.carrier == b.carrier &&
           std::equal(a.classes.begin(), a.classes.end(), b.classes.begin(), b.classes.end(), each);
}

} // namespace

TEST_CASE("planner: an operator's devices, and its times by kind of device") {
    auto const p = small(4);
    auto const& op = p.graph().operations;
    auto const fc = operator_plan_of(p, 2, support::split(op[2], "s", {3, 0}));
    CHECK(fc.devices == list{3, 0});
    CHECK(fc.forward == times{100, 1000});
    CHECK(fc.backward == times{200, 2000});
    CHECK(fc.partial_outputs.empty());
    CHECK(operator_plan_of(p, 1, space::whole(op[1])).backward == times{0, 0}); // no gradient flows through it
    CHECK(operator_plan_of(p, 3, space::whole(op[3])).forward == times{0, 0});  // a view
    auto const source = operator_plan_of(p, 0, space::whole(op[0]));
    CHECK(source.forward == times{0, 0});
    CHECK(source.devices == list{0});
    CHECK(operator_plan_of(small(4, {.training = false}), 2, space::whole(op[2])).backward == times{0, 0});
}

TEST_CASE("planner: sums that nobody reads are all-reduced among the devices that hold them") {
    graph::operator_graph g;
    g.add("fc", ops::linear{.out = 4, .bias = false}, g.input("x", {{4, 8}}));
    auto const p = support::make_workload_problem(g, support::mesh(3), two_speeds{});
    auto const& op = p.graph().operations[1];
    auto const split = operator_plan_of(p, 1, support::split(op, "k", {0, 2}));
    REQUIRE(split.partial_outputs.size() == 1);
    CHECK(split.partial_outputs[0].producers == list{0, 1});
    CHECK(split.partial_outputs[0].bytes == 64);
    CHECK(split.partial_bytes == 128);
    CHECK(split.partial_outputs[0].forward.size() == 2);
    CHECK(operator_plan_of(p, 1, support::split(op, "k", {1, 1})).partial_outputs.empty()); // on one device
}

TEST_CASE("planner: nothing moves from graph inputs, nor what another edge brings") {
    graph::operator_graph g;
    auto const a = g.add("a", ops::linear{.out = 4, .bias = false}, g.input("x", {{4, 8}}));
    auto const squares = g.add("squares", ops::multiply{}, a, a); // edges 1 and 2
    g.add("sum", ops::add{}, squares, a);                         // 3 and 4
    g.add("reads", ops::relu{}, a);                               // 5
    auto const p = support::make_workload_problem(g, support::mesh(3), two_speeds{}, {.movement = movement::pairwise});
    auto const& op = p.graph().operations;
    sim::planner planner(p.work);
    auto s = support::all_on_first(p.graph());
    for (auto const reader : {2, 3, 4}) s[static_cast<std::size_t>(reader)].start = 1;
    auto const plan = plan_all(planner, s);
    CHECK(plan.carrier == list{0, 1, 1, 3, 1, 1});
    CHECK_FALSE(plan.edges[0].table);
    REQUIRE(plan.edges[1].table);
    CHECK(plan.edges[1].forward.size() == 1);
    CHECK(plan.edges[1].forward[0].duration == 64);
    CHECK(plan.edges[1].backward.size() == 1);
    for (auto const e : {2, 4, 5}) CHECK_FALSE(plan.edges[static_cast<std::size_t>(e)].table);
    // Elsewhere, other parts, or in another order of devices, is not alike.
    s[4].start = 2;
    CHECK(plan_all(planner, s).carrier == list{0, 1, 1, 3, 1, 5});
    s[4] = support::split(op[4], "s", {1, 2});
    CHECK(plan_all(planner, s).carrier == list{0, 1, 1, 3, 1, 5});
    s[3] = support::split(op[3], "s", {1, 2});
    CHECK(plan_all(planner, s).carrier == list{0, 1, 1, 3, 4, 4});
    s[3] = support::split(op[3], "s", {2, 1});
    CHECK(plan_all(planner, s).carrier == list{0, 1, 1, 3, 4, 5});
    // Operators of different parts share nothing.
    s = support::all_on_first(p.graph());
    auto const carriers = [&](list const& parts) {
        auto const all = plan_all(planner, s);
        return planner.carriers([&](std::uint32_t o) -> space::configuration const& { return s[o]; },
                                [&](std::uint32_t o) -> sim::operator_plan const& { return all.operators[o]; }, parts);
    };
    CHECK(carriers({0, 0, 0, 0, 0}) == list{0, 1, 1, 3, 1, 1});
    CHECK(carriers({7, 0, 1, 2, 1}) == list{0, 1, 1, 3, 4, 1});
}

TEST_CASE("planner: synchronisation and updates of a class") {
    auto const plan = [](synchronisation how, bool training) {
        auto const p = small(3, {.training = training, .synchronisation = how});
        sim::planner planner(p.work);
        auto s = support::all_on_first(p.graph());
        s[2] = support::split(p.graph().operations[2], "s", {0, 1});
        return plan_all(planner, s).classes.at(0);
    };
    auto const reduced = plan(synchronisation::all_reduce, true);
    CHECK(reduced.members == list{2});
    REQUIRE(reduced.all_reduce.size() == 1);
    CHECK(reduced.all_reduce[0].size() == 2);
    CHECK(reduced.update == times{30, 300});
    auto const served = plan(synchronisation::parameter_server, true);
    CHECK(served.all_reduce.empty());
    REQUIRE(served.servers.size() == 1);
    CHECK(served.servers[0].server == 0);
    CHECK(served.update == times{30, sim::class_plan::no_update});
    auto const inference = plan(synchronisation::all_reduce, false);
    CHECK(inference.sync.held.size() == 2); // memory wants to know
    CHECK(inference.all_reduce.empty());
    CHECK(inference.update.empty());
}

TEST_CASE("planner: what it planned before does not matter, and the simulator's plan is this") {
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const p = support::random_workload(rng, support::random_options(rng), {.kinds = bernoulli(rng, 0.5)});
        sim::planner planner(p.work);
        for (int step = 0; step < 8; ++step) {
            auto const s = support::reading_together(rng, p, support::random_strategy(rng, p, 0.2), 0.3);
            auto const plan = plan_all(planner, s);
            sim::planner fresh(p.work);
            REQUIRE(same(plan, plan_all(fresh, s)));
            auto simulator = p.simulator();
            (void)simulator.simulate(s);
            REQUIRE(same(plan, simulator.plan()));
        }
    }
}

TEST_CASE("planner: stays usable after an oracle that failed") {
    std::size_t failures = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const left = std::make_shared<std::int64_t>(1 << 30);
        auto const p = support::random_workload(rng, support::random_options(rng), {}, support::failing_oracle{left, seed % 2 == 0});
        sim::planner planner(p.work);
        for (int step = 0; step < 8; ++step) {
            auto const s = support::reading_together(rng, p, support::random_strategy(rng, p, 0.2), 0.3);
            *left = static_cast<std::int64_t>(uniform_index(rng, 40));
            try {
                (void)plan_all(planner, s);
            } catch (std::runtime_error const&) {
                ++failures;
            } catch (invalid_input const&) {
                ++failures;
            }
            *left = 1 << 30;
            sim::planner fresh(p.work);
            REQUIRE(same(plan_all(planner, s), plan_all(fresh, s)));
        }
    }
    CHECK(failures > 100);
}

TEST_CASE("planner: times of an edge's messages by hand") {
    // Four shards of 32 bytes each send to two on other devices, over links of their own or one for all; latency is paid by each.
    graph::operator_graph g;
    g.add("b", ops::relu{}, g.add("a", ops::linear{.out = 8, .bias = false}, g.input("x", {{4, 8}})));
    for (bool const shared : {false, true}) {
        auto const p = support::make_workload_problem(g, shared ? support::shared_medium(4, 1, 5) : support::mesh(4, 1, 5), two_speeds{},
                                                      {.movement = movement::pairwise});
        sim::planner planner(p.work);
        auto const from = support::split(p.graph().operations[1], "s", {0, 0, 1, 1}), to = support::split(p.graph().operations[2], "s", {2, 3});
        sim::operator_plan made, read;
        planner.plan_operator(1, from, made);
        planner.plan_operator(2, to, read);
        auto const plan = planner.plan_edge(1, from, made, to, read);
        REQUIRE(plan.forward.size() == 4);
        auto const times = planner.times_of(1, *plan.table, from, to);
        REQUIRE(times.consumers.size() == 2);
        REQUIRE(times.producers.size() == 4);
        for (auto const& t : times.consumers) CHECK(t.there == 2 * 37); // two messages over one link
        for (auto const& t : times.consumers) CHECK(t.back == 2 * 37);
        for (auto const& t : times.producers) CHECK(t.there == 37); // one message each
        for (auto const& t : times.producers) CHECK(t.back == 37);
        CHECK(times.last_there == (shared ? 4 : 2) * 37);
        CHECK(times.last_back == (shared ? 4 : 2) * 37);
        // On the same devices nothing is sent.
        auto const here = planner.times_of(1, *plan.table, from, support::split(p.graph().operations[2], "s", {0, 1}));
        CHECK(here.last_there == 0);
        CHECK(here.consumers[0].there == 0);
        CHECK(here.producers[3].back == 0);
    }
}

TEST_CASE("planner: no message arrives before the bound says so") {
    std::size_t positive = 0, gradients = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const p = support::random_workload(rng, support::random_options(rng), {.devices = 5});
        auto const& g = p.graph();
        auto const s = support::reading_together(rng, p, support::random_strategy(rng, p, 0.3), 0.3);
        sim::planner planner(p.work);
        auto const plan = plan_all(planner, s);
        auto simulator = p.simulator();
        (void)simulator.simulate(s);
        auto const& t = simulator.tasks();
        // When the first shard of each operator ends in each pass, and when each shard is ready.
        auto const end = [&](std::uint32_t i) { return simulator.schedule().end[i]; };
        struct pass {
            std::int64_t first_end = std::numeric_limits<std::int64_t>::max();
            std::vector<std::int64_t> ready{};
        };
        std::vector<pass> forward(g.size()), backward(g.size());
        for (std::uint32_t i = 0; i < t.size(); ++i)
            if (t.kind[i] == sim::task_kind::forward || t.kind[i] == sim::task_kind::backward) {
                auto& mine = (t.kind[i] == sim::task_kind::forward ? forward : backward)[t.label[i].op];
                mine.first_end = std::min(mine.first_end, end(i));
                mine.ready.push_back(simulator.schedule().ready[i]);
            }
        for (std::uint32_t e = 0; e < g.edges.size(); ++e) {
            if (!plan.edges[e].table) continue;
            auto const& table = *plan.edges[e].table;
            auto const [from, to] = std::pair(g.edges[e].producer, g.edges[e].consumer);
            auto const times = planner.times_of(e, table, s[from], s[to]);
            std::int64_t last = 0;
            for (std::uint32_t i = 0; i < t.size(); ++i)
                if (t.kind[i] == sim::task_kind::transfer && t.label[i].edge == e && t.label[i].op == to &&
                    t.label[i].traffic != sim::traffic_kind::gradient)
                    last = std::max(last, end(i));
            if (times.last_there > 0) REQUIRE(forward[from].first_end + times.last_there <= last);
            for (std::size_t n = 0; n < times.consumers.size(); ++n) {
                REQUIRE(times.consumers[n].there <= times.last_there);
                REQUIRE(times.consumers[n].back <= times.last_back);
                positive += times.consumers[n].there > 0;
                if (table.first_of_consumer[n] != table.first_of_consumer[n + 1])
                    REQUIRE(forward[from].first_end + times.consumers[n].there <= forward[to].ready[n]);
            }
            for (std::size_t n = 0; n < times.producers.size(); ++n) {
                REQUIRE(times.producers[n].there <= times.last_there);
                REQUIRE(times.producers[n].back <= times.last_back);
                if (times.producers[n].back == 0) continue;
                ++gradients;
                REQUIRE(backward[to].first_end + times.producers[n].back <= backward[from].ready[n]);
            }
        }
    }
    CHECK(positive > 50);
    CHECK(gradients > 50);
}
