#include <parsearch/pipeline/part_of_devices.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stop_token>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/llama.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/refusal.hpp"

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;
namespace sim = parsearch::sim;
using ps::picoseconds;

namespace {
auto on_cluster(auto const& model, std::uint32_t nodes, std::uint32_t per_node, ps::problem_options const& options,
                std::vector<std::uint32_t> lost = {}) {
    auto const cluster = ps::topology::nodes({.count = nodes, .gpus_per_node = per_node, .device = ps::topology::h100_sxm});
    ps::constraints_of<std::remove_cvref_t<decltype(model)>, std::remove_cvref_t<decltype(cluster)>> wanted;
    for (auto const d : lost) wanted.leave_out(d);
    return ps::make_problem(model, cluster, ps::cost::roofline{cluster}, options, wanted);
}
auto const adam = ps::problem_options{.simulation = {.optimizer = sim::optimizer::adam}};

std::vector<std::size_t> devices_of(std::vector<pipeline::device_count> const& counts) {
    std::vector<std::size_t> out;
    for (auto const& c : counts) out.push_back(c.devices);
    return out;
}

// What `devices` are worth, by trying all numbers of stages, micro-batches and replicas, where a network is one operator after the other, all alike.
double worth(std::size_t devices, std::size_t layers, std::size_t samples, std::size_t most_micro_batches, std::size_t per_node, bool uneven) {
    double best = 0;
    for (std::size_t stages = 1; stages <= 2 * layers; ++stages) // some of an activation alone
        for (std::size_t tensor = 1; tensor <= per_node; ++tensor)
            for (std::size_t replicas = 1; replicas <= samples; ++replicas)
                for (std::size_t m = 1; m <= most_micro_batches; ++m) {
                    if (stages * tensor * replicas != devices || per_node % tensor != 0 || 4096 % tensor != 0 || samples % m != 0 ||
                        replicas > samples / m)
                        continue;
                    if (samples / m % replicas != 0 && !uneven) continue;
                    auto const most_layers = std::ceil(static_cast<double>(layers) / static_cast<double>(stages));
                    auto const most_samples = std::ceil(static_cast<double>(samples / m) / static_cast<double>(replicas));
                    auto const work =
                        static_cast<double>(layers * samples) / (most_layers * most_samples * static_cast<double>(m)); // over devices but for tensor
                    auto const waits = static_cast<double>(m) / (static_cast<double>(m) + static_cast<double>(stages - 1) / 3);
                    best = std::max(best, work * static_cast<double>(tensor) * waits);
                }
    return best;
}
} // namespace

TEST_CASE("device_counts: all devices, where these are worth themselves") {
    auto const gpt = ps::models::gpt({.layers = 8, .hidden = 512, .heads = 8, .sequence = 256, .vocabulary = 1000, .batch = 64});
    for (std::uint32_t nodes = 1; nodes <= 4; nodes *= 2)
        CHECK(pipeline::device_counts(on_cluster(gpt, nodes, 4, adam)) == std::vector<pipeline::device_count>{{nodes * 4, nodes * 4.0}});
    // 1,023 of 1,024: 7 stages of 128, which hold 4 or 5 of 32 blocks, before 3 of 256 with 10 or 11.
    auto const llama =
        ps::models::llama({.layers = 32, .hidden = 4096, .kv_heads = 32, .sequence = 4096, .vocabulary = 32000, .tied = false, .batch = 1024});
    CHECK(devices_of(pipeline::device_counts(on_cluster(llama, 128, 8, adam, {100}))) == std::vector<std::size_t>{896, 768});
    // 7 of 8 devices of a node: nothing divides by 7 but stages.
    CHECK(devices_of(pipeline::device_counts(on_cluster(gpt, 1, 8, adam, {3}), {.max_stages = 1})) == std::vector<std::size_t>{4});
    // All have a part of one sample alone where positions are split.
    CHECK(pipeline::device_counts(on_cluster(ps::models::mlp({.features = 7, .hidden = {7}, .classes = 7, .batch = 1}), 1, 4, {}), {.max_stages = 1})
              .empty());
}

