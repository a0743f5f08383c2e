#include <parsearch/sim/task/pricing.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include "support/plain_topology.hpp"
#include "support/refusal.hpp"

using namespace parsearch;

namespace {

struct plain_oracle {
    std::int64_t message = -1;    ///< time of a message; negative: by the link
    std::int64_t collective = 70; ///< time of a collective
    [[nodiscard]] picoseconds shard_time(ops::shard_work const& w, std::uint32_t device) const {
        return picoseconds{device * 100 + static_cast<std::int64_t>(w.flops)};
    }
    [[nodiscard]] picoseconds transfer_time(byte_count bytes, link_description const& link) const {
        return message < -1 ? picoseconds{message} : link.latency + time_of(bytes, link.rate);
    }
    [[nodiscard]] picoseconds collective_time(collective_kind, byte_count, collective_group const&) const { return picoseconds{collective}; }
};

struct fixture {
    topology::topology_reading<std::uint32_t, std::uint32_t> read;
    plain_oracle oracle;
    explicit fixture(support::plain_topology const& t, plain_oracle o = {}) : read(topology::read_topology(t)), oracle(o) {}
    [[nodiscard]] auto pricing(sim::simulation_options const& o = {}) const { return sim::pricing(read.topology, {oracle, read.devices}, o); }
};

} // namespace

TEST_CASE("pricing: the oracle is asked with the first device of a kind") {
    auto t = support::mesh(4);
    t.device[1].kind = t.device[3].kind = "other";
    fixture const f(t);
    auto const price = f.pricing();
    CHECK(price.kinds() == 2);
    ops::operation const op{.kind = "k"};
    CHECK(price.shard({.op = &op, .flops = 5}, 0, "x") == 5);
    CHECK(price.shard({.op = &op, .flops = 5}, 1, "x") == 105);
}

TEST_CASE("pricing: a message holds every link of its route for its bytes there and the latency of the others") {
    support::plain_topology t(3);
    auto const slow = t.add_link(0.5, 10), fast = t.add_link(2, 3);
    for (auto& from : t.routes)
        for (auto& r : from) r = {slow};
    t.routes[0][2] = {slow, fast};
    fixture const f(t);
    std::vector<sim::hop> hops;
    f.pricing().append_route(0, 2, 100, hops);
    REQUIRE(hops.size() == 2);
    CHECK(hops[0].link == slow);
    CHECK(hops[0].duration == 10 + 200 + 3);
    CHECK(hops[1].link == fast);
    CHECK(hops[1].duration == 3 + 50 + 10);
    f.pricing().append_route(1, 2, 100, hops);
    CHECK(hops.size() == 3); // appended
}

TEST_CASE("pricing: other ways to take the links of a route") {
    support::plain_topology t(2);
    auto const slow = t.add_link(0.5, 10), fast = t.add_link(2, 3);
    t.routes[0][1] = t.routes[1][0] = {slow, fast};
    fixture const f(t);
    auto const message = [&](sim::transfer_model m, byte_count bytes, byte_count segment = 64) {
        std::vector<sim::hop> hops;
        f.pricing({.transfers = m, .segment = segment}).append_route(0, 1, bytes, hops);
        std::vector<std::tuple<std::uint32_t, bool, std::int64_t>> out;
        for (auto const& h : hops) out.emplace_back(h.link, h.follows, h.duration);
        return out;
    };
    using hops = std::vector<std::tuple<std::uint32_t, bool, std::int64_t>>;
    CHECK(message(sim::transfer_model::store_and_forward, 100) == hops{{slow, false, 210}, {fast, true, 53}});
    CHECK(message(sim::transfer_model::fair_sharing, 100) == hops{{slow, false, 200}, {fast, false, 50}});
    CHECK(message(sim::transfer_model::cut_through, 100) ==
          hops{{slow, false, 10 + 128}, {fast, true, 3 + 32}, {slow, false, 10 + 72}, {fast, true, 3 + 18}});
    CHECK(message(sim::transfer_model::cut_through, 64) == hops{{slow, false, 138}, {fast, true, 35}});
    CHECK(message(sim::transfer_model::cut_through, 0) == hops{{slow, false, 10}, {fast, true, 3}});
    CHECK(support::refusal([&] { return message(sim::transfer_model::cut_through, 1'000'001, 1); }) ==
          "a message of 1000001 bytes in segments of 1: more than 1000000 segments, 'segment' must be larger");
    CHECK(f.pricing().latencies() == std::vector<std::int64_t>{10, 3});
}

