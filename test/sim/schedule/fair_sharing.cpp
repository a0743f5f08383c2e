#include <parsearch/sim/schedule/fair_sharing.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

using namespace parsearch;
using sim::discipline, sim::task_kind;

namespace {

using uses = std::vector<sim::fair_rates::use>;

/// The rates by their definition: all rise alike, step by step, until a link is full.
std::vector<double> naive_rates(std::vector<uses> const& flows, std::size_t links) {
    std::vector<double> rate(flows.size(), 0);
    std::vector<bool> fixed(flows.size(), false);
    for (std::size_t f = 0; f < flows.size(); ++f)
        if (flows[f].empty()) {
            rate[f] = std::numeric_limits<double>::infinity();
            fixed[f] = true;
        }
    while (std::find(fixed.begin(), fixed.end(), false) != fixed.end()) {
        double least = std::numeric_limits<double>::infinity();
        std::size_t full = links;
        for (std::size_t l = 0; l < links; ++l) {
            double taken = 0, rising = 0;
            for (std::size_t f = 0; f < flows.size(); ++f)
                for (auto const& u : flows[f])
                    if (u.link == l) (fixed[f] ? taken : rising) += fixed[f] ? rate[f] * u.time_per_byte : u.time_per_byte;
            if (rising > 0 && (1 - taken) / rising < least) {
                least = (1 - taken) / rising;
                full = l;
            }
        }
        for (std::size_t f = 0; f < flows.size(); ++f)
            for (auto const& u : flows[f])
                if (u.link == full && !fixed[f]) {
                    rate[f] = least;
                    fixed[f] = true;
                }
    }
    return rate;
}

bool near(double a, double b) { return a == b || std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

/// Devices 0 and 1, then links with 1, 2 and 4 bytes per picosecond.
std::vector<link_description> const three_links{{{1e12}, {}}, {{2e12}, {}}, {{4e12}, {}}};

/// Adds a flow that takes each (link, time) after `latency`.
std::uint32_t add_flow(sim::task_graph& g, std::vector<std::pair<std::uint32_t, std::int64_t>> const& on, std::int64_t latency = 0,
                       std::vector<std::uint32_t> const& before = {}) {
    auto const first = g.size();
    for (auto const& [link, time] : on) {
        for (auto const p : before) g.after(p);
        g.ties.resize(g.size());
        g.add(2 + link, time, task_kind::transfer, {});
        g.ties.push_back({first, latency});
    }
    return first;
}
std::uint32_t add_task(sim::task_graph& g, std::uint32_t device, std::int64_t time, std::vector<std::uint32_t> const& before = {}) {
    for (auto const p : before) g.after(p);
    g.ties.resize(g.size());
    auto const t = g.add(device, time, task_kind::forward, {});
    g.ties.emplace_back();
    return t;
}
sim::task_graph graph_of_five() {
    sim::task_graph g;
    g.clear(2 + 3 + 1);
    return g;
}
sim::schedule run(sim::task_graph const& g, discipline order = discipline::fifo) {
    sim::schedule s;
    REQUIRE(sim::fair_scheduler(2, three_links).run(g, order, s));
    return s;
}

} // namespace

TEST_CASE("fair_sharing: rates by hand") {
    // Link 0 carries flows 0 and 1, link 1 flows 1 and 2; link 1 has room for ten times as much.
    std::vector<double> rate;
    sim::fair_rates(2).find(std::vector<uses>{{{0, 1}}, {{0, 1}, {1, 0.1}}, {{1, 0.1}}, {}}, rate);
    REQUIRE(rate.size() == 4);
    CHECK(rate[0] == doctest::Approx(0.5));
    CHECK(rate[1] == doctest::Approx(0.5));
    CHECK(rate[2] == doctest::Approx(9.5));
    CHECK(rate[3] == std::numeric_limits<double>::infinity());
}

TEST_CASE("fair_sharing: rates are those of the definition, and max-min fair") {
    sim::fair_rates fair(6); // one for all: what it keeps must not show
    for (std::uint64_t seed = 0; seed < 6000; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        std::vector<uses> flows(uniform_index(rng, 9));
        for (auto& f : flows)
            for (std::uint32_t l = 0; l < 6; ++l)
                if (bernoulli(rng, 0.4)) f.push_back({l, 1.0 + static_cast<double>(uniform_index(rng, 4))});
        std::vector<double> rate;
        fair.find(flows, rate);
        auto const expected = naive_rates(flows, 6);
        for (std::size_t f = 0; f < flows.size(); ++f) REQUIRE(near(rate[f], expected[f]));
        for (std::size_t f = 0; f < flows.size(); ++f) {
            bool bounded = flows[f].empty(); // by a full link on which nothing is faster
            for (auto const& own : flows[f]) {
                double taken = 0, fastest = 0;
                for (std::size_t o = 0; o < flows.size(); ++o)
                    for (auto const& u : flows[o])
                        if (u.link == own.link) {
                            taken += rate[o] * u.time_per_byte;
                            fastest = std::max(fastest, rate[o]);
                        }
                REQUIRE(taken <= 1 + 1e-9);
                bounded = bounded || (near(taken, 1) && fastest <= rate[f] * (1 + 1e-9));
            }
            REQUIRE(bounded);
        }
    }
}

TEST_CASE("fair_sharing: two messages on a link, by hand") {
    auto g = graph_of_five();
    auto const a = add_flow(g, {{0, 100}});     // 100 bytes
    auto const b = add_flow(g, {{0, 300}}, 50); // 300 bytes from 50 on
    auto const after = add_task(g, 0, 7, {a});
    for (auto const order : {discipline::fifo, discipline::in_order}) {
        auto const s = run(g, order);
        CHECK(s.start[a] == 0);
        CHECK(s.end[a] == 150); // 50 alone, then half the rate
        CHECK(s.start[b] == 50);
        CHECK(s.end[b] == 400); // the link is never idle
        CHECK(s.start[after] == 150);
        CHECK(s.makespan == 400);
    }
}

TEST_CASE("fair_sharing: a flow alone takes the time of its slowest link, with its latency") {
    for (std::int64_t const time : {1, 7, 1000, 123456789, 999999999}) {
        auto g = graph_of_five();
        auto const f = add_flow(g, {{0, time}, {1, time / 2}}, 11);
        auto const s = run(g);
        CHECK(s.ready[f] == 0);
        CHECK(s.start[f] == 11);
        CHECK(s.end[f] == 11 + time);
        CHECK(s.end[f + 1] == 11 + time);
    }
}

TEST_CASE("fair_sharing: times that differ by most of 64 bits, and times past them") {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(), long_time = std::int64_t{1} << 60;
    std::vector<double> rate;
    sim::fair_rates(2).find(std::vector<uses>{{{0, 1}, {1, 0x1p-60}}, {{0, 0x1p-60}, {1, 1}}, {{0, 0x1p-60}}}, rate);
    for (auto const r : rate) CHECK((r > 0.4 && r < 0x1p61));
    auto g = graph_of_five();
    auto const small = add_flow(g, {{0, 1}, {1, long_time}}), large = add_flow(g, {{0, long_time}, {1, 1}}), third = add_flow(g, {{0, 1}});
    auto const s = run(g);
    CHECK(s.end[third] <= 3);
    auto const rounding = long_time >> 49;
    CHECK(s.end[small] >= long_time - rounding);
    CHECK(s.end[large] >= long_time - rounding);
    CHECK(s.makespan < most);
    // Nine of these are more than 64 bits hold.
    auto far = graph_of_five();
    std::vector<std::uint32_t> chain{add_task(far, 0, long_time)};
    for (int i = 0; i < 8; ++i)
        chain.push_back(i % 2 ? add_flow(far, {{0, long_time}}, 5, {chain.back()}) : add_task(far, 1, long_time, {chain.back()}));
    auto const after = add_task(far, 0, 1, {chain.back()});
    for (auto const order : {discipline::fifo, discipline::in_order}) {
        sim::schedule saturated;
        CHECK(sim::fair_scheduler(2, three_links).run(far, order, saturated));
        CHECK(saturated.makespan == most);
        CHECK(saturated.end[after] == most);
        CHECK(saturated.start[chain[1]] == long_time);
        CHECK_FALSE(sim::fair_scheduler(2, three_links).run(far, order, saturated, most - 1));
    }
}

TEST_CASE("fair_sharing: messages without bytes, zero times, ties by number") {
    auto g = graph_of_five();
    auto const f = add_flow(g, {{0, 0}, {2, 0}});
    auto const b = add_task(g, 0, 5, {f});
    auto const c = add_task(g, 0, 3);
    auto const s = run(g);
    CHECK(s.end[f] == 0);
    CHECK(s.start[b] == 0); // ready at 0, with a smaller number than c
    CHECK(s.start[c] == 5);
}

TEST_CASE("fair_sharing: schedules carry all bytes at the rates of the definition, and devices keep their discipline") {
    for (std::uint64_t seed = 0; seed < 1500; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const order = bernoulli(rng, 0.5) ? discipline::fifo : discipline::in_order;
        auto g = graph_of_five();
        std::vector<std::uint32_t> tasks; // computations and first tasks of flows
        auto const count = 1 + uniform_index(rng, 14);
        for (std::uint64_t i = 0; i < count; ++i) {
            std::vector<std::uint32_t> before;
            for (auto const t : tasks)
                if (bernoulli(rng, 0.25)) before.push_back(t);
            auto const bytes = static_cast<std::int64_t>(4'000'000 + 4 * uniform_index(rng, 4'000'000));
            if (bernoulli(rng, 0.4)) {
                tasks.push_back(add_task(g, static_cast<std::uint32_t>(uniform_index(rng, 2)), bytes, before));
            } else {
                std::vector<std::pair<std::uint32_t, std::int64_t>> on;
                for (std::uint32_t l = 0; l < 3; ++l)
                    if (bernoulli(rng, 0.6)) on.emplace_back(l, bytes >> l);
                if (on.empty()) on.emplace_back(0, bytes);
                tasks.push_back(add_flow(g, on, static_cast<std::int64_t>(uniform_index(rng, 1000)), before));
            }
        }
        auto const s = run(g, order);
        auto const flows = [&](std::uint32_t t) { return g.ties[t].task != sim::task_tie::none; };
        std::vector<std::int64_t> free_at(2, 0);
        std::vector<std::uint32_t> by_turn;
        std::int64_t last = 0;
        for (std::uint32_t t = 0; t < g.size(); ++t) {
            std::int64_t ready = 0;
            for (auto const p : g.before(t)) ready = std::max(ready, s.end[p]);
            REQUIRE(s.ready[t] == ready);
            last = std::max(last, s.end[t]);
            if (!flows(t)) by_turn.push_back(t);
            else REQUIRE(s.start[t] == ready + g.ties[t].latency);
        }
        REQUIRE(s.makespan == last);
        if (order == discipline::fifo) std::stable_sort(by_turn.begin(), by_turn.end(), [&](auto x, auto y) { return s.ready[x] < s.ready[y]; });
        for (auto const t : by_turn) {
            auto& free = free_at[g.resource[t]];
            REQUIRE(s.start[t] == std::max(s.ready[t], free));
            REQUIRE(s.end[t] == s.start[t] + g.duration[t]);
            free = s.end[t];
        }
        // Between two moments at which some flow starts or ends, rates are constant.
        std::set<std::int64_t> moments;
        for (auto const t : tasks)
            if (flows(t)) {
                moments.insert(s.start[t]);
                moments.insert(s.end[t]);
            }
        std::map<std::uint32_t, double> carried;
        for (auto at = moments.begin(); at != moments.end() && std::next(at) != moments.end(); ++at) {
            std::vector<std::uint32_t> active;
            std::vector<uses> now;
            for (auto const t : tasks)
                if (flows(t) && s.start[t] <= *at && s.end[t] > *at) {
                    active.push_back(t);
                    now.emplace_back();
                    double bytes = 0;
                    for (auto u = t; u < g.size() && g.ties[u].task == t; ++u)
                        bytes = std::max(bytes, static_cast<double>(g.duration[u]) * three_links[g.resource[u] - 2].rate.bytes_per_second * 1e-12);
                    for (auto u = t; u < g.size() && g.ties[u].task == t; ++u)
                        now.back().push_back({g.resource[u] - 2, static_cast<double>(g.duration[u]) / bytes});
                    carried.try_emplace(t, -bytes);
                }
            auto const rate = naive_rates(now, 3);
            for (std::size_t i = 0; i < active.size(); ++i) carried[active[i]] += rate[i] * static_cast<double>(*std::next(at) - *at);
        }
        for (auto const& [t, over] : carried) REQUIRE(std::abs(over) < 100); // bytes of millions: moments are whole picoseconds
    }
}

TEST_CASE("fair_sharing: bounded, it answers whether the makespan is above the bound") {
    auto g = graph_of_five();
    auto const a = add_flow(g, {{0, 100}});
    add_flow(g, {{0, 300}}, 50);
    add_task(g, 0, 7, {a});
    sim::schedule s;
    sim::fair_scheduler scheduler(2, three_links);
    CHECK(scheduler.run(g, discipline::fifo, s, 400));
    CHECK_FALSE(scheduler.run(g, discipline::fifo, s, 399));
    CHECK(scheduler.run(g, discipline::fifo, s));
    CHECK(s.makespan == 400);
}