TEST_CASE("device_counts: what numbers are worth, beside all ways tried one by one") {
    for (std::uint64_t seed = 1; seed <= support::cases(60u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const layers = 1 + ps::uniform_index(rng, 6), samples = 1 + ps::uniform_index(rng, 12);
        auto const nodes = 1 + static_cast<std::uint32_t>(ps::uniform_index(rng, 5)),
                   per_node = 1 + static_cast<std::uint32_t>(ps::uniform_index(rng, 4));
        ps::models::mlp_options model{.features = 4096, .classes = 4096, .batch = static_cast<std::int64_t>(samples)};
        model.hidden.assign(layers - 1, 4096);
        pipeline::partition_options options{.max_micro_batches = 1 + ps::uniform_index(rng, 8), .cuts_anywhere = true};
        bool const uneven = ps::bernoulli(rng, 0.5);
        auto const p = on_cluster(ps::models::mlp(model), nodes, per_node, {.space = {.uneven = uneven}});
        auto const counts = pipeline::device_counts(p, options);
        auto const all = nodes * per_node;
        std::vector<pipeline::device_count> expected;
        for (auto n = (all + 1) / 2; n <= all; ++n)
            if (auto const w = worth(n, layers, samples, options.max_micro_batches, per_node, uneven);
                expected.empty() || w > expected.back().worth + 1e-9)
                expected.push_back({n, w});
        std::ranges::reverse(expected);
        std::erase_if(expected, [&](auto const& c) { return c.worth < 0.9 * expected.front().worth; });
        REQUIRE(devices_of(counts) == devices_of(expected));
        for (std::size_t i = 0; i < counts.size(); ++i) REQUIRE(counts[i].worth == doctest::Approx(expected[i].worth).epsilon(1e-3));
    }
}

TEST_CASE("partition_part: on fewer devices, where these do more") {
    auto const gpt =
        ps::models::gpt({.layers = 12, .hidden = 4096, .heads = 32, .sequence = 2048, .vocabulary = 2000, .batch = 32, .type = ps::ops::dtype::bf16});
    auto const problem = on_cluster(gpt, 4, 4, adam, {5, 6, 14}); // 13 devices
    std::mt19937_64 rng{1};
    pipeline::partition_options const few{.evaluations = 60};
    std::uint64_t told = 0;
    auto const part = pipeline::partition_part(problem, rng, few, [&](pipeline::simulated_pipeline const&) { ++told; });
    auto const whole = pipeline::partition(problem, {}, rng, few);
    CHECK(part.found.stats.evaluations == told);
    CHECK(told <= 60);
    REQUIRE(part.devices.size() < 13);
    auto const counts = devices_of(pipeline::device_counts(problem));
    CHECK(std::ranges::find(counts, part.devices.size()) != counts.end());
    CHECK(part.found.cost < whole.cost);
    auto const on_part = on_devices(problem, part.devices);
    pipeline::pipeline_simulator simulator(on_part);
    CHECK(simulator(part.found.best.how, part.found.best.strategy) == part.found.cost);
    // On as many devices as a network divides among it is a partition.
    auto const even = on_cluster(gpt, 2, 4, adam);
    auto const same = pipeline::partition_part(even, rng, few);
    auto const expected = pipeline::partition(even, {}, rng, few);
    CHECK(same.devices.size() == 8);
    CHECK(same.found.cost == expected.cost);
    CHECK(same.found.best == expected.best);
    CHECK(same.found.stats.evaluations == expected.stats.evaluations);
}

TEST_CASE("partition_part: no worse than a short search of all devices") {
    // So small that latencies rule.
    auto const gpt = ps::models::gpt({.layers = 12, .hidden = 256, .heads = 4, .sequence = 128, .vocabulary = 500, .batch = 32});
    auto const problem = on_cluster(gpt, 4, 4, adam, {5});
    std::mt19937_64 rng{1};
    auto const part = pipeline::partition_part(problem, rng, {.evaluations = 400});
    CHECK(part.found.cost <= pipeline::partition(problem, {}, rng, {.evaluations = 50}).cost);
}

TEST_CASE("partition_part: all devices where constraints name some, and what fits none") {
    auto const mlp = ps::models::mlp({.features = 512, .hidden = {512}, .classes = 512, .batch = 64});
    auto const cluster = ps::topology::nodes({.count = 1, .gpus_per_node = 7, .device = ps::topology::h100_sxm});
    ps::constraints_of<decltype(mlp), std::remove_cvref_t<decltype(cluster)>> wanted;
    wanted.pin(1, "whole @3");
    std::mt19937_64 rng{1};
    auto const pinned = pipeline::partition_part(ps::make_problem(mlp, cluster, ps::cost::roofline{cluster}, {}, wanted), rng, {.evaluations = 20});
    CHECK(pinned.devices.size() == 7);
    ps::constraints_of<decltype(mlp), std::remove_cvref_t<decltype(cluster)>> small;
    for (std::uint32_t d = 0; d < 7; ++d) small.memory(d, 1000);
    auto const nothing = pipeline::partition_part(ps::make_problem(mlp, cluster, ps::cost::roofline{cluster}, {}, small), rng, {.evaluations = 20});
    CHECK(nothing.found.reason == ps::stop_reason::nothing_feasible);
    CHECK(!nothing.devices.empty());
    // Constraints that leave an operator nothing on fewer devices.
    ps::constraints_of<decltype(mlp), std::remove_cvref_t<decltype(cluster)>> sevenths;
    sevenths.pin(1, "s7");
    auto const seven = pipeline::partition_part(ps::make_problem(mlp, cluster, ps::cost::roofline{cluster}, {.space = {.uneven = true}}, sevenths),
                                                rng, {.evaluations = 20});
    CHECK(seven.devices.size() == 7);
    CHECK(support::refusal([&] {
              (void)pipeline::partition_part(ps::make_problem(mlp, cluster, ps::cost::roofline{cluster}), rng, {.beam = 0});
          }).find("'beam' is 0") != std::string::npos);
}

TEST_CASE("partition_part: what ends a later search ends with the best before") {
    auto const gpt =
        ps::models::gpt({.layers = 6, .hidden = 1024, .heads = 16, .sequence = 256, .vocabulary = 500, .batch = 32, .type = ps::ops::dtype::bf16});
    auto const problem = on_cluster(gpt, 4, 4, adam, {5, 6, 14});
    auto const counts = pipeline::device_counts(problem);
    REQUIRE(counts.front().devices < 13);
    std::mt19937_64 rng{1};
    std::uint64_t told = 0;
    auto const until = [&](std::uint64_t last) {
        return [&told, last](pipeline::simulated_pipeline const&) { return ++told == last ? ps::search::verdict::end : ps::search::verdict::go_on; };
    };
    // By an observer, in the first and in the second.
    for (auto const last : {std::uint64_t{3}, std::uint64_t{33}}) {
        told = 0;
        auto const found = pipeline::partition_part(problem, rng, {.evaluations = 60}, until(last));
        CHECK(told == last);
        CHECK(found.found.ended == ps::stop_reason::observer);
        CHECK(found.devices.size() < 13);
    }
    // By the problem's own token.
    std::stop_source source;
    told = 0;
    auto const stopped =
        pipeline::partition_part(problem.until(source.get_token()), rng, {.evaluations = 60}, [&](pipeline::simulated_pipeline const&) {
            if (++told == 33) source.request_stop();
        });
    CHECK(told <= 34);
    CHECK(stopped.found.ended == ps::stop_reason::stop_requested);
    CHECK(stopped.found.stats.evaluations == told);
    // No time at all: one plan all the same.
    auto const at_once = pipeline::partition_part(problem, rng, {.time = std::chrono::seconds(0)});
    CHECK(at_once.found.reason == ps::stop_reason::time_budget);
    CHECK(at_once.found.best.strategy.size() == problem.size());
}
