#include <parsearch/fabric/wiring/topology_finder.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <parsearch/core/random.hpp>
#include <parsearch/fabric/servers/link_load.hpp>
#include <support/refusal.hpp>
#include <support/shuffle.hpp>

using namespace parsearch;
using namespace parsearch::fabric;

namespace {

/// Random traffic: none, some or much of either kind, groups of any size.
demand random_demand(split_mix& rng, std::uint32_t n) {
    demand d(n);
    auto const bytes = [&] { return static_cast<byte_count>(uniform_index(rng, uniform_index(rng, 2) ? 100 : 100'000'000)); };
    if (n < 2) return d;
    for (auto k = uniform_index(rng, 3) * uniform_index(rng, 3 * n); k > 0; --k) {
        auto const a = static_cast<std::uint32_t>(uniform_index(rng, n)), b = static_cast<std::uint32_t>(uniform_index(rng, n));
        if (a != b) d.add(a, b, bytes());
    }
    for (auto k = uniform_index(rng, 5); k > 0; --k) {
        std::vector<std::uint32_t> members(n);
        std::iota(members.begin(), members.end(), 0u);
        if (uniform_index(rng, 3) > 0) {
            support::shuffle(members, rng);
            members.resize(2 + uniform_index(rng, n - 1));
        }
        d.add_all_reduce(members, bytes());
    }
    return d;
}

/// Hops between all pairs, by adjacency.
std::vector<std::vector<std::uint32_t>> distances(found_topology const& t) {
    std::vector<std::vector<std::uint32_t>> near(t.servers), out;
    for (auto const& l : t.links) {
        near[l.a].push_back(l.b);
        near[l.b].push_back(l.a);
    }
    for (std::uint32_t from = 0; from < t.servers; ++from) {
        std::vector<std::uint32_t> distance(t.servers, std::numeric_limits<std::uint32_t>::max()), queue{from};
        distance[from] = 0;
        for (std::size_t i = 0; i < queue.size(); ++i)
            for (auto const w : near[queue[i]])
                if (distance[w] > t.servers) {
                    distance[w] = distance[queue[i]] + 1;
                    queue.push_back(w);
                }
        out.push_back(distance);
    }
    return out;
}

demand all_servers(std::uint32_t n, byte_count bytes) {
    demand d(n);
    std::vector<std::uint32_t> members(n);
    std::iota(members.begin(), members.end(), 0u);
    d.add_all_reduce(members, bytes);
    return d;
}

} // namespace

