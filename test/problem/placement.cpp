#include <parsearch/problem/placement.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/search/greedy.hpp>

#include "support/plain_topology.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"
#include "support/sanitized.hpp"

using namespace parsearch;
using support::refusal;

namespace {

auto layers(int n, std::int64_t batch = 16) {
    graph::operator_graph g;
    graph::tensor_ref x = g.input("in", {{batch, 32}});
    for (int i = 0; i < n; ++i) x = g.add(text("fc", i), ops::linear{.out = 32}, x);
    return g;
}
/// The same on every device.
struct equal_devices {
    [[nodiscard]] picoseconds shard_time(ops::shard_work const& w, std::uint32_t) const {
        return picoseconds{static_cast<std::int64_t>(w.flops / 8 + w.bytes / 4)};
    }
    [[nodiscard]] picoseconds transfer_time(byte_count bytes, link_description const& link) const { return time_of(bytes, link.rate); }
};
space::flat_strategy search_greedily(parallelization const& p, space::flat_strategy const& start) {
    std::mt19937_64 rng{1};
    return search::greedy(p, start, rng, {.evaluations = 300}).best;
}
space::flat_strategy keep(parallelization const&, space::flat_strategy const& start) { return start; }

/// Devices in nodes of two, a link of its own between any two.
support::plain_topology nodes_of_two(std::uint32_t devices, double rate = 0.01) {
    auto t = support::mesh(devices, rate);
    for (std::uint32_t d = 0; d < devices; ++d) t.node[d] = d / 2;
    return t;
}
std::vector<std::size_t> const powers{1, 2, 4};
} // namespace

