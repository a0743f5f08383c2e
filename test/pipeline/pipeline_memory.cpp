#include <parsearch/pipeline/pipeline_memory.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/all_operators.hpp>
#include <parsearch/pipeline/zero_sharding.hpp>
#include <parsearch/space/configuration.hpp>

#include "support/cases.hpp"
#include "support/random_problem.hpp"

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;
namespace sim = parsearch::sim;
namespace space = parsearch::space;
using ops_class = parsearch::ops::work_class;

TEST_CASE("memory: the share of a device in the optimizer's state of what it holds") {
    sim::sync_plan plan;
    plan.groups.resize(2);
    plan.groups[0].devices = {0, 1};
    plan.groups[0].elements = 60;
    plan.groups[1].devices = {0, 1, 2, 3};
    plan.groups[1].elements = 20;
    auto const share = [&](std::int64_t elements, std::vector<std::uint32_t> groups) {
        sim::held_weights held;
        held.elements = elements;
        held.groups = std::move(groups);
        return pipeline::own_share(plan, held);
    };
    CHECK(share(100, {0, 1}) == doctest::Approx((20 + 30 + 5) / 100.0)); // 20 are its own
    CHECK(share(20, {1}) == doctest::Approx(0.25));
    CHECK(share(7, {}) == 1);
    CHECK(share(0, {}) == 1);
}

TEST_CASE("memory: segments that are computed again keep what they read from outside, a tensor once") {
    ps::graph::operator_graph net;
    auto const x = net.input("x", {{4, 6}});
    auto const a = net.add("a", ps::ops::linear{.out = 6, .bias = false}, x);
    auto const b = net.add("b", ps::ops::linear{.out = 8, .bias = false}, a);
    auto const c = net.add("c", ps::ops::linear{.out = 8, .bias = false}, a); // reads what b reads
    net.add("d", ps::ops::add{}, b, c);
    auto const g = ps::graph::read_graph(net).graph;
    std::vector<sim::shard_memory> parts;
    std::vector<std::vector<std::uint32_t>> devices;
    for (std::size_t op = 0; op < g.size(); ++op) {
        parts.push_back(sim::memory_of(g.operations[op], space::whole(g.operations[op]).degrees()));
        devices.push_back({op <= 1 ? 0u : 1u});
    }
    auto const where = [&](std::size_t op) -> std::vector<std::uint32_t> const& { return devices[op]; };
    auto const shards = [&](std::size_t op) -> sim::shard_memory const& { return parts[op]; };
    using by_stage = std::map<std::pair<std::uint32_t, std::uint32_t>, ps::byte_count>; // and device
    pipeline::pipelining how{.stage = {0, 0, 1, 1, 1}, .stages = 2, .recompute = {true, true}};
    sim::memory_account account(g, 2);
    auto const inputs = [&] {
        by_stage out;
        pipeline::for_segment_inputs(
            g, how, pipeline::detail::computed_again(g, how), [](std::size_t) { return true; },
            [&](auto const& keepers) {
                account.for_largest(
                    keepers, shards, where, [&](auto op) { return how.stage[op]; },
                    [&](auto d, auto bytes, auto s) {
                        out[{s, d}] += bytes;
                    });
            });
        return out;
    };
    auto const segments = [&] {
        by_stage out;
        pipeline::kept_again(g, how, pipeline::detail::computed_again(g, how)).add_up(account, shards, where, [&](auto d, auto bytes, auto segment) {
            auto& most = out[{segment.first, d}];
            most = std::max(most, bytes);
        });
        return out;
    };
    CHECK(inputs() == by_stage{{{0, 0}, 96}, {{1, 1}, 96}}); // x; what a makes
    how.recompute = {false, true};
    CHECK(inputs() == by_stage{{{1, 1}, 96}});
    how.segment = {0, 0, 0, 1, 2}; // b, c and d on their own: what a makes is kept for b and c, what these make for d
    CHECK(inputs() == by_stage{{{1, 1}, 96 + 128 + 128}});
    CHECK(segments().empty()); // products keep what they read: all of that is kept already
    // On one stage what a makes is inside.
    how = pipeline::unpipelined(g);
    how.recompute = {true};
    CHECK(inputs() == by_stage{{{0, 0}, 96}});
    CHECK(segments() == by_stage{{{0, 1}, 96}});
    how.recompute.clear();
    CHECK(inputs().empty());
    CHECK(segments().empty());
}

