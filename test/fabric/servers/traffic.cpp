#include <parsearch/fabric/servers/traffic.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <parsearch/models/mlp.hpp>
#include <support/hand_network.hpp>
#include <support/naive_iteration.hpp>
#include <support/random_problem.hpp>
#include <support/refusal.hpp>

using namespace parsearch;
using fabric::demand;

namespace {

/// Answers with bytes, and with the kind of a collective.
struct bytes_oracle {
    [[nodiscard]] picoseconds shard_time(ops::shard_work const&, std::uint32_t) const { return picoseconds{1}; }
    [[nodiscard]] picoseconds transfer_time(byte_count bytes, link_description const&) const { return picoseconds{bytes}; }
    [[nodiscard]] picoseconds collective_time(collective_kind kind, byte_count bytes, collective_group const&) const {
        return picoseconds{8 * bytes + static_cast<std::int64_t>(kind)};
    }
};

support::plain_topology servers_of_mesh(std::uint32_t devices, std::uint32_t per_server) {
    auto out = support::mesh(devices);
    for (std::uint32_t d = 0; d < devices; ++d) out.node[d] = d / per_server;
    return out;
}

/// Traffic read off the tasks: on a mesh under `bytes_oracle`, durations are bytes and links tell who sends.
template <class Problem, class S> demand observed_traffic(Problem const& p, S const& s, std::array<int, 8>& met) {
    auto simulator = p.simulator();
    simulator.simulate(s);
    auto const& t = simulator.tasks();
    auto const& node = p.topology().node;
    auto const devices = static_cast<std::uint32_t>(node.size());
    demand out(*std::max_element(node.begin(), node.end()) + 1);
    auto const send = [&](std::uint32_t a, std::uint32_t b, byte_count bytes) {
        if (node[a] != node[b]) out.add(node[a], node[b], bytes);
    };
    auto const ends = [&](std::uint32_t task) {
        auto const link = t.resource[task] - devices, from = link / (devices - 1), to = link % (devices - 1);
        return std::pair{from, to + (to >= from)};
    };
    struct found {
        collective_kind kind{};
        byte_count bytes = 0;
        std::set<std::uint32_t> members{};
        std::uint32_t root = 0;
    };
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<found>> of_edges; // by edge and number: forward, backward
    auto const all_reduce = [&](found const& f) {
        std::set<std::uint32_t> servers;
        for (auto const d : f.members) servers.insert(node[d]);
        std::vector<std::uint32_t> const group(servers.begin(), servers.end());
        if (group.size() > 1) out.add_all_reduce(group, f.bytes);
    };
    for (std::uint32_t task = 0; task < t.size(); ++task) {
        if (t.kind[task] == sim::task_kind::transfer) {
            auto const [a, b] = ends(task);
            send(a, b, t.duration[task]);
        }
        if (t.kind[task] != sim::task_kind::barrier) continue;
        found f;
        std::int64_t longest = 0;
        auto const& label = t.label[task];
        bool const many = label.edge != sim::task_label::no_edge && label.number < simulator.plan().edges[label.edge].collectives.size() &&
                          simulator.plan().edges[label.edge].collectives[label.number].forward_kind == collective_kind::all_to_all_v;
        for (auto const hop : t.before(task)) {
            if (t.kind[hop] != sim::task_kind::collective) continue;
            if (many) { // a link has the bytes of its pair
                send(ends(hop).first, ends(hop).second, t.duration[hop]);
                met[static_cast<std::size_t>(collective_kind::all_to_all_v)] += 1;
                continue;
            }
            longest = std::max(longest, t.duration[hop]); // of a link that rings pass less often the time is a part
            f.kind = static_cast<collective_kind>(longest % 8);
            f.bytes = longest / 8;
            f.members.insert(ends(hop).first);
            f.members.insert(ends(hop).second);
        }
        if (f.members.empty()) continue;
        ++met[static_cast<std::size_t>(f.kind)];
        if (t.label[task].edge == sim::task_label::no_edge) all_reduce(f);
        else of_edges[{t.label[task].edge, t.label[task].number}].push_back(f);
    }
    for (auto const& [where, both] : of_edges) {
        auto const& e = p.graph().edges[where.first];
        auto const& plan = simulator.plan().edges[where.first];
        auto const kind = both[0].kind;
        if (kind == collective_kind::all_reduce) {
            for (auto const& f : both) all_reduce(f);
        } else if (kind == collective_kind::all_to_all) {
            auto const& producer = p.graph().operations[e.producer];
            auto const& consumer = p.graph().operations[e.consumer];
            auto const degrees = [&](std::uint32_t op) { return std::vector<std::int32_t>(s[op].degrees().begin(), s[op].degrees().end()); };
            for (std::size_t i = 0; i < plan.collective_of.size(); ++i) {
                if (plan.collective_of[i] != static_cast<std::int32_t>(where.second)) continue;
                auto const& pair = plan.table->pairs[i];
                auto const bytes =
                    ops::size_of(producer.outputs[e.slot].type) *
                    support::detail::common(support::detail::elements(producer, producer.outputs[e.slot], degrees(e.producer), pair.producer),
                                            support::detail::elements(consumer, consumer.inputs[e.input], degrees(e.consumer), pair.consumer));
                auto const a = static_cast<std::uint32_t>(s[e.producer].device(pair.producer)),
                           b = static_cast<std::uint32_t>(s[e.consumer].device(pair.consumer));
                send(a, b, bytes);
                if (both.size() == 2) send(b, a, bytes);
            }
        } else if (both.size() == 2) {
            all_reduce(both[0]);
        } else {
            // Along the ring of servers, chunk by chunk: device i's is the i-th of equal parts.
            std::vector<std::uint32_t> const members(both[0].members.begin(), both[0].members.end());
            std::vector<std::uint32_t> ring;
            for (auto const d : members)
                if (ring.empty() || ring.back() != node[d]) ring.push_back(node[d]);
            auto const chunks = fabric::split_evenly(both[0].bytes, members.size());
            auto const& c = plan.collectives[where.second];
            auto const maker = static_cast<std::uint32_t>(s[e.producer].device(c.producers[0])),
                       reader = static_cast<std::uint32_t>(s[e.consumer].device(c.consumers[0]));
            auto const position = [&](std::uint32_t device) {
                return static_cast<std::size_t>(std::find(ring.begin(), ring.end(), node[device]) - ring.begin());
            };
            auto const pass = [&](std::size_t from, std::size_t to, byte_count bytes) { // from one position on to another, hop by hop
                for (auto i = from; i != to; i = (i + 1) % ring.size()) out.add(ring[i], ring[(i + 1) % ring.size()], bytes);
            };
            auto const last = [&](std::size_t position_of_first) { return (position_of_first + ring.size() - 1) % ring.size(); };
            if (ring.size() < 2) continue;
            if (kind == collective_kind::broadcast) pass(position(maker), last(position(maker)), both[0].bytes);
            if (kind == collective_kind::reduce) pass((position(reader) + 1) % ring.size(), position(reader), both[0].bytes);
            for (std::size_t i = 0; i < members.size(); ++i) {
                if (kind == collective_kind::all_gather) pass(position(members[i]), last(position(members[i])), chunks[i]);
                if (kind == collective_kind::reduce_scatter) pass((position(members[i]) + 1) % ring.size(), position(members[i]), chunks[i]);
            }
        }
    }
    return out;
}

bool same(demand const& a, demand const& b) { // groups in any order
    auto const groups = [](demand const& d) {
        std::map<std::vector<std::uint32_t>, byte_count> out;
        for (auto const& g : d.groups())
            if (g.bytes > 0) out[g.members] = g.bytes;
        return out;
    };
    bool equal = a.servers() == b.servers() && groups(a) == groups(b);
    for (std::uint32_t i = 0; i < a.servers() && equal; ++i)
        for (std::uint32_t j = 0; j < a.servers(); ++j) equal = equal && a.between(i, j) == b.between(i, j);
    return equal;
}

} // namespace