TEST_CASE("on_devices: the problem that is made without the other devices") {
    for (std::uint64_t seed = 1; seed <= support::cases(100u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const topology = support::random_topology(rng, {.devices = 5, .kinds = bernoulli(rng, 0.5)});
        auto const network = support::random_network(rng, 5);
        auto const all = make_problem(network, topology, support::mixed_oracle{});
        constraints_of<graph::operator_graph, support::plain_topology> without;
        std::vector<std::size_t> left;
        for (std::uint32_t d = 0; d < 5; ++d)
            if (d > 0 && bernoulli(rng, 0.4)) without.leave_out(d);
            else left.push_back(d);
        auto const part = on_devices(all, left);
        auto const made = make_problem(network, topology, support::mixed_oracle{}, {}, without);
        REQUIRE(part.topology().size() == made.topology().size());
        auto a = part.simulator(), b = made.simulator();
        for (int n = 0; n < 5; ++n) {
            auto const s = support::random_strategy(rng, made, 0.3);
            REQUIRE(a(s) == b(s));
        }
        for (std::size_t d = 0; d < left.size(); ++d) REQUIRE(part.device(d) == made.device(d));
        // On its places among all it is the same plan: devices of one kind are alike.
        auto const s = support::random_strategy(rng, made, 0.3);
        for (std::size_t op = 0; op < part.size(); ++op)
            for (std::int64_t shard = 0; shard < s[op].shards(); ++shard)
                REQUIRE(all.device(static_cast<std::size_t>(with_devices(s, left)[op].device(shard))) ==
                        part.device(static_cast<std::size_t>(s[op].device(shard))));
        REQUIRE(part.handle(part.size() - 1) == made.handle(part.size() - 1));
    }
    auto const p = make_problem(layers(1), support::mesh(3), support::mixed_oracle{});
    auto const on = [&](std::vector<std::size_t> which) { return refusal([&] { return on_devices(p, which).size(); }); };
    CHECK(on({}) == "on_devices: no devices: there must be one at least");
    CHECK(on({0, 3}) == "on_devices: device number 3: the problem has 3");
    CHECK(on({1, 0}) == "on_devices: device number 0 behind 1: must be ascending");
    constraints_of<graph::operator_graph, support::plain_topology> pinned;
    pinned.pin(p.handle(1), "whole @2");
    auto const fixed = make_problem(layers(1), support::mesh(3), support::mixed_oracle{}, {}, pinned);
    // Constraints of devices go with these.
    auto const kept = on_devices(fixed, std::vector<std::size_t>{1, 2});
    CHECK(kept.space()[1].size() == 1);
    CHECK(kept.space()[1][0].device(0) == 1);
    CHECK(refusal([&] { return on_devices(fixed, std::vector<std::size_t>{0}).size(); }).find("'fc0'") != std::string::npos);
    CHECK(!on_devices_if_allowed(fixed, std::vector<std::size_t>{0}));
    CHECK(on_devices(fixed.anywhere(), std::vector<std::size_t>{0}).topology().size() == 1);
    CHECK(!kept.keeps_constraints(data_parallel(p))); // of devices that are not there
}

TEST_CASE("device_front: each point is what its strategy takes, no start is better, and more devices never cost more") {
    for (std::uint64_t seed = 1; seed <= support::cases(30u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        bool const alike = bernoulli(rng, 0.5);
        auto const topology = alike ? support::mesh(4, 0.01) : support::random_topology(rng, {.devices = 4});
        auto const network = support::random_network(rng, 5);
        auto const p = alike ? make_problem(network, topology, equal_devices{}) : make_problem(network, topology, support::mixed_oracle{});
        auto const front = device_front(p, powers, search_greedily);
        REQUIRE(front.size() == 3);
        for (std::size_t i = 0; i < front.size(); ++i) {
            REQUIRE(front[i].devices.size() == powers[i]);
            auto const part = on_devices(p, front[i].devices);
            auto simulate = part.simulator();
            REQUIRE(simulate(front[i].strategy) == front[i].cost);
            for (auto const& start : part.starts()) REQUIRE(front[i].cost <= simulate(start));
            if (i > 0 && alike) REQUIRE(front[i].cost <= front[i - 1].cost);
        }
    }
    auto const p = make_problem(layers(1), support::mesh(3), support::mixed_oracle{});
    auto const with = [&](std::vector<std::size_t> counts) { return refusal([&] { return device_front(p, counts, keep).size(); }); };
    CHECK(with({}) == "device_front: no numbers of devices: there must be one at least");
    CHECK(with({0}) == "device_front: 0 devices: must be from 1 to the 3 of the problem");
    CHECK(with({1, 4}) == "device_front: 4 devices: must be from 1 to the 3 of the problem");
    CHECK(with({2, 2}) == "device_front: 2 devices behind 2: must be ascending");
}

TEST_CASE("place: devices are divided as well as any division of them") {
    for (std::uint64_t seed = 1; seed <= support::cases(30u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const topology = nodes_of_two(8, 0.001 * static_cast<double>(1 + uniform_index(rng, 100)));
        std::vector<job> jobs;
        for (int n = 0; n < 3; ++n)
            jobs.push_back({text("job", n), make_problem(layers(1 + static_cast<int>(uniform_index(rng, 3))), topology, equal_devices{}),
                            static_cast<double>(1 + uniform_index(rng, 5)), powers});
        auto const goal = bernoulli(rng, 0.5) ? placement_goal::longest : placement_goal::weighted_sum;
        auto const placed = place(jobs, keep, goal);
        REQUIRE(placed.size() == 3);
        std::set<std::size_t> used;
        std::size_t count = 0;
        double got = 0, best = std::numeric_limits<double>::infinity();
        auto const add = [&](double sum, std::size_t n, picoseconds t) {
            auto const own = jobs[n].weight * static_cast<double>(t.count());
            return goal == placement_goal::longest ? std::max(sum, own) : sum + own;
        };
        for (std::size_t n = 0; n < 3; ++n) {
            used.insert(placed[n].devices.begin(), placed[n].devices.end());
            count += placed[n].devices.size();
            REQUIRE(std::ranges::is_sorted(placed[n].devices));
            REQUIRE(on_devices(jobs[n].problem, placed[n].devices).simulator()(placed[n].strategy) == placed[n].alone);
            REQUIRE(placed[n].together == placed[n].alone); // they share no link
            got = add(got, n, placed[n].alone);
        }
        REQUIRE(used.size() == count);
        std::vector<std::vector<front_point>> fronts;
        for (auto const& j : jobs) fronts.push_back(device_front(j.problem, powers, keep));
        for (auto const& a : fronts[0])
            for (auto const& b : fronts[1])
                for (auto const& c : fronts[2])
                    if (a.devices.size() + b.devices.size() + c.devices.size() <= 8)
                        best = std::min(best, add(add(add(0, 0, a.cost), 1, b.cost), 2, c.cost));
        REQUIRE(got == doctest::Approx(best));
    }
}

TEST_CASE("place: jobs that share a link slow each other, neighbours stay together") {
    auto const shared = support::shared_medium(4, 0.5);
    std::vector<job> jobs{{"a", make_problem(layers(2, 512), shared, equal_devices{}), 1, {2}},
                          {"b", make_problem(layers(2, 512), shared, equal_devices{}), 1, {2}}};
    auto const placed = place(jobs, keep);
    for (auto const& j : placed) CHECK(j.strategy[1].shards() == 2); // and exchange gradients over the one link
    for (auto const& j : placed) CHECK(j.together >= j.alone);
    CAPTURE(placed[0].alone);
    CAPTURE(placed[0].together);
    CHECK((placed[0].together > placed[0].alone || placed[1].together > placed[1].alone));
    // What `together` is: a step of the network of both.
    CHECK(std::max(placed[0].together, placed[1].together) <= placed[0].alone + placed[1].alone);
    CHECK(placed[0].devices == std::vector<std::size_t>{0, 1});
    CHECK(placed[1].devices == std::vector<std::size_t>{2, 3});

    auto const fast = nodes_of_two(6, 1000);
    std::vector<job> three{{"one", make_problem(layers(1), fast, equal_devices{}), 1, {1}},
                           {"four", make_problem(layers(1), fast, equal_devices{}), 1, {4}},
                           {"last", make_problem(layers(1), fast, equal_devices{}), 1, {1}}};
    auto const apart = place(three, keep);
    CHECK(apart[1].devices == std::vector<std::size_t>{0, 1, 2, 3});
    CHECK(apart[0].devices == std::vector<std::size_t>{4});
    CHECK(apart[2].devices == std::vector<std::size_t>{5});
}

TEST_CASE("place: jobs whose constraints want several devices have no fewer, and parameters of alike names stay apart") {
    graph::operator_graph g;
    (void)g.add("fc", ops::linear{.out = 32, .parameter = "w"}, g.input("in", {{16, 32}}));
    auto const topology = nodes_of_two(4);
    auto const wide = make_problem(g, topology, equal_devices{}, {.space = {.max_shards = 2}});
    std::vector<job> const jobs{{"a", wide}, {"a/0", wide}};
    auto const placed = place(jobs, keep);
    for (auto const& j : placed) CHECK(j.together == j.alone);
    auto const strict = make_problem(layers(1), topology, equal_devices{},
                                     {.space = {.allows = [](std::string_view, ops::operation const& op, std::span<std::int32_t const> degrees) {
                                          return op.kind != "linear" || ops::shard_count(degrees) >= 2;
                                      }}});
    std::vector<job> const one{{"a", strict}};
    CHECK(place(one, keep)[0].devices.size() >= 2);
    // Nor is there a plan on one device, of which the front says so.
    auto const front = device_front(strict, powers, keep);
    CHECK(front[0].strategy.empty());
    CHECK(front[0].cost == cost_traits<picoseconds>::infinity());
    CHECK(front[1].cost < cost_traits<picoseconds>::infinity());
    // So where constraints want devices that are not there.
    auto const placed_pin =
        make_problem(layers(1), topology, equal_devices{}, {}, constraints_of<graph::operator_graph, support::plain_topology>{}.pin(1, "s2 @0+1"));
    auto const pinned = device_front(placed_pin, powers, keep);
    CHECK(pinned[0].strategy.empty());
    CHECK(pinned[1].strategy[1].shards() == 2);
    CHECK(pinned[2].strategy[1].device(1) == 1);
}

TEST_CASE("place: links that jobs share are in what is least") {
    int others = 0;
    for (std::uint64_t seed = 1; seed <= support::cases(40u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const shared = support::shared_medium(6, 0.02 * static_cast<double>(1 + uniform_index(rng, 10)));
        std::vector<job> jobs;
        for (int n = 0; n < 3; ++n)
            jobs.push_back({text("job", n), make_problem(layers(1 + static_cast<int>(uniform_index(rng, 3)), 256), shared, equal_devices{}),
                            static_cast<double>(1 + uniform_index(rng, 5)), powers});
        auto const goal = bernoulli(rng, 0.5) ? placement_goal::longest : placement_goal::weighted_sum;
        auto const value = [&](std::vector<placed_job> const& placed, auto time) {
            double out = 0;
            for (std::size_t n = 0; n < 3; ++n) {
                auto const own = jobs[n].weight * static_cast<double>((placed[n].*time).count());
                out = goal == placement_goal::longest ? std::max(out, own) : out + own;
            }
            return out;
        };
        auto const got = place(jobs, keep, goal);
        double best = std::numeric_limits<double>::infinity(), alone = best;
        double together_there = 0; // of what is best without shared links
        for (auto const a : powers)
            for (auto const b : powers)
                for (auto const c : powers) {
                    if (a + b + c > 6) continue;
                    auto one = jobs;
                    one[0].counts = {a};
                    one[1].counts = {b};
                    one[2].counts = {c};
                    auto const placed = place(one, keep, goal);
                    best = std::min(best, value(placed, &placed_job::together));
                    if (auto const v = value(placed, &placed_job::alone); v < alone) {
                        alone = v;
                        together_there = value(placed, &placed_job::together);
                    }
                }
        REQUIRE(value(got, &placed_job::together) == doctest::Approx(best));
        others += best < together_there * (1 - 1e-9);
    }
    CHECK(others > support::cases(5u));
}

TEST_CASE("place: jobs keep what they have") {
    auto const topology = nodes_of_two(8, 1000);
    auto const p = make_problem(layers(1), topology, equal_devices{});
    std::vector<job> jobs{{"a", p, 1, {4}}, {"b", p, 1, {2}, {2, 3}}, {"c", p, 1, {1}, {0, 7}}};
    auto const placed = place(jobs, keep);
    CHECK(placed[1].devices == std::vector<std::size_t>{2, 3});
    CHECK(placed[0].devices == std::vector<std::size_t>{4, 5, 6, 7}); // whole nodes, of what is left
    CHECK(placed[2].devices.size() == 1);                             // fewer than it had
    jobs[2].now = {3, 7};
    CHECK(refusal([&] { return place(jobs, keep).size(); }) == "place: jobs 'b' and 'c' both have device number 3");
    jobs[1].now = {2, 8};
    CHECK(refusal([&] { return place(jobs, keep).size(); }) == "place: job 'b' has device number 8: must be less than 8, and above that before it");
    jobs[1].now = {3, 2};
    CHECK(refusal([&] { return place(jobs, keep).size(); }) == "place: job 'b' has device number 2: must be less than 8, and above that before it");
}

TEST_CASE("place: of equal longest steps the least sum, then most devices left") {
    auto const topology = nodes_of_two(8, 1000);
    auto const big = make_problem(layers(8, 512), topology, equal_devices{}), small = make_problem(layers(1), topology, equal_devices{});
    std::vector<job> jobs{{"big", big, 1, {4}}, {"small", small, 1, {1, 2}}};
    auto const placed = place(jobs, keep, placement_goal::longest);
    auto const alone = [&](std::size_t n) { return device_front(small, std::vector{n}, keep)[0].cost; };
    CHECK(placed[0].together > placed[1].together);
    CHECK(placed[1].devices.size() == (alone(2) < alone(1) ? 2 : 1));
    // Where two devices take as long as one, as nothing may be split, one is left.
    auto const whole = make_problem(layers(1), topology, equal_devices{}, {.space = {.max_shards = 1}});
    std::vector<job> const one{{"big", big, 1, {4}}, {"whole", whole, 1, {1, 2}}};
    CHECK(place(one, keep, placement_goal::longest)[1].devices.size() == 1);
    CHECK(place(one, keep)[1].devices.size() == 1);
}

TEST_CASE("device_front: all searches together are worth two of the largest at most") {
    auto const p = make_problem(layers(1), support::mesh(8), equal_devices{});
    for (auto const& counts : {std::vector<std::size_t>{1, 2, 4, 8}, {5, 6, 7, 8}, {3}, {2, 7}}) {
        std::vector<double> efforts;
        auto const front = device_front(p, counts, [&](parallelization const&, space::flat_strategy const& start, double effort) {
            efforts.push_back(effort);
            return start;
        });
        CHECK(front.size() == counts.size());
        CHECK(std::accumulate(efforts.begin(), efforts.end(), 0.0) <= 2 + 1e-12);
        CHECK(std::ranges::is_sorted(efforts));
        CHECK(efforts.front() > 0);
        CHECK(efforts.back() == 1);
    }
}

TEST_CASE("place: without a device of a node jobs take whole nodes") {
    auto topology = nodes_of_two(6, 1);
    for (std::uint32_t a = 0; a < 6; ++a)
        for (std::uint32_t b = 0; b < 6; ++b)
            if (a != b && topology.node[a] != topology.node[b]) topology.link[support::mesh_link(6, a, b)].rate = {1e9};
    std::vector<std::size_t> const well{0, 2, 3, 4, 5}, two{2};
    auto const p = on_devices(make_problem(layers(2, 512), topology, equal_devices{}), well);
    auto const front = device_front(p, two, keep);
    CHECK(front[0].devices == std::vector<std::size_t>{1, 2}); // devices 2 and 3, not 0 and 2
    std::vector<job> jobs{{"a", p, 1, two}, {"b", p, 1, two}};
    auto const placed = place(jobs, keep);
    CHECK(placed[0].devices == std::vector<std::size_t>{1, 2});
    CHECK(placed[1].devices == std::vector<std::size_t>{3, 4});
}

TEST_CASE("place: what is wrong is refused") {
    auto const made = [](std::uint32_t size, sim::simulation_options const& o = {}) {
        return make_problem(layers(1), support::mesh(size), equal_devices{}, {.simulation = o});
    };
    auto const wrong = [](std::vector<job> const& jobs) { return refusal([&] { return place(jobs, keep).size(); }); };
    CHECK(wrong({}) == "place: no jobs: there must be one at least");
    CHECK(wrong({{"", made(2)}}) == "place: job number 0 has no name: must have one of its own");
    CHECK(wrong({{"a", made(2)}, {"a", made(2)}}) == "place: jobs number 0 and 1 are both named 'a'");
    CHECK(wrong({{"a", made(2), 0}}) == "place: job 'a' has weight 0: must be positive and at most 1e100");
    CHECK(wrong({{"a", made(2)}, {"b", made(3)}}) == "place: job 'b' and job 'a' are on different clusters: 3 devices and 2; must be the same "
                                                     "devices and links, with the same memory and the same "
                                                     "devices left out");
    auto const two = support::mesh(2);
    constraints_of<graph::operator_graph, support::plain_topology> less;
    less.memory(1, 1000);
    CHECK(wrong({{"a", made(2)}, {"b", make_problem(layers(1), two, equal_devices{}, {}, less)}}).find("device number 1 may hold 900 bytes and ") !=
          std::string::npos);
    CHECK(wrong({{"a", made(2)}, {"b", made(2, {.training = false})}}) == "place: jobs 'b' and 'a' have other options of simulation: must be equal");
    CHECK(wrong({{"a", made(2)}, {"b", made(2)}, {"c", made(2)}}) ==
          "place: 3 jobs on 2 devices: there are no numbers of devices among their counts with which all fit");
    CHECK(wrong({{"a", made(2, {.overlap = false})}}) == "place: simulation option overlap is false, discipline fifo: jobs that run together are "
                                                         "simulated with overlap true and fifo");
    CHECK(wrong({{"a", made(2, {.discipline = sim::discipline::in_order})}}).find("discipline in_order: ") != std::string::npos);
    auto small = support::mesh(2);
    for (auto& d : small.device) d.memory = 100;
    CHECK(wrong({{"a", make_problem(layers(1), small, equal_devices{})}}) ==
          "place: 1 jobs on 2 devices: there are no numbers of devices among their counts with which all fit");
    space::flat_strategy const too_far{{.rank = 1, .degree = {2}, .stride = {1}}};
    CHECK(refusal([&] { return with_devices(too_far, std::vector<std::size_t>{0}).size(); }) ==
          "with_devices: operator number 0 has shard 1 on device 1: there are 1");
    CHECK(wrong({{"a", made(2), 1, {3}}}) == "device_front: 3 devices: must be from 1 to the 2 of the problem");
}
