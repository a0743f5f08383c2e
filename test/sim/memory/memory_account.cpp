#include <parsearch/sim/memory/memory_account.hpp>

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/problem/problem.hpp>

#include "support/cases.hpp"
#include "support/hand_network.hpp"
#include "support/naive_iteration.hpp"
#include "support/plain_topology.hpp"
#include "support/random_network.hpp"
#include "support/random_problem.hpp"

using namespace parsearch;
using sim::memory_policy, sim::optimizer;

namespace {

auto const ten = [](ops::shard_work const&, std::uint32_t) { return picoseconds{10}; };

/// x[4, 4] -> fc[4, 8] with bias -> relu.
graph::operator_graph small(ops::dtype type = ops::dtype::f32) {
    graph::operator_graph g;
    auto const y = g.add("fc", ops::linear{.out = 8}, g.input("x", {{4, 4}, type}));
    g.add("relu", ops::relu{}, y);
    return g;
}

template <class P, class S> std::vector<sim::memory_use> memory(P const& p, S const& s) {
    auto simulator = p.simulator();
    (void)simulator.simulate(s);
    return simulator.memory();
}

/// Elements of a weight that each device has.
using elements_by_device = std::map<std::uint32_t, support::detail::element_set>;
/// Adds those of all shards of an operator.
void add_held(elements_by_device& held, ops::operation const& op, ops::operand const& weight, space::configuration const& c) {
    std::vector<std::int32_t> const degrees(c.degrees().begin(), c.degrees().end());
    for (std::int64_t n = 0; n < c.shards(); ++n) {
        auto const mine = support::detail::elements(op, weight, degrees, n);
        auto& all = held[static_cast<std::uint32_t>(c.device(n))];
        all.resize(mine.size());
        for (std::size_t i = 0; i < mine.size(); ++i) all[i] = all[i] || mine[i];
    }
}

} // namespace

TEST_CASE("memory: two layers on one device by hand") {
    auto const p = make_problem(small(), support::mesh(2), ten, {.simulation = {.optimizer = optimizer::adam}});
    auto const m = memory(p, support::all_on_first(p.graph()));
    REQUIRE(m.size() == 2);
    CHECK(m[0].weights == (32 + 8) * 4);
    CHECK(m[0].gradients == (32 + 8) * 4);
    CHECK(m[0].optimizer == (32 + 8) * 8);      // two states of 4 bytes
    CHECK(m[0].activations == 16 * 4 + 32 * 4); // the layer keeps its input, relu its output
    CHECK(m[0].buffers == 2 * (32 + 32) * 4);   // relu's input and output, and their gradients
    CHECK(m[0].total() == 160 + 160 + 320 + 192 + 512);
    CHECK(m[1].total() == 0);
}

TEST_CASE("memory: split over two devices") {
    auto const p = make_problem(small(), support::mesh(2), ten, {.simulation = {.optimizer = optimizer::momentum}});
    auto s = support::all_on_first(p.graph());
    s[1] = support::split(p.graph().operations[1], "o", {0, 1}); // weights divided, the input on both
    s[2] = support::split(p.graph().operations[2], "s", {0, 1});
    for (auto const& m : memory(p, s)) {
        CHECK(m.weights == (16 + 4) * 4);
        CHECK(m.gradients == (16 + 4) * 4);
        CHECK(m.optimizer == (16 + 4) * 4);
        CHECK(m.activations == 16 * 4 + 16 * 4);
        CHECK(m.buffers == 2 * (16 + 16) * 4);
    }
    s[1] = support::split(p.graph().operations[1], "s", {0, 1}); // weights on both, the input divided
    for (auto const& m : memory(p, s)) {
        CHECK(m.weights == (32 + 8) * 4);
        CHECK(m.activations == 8 * 4 + 16 * 4);
    }
}

TEST_CASE("memory: 16-bit weights are updated through a copy of 4 bytes") {
    auto const p = make_problem(small(ops::dtype::bf16), support::mesh(1), ten, {.simulation = {.optimizer = optimizer::sgd}});
    auto const m = memory(p, support::all_on_first(p.graph())).front();
    CHECK(m.weights == 40 * 2);
    CHECK(m.gradients == 40 * 4); // in f32, too
    CHECK(m.optimizer == 40 * 4);
}

TEST_CASE("memory: gradients are of their own type") {
    auto const gradients = [](ops::dtype weights, sim::gradient_type type) {
        auto const p = make_problem(small(weights), support::mesh(1), ten, {.simulation = {.gradients = type}});
        return memory(p, support::all_on_first(p.graph())).front().gradients / 40;
    };
    for (auto const type : {sim::gradient_type::of_weights, sim::gradient_type::f32_of_bf16, sim::gradient_type::f32}) {
        CHECK(gradients(ops::dtype::f32, type) == 4);
        CHECK(gradients(ops::dtype::f64, type) == 8);
        CHECK(gradients(ops::dtype::bf16, type) == (type == sim::gradient_type::of_weights ? 2 : 4));
        CHECK(gradients(ops::dtype::f16, type) == (type == sim::gradient_type::f32 ? 4 : 2));
    }
}

