#include <parsearch/sim/task/movement.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/ops/linear.hpp>

using namespace parsearch;
using sim::movement, sim::traffic_kind;

namespace {

/// A message takes its bytes on link 10 * from + to; a collective its bytes on the links of its members' numbers.
struct plain_pricing {
    void append_route(std::uint32_t from, std::uint32_t to, byte_count bytes, std::vector<sim::hop>& out) const {
        out.push_back({10 * from + to, false, bytes});
    }
    [[nodiscard]] std::vector<sim::hop> collective(collective_kind, byte_count bytes, std::vector<std::uint32_t> const& members) const {
        std::vector<sim::hop> out;
        for (auto const m : members) out.push_back({m, false, bytes});
        return out;
    }
    [[nodiscard]] std::vector<sim::hop> all_to_all_v(std::span<sim::message const> messages) const {
        std::vector<sim::hop> out;
        for (auto const& m : messages) append_route(m.from, m.to, m.bytes, out);
        return out;
    }
};

/// The edge between two linear layers of 8 x 8 x 8, degrees (s, o, k) each.
sim::edge_plan plan(std::vector<std::int32_t> const& from, std::vector<std::uint32_t> const& from_devices, std::vector<std::int32_t> const& to,
                    std::vector<std::uint32_t> const& to_devices, movement how = movement::collective, bool gradients = true,
                    std::optional<sim::ring_times> const& ring = {}) {
    auto const op = ops::linear{.out = 8, .bias = false}.infer(std::vector<ops::tensor>{{{8, 8}}});
    auto table = std::make_shared<sim::overlap_table const>(sim::find_overlaps(op, op.outputs[0], from, op, op.inputs[0], to));
    plain_pricing price;
    return sim::plan_edge(std::move(table), 4, from_devices, to_devices, how, gradients, price, ring);
}
double bytes(sim::edge_plan const& p, traffic_kind k) { return p.bytes[static_cast<std::size_t>(k)]; }

} // namespace

TEST_CASE("movement: nothing moves within a device") {
    for (auto const how : {movement::pairwise, movement::collective, movement::grouped}) {
        auto const p = plan({4, 1, 1}, {3, 2, 1, 0}, {4, 1, 1}, {3, 2, 1, 0}, how);
        CHECK(p.forward.empty());
        CHECK(p.backward.empty());
        CHECK(p.collectives.empty());
        CHECK(p.bytes == std::array<double, sim::traffic_kinds>{});
        CHECK(p.first_forward == std::vector<std::uint32_t>{0, 0, 0, 0, 0});
    }
}

TEST_CASE("movement: grouped, shards that hang together send as one") {
    // Eight pairs of 64 bytes, two of them on one device: all in one group.
    auto const p = plan({1, 4, 1}, {0, 1, 2, 3}, {1, 2, 1}, {0, 1}, movement::grouped);
    CHECK(p.forward.empty());
    REQUIRE(p.collectives.size() == 1);
    auto const& c = p.collectives[0];
    CHECK(c.forward_kind == collective_kind::all_to_all_v);
    CHECK(c.backward_kind == collective_kind::all_to_all_v);
    CHECK(c.producers == std::vector<std::uint32_t>{0, 1, 2, 3});
    CHECK(c.consumers == std::vector<std::uint32_t>{0, 1});
    CHECK(c.forward.size() == 6);
    CHECK(c.backward.size() == 6);
    CHECK(c.bytes == 6 * 64);
    CHECK(c.size == 4);
    CHECK(p.collective_of == std::vector<std::int32_t>(8, 0));
    CHECK(bytes(p, traffic_kind::activation) == 6 * 64);
    CHECK(bytes(p, traffic_kind::gradient) == 6 * 64);

    // Halves of the samples to halves of the samples on other devices: two groups, or single messages where there is nothing to group.
    auto const halves = plan({4, 1, 1}, {0, 1, 2, 3}, {2, 1, 1}, {4, 5}, movement::grouped);
    REQUIRE(halves.collectives.size() == 2);
    CHECK(halves.collectives[0].producers == std::vector<std::uint32_t>{0, 1});
    CHECK(halves.collectives[1].producers == std::vector<std::uint32_t>{2, 3});
    CHECK(halves.collectives[1].consumers == std::vector<std::uint32_t>{1});
    CHECK(halves.collective_of == std::vector<std::int32_t>{0, 0, 1, 1});
    auto const single = plan({2, 1, 1}, {0, 1}, {2, 1, 1}, {0, 5}, movement::grouped);
    CHECK(single.collectives.empty());
    CHECK(single.forward.size() == 1);
    // What is regular stays a collective of its own kind.
    auto const gather = plan({1, 4, 1}, {0, 1, 2, 3}, {1, 4, 1}, {0, 1, 2, 3}, movement::grouped);
    REQUIRE(gather.collectives.size() == 1);
    CHECK(gather.collectives[0].forward_kind == collective_kind::all_gather);
}