TEST_CASE("random demands: connected, within the degree, rings whole, bytes accounted for, the same every time") {
    std::uint64_t const seed = 20260803;
    MESSAGE("seed ", seed);
    split_mix rng(seed);
    int unwired = 0, whole = 0, spare = 0, circulants = 0;
    for (int i = 0; i < 6000; ++i) {
        auto const n = static_cast<std::uint32_t>(1 + uniform_index(rng, 40)), degree = static_cast<std::uint32_t>(1 + uniform_index(rng, 8));
        CAPTURE(i);
        CAPTURE(n);
        CAPTURE(degree);
        auto const d = random_demand(rng, n);
        finder_options o;
        if (uniform_index(rng, 4) == 0) o.all_reduce_degree = static_cast<std::uint32_t>(uniform_index(rng, degree + 1));
        if (uniform_index(rng, 8) == 0) o.exact_matching_up_to = 0;
        if (uniform_index(rng, 8) == 0) o.candidates = step_set::prime;
        if (uniform_index(rng, 4) == 0) o.pairs = pair_weight::bytes;
        if (degree < 2 && n > 2) {
            REQUIRE(support::refusal([&] { return topology_finder(d, n, degree, o); }) != "");
            continue;
        }
        auto const t = topology_finder(d, n, degree, o);
        circulants += t.routes.steps().has_value();

        std::vector<std::uint32_t> used(n, 0);
        for (auto const& l : t.links) {
            REQUIRE(l.a != l.b);
            ++used[l.a];
            ++used[l.b];
        }
        std::uint32_t left = 0;
        for (auto const u : used) {
            REQUIRE(u <= degree);
            left += degree - u;
        }
        // At most one server has interfaces left, more than one of them only where all other links are those of rings or lead to it.
        REQUIRE(std::count_if(used.begin(), used.end(), [&](auto u) { return u < degree; }) <= 1);
        if (left >= 2 && n > 1) {
            ++spare;
            auto const lonely = static_cast<std::uint32_t>(std::min_element(used.begin(), used.end()) - used.begin());
            for (auto const& l : t.links) REQUIRE((l.purpose == link_purpose::ring || l.a == lonely || l.b == lonely));
        }

        auto const distance = distances(t);
        for (std::uint32_t a = 0; a < n; ++a)
            for (std::uint32_t b = 0; b < n; ++b) {
                REQUIRE(distance[a][b] <= n); // connected
                auto const path = t.routes.route(a, b);
                REQUIRE(path.size() == distance[a][b] + 1);
                for (std::size_t k = 1; k < path.size(); ++k) REQUIRE(distance[path[k - 1]][path[k]] == 1);
            }

        std::vector<int> rings_of(d.groups().size(), 0);
        std::set<std::uint32_t> taken;
        for (auto const& ring : t.rings) {
            ++rings_of[ring.group];
            auto sorted = ring.order;
            std::sort(sorted.begin(), sorted.end());
            REQUIRE(sorted == d.groups()[ring.group].members);
            (ring.wired() ? whole : unwired) += 1;
            for (std::size_t k = 0; k < ring.links.size(); ++k) {
                if (ring.links[k] == no_link) continue;
                auto const& l = t.links[ring.links[k]];
                REQUIRE(l.purpose == link_purpose::ring);
                REQUIRE(std::set{l.a, l.b} == std::set{ring.order[k], ring.order[(k + 1) % ring.order.size()]});
                if (ring.order.size() > 2 || k == 0) REQUIRE(taken.insert(ring.links[k]).second); // rings are disjoint
            }
        }
        for (auto const count : rings_of) REQUIRE(count >= 1);

        // Bytes: what all links carry is the formula where all rings are wired and never less; point-to-point bytes are bytes times hops.
        auto const load = load_of(t, d);
        auto const reduced = std::accumulate(load.all_reduce.begin(), load.all_reduce.end(), byte_count{0});
        auto const sent = std::accumulate(load.point_to_point.begin(), load.point_to_point.end(), byte_count{0});
        bool const all_wired = std::all_of(t.rings.begin(), t.rings.end(), [](auto const& r) { return r.wired(); });
        REQUIRE(reduced >= d.all_reduce_bytes());
        if (all_wired) REQUIRE(reduced == d.all_reduce_bytes());
        byte_count hops = 0;
        for (std::uint32_t a = 0; a < n; ++a)
            for (std::uint32_t b = 0; b < n; ++b) hops += d.between(a, b) * distance[a][b];
        REQUIRE(sent == hops);
        REQUIRE(load.bandwidth_tax() >= 1);

        if (i % 10 == 0) {
            auto const again = topology_finder(d, n, degree, o);
            REQUIRE(again.links == t.links);
            REQUIRE(again.rings == t.rings);
            for (std::uint32_t a = 0; a < n; ++a)
                for (std::uint32_t b = 0; b < n; ++b) REQUIRE(again.routes.next(a, b) == t.routes.next(a, b));
        }
    }
    MESSAGE("rings ", whole, " wired, ", unwired, " routed; fabrics with interfaces to spare ", spare, "; circulants ", circulants);
    CHECK(unwired > 0);
    CHECK(circulants > 100);
}

TEST_CASE("an all-reduce of all servers: the golden circulants, each direction with its share of the bytes") {
    struct row {
        std::uint32_t n, degree;
        std::vector<std::uint32_t> steps, jumps;
    };
    // As chosen, and as read off the links: 9 of 16 is 7 backwards.
    for (auto const& r : {row{12, 4, {1, 5}, {1, 5}}, row{16, 8, {1, 3, 5, 9}, {1, 3, 5, 7}}, row{128, 6, {1, 7, 27}, {1, 7, 27}}}) {
        byte_count const bytes = 1'000'000;
        auto const d = all_servers(r.n, bytes);
        auto const t = topology_finder(d, r.n, r.degree);
        CHECK(t.all_reduce_degree == r.degree);
        CHECK(t.rings.size() == r.steps.size());
        for (std::size_t i = 0; i < t.rings.size(); ++i) CHECK(t.rings[i].step == r.steps[i]);
        CHECK(t.routes.steps() == r.jumps);
        auto const load = load_of(t, d);
        double const formula = 2.0 * (r.n - 1) / r.n * static_cast<double>(bytes) / static_cast<double>(2 * r.steps.size());
        for (auto const on : load.all_reduce) {
            CHECK(static_cast<double>(on) > formula - 4);
            CHECK(static_cast<double>(on) < formula + 4);
        }
        CHECK(load.bandwidth_tax() == 1);
    }
}

TEST_CASE("odd degree: the last interface goes half way round") {
    auto const t = topology_finder(all_servers(16, 1000), 16, 5);
    CHECK(t.routes.steps() == std::vector<std::uint32_t>{1, 5, 8});
    CHECK(t.links.size() == 40);
    auto const odd = topology_finder(all_servers(15, 1000), 15, 5);
    CHECK(odd.links.size() == 37); // 75 interfaces: one is left
}

