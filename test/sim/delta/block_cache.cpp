#include <parsearch/sim/delta/block_cache.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "support/block_tasks.hpp"
#include "support/cases.hpp"
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

bool same(sim::task_list const& a, sim::task_list const& b) { return a.resource == b.resource && a.duration == b.duration; }
bool same(sim::dependence const& a, sim::dependence const& b) {
    return a.aligned == b.aligned && a.each == b.each && a.first_before == b.first_before && a.before == b.before && a.first_after == b.first_after &&
           a.after == b.after;
}
bool same(sim::edge_parts const& a, sim::edge_parts const& b) {
    return same(a.forward, b.forward) && same(a.backward, b.backward) && same(a.forward_waits, b.forward_waits) &&
           same(a.inside_forward, b.inside_forward) && same(a.consumer_waits, b.consumer_waits) && same(a.consumer_local, b.consumer_local) &&
           same(a.backward_waits, b.backward_waits) && same(a.inside_backward, b.inside_backward) && same(a.producer_waits, b.producer_waits) &&
           same(a.producer_local, b.producer_local);
}
bool same(sim::edge_plan const& a, sim::edge_plan const& b) {
    auto const kinds = [](sim::collective_plan const& x, sim::collective_plan const& y) {
        return x.producers == y.producers && x.consumers == y.consumers && x.forward_kind == y.forward_kind && x.backward_kind == y.backward_kind &&
               x.bytes == y.bytes && x.backward_bytes == y.backward_bytes && x.awaited == y.awaited && x.size == y.size;
    };
    return a.bytes == b.bytes && a.collective_of == b.collective_of && a.first_forward == b.first_forward && a.first_backward == b.first_backward &&
           !a.table == !b.table && std::equal(a.collectives.begin(), a.collectives.end(), b.collectives.begin(), b.collectives.end(), kinds);
}
bool same(sim::edge_blocks const& a, sim::edge_blocks const& b) {
    return same(a.plan, b.plan) && same(a.parts, b.parts) && a.work == b.work && !a.folded == !b.folded &&
           (!a.folded || same(*a.folded, *b.folded)) && a.fold_forward == b.fold_forward && a.fold_backward == b.fold_backward;
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

TEST_CASE("block_cache: blocks that edges share are those that each would have alone") {
    std::size_t edges = 0, shared = 0, folded = 0;
    for (std::uint64_t seed = 0; seed < support::cases<std::uint64_t>(240); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng(seed);
        support::problem_shape shape;
        shape.operators = 14;
        if (seed % 2 == 1) shape.devices = 6, shape.nodes = 3;
        auto const p = support::random_workload(rng, support::random_options(rng), shape);
        auto const g = support::block_graph_of(*p.work);
        sim::block_cache cache(p.work, true);
        for (int n = 0; n < 6; ++n) {
            auto strategy = support::random_strategy(rng, p, n % 2 == 1 ? 0.3 : 0.0);
            if (seed % 2 == 1 && n % 3 == 0) // a shard on every device, or the first device alone: blocks that fold
                for (std::size_t op = 0; op < strategy.size(); ++op) {
                    strategy[op] = space::whole(p.graph().operations[op]);
                    for (auto const& c : p.space()[op])
                        if (c.shards() == 6 && uniform_index(rng, 2) == 0) strategy[op] = c;
                }
            auto const placed = support::place_blocks(cache, g, strategy);
            std::set<void const*> seen;
            for (std::uint32_t e = 0; e < placed.edges.size(); ++e) {
                if (!placed.edges[e]) continue;
                ++edges;
                shared += !seen.insert(placed.edges[e]).second;
                folded += placed.edges[e]->folded != nullptr;
                sim::block_cache alone(p.work, true);
                auto const built = [&](std::uint32_t op) -> sim::operator_blocks const& {
                    auto& b = alone.of_operator(op, strategy[op]);
                    alone.build(op, b);
                    return b;
                };
                auto const& ends = p.graph().edges[e];
                auto const& from = built(ends.producer);
                REQUIRE(same(alone.of_edge(e, from, built(ends.consumer)), *placed.edges[e]));
            }
            if (uniform_index(rng, 3) == 0) cache.trim(placed.operators, placed.edges, placed.classes);
        }
    }
    CHECK(edges > support::cases<std::size_t>(6000));
    CHECK(shared > support::cases<std::size_t>(120));
    CHECK(folded > support::cases<std::size_t>(500));
}

TEST_CASE("block_cache: edges that are no repeats share what moves alike") {
    graph::operator_graph g;
    auto const x = g.input("x", {{8, 4}});
    auto const a = g.add("a", ops::relu{}, x), b = g.add("b", ops::gelu{}, x);
    auto const half = g.add("half", ops::cast{.type = ops::dtype::f16}, x);
    g.add("sum", ops::add{}, a, b);
    g.add("reads", ops::relu{}, half);
    auto const p = support::make_workload_problem(g, support::mesh(4), support::mixed_oracle{});
    auto const& dense = p.graph();
    sim::block_cache cache(p.work, false);
    auto const number = [&](std::string_view name) {
        return static_cast<std::uint32_t>(std::find(dense.names.begin(), dense.names.end(), name) - dense.names.begin());
    };
    auto const built = [&](std::string_view name, std::int32_t degree) -> sim::operator_blocks const& {
        auto const op = number(name);
        auto c = space::whole(dense.operations[op]);
        c.degree[0] = degree;
        c.stride[0] = 1;
        auto& made = cache.of_operator(op, c);
        cache.build(op, made);
        return made;
    };
    auto const edge = [&](std::string_view to, std::uint32_t input, sim::operator_blocks const& from,
                          sim::operator_blocks const& there) -> sim::edge_blocks const& {
        return cache.of_edge(dense.first_in[number(to)] + input, from, there);
    };
    auto const& sum = built("sum", 2);
    auto const& first = edge("sum", 0, built("a", 4), sum);
    CHECK(&edge("sum", 1, built("b", 4), sum) == &first);
    CHECK(&edge("sum", 1, built("b", 2), sum) != &first);
    CHECK(&edge("reads", 0, built("half", 4), built("reads", 2)) != &first); // elements of another size
}