TEST_CASE("movement: pairwise, a message per pair on two devices, there and back") {
    // Four column parts of 64 bytes, each to both readers: eight pairs, two of them on one device.
    auto const p = plan({1, 4, 1}, {0, 1, 2, 3}, {1, 2, 1}, {0, 1}, movement::pairwise);
    CHECK(p.collectives.empty());
    REQUIRE(p.forward.size() == 6);
    CHECK(p.forward[0].link == 10);
    CHECK(p.forward[0].duration == 64);
    CHECK(p.backward[0].link == 1);
    CHECK(bytes(p, traffic_kind::activation) == 6 * 64);
    CHECK(bytes(p, traffic_kind::gradient) == 6 * 64);
    CHECK(plan({1, 4, 1}, {0, 1, 2, 3}, {1, 2, 1}, {0, 1}, movement::pairwise, false).backward.empty());
}

TEST_CASE("movement: volumes of collectives") {
    auto const gather = plan({1, 4, 1}, {0, 1, 2, 3}, {1, 4, 1}, {0, 1, 2, 3});
    REQUIRE(gather.collectives.size() == 1);
    CHECK(gather.forward.empty());
    CHECK(gather.collectives[0].forward.size() == 4);
    CHECK(gather.collectives[0].forward[0].duration == 256); // the whole tensor
    CHECK(bytes(gather, traffic_kind::activation) == 3 * 256);
    CHECK(bytes(gather, traffic_kind::gradient) == 3 * 256);
    auto const sums = plan({1, 1, 4}, {0, 1, 2, 3}, {1, 4, 1}, {0, 1, 2, 3});
    CHECK(bytes(sums, traffic_kind::partial_sum) == 2 * 3 * 256);
    CHECK(bytes(sums, traffic_kind::activation) == 0);
    auto const turned = plan({1, 4, 1}, {0, 1, 2, 3}, {4, 1, 1}, {0, 1, 2, 3}, movement::collective, false);
    CHECK(bytes(turned, traffic_kind::activation) == 256 * 3 / 4.0);
    CHECK(turned.collectives[0].backward.empty());
}

TEST_CASE("movement: no collective for two devices, nor through devices that hold and want nothing") {
    CHECK(plan({1, 2, 1}, {0, 1}, {1, 2, 1}, {0, 1}).collectives.empty());
    CHECK(plan({1, 4, 1}, {0, 1, 0, 1}, {1, 4, 1}, {0, 1, 1, 0}).collectives.empty()); // four shards on two devices
    CHECK(plan({1, 2, 1}, {0, 1}, {1, 4, 1}, {2, 3, 4, 5}).collectives.empty());
    CHECK(plan({1, 2, 1}, {4, 5}, {1, 4, 1}, {2, 3, 4, 5}).collectives.empty());  // two of the four hold nothing
    CHECK(plan({1, 1, 1}, {4}, {1, 4, 1}, {2, 3, 4, 5}).collectives.size() == 1); // a broadcast from one of them
    CHECK(plan({1, 1, 1}, {9}, {1, 4, 1}, {2, 3, 4, 5}).collectives.empty());
}

