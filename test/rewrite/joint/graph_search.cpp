#include <parsearch/rewrite/joint/graph_search.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/models/lenet.hpp>
#include <parsearch/rewrite/parallel/conversion.hpp>
#include <parsearch/rewrite/rules/algebraic_rules.hpp>

#include "support/cases.hpp"
#include "support/random_network.hpp"
#include "support/same_value.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {
/// A price that knows nothing of devices: a step for every operator.
graph_price operators_of(parallel_graph const& g) { return {.cost = picoseconds(1000 * static_cast<std::int64_t>(g.operators().size()))}; }
} // namespace

TEST_CASE("graph search: never worse than its start, what it finds computes the same, the best are sorted and different") {
    constexpr std::uint64_t seed = 21;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    auto const rules = algebraic_rules();
    int better = 0;
    for (int n = 0; n < support::cases(200); ++n) {
        auto const start = lift(graph::read_graph(support::random_network(rng, 10)).graph).graph;
        joint_options const options{.segment_operators = 1 + uniform_index(rng, 12), .segment_graphs = 12, .beam = 1 + uniform_index(rng, 5)};
        std::uint64_t told = 0, priced = 0;
        auto const price = [&](parallel_graph const& g) {
            ++priced;
            return operators_of(g);
        };
        auto const tell = [&](std::size_t, std::size_t rule, picoseconds) {
            ++told;
            CHECK(rule < rules.size());
        };
        graph_search search(rules, options, price, tell, [] { return false; });
        auto const found = search.run({start, operators_of(start), {}});
        CHECK(found.price.cost <= operators_of(start).cost);
        CHECK(found.price.cost == operators_of(found.graph).cost);
        CHECK(support::same_value(start, found.graph, rng));
        CHECK(told == priced);
        auto const& best = search.best();
        CHECK(best.size() <= options.beam);
        CHECK(best.front().price.cost == found.price.cost);
        CHECK(std::ranges::is_sorted(best, {}, [](auto const& b) { return b.price.cost; }));
        for (std::size_t i = 0; i < best.size(); ++i)
            for (std::size_t j = 0; j < i; ++j) CHECK(!(best[i].graph == best[j].graph));
        better += found.price.cost < operators_of(start).cost;
    }
    CHECK(better > support::cases(8));
}

TEST_CASE("graph search: it ends when it is told to, with the best so far") {
    auto const rules = algebraic_rules();
    auto const start = lift(graph::read_graph(models::lenet()).graph).graph;
    joint_options const options{};
    auto const priced_within = [&](std::uint64_t most) {
        std::uint64_t priced = 0;
        auto const price = [&](parallel_graph const& g) {
            ++priced;
            return operators_of(g);
        };
        graph_search search(
            rules, options, price, [](std::size_t, std::size_t, picoseconds) {}, [&] { return priced >= most; });
        auto const found = search.run({start, operators_of(start), {}});
        CHECK(search.best().front().price.cost == found.price.cost);
        return priced;
    };
    auto const all = priced_within(1'000'000);
    CHECK(all > 1);
    for (std::uint64_t most = 0; most <= all; ++most) CHECK(priced_within(most) == most);
}