TEST_CASE("pricing: an all-to-all holds the links between all pairs, and no less than the fullest one needs") {
    // Four devices on a line: of the messages, 3, 4 and 3 pass the links, in each direction.
    auto const read = topology::read_topology(support::line(4, 1, 5));
    struct no_collectives {
        picoseconds operator()(ops::shard_work const&, std::uint32_t) const { return {}; }
    };
    sim::pricing price(read.topology, {no_collectives{}, read.devices});
    auto const hops = price.collective(collective_kind::all_to_all, 1600, {0, 1, 2, 3});
    REQUIRE(hops.size() == 6);
    std::vector<std::int64_t> durations;
    for (auto const& h : hops) durations.push_back(h.duration);
    std::sort(durations.begin(), durations.end());
    std::int64_t const full = 4 * 100 + 3 * 5; // messages of 1600 / 16 bytes, the latency of three links; 3 of 4 of it is 311.25
    CHECK(durations == std::vector<std::int64_t>{311, 311, 311, 311, full, full});
    // The steps of a pairwise exchange take longer where latency is what counts.
    CHECK(price.collective(collective_kind::all_to_all, 16, {0, 1, 2, 3}).size() == 6);
    for (auto const& h : price.collective(collective_kind::all_to_all, 16, {0, 1, 2, 3})) CHECK(h.duration <= 3 * 15 + 3);
    CHECK(price.collective(collective_kind::all_gather, 1600, {0, 1, 2, 3}).size() == 6); // a ring: there, and all the way back
}

TEST_CASE("pricing: messages sent together hold each link for all bytes that pass it") {
    auto const read = topology::read_topology(support::line(4, 2, 5));
    sim::pricing price(read.topology, {plain_oracle{}, read.devices});
    std::vector<sim::message> const messages{{0, 1, 100}, {0, 2, 60}, {2, 1, 40}, {1, 2, 0}};
    for (int again = 0; again < 2; ++again) {
        auto const hops = price.all_to_all_v(messages);
        std::map<std::uint32_t, std::int64_t> held;
        for (auto const& h : hops) held[h.link] = h.duration;
        REQUIRE(held.size() == 3);
        // The largest latency of a message is 10, that of a link 5.
        CHECK(held[read.topology.route(0, 1)[0]] == 160 / 2 + 10);
        CHECK(held[read.topology.route(1, 2)[0]] == 60 / 2 + 10);
        CHECK(held[read.topology.route(2, 1)[0]] == 40 / 2 + 10);
    }
    CHECK(price.all_to_all_v({}).empty());
    CHECK(sim::collective_volume(collective_kind::all_to_all_v, 100, 4) == 100);
}

TEST_CASE("pricing: a collective holds the slowest link of its ring for its time, the others for their share") {
    support::plain_topology t(3);
    auto const a = t.add_link(1), b = t.add_link(2), c = t.add_link(4);
    for (auto& from : t.routes)
        for (auto& r : from) r = {a};
    t.routes[1][2] = {b};
    t.routes[2][0] = {c};
    fixture const f(t);
    auto price = f.pricing();
    auto const hops = price.collective(collective_kind::all_gather, 1000, {0, 1, 2});
    REQUIRE(hops.size() == 3);
    CHECK(hops[0].link == a);
    CHECK(hops[0].duration == 70);
    CHECK(hops[1].duration == 35);
    CHECK(hops[2].duration == 18); // 17.5 rounded
}

TEST_CASE("pricing: negative times are refused") {
    CHECK(support::refusal([] { return fixture(support::mesh(2), {.message = -2}).pricing(); }) ==
          "the cost oracle answers -2 ps for a message of 0 bytes on link 0 of the topology: must be from 0 to 1152921504606846976 (13 days)");
    fixture const f(support::mesh(3), {.collective = -7});
    CHECK(support::refusal([&] {
              return f.pricing().collective(collective_kind::broadcast, 12, {0, 1, 2});
          }) == "the cost oracle answers -7 ps for broadcast of 12 bytes among 3 devices: 0, 1, 2: must be from 0 to 1152921504606846976 (13 days)");
    ops::operation const op{.kind = "relu"};
    CHECK(support::refusal([&] { return f.pricing().shard({.op = &op, .pass = ops::pass::update, .flops = -4}, 0, "act"); }) ==
          "operator 'act' (relu), update on a device of kind 'gpu': the cost oracle answers -4 ps: must be from 0 to 1152921504606846976 (13 days)");
}

TEST_CASE("pricing: volumes") {
    CHECK(sim::collective_volume(collective_kind::all_reduce, 100, 4) == 600);
    CHECK(sim::collective_volume(collective_kind::all_gather, 100, 4) == 300);
    CHECK(sim::collective_volume(collective_kind::reduce_scatter, 100, 4) == 300);
    CHECK(sim::collective_volume(collective_kind::broadcast, 100, 4) == 300);
    CHECK(sim::collective_volume(collective_kind::reduce, 100, 4) == 300);
    CHECK(sim::collective_volume(collective_kind::all_to_all, 100, 4) == 75);
}
