#include <parsearch/cost/collectives.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

#include <doctest/doctest.h>

using namespace parsearch;
using namespace parsearch::cost;
using enum collective_kind;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

namespace {
constexpr std::array kinds{all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce};

/// p devices of one node: 10 GB/s (10 bytes per ns), 2 us.
collective_group flat(std::uint32_t p) { return {.size = p, .nodes = 1, .per_node = p, .ring_rate = {10e9}, .ring_latency = microseconds{2}}; }
/// 4 nodes of 8 devices: 100 GB/s and 1 us inside, 10 GB/s and 5 us between.
collective_group layered() {
    return {.size = 32,
            .nodes = 4,
            .per_node = 8,
            .ring_rate = {10e9},
            .ring_latency = microseconds{5},
            .inside_rate = {100e9},
            .inside_latency = microseconds{1},
            .between_rate = {10e9},
            .between_latency = microseconds{5}};
}
picoseconds by(collective_algorithm a, collective_kind k, byte_count bytes, collective_group const& g) {
    return alpha_beta{}.time_by(a, k, bytes, g);
}
picoseconds best(collective_kind k, byte_count bytes, collective_group const& g) { return alpha_beta{}.collective_time(k, bytes, g); }
} // namespace

TEST_CASE("rings, by the closed formulas: 8 devices, 800,000 bytes are 80 us at the rate") {
    auto const ring = [](collective_kind k) { return by(collective_algorithm::ring, k, 800'000, flat(8)); };
    CHECK(ring(all_reduce) == 14 * microseconds{2} + microseconds{140});
    CHECK(ring(all_gather) == 7 * microseconds{2} + microseconds{70});
    CHECK(ring(reduce_scatter) == 7 * microseconds{2} + microseconds{70});
    CHECK(ring(broadcast) == 7 * microseconds{2} + microseconds{80});
    CHECK(ring(reduce) == 7 * microseconds{2} + microseconds{80});
    CHECK(ring(all_to_all) == 7 * microseconds{2} + nanoseconds{8750}); // each device sends 7 / 64 of the bytes
}

TEST_CASE("trees, by the closed formulas: depth 3 for 8 devices and for 5") {
    auto const tree = [](collective_kind k, std::uint32_t p) { return by(collective_algorithm::tree, k, 800'000, flat(p)); };
    CHECK(tree(all_reduce, 8) == 6 * microseconds{2} + microseconds{160});
    CHECK(tree(all_gather, 8) == 6 * microseconds{2} + microseconds{150});
    CHECK(tree(reduce_scatter, 8) == 6 * microseconds{2} + microseconds{150});
    CHECK(tree(broadcast, 8) == 3 * microseconds{2} + microseconds{80});
    CHECK(tree(reduce, 8) == 3 * microseconds{2} + microseconds{80});
    CHECK(tree(all_to_all, 8) == 3 * microseconds{2} + microseconds{15});
    CHECK(tree(all_reduce, 5) == 6 * microseconds{2} + microseconds{160});
    CHECK(tree(all_reduce, 9) == 8 * microseconds{2} + microseconds{160});
    CHECK(tree(all_reduce, 2) == 2 * microseconds{2} + microseconds{160});
}

TEST_CASE("hierarchies, by the closed formulas: 8 MB are 80 us inside and an eighth of them 100 us between") {
    auto const h = [](collective_kind k) { return by(collective_algorithm::hierarchical, k, 8'000'000, layered()); };
    auto const inside = 7 * microseconds{1} + microseconds{70}, across = 3 * microseconds{5} + microseconds{75};
    CHECK(h(all_gather) == inside + across);
    CHECK(h(reduce_scatter) == inside + across);
    CHECK(h(all_reduce) == 2 * inside + 2 * across);
    CHECK(h(broadcast) == 2 * inside + 3 * microseconds{5} + microseconds{100});
    CHECK(h(reduce) == h(broadcast));
    // Messages of 8 MB / 32^2 = 7812.5 bytes: 7 inside at 100 GB/s, 24 between at 10 GB/s.
    CHECK(h(all_to_all) == 7 * microseconds{1} + picoseconds{546'875} + 24 * microseconds{5} + microseconds{18} + nanoseconds{750});
}

TEST_CASE("the cheapest algorithm by size: trees for small, rings or hierarchies for large") {
    alpha_beta const model;
    CHECK(model.cheapest(all_reduce, 1'000, flat(16)).algorithm == collective_algorithm::tree);
    CHECK(model.cheapest(all_reduce, 100'000'000, flat(16)).algorithm == collective_algorithm::ring);
    // Of 16 devices: 30 steps and 15/8 of the bytes against 8 steps and 2: equal at 22 * 2 us * 10 bytes/ns * 8 = 3.52 MB.
    CHECK(model.cheapest(all_reduce, 3'519'000, flat(16)).algorithm == collective_algorithm::tree);
    CHECK(model.cheapest(all_reduce, 3'520'000, flat(16)).algorithm == collective_algorithm::ring); // a tie: further left
    CHECK(model.cheapest(all_reduce, 3'521'000, flat(16)).algorithm == collective_algorithm::ring);
    CHECK(model.cheapest(all_to_all, 1'000, flat(16)).algorithm == collective_algorithm::tree);
    CHECK(model.cheapest(all_to_all, 100'000'000, flat(16)).algorithm == collective_algorithm::ring);
    CHECK(model.cheapest(all_reduce, 100'000'000, layered()).algorithm == collective_algorithm::hierarchical);
    CHECK(model.cheapest(all_reduce, 1, layered()).algorithm == collective_algorithm::hierarchical); // 14 + 30 us against 50 us
    CHECK(model.cheapest(all_to_all, 1, layered()).algorithm == collective_algorithm::hierarchical);
}

TEST_CASE("the time never falls when bytes grow, and is the least of the algorithms") {
    for (auto const kind : kinds)
        for (auto const& group : {flat(2), flat(7), flat(64), layered()}) {
            picoseconds before{0};
            for (byte_count bytes = 1; bytes < 1'000'000'000; bytes = bytes * 3 + 1) {
                auto const time = best(kind, bytes, group);
                CHECK(time >= before);
                for (auto const a : collective_algorithms)
                    if (alpha_beta::applies(a, kind, group)) CHECK(time <= by(a, kind, bytes, group));
                before = time;
            }
        }
}

TEST_CASE("an all-reduce costs what a reduce-scatter and an all-gather cost by ring") {
    for (byte_count const bytes : {byte_count{8}, byte_count{4096}, byte_count{1} << 30}) {
        auto const half = by(collective_algorithm::ring, all_gather, bytes, flat(8));
        auto const whole = by(collective_algorithm::ring, all_reduce, bytes, flat(8));
        CHECK(std::chrono::abs(whole - 2 * half) <= picoseconds{1});
    }
}

TEST_CASE("nothing to do takes no time; groups of one device per node are flat") {
    for (auto const kind : kinds) {
        CHECK(best(kind, 0, flat(8)) == picoseconds{0});
        CHECK(best(kind, 1000, {.size = 1}) == picoseconds{0}); // no rates needed
        collective_group spread{.size = 4, .nodes = 4, .per_node = 1, .ring_rate = {10e9}, .ring_latency = microseconds{2}};
        CHECK(best(kind, 1000, spread) == best(kind, 1000, flat(4)));
    }
}

TEST_CASE("an all-to-all takes no less than its most loaded link, where that is known") {
    for (auto group : {flat(8), layered()}) {
        auto const plain = best(all_to_all, 64'000'000, group);
        group.exchange_rate = {1e15};
        group.exchange_latency = microseconds{1};
        CHECK(best(all_to_all, 64'000'000, group) == plain);
        group.exchange_rate = {1e6};
        double const p = group.size;
        CHECK(to_seconds(best(all_to_all, 64'000'000, group)) == doctest::Approx(1e-6 + 64e6 * (p - 1) / p / p / 1e6));
        group.exchange_rate = {1e6};
        CHECK(best(all_gather, 64'000'000, group) < best(all_to_all, 64'000'000, group)); // of no matter to others
    }
}

TEST_CASE("an all-reduce in the switch: what its link carries is (p + 1) / p of the bytes; nothing else gains") {
    auto g = flat(8);
    g.switch_rate = {9e9};
    CHECK(by(collective_algorithm::in_switch, all_reduce, 800'000, g) == 6 * microseconds{2} + microseconds{100});
    CHECK(alpha_beta{}.cheapest(all_reduce, 800'000, g).algorithm == collective_algorithm::in_switch);
    CHECK(best(all_reduce, 1, g) > 6 * microseconds{2}); // the latency of a tree
    for (auto const kind : kinds)
        if (kind != all_reduce) CHECK(best(kind, 800'000, g) == best(kind, 800'000, flat(8)));
    g.switch_rate = {1e9}; // slower than rings
    CHECK(best(all_reduce, 800'000, g) == best(all_reduce, 800'000, flat(8)));
    CHECK(best(all_reduce, 0, g) == picoseconds{0});
    for (std::uint32_t p = 3; p < 20; ++p) { // more bytes are never faster
        auto few = flat(p);
        few.switch_rate = {12e9};
        for (byte_count b = 1; b < 1'000'000; b = b * 3 + 1) CHECK(best(all_reduce, b, few) <= best(all_reduce, b + 1, few));
    }
}

TEST_CASE("all-reduces in the switch of H100 as measured: bytes per second of sums among 5 to 8, and no gain among 4") {
    auto const sums = [](std::uint32_t p, collective_algorithm a) {
        collective_group g{.size = p, .nodes = 1, .per_node = p, .ring_rate = {370e9}, .ring_latency = microseconds{1}, .switch_rate = {308.6e9}};
        return 8e9 / to_seconds(by(a, all_reduce, 8'000'000'000, g)) / 1e9;
    };
    // NVIDIA/nccl, issue 1455.
    for (auto const& [p, measured] : {std::pair{5u, 258.}, {6u, 265.}, {7u, 270.}, {8u, 273.}})
        CHECK(sums(p, collective_algorithm::in_switch) == doctest::Approx(measured).epsilon(0.01));
    CHECK(sums(4, collective_algorithm::in_switch) == doctest::Approx(sums(4, collective_algorithm::ring)).epsilon(0.01));
}

TEST_CASE("mistakes are named") {
    CHECK_THROWS_WITH_AS((void)best(collective_kind::all_to_all_v, 1000, flat(4)), doctest::Contains("its cost follows from its messages"),
                         invalid_input);
    CHECK_THROWS_WITH_AS((void)best(all_reduce, -1, flat(2)), doctest::Contains("collective of -1 bytes: must not be negative"), invalid_input);
    auto no_rate = flat(2);
    no_rate.ring_rate = {0};
    CHECK_THROWS_WITH_AS((void)best(all_reduce, 1, no_rate), doctest::Contains("rate 0 B/s: must be positive"), invalid_input);
    auto no_inside = layered();
    no_inside.inside_rate = {};
    CHECK_THROWS_WITH_AS((void)best(all_reduce, 1, no_inside), doctest::Contains("must be positive"), invalid_input);
    for (auto const& g : {collective_group{.size = 0}, {.size = 5, .nodes = 2, .per_node = 2}, {.size = 4, .nodes = 4, .per_node = 2}})
        CHECK_THROWS_WITH_AS((void)best(broadcast, 1, g), doctest::Contains("no such group exists"), invalid_input);
    CHECK_THROWS_WITH_AS((void)by(collective_algorithm::hierarchical, reduce, 1, flat(4)), doctest::Contains("hierarchical reduce over 1 nodes"),
                         invalid_input);
    CHECK_THROWS_WITH_AS((void)by(collective_algorithm::in_switch, all_reduce, 1, flat(4)),
                         doctest::Contains("is an all-reduce whose group has a switch_rate"), invalid_input);
    CHECK_THROWS_WITH_AS((void)by(collective_algorithm::ring, all_to_all, 1, layered()), doctest::Contains("ring all_to_all over 4 nodes"),
                         invalid_input);
}
