#include <parsearch/sim/task/overlap_tables.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/vector_graph.hpp>

#include "support/random_network.hpp"

using namespace parsearch;

namespace {

constexpr auto unlimited = std::numeric_limits<std::size_t>::max();

bool same(sim::overlap_table const& a, sim::overlap_table const& b) {
    auto const same_pairs = std::equal(a.pairs.begin(), a.pairs.end(), b.pairs.begin(), b.pairs.end(), [](auto const& x, auto const& y) {
        return x.producer == y.producer && x.consumer == y.consumer && x.elements == y.elements;
    });
    auto const same_exchanges =
        std::equal(a.exchanges.begin(), a.exchanges.end(), b.exchanges.begin(), b.exchanges.end(), [](auto const& x, auto const& y) {
            return x.producers == y.producers && x.consumers == y.consumers && x.forward == y.forward && x.backward == y.backward &&
                   x.elements == y.elements && x.partial == y.partial;
        });
    return same_pairs && same_exchanges && a.first_of_consumer == b.first_of_consumer && a.by_producer == b.by_producer &&
           a.first_of_producer == b.first_of_producer && a.exchange_of == b.exchange_of && a.partial == b.partial;
}

/// Three tables of 8 x 4 on their way into one of 8 x 12, by columns.
graph::dense_graph three_to_one() {
    graph::operator_graph g;
    auto const x = g.input("x", {{8, 4}});
    auto const a = g.add("a", ops::relu{}, x), b = g.add("b", ops::relu{}, x), c = g.add("c", ops::linear{.out = 4, .bias = false}, x);
    g.add("all", ops::concat{.axis = 1}, a, b, c);
    return graph::read_graph(g).graph;
}

space::configuration split(std::vector<std::int32_t> const& degrees) {
    space::configuration c;
    c.rank = static_cast<std::uint32_t>(degrees.size());
    std::copy(degrees.begin(), degrees.end(), c.degree.begin());
    return c;
}

} // namespace

TEST_CASE("overlap tables are those of find_overlaps") {
    for (std::size_t const limit : {unlimited, std::size_t{0}, std::size_t{2000}}) {
        std::size_t edges = 0;
        for (std::uint64_t seed = 0; seed < 300; ++seed) {
            CAPTURE(seed);
            std::mt19937_64 rng(seed);
            auto const g = graph::read_graph(support::random_network(rng)).graph;
            sim::overlap_tables tables(g, limit);
            for (int n = 0; n < 20 && !g.edges.empty(); ++n, ++edges) {
                auto const number = static_cast<std::uint32_t>(uniform_index(rng, g.edges.size()));
                auto const& e = g.edges[number];
                auto const& producer = g.operations[e.producer];
                auto const& consumer = g.operations[e.consumer];
                auto const a = support::random_configuration(rng, producer, std::vector<space::configuration>{}, 1, true);
                auto const b = support::random_configuration(rng, consumer, std::vector<space::configuration>{}, 1, true);
                REQUIRE(same(*tables.of_edge(number, a, b),
                             sim::find_overlaps(producer, producer.outputs[e.slot], a.degrees(), consumer, consumer.inputs[e.input], b.degrees())));
                if (uniform_index(rng, 10) == 0) tables.forget();
            }
        }
        CHECK(edges > 3000);
    }
}

TEST_CASE("overlap tables: edges that lay their tensors out alike have one in common") {
    auto const g = three_to_one();
    sim::overlap_tables tables(g, unlimited);
    CHECK(tables.bytes() == 0);
    auto const edge = [&](std::uint32_t input) { return g.first_in[g.size() - 1] + input; };
    auto const rows = split({4, 1}), whole = split({1, 1});
    auto const columns = [&](std::uint32_t op, std::int32_t degree) {
        auto c = split(std::vector<std::int32_t>(g.operations[op].dims.size(), 1));
        c.degree[1] = degree;
        return c;
    };
    auto const of = [&](std::uint32_t input, auto const& from, auto const& to) { return tables.of_edge(edge(input), from, to); };
    auto const first = of(0, rows, whole);
    auto const one_table = tables.bytes();
    CHECK(of(0, rows, whole) == first);
    CHECK(of(1, rows, whole) == first);             // another producer like it
    CHECK(of(2, split({4, 1, 1}), whole) == first); // and one that makes the same parts another way
    CHECK(of(2, split({4, 1, 2}), whole) != first); // but not partial sums
    CHECK(of(0, whole, rows) != first);
    auto const last = static_cast<std::uint32_t>(g.size() - 1);
    CHECK(of(0, rows, columns(last, 3)) != of(1, rows, columns(last, 3))); // the first third is of the first, the second of the second
    CHECK(tables.bytes() > one_table);
    CHECK(tables.of_input(last, 0, rows) == tables.of_input(last, 1, rows)); // each a row of its own tensor
    CHECK(tables.of_input(last, 0, columns(last, 3)) != tables.of_input(last, 1, columns(last, 3)));
    tables.forget();
    CHECK(tables.bytes() == 0);
    CHECK(of(0, rows, whole) != first);
    CHECK(same(*of(0, rows, whole), *first));
}