TEST_CASE("memory: inference keeps weights and working buffers") {
    auto const p = make_problem(small(), support::mesh(1), ten, {.simulation = {.training = false, .optimizer = optimizer::adam}});
    auto const m = memory(p, support::all_on_first(p.graph())).front();
    CHECK(m.weights == 160);
    CHECK(m.gradients == 0);
    CHECK(m.optimizer == 0);
    CHECK(m.activations == 0);
    CHECK(m.buffers == (32 + 32) * 4);
}

TEST_CASE("memory: caches on each device are the elements that its shards hold, beside the weights") {
    for (std::uint64_t seed = 0; seed < support::cases(500u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const network = support::with_caches(rng, graph::read_graph(support::random_network(rng)).graph);
        auto const p = make_problem(network, support::mesh(4), ten, {.simulation = {.training = false}});
        auto const& g = p.graph();
        auto const s = support::random_strategy(rng, p, 0.3);
        auto const found = memory(p, s);
        std::vector<byte_count> caches(4, 0);
        for (std::uint32_t op = 0; op < g.size(); ++op)
            for (auto const& w : g.operations[op].weights) {
                if (!w.cache) continue;
                elements_by_device held;
                add_held(held, g.operations[op], w, s[op]);
                for (auto const& [d, elements] : held) caches[d] += 4 * support::detail::common(elements, elements);
            }
        auto plain = graph::dense_graph(network);
        for (auto& op : plain.operations)
            for (auto& w : op.weights) w.cache = false;
        auto const without = memory(make_problem(plain, support::mesh(4), ten, {.simulation = {.training = false}}), s);
        for (std::size_t d = 0; d < 4; ++d) {
            REQUIRE(found[d].cache == caches[d]);
            REQUIRE(found[d].weights + found[d].cache == without[d].weights);
            REQUIRE(found[d].total() == without[d].total());
        }
    }
}

TEST_CASE("memory: a tensor that several operators keep is counted once") {
    graph::operator_graph g;
    auto const x = g.input("x", {{4, 4}});
    g.add("a", ops::linear{.out = 4, .bias = false}, x);
    g.add("b", ops::linear{.out = 4, .bias = false}, x);
    auto const p = make_problem(g, support::mesh(2), ten);
    auto s = support::all_on_first(p.graph());
    CHECK(memory(p, s)[0].activations == 64);
    s[2].start = 1; // now each device has a copy
    CHECK(memory(p, s)[0].activations == 64);
    CHECK(memory(p, s)[1].activations == 64);
}

TEST_CASE("memory: masks are kept beside operands") {
    graph::operator_graph g;
    auto const y = g.add("fc", ops::linear{.out = 8, .bias = false}, g.input("x", {{4, 4}}));
    g.add("dropout", ops::dropout{}, y);
    auto const p = make_problem(g, support::mesh(1), ten);
    CHECK(memory(p, support::all_on_first(p.graph()))[0].activations == 64 + 32);
}

TEST_CASE("memory: more than a device has, under each policy") {
    auto topology = support::mesh(2);
    for (auto const policy : {memory_policy::ignore, memory_policy::penalise, memory_policy::reject})
        for (byte_count const missing : {0, 1, 7}) {
            // Everything on device 0, which needs 160 + 160 + 0 + 192 + 512 bytes; 2 forward, 2 backward, 1 update.
            topology.device[0].memory = 1024 - missing;
            topology.device[1].memory = 0;
            auto const p = make_problem(small(), topology, ten, {.simulation = {.memory = policy, .memory_penalty = 3, .memory_kept_free = 0}});
            auto simulator = p.simulator();
            auto const s = support::all_on_first(p.graph());
            auto const cost = simulator(s);
            if (missing == 0 || policy == memory_policy::ignore) CHECK(cost.count() == 50);
            else if (policy == memory_policy::penalise) CHECK(cost.count() == 50 + 3 * 2 * missing); // as if it were missing on both
            else CHECK(cost == cost_traits<picoseconds>::infinity());
            CHECK(simulator.simulate(s).count() == 50);
            CHECK(simulator(s) == cost);
        }
}

TEST_CASE("memory: weights on each device are the elements that its shards hold") {
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const p = make_problem(support::random_network(rng), support::mesh(4), ten, {.simulation = {.optimizer = optimizer::adam}});
        auto const& g = p.graph();
        auto const s = support::random_strategy(rng, p, 0.3);
        auto const found = memory(p, s);
        // By parameter and device: the elements of all shards there, of all operators that use it.
        std::map<std::string, elements_by_device> held;
        for (std::uint32_t op = 0; op < g.size(); ++op)
            for (std::size_t w = 0; w < g.operations[op].weights.size(); ++w) {
                auto const& weight = g.operations[op].weights[w];
                add_held(held[weight.parameter.empty() ? text(op, '#', w) : weight.parameter], g.operations[op], weight, s[op]);
            }
        std::vector<byte_count> expected(4, 0);
        for (auto const& [name, by_device] : held)
            for (auto const& [d, elements] : by_device) expected[d] += 4 * support::detail::common(elements, elements);
        for (std::size_t d = 0; d < 4; ++d) {
            REQUIRE(found[d].weights == expected[d]);
            REQUIRE(found[d].gradients == expected[d]);
            REQUIRE(found[d].optimizer == 2 * expected[d]);
        }
    }
}