TEST_CASE("random strategies: traffic is what the tasks move between servers") {
    std::uint64_t const seed = 20261122;
    MESSAGE("seed ", seed);
    std::mt19937_64 rng(seed);
    std::array<int, 8> met{};
    int pairs = 0, groups = 0;
    for (int i = 0; i < 1500; ++i) {
        CAPTURE(i);
        auto const options = support::random_options(rng);
        std::uint32_t const count = 4 * static_cast<std::uint32_t>(1 + uniform_index(rng, 2)), per_server = 1u << uniform_index(rng, 3);
        auto const p = make_problem(support::random_network(rng), servers_of_mesh(count, per_server), bytes_oracle{}, {.simulation = options});
        auto const s = bernoulli(rng, 0.5) ? support::random_strategy(rng, p, 0.3) : support::mostly_data_parallel(rng, p, 0.3);
        auto const found = fabric::traffic_of(p, s);
        REQUIRE(same(found, observed_traffic(p, s, met)));
        pairs += found.point_to_point_bytes() > 0;
        groups += !found.groups().empty();

        // With a server for each device, all that the simulator counts crosses servers.
        if (per_server > 1) continue;
        auto simulator = p.simulator();
        simulator.simulate(s);
        auto const moved = simulator.traffic();
        auto const wire = static_cast<double>(found.point_to_point_bytes() + found.all_reduce_bytes());
        auto const counted = std::accumulate(moved.begin(), moved.end(), 0.0);
        REQUIRE(wire == doctest::Approx(counted).epsilon(0.35)); // an all-to-all need not be even, and counts as if it were
        if (options.movement == sim::movement::pairwise && options.synchronisation == sim::synchronisation::all_reduce) REQUIRE(wire == counted);
    }
    CHECK(pairs > 500);
    CHECK(groups > 500);
    for (auto const kind : {collective_kind::all_reduce, collective_kind::all_gather, collective_kind::reduce_scatter, collective_kind::all_to_all,
                            collective_kind::broadcast, collective_kind::reduce, collective_kind::all_to_all_v}) {
        CAPTURE(name_of(kind));
        CHECK(met[static_cast<std::size_t>(kind)] > 0);
    }
}

