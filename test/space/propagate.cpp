#include <parsearch/space/propagate.hpp>

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/vector_graph.hpp>

#include "support/hand_network.hpp"
#include "support/naive_iteration.hpp"
#include "support/random_network.hpp"
#include "support/refusal.hpp"

using namespace parsearch;

namespace {

/// Elements of edge `e` that change device, and those that are read in all.
struct moved_elements {
    std::int64_t moved = 0, read = 0;
};
moved_elements move_along(graph::dense_graph const& g, graph::edge const& e, space::configuration const& from, space::configuration const& to) {
    moved_elements out;
    auto const& producer = g.operations[e.producer];
    auto const& consumer = g.operations[e.consumer];
    std::vector<std::int32_t> const a(from.degrees().begin(), from.degrees().end()), b(to.degrees().begin(), to.degrees().end());
    for (std::int64_t p = 0; p < from.shards(); ++p)
        for (std::int64_t c = 0; c < to.shards(); ++c) {
            auto const n = support::detail::common(support::detail::elements(producer, producer.outputs[e.slot], a, p),
                                                   support::detail::elements(consumer, consumer.inputs[e.input], b, c));
            out.read += n;
            out.moved += from.device(p) != to.device(c) ? n : 0;
        }
    return out;
}

/// True where every split dim of `op` runs along an axis of `o` by itself.
bool all_splits_on(ops::operation const& op, ops::operand const& o, space::configuration const& c) {
    for (std::size_t k = 0; k < op.dims.size(); ++k)
        if (c.degree[k] > 1 && !ops::is_indexed_by(o, k)) return false;
    return true;
}
bool has_windows(ops::operand const& o) {
    for (auto const& a : o.axes)
        if (a.span > 1)
            for (auto const& t : a.terms) return t.stride > 0;
    return false;
}

std::optional<space::configuration> carried(graph::dense_graph const& g, std::string_view consumer, space::configuration const& c,
                                            bool forward = true) {
    return space::carried_over(g, g.in(support::op_named(g, consumer)).front(), c, forward);
}

} // namespace

TEST_CASE("propagate: degrees and strides go over axis by axis") {
    graph::operator_graph net;
    auto x = net.add("fc1", ops::linear{.out = 8}, net.input("x", {{8, 8}}));
    x = net.add("relu", ops::relu{}, x);
    net.add("fc2", ops::linear{.out = 8}, x);
    auto const g = graph::read_graph(net).graph;
    auto const fc1 = support::op_named(g, "fc1");
    auto c = space::whole(g.operations[fc1], 1);
    c.degree = {2, 4, 1};
    c.stride = {4, 1, 0};
    auto const relu = carried(g, "relu", c);
    REQUIRE(relu);
    CHECK(relu->degree == std::array<std::int32_t, ops::max_dims>{2, 4});
    CHECK(relu->stride == std::array<std::int32_t, ops::max_dims>{4, 1});
    CHECK(relu->start == 1);
    // The feature axis is the reduction dim of the second layer.
    auto const fc2 = carried(g, "fc2", *relu);
    REQUIRE(fc2);
    CHECK(fc2->degree == std::array<std::int32_t, ops::max_dims>{2, 1, 4});
    CHECK(fc2->stride == std::array<std::int32_t, ops::max_dims>{4, 0, 1});
    // And back; a split that the tensor does not have is left out.
    auto other = *fc2;
    other.degree = {2, 2, 2};
    other.stride = {4, 2, 1};
    auto const back = carried(g, "fc2", other, false);
    REQUIRE(back);
    CHECK(back->degree == std::array<std::int32_t, ops::max_dims>{2, 2});
    CHECK(back->stride == std::array<std::int32_t, ops::max_dims>{4, 1});
    c.listed = std::vector<std::int32_t>(8, 0);
    CHECK_FALSE(carried(g, "relu", c));
}

TEST_CASE("propagate: nothing where an axis cannot be split alike") {
    graph::operator_graph net;
    auto const x = net.input("x", {{4, 8}});
    auto const a = net.add("a", ops::relu{}, x), b = net.add("b", ops::relu{}, x);
    auto const joined = net.add("joined", ops::concat{.axis = 1}, a, b);
    net.add("softmax", ops::softmax{}, joined);
    net.add("part", ops::slice{.axis = 1, .begin = 8, .end = 16}, joined);
    auto const image = net.add("image", ops::relu{}, net.input("pixels", {{4, 2, 4, 4}}));
    net.add("flat", ops::flatten{}, image);
    auto const g = graph::read_graph(net).graph;
    auto const split = [&](std::string_view op, std::size_t dim) {
        auto c = space::whole(g.operations[support::op_named(g, op)]);
        c.degree[dim] = 2;
        c.stride[dim] = 1;
        return c;
    };
    CHECK(carried(g, "joined", split("a", 0)));       // the batch goes over
    CHECK_FALSE(carried(g, "joined", split("a", 1))); // half of a is not half of what is joined
    CHECK_FALSE(carried(g, "joined", split("joined", 1), false));
    CHECK_FALSE(carried(g, "part", split("joined", 1)));
    CHECK_FALSE(carried(g, "softmax", split("joined", 1))); // its axis is not divisible
    CHECK(carried(g, "flat", split("image", 0)));
}