TEST_CASE("groups that are not all servers: disjoint ones share no interfaces, parts are connected") {
    demand d(8);
    d.add_all_reduce({0, 1, 2, 3}, 1000);
    d.add_all_reduce({4, 5, 6, 7}, 1000);
    auto const t = topology_finder(d, 8, 4);
    CHECK(t.rings.size() >= 2);
    for (auto const& ring : t.rings) CHECK(ring.wired());
    CHECK(load_of(t, d).bandwidth_tax() == 1);
    // With two interfaces the two rings must be cut open: their hops take the way round.
    auto const thin = topology_finder(d, 8, 2);
    CHECK(thin.rings.size() == 2);
    for (auto const& ring : thin.rings) CHECK(std::count(ring.links.begin(), ring.links.end(), no_link) == 1);
    CHECK(load_of(thin, d).bandwidth_tax() > 1);
    // Pairs: every interface to the partner but what connects.
    demand pairs(4);
    pairs.add_all_reduce({0, 1}, 1000);
    pairs.add_all_reduce({2, 3}, 10);
    auto const p = topology_finder(pairs, 4, 3);
    CHECK(std::count_if(p.rings.begin(), p.rings.end(), [](auto const& r) { return r.group == 0; }) == 2);
    CHECK(p.links.size() == 6);
}

TEST_CASE("interfaces are split by bytes; pairs that talk are neighbours, in both directions") {
    auto d = all_servers(16, 1'000'000);                              // 30 MB on the wire
    for (std::uint32_t v = 0; v < 8; ++v) d.add(v + 8, v, 2'000'000); // 16 MB, one direction only
    auto const t = topology_finder(d, 16, 6);                         // 6 * 30 / 46 = 3.9
    CHECK(t.all_reduce_degree == 4);
    CHECK(t.rings.size() == 2);
    for (std::uint32_t v = 0; v < 8; ++v) {
        CHECK(t.routes.route(v + 8, v).size() == 2);
        CHECK(std::count_if(t.links.begin(), t.links.end(),
                            [&](auto const& l) { return l.purpose == link_purpose::point_to_point && l.a == v && l.b == v + 8; }) == 2);
    }
    CHECK(topology_finder(d, 16, 6, {.all_reduce_degree = 0}).rings.size() == 1); // on the routes
    CHECK(topology_finder(d, 16, 4, {.steps = step_choice::exhaustive}).rings[0].step == 1);
}

TEST_CASE("equal pairs: weighing hops joins those that are far apart") {
    auto d = all_servers(64, 100'000'000);
    for (std::uint32_t a = 0; a < 64; ++a)
        for (std::uint32_t b = 0; b < 64; ++b)
            if (a != b) d.add(a, b, 3'000'000);
    auto const hops = load_of(topology_finder(d, 64, 4), d).bandwidth_tax();
    auto const bytes = load_of(topology_finder(d, 64, 4, {.pairs = pair_weight::bytes}), d).bandwidth_tax();
    MESSAGE("bandwidth tax ", hops, " by byte hops, ", bytes, " by bytes");
    CHECK(2 * hops < bytes);
    // Bytes that times hops would overflow.
    demand huge(4);
    huge.add(0, 1, demand::max_bytes / 2);
    huge.add(2, 3, demand::max_bytes / 4);
    auto const t = topology_finder(huge, 4, 3);
    CHECK(t.routes.route(0, 1).size() == 2);
    CHECK(t.routes.route(2, 3).size() == 2);
}

TEST_CASE("topology finder: small cases and mistakes") {
    CHECK(topology_finder(demand(1), 1, 3).links.empty());
    CHECK(topology_finder(demand(2), 2, 3).links.size() == 3);
    CHECK(topology_finder(demand(2), 2, 1).links.size() == 1);
    CHECK(topology_finder(demand(9), 9, 2).links.size() == 9);
    auto const d = all_servers(4, 10);
    CHECK_THROWS_WITH_AS((void)topology_finder(d, 5, 4), doctest::Contains("topology for 5 servers: the demand is that of 4"), invalid_input);
    CHECK_THROWS_WITH_AS((void)topology_finder(d, 4, 0), doctest::Contains("degree 0: must be from 1 to 64"), invalid_input);
    CHECK_THROWS_WITH_AS((void)topology_finder(d, 4, 65), doctest::Contains("degree 65"), invalid_input);
    CHECK_THROWS_WITH_AS((void)topology_finder(d, 4, 1), doctest::Contains("more than two servers need at least 2"), invalid_input);
    CHECK_THROWS_WITH_AS((void)topology_finder(d, 4, 2, {.all_reduce_degree = 3}), doctest::Contains("3 interfaces for all-reduces"), invalid_input);
    auto const t = topology_finder(d, 4, 2);
    CHECK_THROWS_WITH_AS((void)load_of(t, demand(5)), doctest::Contains("demand of 5 servers on a fabric of 4"), invalid_input);
}
