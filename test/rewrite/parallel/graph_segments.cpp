#include <parsearch/rewrite/parallel/graph_segments.hpp>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/models/bert.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/rewrite/parallel/conversion.hpp>
#include <parsearch/rewrite/rules/algebraic_rules.hpp>

#include "support/cases.hpp"
#include "support/random_network.hpp"
#include "support/refusal.hpp"
#include "support/same_value.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {

std::size_t operators_in(parallel_graph const& g) {
    std::size_t n = 0;
    for (std::uint32_t i = 0; i < g.bound(); ++i) n += g.contains(i) && g[i]->kind == node_kind::compute;
    return n;
}

/// Layers with a residual each, all alike.
parallel_graph blocks(int count) {
    parallel_graph g;
    auto x = g.add_input("x", {{4, 6}});
    auto const layer = ops::linear{.out = 6, .bias = false}.infer(std::vector<ops::tensor>{{{4, 6}}});
    auto const rectifier = ops::relu{}.infer(std::vector<ops::tensor>{{{4, 6}}});
    auto const sum = ops::add{}.infer(std::vector<ops::tensor>{{{4, 6}}, {{4, 6}}});
    for (int i = 0; i < count; ++i) {
        auto const fc = g.add_operator(text("block", i, ".fc"), layer, {x, g.add_weight(text("block", i, ".weight"), {{6, 6}})});
        auto const relu = g.add_operator(text("block", i, ".relu"), rectifier, {{fc, 0}});
        x = {g.add_operator(text("block", i, ".add"), sum, {{relu, 0}, x}), 0};
    }
    g.set_results({x});
    return g;
}

} // namespace

TEST_CASE("segments: they end where all ways pass, and are of the size that is asked for") {
    auto const g = blocks(6);
    CHECK(segments_of(g, 1).size() == 8); // the first layers stand alone: what goes around them is the graph's input
    CHECK(segments_of(g, 3).size() == 6);
    CHECK(segments_of(g, 4).size() == 3);
    CHECK(segments_of(g, 100).size() == 1);
    auto const shifted = segments_of(g, 6, 3);
    REQUIRE(shifted.size() == 4);
    CHECK(shifted[0].size() == 3);
    CHECK(shifted[1].size() == 6);
    CHECK(shifted[3].size() == 3);
}

TEST_CASE("segments: each operator is in one, and only the last results of a segment are read behind it, on random graphs and models") {
    constexpr std::uint64_t seed = 8;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    CHECK(segments_of(lift(graph::read_graph(models::inception_v3()).graph).graph, 24).size() > 5); // labels go past all of it
    std::vector<parallel_graph> graphs{lift(graph::read_graph(models::inception_v3()).graph).graph,
                                       lift(graph::read_graph(models::bert({.layers = 3})).graph).graph};
    for (int n = 0; n < support::cases(300); ++n) graphs.push_back(lift(graph::read_graph(support::random_network(rng, 20)).graph).graph);
    for (auto const& g : graphs) {
        auto const least = 1 + uniform_index(rng, 8);
        auto const segments = segments_of(g, least, uniform_index(rng, 5));
        std::set<std::uint32_t> all;
        std::vector<std::size_t> at(g.bound());
        for (std::size_t i = 0; i < segments.size(); ++i)
            for (auto const n : segments[i]) {
                CHECK(all.insert(n).second);
                at[n] = i;
            }
        CHECK(all.size() == operators_in(g));
        for (auto const n : all)
            for (auto const& t : g[n].inputs)
                if (g[t.producer]->kind == node_kind::compute) CHECK((at[t.producer] == at[n] || at[t.producer] + 1 == at[n]));
    }
}

TEST_CASE("segments: those of one shape are equal graphs, and change together") {
    auto const g = blocks(6);
    std::vector<segment> same;
    for (auto const& members : segments_of(g, 6)) same.push_back(extract(g, members));
    REQUIRE(same.size() == 3);
    CHECK(same[0].graph == same[1].graph);
    CHECK(same[0].inputs.size() == 1);
    CHECK(same[0].weights.size() == 2);
    CHECK(same[0].results.size() == 1);
    CHECK(same[0].graph.size() == 9);

    CHECK(put_in_place(g, same, same[0].graph) == g);
    auto part = same[0].graph; // fused as far as it goes
    for (auto next = algebraic_rules()[0](part); !next.empty(); next = algebraic_rules()[0](part)) part = next[0].graph;
    CHECK(operators_in(part) == 2);
    auto const after = put_in_place(g, same, part);
    CHECK(operators_in(after) == 6);
    std::mt19937_64 rng(1);
    CHECK(support::same_value(g, after, rng));
    std::set<std::string> names;
    for (std::uint32_t n = 0; n < after.bound(); ++n)
        if (after.contains(n) && after[n]->kind == node_kind::compute) names.insert(after[n]->name);
    CHECK(names.contains("block0.fc+relu+add"));
    CHECK(names.contains("block5.fc+relu+add")); // after the operators of its own place
    CHECK(support::refusal([&] { return put_in_place(g, same, g); }).find("input 'x' is none of the segment") == 0);
}

TEST_CASE("segments: put back as they were, random graphs are as they were; changed by rules they compute the same") {
    constexpr std::uint64_t seed = 9;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    auto const rules = algebraic_rules();
    int changed = 0;
    for (int n = 0; n < support::cases(500); ++n) {
        auto const g = lift(graph::read_graph(support::random_network(rng, 16)).graph).graph;
        for (auto const& members : segments_of(g, 1 + uniform_index(rng, 6))) {
            auto const s = extract(g, members);
            CHECK(put_in_place(g, std::span(&s, 1), s.graph) == g);
            for (auto const& r : rules)
                for (auto const& one : r(s.graph)) {
                    auto const after = put_in_place(g, std::span(&s, 1), one.graph);
                    ++changed;
                    INFO(r.name(), ": ", one.what);
                    CHECK(support::same_value(g, after, rng));
                }
        }
    }
    CHECK(changed > support::cases(200));
}
