#include <parsearch/sim/delta/block_cache.hpp>

#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "support/block_tasks.hpp"
#include "support/hand_network.hpp"
#include "support/placed_blocks.hpp"
#include "support/random_problem.hpp"

using namespace parsearch;

namespace {

auto two_layers(std::uint32_t devices = 2) {
    graph::operator_graph g;
    auto const x = g.add("fc1", ops::linear{.out = 4, .bias = false, .parameter = "w"}, g.input("x", {{4, 4}}));
    g.add("fc2", ops::linear{.out = 4, .bias = false, .parameter = "w"}, x);
    return support::make_workload_problem(g, support::mesh(devices), support::mixed_oracle{});
}

bool same(sim::task_graph const& a, sim::task_graph const& b) {
    return a.resource == b.resource && a.duration == b.duration && a.predecessors == b.predecessors && a.first_predecessor == b.first_predecessor;
}

} // namespace

TEST_CASE("block_cache: the same configuration is the same object, others are others") {
    auto const p = two_layers();
    auto const& op = p.graph().operations;
    sim::block_cache cache(p.work, false);
    CHECK(&cache.input() == p.work.get());
    auto& a = cache.of_operator(1, space::whole(op[1]));
    auto& b = cache.of_operator(1, support::split(op[1], "s", {0, 1}));
    auto& c = cache.of_operator(1, support::split(op[1], "s", {1, 0}));
    auto& d = cache.of_operator(2, space::whole(op[2]));
    CHECK(&a == &cache.of_operator(1, space::whole(op[1])));
    CHECK(&b != &a);
    CHECK(&c != &b);
    CHECK(b.shape == c.shape); // of the same degrees
    CHECK(b.shape != a.shape);
    CHECK(a.id != b.id);
    for (auto* x : {&a, &b, &c}) cache.build(1, *x);
    cache.build(2, d);
    CHECK(c.plan.devices == std::vector<std::uint32_t>{1, 0});
    auto const& e = cache.of_edge(1, a, d);
    CHECK(&e == &cache.of_edge(1, a, d));
    CHECK(&e != &cache.of_edge(1, b, d));
    CHECK(&cache.of_edge(1, b, d) != &cache.of_edge(1, c, d));
    CHECK(&cache.shape_of_edge(1, b, d) == &cache.shape_of_edge(1, c, d));
    auto const of_class = [&](sim::operator_blocks const& first) -> sim::class_blocks const& {
        return cache.of_class(0, [&](std::uint32_t member) -> sim::operator_blocks const& { return member == 1 ? first : d; });
    };
    CHECK(&of_class(a) == &of_class(a));
    CHECK(&of_class(a) != &of_class(b));
    CHECK(cache.bytes() > 0);
}

TEST_CASE("block_cache: configurations of all placements hash apart") {
    sim::word_hash const hash;
    std::mt19937_64 rng(3);
    auto const p = two_layers(8);
    std::vector<std::size_t> all;
    for (auto const& c : p.space()[1]) {
        all.push_back(hash(c));
        CHECK(hash(space::configuration(c)) == hash(c));
    }
    auto const count = all.size();
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    CHECK(all.size() == count);
    CHECK(hash(std::vector<std::uint32_t>{1, 2}) != hash(std::vector<std::uint32_t>{2, 1}));
    CHECK(hash(std::vector<std::uint32_t>{}) != hash(std::vector<std::uint32_t>{0}));
    CHECK(hash(std::uint64_t{1}) != hash(std::uint64_t{1} << 32));
}

TEST_CASE("block_cache: trimmed, it keeps what is current and makes the rest anew") {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const p = support::random_workload(rng, support::random_options(rng), {});
        auto const g = support::block_graph_of(*p.work);
        sim::block_cache cache(p.work, false);
        auto const s = support::random_strategy(rng, p, 0.2), other = support::random_strategy(rng, p, 0.2);
        auto const current = support::place_blocks(cache, g, s);
        auto const flat = support::flatten(g, current.tasks, current.waits, cache.resources());
        auto const others = [&] {
            auto const placed = support::place_blocks(cache, g, other);
            return support::flatten(g, placed.tasks, placed.waits, cache.resources());
        };
        auto const before = others();
        auto const bytes = cache.bytes();
        cache.trim(current.operators, current.edges, current.classes);
        REQUIRE(cache.bytes() < bytes);
        auto const again = support::place_blocks(cache, g, s);
        REQUIRE(again.operators == current.operators);
        REQUIRE(again.edges == current.edges);
        REQUIRE(again.classes == current.classes);
        REQUIRE(same(support::flatten(g, again.tasks, again.waits, cache.resources()), flat));
        REQUIRE(same(others(), before));
    }
}

TEST_CASE("block_cache: trimmed of everything") {
    auto const p = two_layers();
    sim::block_cache cache(p.work, false);
    auto const g = support::block_graph_of(*p.work);
    auto const s = support::all_on_first(p.graph());
    auto const flat = [&] {
        auto const placed = support::place_blocks(cache, g, s);
        return support::flatten(g, placed.tasks, placed.waits, cache.resources());
    };
    auto const before = flat();
    cache.trim(std::vector<sim::operator_blocks*>(3), std::vector<sim::edge_blocks const*>(2), std::vector<sim::class_blocks const*>(1));
    CHECK(same(flat(), before));
}

TEST_CASE("block_cache: usable after an oracle that failed at any of its questions") {
    std::size_t failures = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const left = std::make_shared<std::int64_t>(1 << 30);
        auto const p = support::random_workload(rng, support::random_options(rng), {}, support::failing_oracle{left, seed % 2 == 0});
        auto const g = support::block_graph_of(*p.work);
        auto const s = support::random_strategy(rng, p, 0.3);
        sim::block_cache fresh(p.work, false);
        auto const expected = support::place_blocks(fresh, g, s);
        auto const flat = support::flatten(g, expected.tasks, expected.waits, fresh.resources());
        *left = 1 << 30;
        sim::block_cache patient(p.work, false); // asks again where it was refused
        for (std::int64_t answers = 0; answers < 50; ++answers) {
            sim::block_cache cache(p.work, false);
            *left = answers;
            try {
                (void)support::place_blocks(cache, g, s);
            } catch (std::runtime_error const&) {
                ++failures;
            } catch (invalid_input const&) {
                ++failures;
            }
            *left = 2;
            try {
                (void)support::place_blocks(patient, g, s);
            } catch (std::runtime_error const&) {
            } catch (invalid_input const&) {
            }
            *left = 1 << 30;
            auto const placed = support::place_blocks(cache, g, s);
            REQUIRE(same(support::flatten(g, placed.tasks, placed.waits, cache.resources()), flat));
        }
        auto const placed = support::place_blocks(patient, g, s);
        REQUIRE(same(support::flatten(g, placed.tasks, placed.waits, patient.resources()), flat));
    }
    CHECK(failures > 200);
}