TEST_CASE("data parallelism is an all-reduce of the gradients by all servers") {
    auto const p = make_problem(models::mlp({.features = 8, .hidden = {16}, .classes = 8, .batch = 16}), servers_of_mesh(8, 2), bytes_oracle{});
    auto const d = fabric::traffic_of(p, data_parallel(p));
    byte_count weights = 0;
    for (auto const& op : p.graph().operations)
        for (auto const& w : op.weights) weights += ops::bytes_of(w);
    REQUIRE(d.groups() == std::vector{fabric::all_reduce_demand{{0, 1, 2, 3}, weights}});
    CHECK(d.point_to_point_bytes() == 0);
    // On one server nothing crosses.
    auto const one = make_problem(models::mlp({.features = 8, .hidden = {16}, .classes = 8, .batch = 16}), servers_of_mesh(8, 8), bytes_oracle{});
    CHECK(fabric::traffic_of(one, data_parallel(one)) == demand(1));
    // Servers need not be numbered in the order of their devices.
    CHECK(fabric::traffic_of(p.graph(), {3, 1, 2, 0, 3, 1, 2, 0}, p.options(), data_parallel(p)) == d);
}

TEST_CASE("an all-gather without gradients goes round the ring of servers") {
    graph::operator_graph g;
    auto const x = g.input("x", {{8, 6}});
    g.add("b", ops::linear{.out = 8}, g.add("a", ops::relu{}, x));
    auto const p = make_problem(g, servers_of_mesh(6, 2), bytes_oracle{}, {.simulation = {.training = false}});
    std::vector<space::configuration> s = support::all_on_first(p.graph());
    auto const set = [&](char const* name, char const* dim) {
        auto const op = support::op_named(p.graph(), name);
        s[op] = support::split(p.graph().operations[op], dim, {0, 1, 2, 4});
    };
    set("a", "s");
    set("b", "o");
    // 192 bytes, a quarter on each of four devices: two of these on server 0. Each server gets from the one before all that it has not.
    auto const d = fabric::traffic_of(p, s);
    CHECK(d.groups().empty());
    CHECK(d.between(0, 1) == 144);
    CHECK(d.between(1, 2) == 144);
    CHECK(d.between(2, 0) == 96);
    CHECK(d.point_to_point_bytes() == 2 * 192);
}

TEST_CASE("bad input is refused") {
    auto const p = make_problem(models::mlp({.features = 8, .hidden = {16}, .classes = 8, .batch = 16}), servers_of_mesh(4, 2), bytes_oracle{});
    auto s = data_parallel(p);
    s.pop_back();
    CHECK(support::refusal([&] { return fabric::traffic_of(p, s); }).find("must be one each") != std::string::npos);
    s = data_parallel(p);
    for (auto& c : s) c.start = 7;
    CHECK(support::refusal([&] { return fabric::traffic_of(p, s); }).find("device") != std::string::npos);
    CHECK(support::refusal([&] { return fabric::traffic_of(p.graph(), {}, p.options(), data_parallel(p)); }).find("no devices") != std::string::npos);
}