TEST_CASE("propagate: a diagonal is not carried over: its shards would share devices") {
    ops::operation square{.kind = "square", .dims = {{"i", 4, ops::dim_kind::sample}, {"j", 4, ops::dim_kind::attribute}}};
    square.outputs.push_back({.name = "y", .axes = {{.extent = 4, .terms = {{0, 1}}}, {.extent = 4, .terms = {{1, 1}}}}});
    ops::operation diagonal{.kind = "diagonal", .dims = {{"i", 4, ops::dim_kind::sample}}};
    diagonal.inputs.push_back({.name = "x", .axes = {{.extent = 4, .terms = {{0, 1}}}, {.extent = 4, .terms = {{0, 1}}}}});
    diagonal.outputs.push_back({.name = "y", .axes = {{.extent = 4, .terms = {{0, 1}}}}});
    graph::operator_graph net;
    auto const x = net.insert("square", square, {});
    std::vector<graph::tensor_ref> const in{x};
    net.insert("diagonal", diagonal, in);
    auto const g = graph::read_graph(net).graph;
    auto c = space::whole(g.operations[1]);
    c.degree[0] = 2;
    c.stride[0] = 1;
    CHECK_FALSE(carried(g, "diagonal", c, false));
}

TEST_CASE("propagate: what is carried over on random edges is legal, and its tensor stays where it is") {
    std::size_t found = 0, exact = 0;
    for (std::uint64_t seed = 0; seed < 4000; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const g = graph::read_graph(support::random_network(rng)).graph;
        if (g.edges.empty()) continue;
        auto const& e = g.edges[uniform_index(rng, g.edges.size())];
        bool const forward = bernoulli(rng, 0.5);
        auto const at = forward ? e.producer : e.consumer, to = forward ? e.consumer : e.producer;
        std::size_t const devices = 8;
        space::strategy_space const space(g, devices);
        auto const c = support::random_configuration(rng, g.operations[at], space[at], devices, false);
        auto const there = space::carried_over(g, e, c, forward);
        if (!there) continue;
        ++found;
        REQUIRE(support::refusal([&] {
                    space::validate(*there, g.operations[to], devices, "x");
                    return 0;
                }) == "");
        std::set<std::int32_t> where;
        for (std::int64_t n = 0; n < there->shards(); ++n) where.insert(there->device(n));
        REQUIRE(where.size() == static_cast<std::size_t>(there->shards()));
        auto const& mine = forward ? g.operations[e.producer].outputs[e.slot] : g.operations[e.consumer].inputs[e.input];
        if (!all_splits_on(g.operations[at], mine, c)) continue; // another split, say of a reduction, moves data
        auto const m = forward ? move_along(g, e, c, *there) : move_along(g, e, *there, c);
        if (has_windows(g.operations[e.consumer].inputs[e.input])) {
            REQUIRE(3 * m.moved <= 2 * m.read); // windows of 3 on single positions
        } else {
            REQUIRE(m.moved == 0);
            exact += c.shards() > 1;
        }
    }
    CHECK(found > 500);
    CHECK(exact > 200);
}

TEST_CASE("propagate: the move proposes legal configurations for operators that hang together") {
    std::size_t proposed = 0, longer = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const g = graph::read_graph(support::random_network(rng)).graph;
        space::strategy_space const space(g, 4);
        space::propagate_move const move(g);
        space::flat_strategy s;
        for (std::size_t op = 0; op < g.size(); ++op) s.push_back(support::random_configuration(rng, g.operations[op], space[op], 4, false));
        for (int i = 0; i < 20; ++i) {
            std::vector<change<space::configuration>> out;
            bool const some = move(space, s, rng, out).has_value();
            REQUIRE(some == !out.empty());
            std::set<std::size_t> changed;
            for (auto const& c : out) {
                REQUIRE(changed.insert(c.op).second);
                REQUIRE(g.operations[c.op].work != ops::work_class::source);
                REQUIRE(support::refusal([&] {
                            space::validate(c.configuration, g.operations[c.op], 4, "x");
                            return 0;
                        }) == "");
                REQUIRE(space.of(c.op).contains(c.configuration));
            }
            proposed += some;
            longer += out.size() > 1;
        }
    }
    CHECK(proposed > 1000);
    CHECK(longer > 100);
}
