#include <parsearch/graph/parallel_branches.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/models/candle_uno.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>

#include "support/cases.hpp"
#include "support/random_network.hpp"

using namespace parsearch;

namespace {

/// Whether gradients still flow from an operator without any before it to one without any behind it where `left_out` is not there.
bool leads_past(graph::dense_graph const& g, std::uint32_t left_out) {
    std::vector<bool> reached(g.size(), false);
    auto const from_trained = [&](graph::edge const& e) { return g.trains[e.producer]; };
    for (auto const op : g.order) {
        if (op == left_out || !g.trains[op]) continue;
        reached[op] = std::ranges::none_of(g.in(op), from_trained);
        for (auto const& e : g.in(op))
            if (reached[e.producer]) reached[op] = true;
        if (reached[op] && g.out(op).empty()) return true;
    }
    return false;
}

} // namespace

TEST_CASE("branches: of random networks, nothing between them, and all that lies beside another") {
    std::size_t several = 0;
    for (std::uint64_t seed = 0; seed < support::cases<std::uint64_t>(2000); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng(seed);
        auto const g = graph::read_graph(support::random_network(rng, 14)).graph;
        auto const branches = graph::parallel_branches(g);
        std::vector<int> of(g.size(), -1);
        for (std::size_t b = 0; b < branches.size(); ++b) {
            flop_count flops = 0;
            byte_count bytes = 0;
            for (auto const op : branches[b].operators) {
                REQUIRE(of[op] == -1);
                of[op] = static_cast<int>(b);
                flops += g.operations[op].flops;
                for (auto const& w : g.operations[op].weights) bytes += ops::bytes_of(w);
            }
            REQUIRE(flops == branches[b].flops);
            REQUIRE(bytes == branches[b].bytes);
            REQUIRE((flops > 0 || bytes > 0));
            bool const before = b > 0 && branches[b - 1].segment == branches[b].segment,
                       behind = b + 1 < branches.size() && branches[b + 1].segment == branches[b].segment;
            REQUIRE((before || behind));
            if (before) REQUIRE(branches[b - 1].flops >= branches[b].flops);
        }
        several += !branches.empty();
        for (auto const& e : g.edges)
            if (g.trains[e.producer] && of[e.producer] >= 0 && of[e.consumer] >= 0) REQUIRE(of[e.producer] == of[e.consumer]);
        // All that has weights beside another is in a branch, and that in its segment: behind so many operators that all ways pass.
        std::vector<bool> passed(g.size());
        for (std::uint32_t op = 0; op < g.size(); ++op) passed[op] = g.trains[op] && !leads_past(g, op);
        std::vector<std::uint32_t> behind(g.size(), 0), part(g.size());
        for (std::uint32_t op = 0; op < g.size(); ++op) part[op] = op;
        for (auto const op : g.order)
            for (auto const& e : g.in(op)) behind[op] = std::max(behind[op], behind[e.producer] + (passed[e.producer] ? 1 : 0));
        auto const joins = [&](std::uint32_t a, std::uint32_t b) { return g.trains[a] && g.trains[b] && !passed[a] && !passed[b]; };
        for (bool changed = true; changed;) { // parts: the smallest number that neighbours have
            changed = false;
            auto const join = [&](std::uint32_t a, std::uint32_t b) {
                if (!joins(a, b) || part[a] == part[b]) return;
                part[a] = part[b] = std::min(part[a], part[b]);
                changed = true;
            };
            for (auto const& e : g.edges) join(e.producer, e.consumer);
            for (std::uint32_t op = 0; op < g.size(); ++op) join(op, g.sharing[op]);
        }
        std::vector<std::uint32_t> segment(g.size(), static_cast<std::uint32_t>(g.size())); // of each part
        for (std::uint32_t op = 0; op < g.size(); ++op)
            if (g.trains[op] && !passed[op]) segment[part[op]] = std::min(segment[part[op]], behind[op]);
        std::set<std::pair<std::uint32_t, std::uint32_t>> weighing; // segment and part
        for (std::uint32_t op = 0; op < g.size(); ++op)
            if (g.trains[op] && !passed[op] && !g.operations[op].weights.empty()) weighing.insert({segment[part[op]], part[op]});
        for (std::uint32_t op = 0; op < g.size(); ++op) {
            if (!g.trains[op] || passed[op]) continue;
            auto const mine = segment[part[op]];
            if (of[op] >= 0) REQUIRE(branches[static_cast<std::size_t>(of[op])].segment == mine);
            bool const beside = std::ranges::any_of(weighing, [&](auto const& w) { return w.first == mine && w.second != part[op]; });
            if (beside && weighing.contains({mine, part[op]})) REQUIRE(of[op] >= 0);
        }
        for (std::uint32_t op = 0; op < g.size(); ++op) {
            if (passed[op]) REQUIRE(of[op] == -1);
            else if (of[g.sharing[op]] >= 0) REQUIRE(of[op] == of[g.sharing[op]]);
        }
    }
    CHECK(several > 100);
}

TEST_CASE("branches: towers, modules, none") {
    auto const towers = graph::read_graph(models::candle_uno({.batch = 8})).graph;
    auto const found = graph::parallel_branches(towers);
    REQUIRE(found.size() == 5);
    std::set<std::string> names;
    for (auto const& b : found) {
        CHECK(b.segment == 0);
        for (auto const op : b.operators) {
            auto const& name = towers.names[op];
            if (auto const layer = name.find(".fc"); layer != std::string::npos) names.insert(name.substr(0, layer));
        }
    }
    CHECK(names == std::set<std::string>{"cell.expression", "drug1.descriptors", "drug1.fingerprints", "drug2.descriptors", "drug2.fingerprints"});
    // Towers that share weights are one branch.
    CHECK(graph::parallel_branches(graph::read_graph(models::candle_uno({.shared_drugs = true, .batch = 8})).graph).size() == 3);
    auto const modules = graph::parallel_branches(graph::read_graph(models::inception_v3({.batch = 8})).graph);
    std::set<std::uint32_t> segments;
    for (auto const& b : modules) segments.insert(b.segment);
    CHECK(segments.size() >= 9);
    CHECK(modules.size() >= 3 * segments.size());
    CHECK(graph::parallel_branches(graph::read_graph(models::mlp({.batch = 8})).graph).empty());
    // A mask that one of two branches reads does not change their segment.
    graph::operator_graph masked;
    auto const x = masked.add("first", ops::linear{.out = 8}, masked.input("x", {{4, 8}}));
    auto const mask = masked.add("mask", ops::relu{}, masked.input("m", {{4, 8}}));
    auto const left = masked.add("left.mask", ops::add{}, masked.add("left", ops::linear{.out = 8}, x), mask);
    masked.add("sum", ops::add{}, left, masked.add("right", ops::linear{.out = 8}, x));
    auto const two = graph::parallel_branches(graph::read_graph(masked).graph);
    REQUIRE(two.size() == 2);
    for (auto const& b : two) CHECK(b.segment == 1);
    CHECK(graph::parallel_branches(
              graph::read_graph(models::gpt({.layers = 2, .hidden = 64, .heads = 2, .sequence = 16, .vocabulary = 64, .batch = 8})).graph)
              .size() <= 2); // tables
}