TEST_CASE("movement: of what is passed on in a ring, readers wait for what does not come while they compute") {
    auto const ring = [](std::int64_t forward, std::int64_t backward, std::int64_t later = 0, bool gradients = true) {
        return plan({1, 4, 1}, {0, 1, 2, 3}, {1, 4, 1}, {0, 1, 2, 3}, movement::collective, gradients,
                    sim::ring_times{true, forward, backward, later, later});
    };
    auto const durations = [](std::vector<sim::hop> const& links) {
        std::vector<std::int64_t> out;
        for (auto const& h : links) out.push_back(h.duration);
        return out;
    };
    using all = std::vector<std::int64_t>;
    // 256 bytes, a ps each; three of four parts are computed while others come: of 100 ps 75. Backward brings them again: 512 ps.
    auto const p = ring(100, 200);
    REQUIRE(p.collectives.size() == 2);
    auto const &waited = p.collectives[0], &beside = p.collectives[1];
    CHECK(waited.awaited);
    CHECK_FALSE(beside.awaited);
    CHECK(p.collective_of == std::vector<std::int32_t>(16, 0));
    CHECK(beside.producers == waited.producers);
    CHECK(beside.consumers == waited.consumers);
    CHECK(durations(waited.forward) == all(4, 181));
    CHECK(durations(beside.forward) == all(4, 75));
    CHECK(durations(waited.backward) == all(4, 362));
    CHECK(durations(beside.backward) == all(4, 150));
    CHECK(waited.bytes + beside.bytes == 256);
    CHECK(beside.bytes == 75);
    CHECK(waited.backward_bytes + beside.backward_bytes == 512);
    CHECK(bytes(p, traffic_kind::activation) == 3 * 256);
    CHECK(bytes(p, traffic_kind::gradient) == 2 * 3 * 256);
    // Long enough: nothing is waited for.
    CHECK(ring(1000, 1000).collectives[0].forward.empty());
    CHECK(durations(ring(1000, 1000).collectives[1].forward) == all(4, 256));
    // A tensor as large comes later, and is moved meanwhile first: of 400 ps 300 are computed while others come, 256 of them for that one.
    CHECK(durations(ring(400, 0, 1).collectives[0].forward) == all(4, 212));
    CHECK(ring(300, 0, 1).collectives.size() == 1);
    CHECK(durations(ring(300, 0, 1).collectives[0].backward) == all(4, 512));
    CHECK(durations(ring(0, 800, 1).collectives[0].backward) == all(4, 424)); // 600 of 800, 512 of them for that one
    CHECK(p.collectives[0].again == 256);
    CHECK(p.collectives[1].again == 0);
    // Readers that keep all of it need no more than the sums of its gradients.
    auto const kept =
        plan({1, 4, 1}, {0, 1, 2, 3}, {1, 4, 1}, {0, 1, 2, 3}, movement::collective, true, sim::ring_times{.forward = 100, .backward = 200});
    CHECK(durations(kept.collectives[0].backward) == all(4, 106));
    CHECK(bytes(kept, traffic_kind::gradient) == 3 * 256);
    CHECK(kept.collectives[0].again == 0);
    // Inference has no backward, and what takes no time hides nothing.
    CHECK(ring(100, 100, 0, false).collectives[0].backward.empty());
    CHECK(bytes(ring(100, 100, 0, false), traffic_kind::gradient) == 0);
    CHECK(ring(0, 0).collectives.size() == 1);
    // Other collectives stay as they are.
    auto const sums = plan({1, 1, 4}, {0, 1, 2, 3}, {1, 4, 1}, {0, 1, 2, 3}, movement::collective, true,
                           sim::ring_times{.again = true, .forward = 100, .backward = 100});
    CHECK(sums.collectives.size() == 1);
    CHECK(durations(sums.collectives[0].forward) == all(4, 256));
}