TEST_CASE("memory: what is kept of any network, by stage and by segment, is what each operator needs of each tensor") {
    int inputs = 0, segments = 0, shared = 0, through_views = 0;
    for (std::uint64_t seed = 0; seed < support::cases(2000u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        constexpr std::uint32_t count = 3;
        auto const p = support::random_problem(rng, support::random_options(rng), {.devices = count, .operators = 12});
        auto const& g = p.graph();
        auto const strategy = support::random_strategy(rng, p, 0.3);
        pipeline::pipelining how{.stage = std::vector<std::uint32_t>(g.size()), .stages = 2};
        how.recompute = {ps::bernoulli(rng, 0.7), ps::bernoulli(rng, 0.7)};
        how.segment.resize(g.size());
        for (std::size_t i = 0; i < g.size(); ++i) { // in runs
            how.stage[g.order[i]] = 2 * i < g.size() ? 0 : 1;
            how.segment[g.order[i]] = static_cast<std::uint32_t>(i / 2);
        }
        for (std::size_t op = 0; op < g.size(); ++op) {
            how.kept.push_back(ps::bernoulli(rng, 0.2));
            how.offloaded.push_back(ps::bernoulli(rng, 0.2));
        }
        std::vector<sim::shard_memory> parts;
        std::vector<std::vector<std::uint32_t>> devices(g.size());
        for (std::size_t op = 0; op < g.size(); ++op) {
            parts.push_back(sim::memory_of(g.operations[op], strategy[op].degrees()));
            for (std::int64_t n = 0; n < strategy[op].shards(); ++n) devices[op].push_back(static_cast<std::uint32_t>(strategy[op].device(n)));
        }
        auto const shards = [&](std::size_t op) -> sim::shard_memory const& { return parts[op]; };
        auto const where = [&](std::size_t op) -> std::vector<std::uint32_t> const& { return devices[op]; };

        // Said anew, from each operator back to what it needs.
        using place = std::pair<std::uint32_t, std::uint32_t>; // stage and segment
        auto const place_of = [&](std::size_t op) { return place{how.stage[op], how.segment[op]}; };
        std::set<place> goes_back;
        for (std::size_t op = 0; op < g.size(); ++op)
            if (how.computes_again(op) && g.trains[op]) goes_back.insert(place_of(op));
        auto const again = [&](std::size_t op) { return how.computes_again(op) && goes_back.contains(place_of(op)); };
        auto const is = [&](std::size_t op, ops_class what) { return g.operations[op].work == what; };
        auto const outside = [&](ps::graph::edge const& e) {
            return is(e.producer, ops_class::source) || place_of(e.producer) != place_of(e.consumer) || !how.computes_again(e.producer);
        };
        struct part {
            ps::byte_count bytes = 0;
            std::uint32_t stage = 0;
        };
        std::map<std::array<std::uint32_t, 4>, part> kept;                           // by device, what, producer and slot
        std::map<std::pair<place, std::array<std::uint32_t, 4>>, ps::byte_count> in; // of a segment
        for (std::uint32_t op = 0; op < g.size(); ++op)
            for (std::uint32_t d = 0; d < count; ++d) {
                auto const here = std::ranges::count(devices[op], d);
                auto const keep = [&](std::uint32_t what, std::uint32_t producer, std::uint32_t slot, ps::byte_count bytes) {
                    auto const [at, first] = kept.try_emplace({d, what, producer, slot}, part{here * bytes, how.stage[op]});
                    if (here * bytes == 0) return;
                    shared += !first && at->second.bytes > 0 && at->second.stage != how.stage[op];
                    at->second.stage = at->second.bytes == 0 ? how.stage[op] : std::min(at->second.stage, how.stage[op]);
                    at->second.bytes = std::max(at->second.bytes, here * bytes);
                };
                auto const keep_in = [&](std::uint32_t what, std::uint32_t producer, std::uint32_t slot, ps::byte_count bytes) {
                    auto& most = in[{place_of(op), {d, what, producer, slot}}];
                    most = std::max(most, here * bytes);
                };
                for (auto const& e : g.in(op))
                    if (again(op) && !how.offloads(op) && outside(e)) keep(0, e.producer, e.slot, parts[op].inputs[e.input]);
                if (!g.trains[op] || is(op, ops_class::view)) continue;
                bool const whole = !how.computes_again(op) && !how.offloads(op);
                auto const need = [&](std::uint32_t what, std::uint32_t producer, std::uint32_t slot, ps::byte_count bytes, bool enters) {
                    if (whole) keep(what, producer, slot, bytes);
                    else if (again(op) && !enters) keep_in(what, producer, slot, bytes);
                };
                need(1, op, 0, parts[op].saved, false);
                for (std::uint32_t slot = 0; slot < parts[op].outputs.size(); ++slot)
                    if (g.operations[op].outputs[slot].saved) need(2, op, slot, parts[op].outputs[slot], false);
                for (auto const& e : g.in(op)) {
                    if (!g.operations[op].inputs[e.input].saved) continue;
                    std::vector<std::pair<std::uint32_t, std::uint32_t>> behind{{e.producer, e.slot}};
                    while (!behind.empty()) {
                        auto const [producer, slot] = behind.back();
                        behind.pop_back();
                        if (!is(producer, ops_class::view)) {
                            need(2, producer, slot, parts[op].inputs[e.input], outside(e));
                            through_views += producer != e.producer;
                        } else {
                            for (auto const& before : g.in(producer)) behind.emplace_back(before.producer, before.slot);
                        }
                    }
                }
            }
        using by_place = std::map<std::array<std::uint32_t, 3>, ps::byte_count>;
        by_place expected, found;
        for (auto const& [at, part] : kept)
            if (part.bytes > 0) expected[{at[0], part.stage, at[1] == 0}] += part.bytes;
        sim::memory_account account(g, count);
        auto const add = [&](std::uint32_t of_segments) {
            return [&, of_segments](auto const& keepers) {
                account.for_largest(
                    keepers, shards, where, [&](auto op) { return how.stage[op]; },
                    [&](std::uint32_t d, auto bytes, std::uint32_t stage) {
                        found[{d, stage, of_segments}] += bytes;
                    });
            };
        };
        auto const runs_again = pipeline::detail::computed_again(g, how);
        sim::for_kept_tensors(
            g, [&](auto op, auto const*) { return !how.computes_again(op) && !how.offloads(op); }, add(0));
        pipeline::for_segment_inputs(
            g, how, runs_again, [&](auto op) { return !how.offloads(op); }, add(1));
        REQUIRE(found == expected);
        inputs += std::ranges::any_of(found, [](auto const& f) { return f.first[2] == 1; });

        expected.clear();
        found.clear();
        for (auto const& [at, bytes] : in)
            if (bytes > 0) expected[{at.second[0], at.first.first, at.first.second}] += bytes;
        pipeline::kept_again(g, how, runs_again).add_up(account, shards, where, [&](std::uint32_t d, auto bytes, place const& segment) {
            REQUIRE(found.emplace(std::array{d, segment.first, segment.second}, bytes).second);
        });
        REQUIRE(found == expected);
        segments += found.size() > 1;
    }
    CHECK(inputs > support::cases(700));
    CHECK(segments > support::cases(300));
    CHECK(shared > support::cases(100));
    CHECK(through_views > support::cases(100));
}
