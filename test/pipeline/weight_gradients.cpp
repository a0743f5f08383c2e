#include <parsearch/pipeline/weight_gradients.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/all_operators.hpp>
#include <parsearch/space/configuration.hpp>

namespace ps = parsearch;
namespace ops = parsearch::ops;
namespace pipeline = parsearch::pipeline;
namespace sim = parsearch::sim;

TEST_CASE("weight_gradients: the part of backward that may be computed later") {
    ps::graph::operator_graph net;
    auto const words = net.input("words", {{4, 8}, ops::dtype::i64});
    auto const x = net.add("words in", ops::embedding{.entries = 100, .features = 16}, words);
    auto const y = net.add("fc", ops::linear{.out = 32, .bias = false}, x);
    auto const z = net.add("norm", ops::layer_norm{}, y);
    auto const heads = net.add("heads", ops::multi_head_attention{.heads = 4, .bias = false}, z, z, z);
    net.add("relu", ops::relu{}, heads);
    auto const g = ps::graph::read_graph(net).graph;
    std::map<std::string, double> share;
    for (std::size_t op = 0; op < g.size(); ++op) share[g.names[op]] = pipeline::weight_gradient_share(g, op);
    CHECK(share["words"] == 0);
    CHECK(share["words in"] == 1); // nothing else is wanted
    CHECK(share["fc"] == 0.5);     // two products of the same size
    CHECK(share["norm"] == 0);     // one kernel
    CHECK(share["heads"] > 0.25);  // four of eight projections, and the products of the scores
    CHECK(share["heads"] < 0.5);
    CHECK(share["relu"] == 0);

    CHECK(pipeline::weight_gradient_time(7, 0) == 0);
    CHECK(pipeline::weight_gradient_time(7, 0.5) == 4);
    CHECK(pipeline::weight_gradient_time(7, 1) == 7);
    auto const longest = std::int64_t{1} << 60;
    CHECK(pipeline::weight_gradient_time(longest - 1, 1 - 0x1p-53) < longest);
}

TEST_CASE("weight_gradients: what waits, a tensor once in each stage that reads it") {
    ps::graph::operator_graph net;
    auto const x = net.input("x", {{4, 6}});
    auto const a = net.add("a", ops::linear{.out = 6, .bias = false}, x);
    auto const b = net.add("b", ops::linear{.out = 8, .bias = false}, a);
    auto const c = net.add("c", ops::linear{.out = 8, .bias = false}, a); // reads what b reads
    net.add("d", ops::add{}, b, c);
    auto const g = ps::graph::read_graph(net).graph;
    std::vector<sim::shard_memory> parts;
    std::vector<std::vector<std::uint32_t>> devices;
    for (std::size_t op = 0; op < g.size(); ++op) {
        parts.push_back(sim::memory_of(g.operations[op], ps::space::whole(g.operations[op]).degrees()));
        devices.push_back({op <= 1 ? 0u : 1u});
    }
    std::vector<std::uint32_t> const stage{0, 0, 1, 2, 2};
    std::map<std::pair<std::uint32_t, std::uint32_t>, pipeline::waiting_bytes> waits; // by stage and device
    pipeline::for_waiting(
        g, [&](auto const& one, auto const& other) { return stage[one.consumer] == stage[other.consumer]; },
        [&](std::size_t op) -> auto const& { return parts[op]; }, [&](std::size_t op) -> auto const& { return devices[op]; },
        [&](auto d, auto const& bytes, auto op) {
            waits[{stage[op], d}] += bytes;
        });
    REQUIRE(waits.size() == 3);
    CHECK(waits[{0, 0}].inputs == 4 * 6 * 4);
    CHECK(waits[{0, 0}].gradients == 4 * 6 * 4);
    CHECK(waits[{1, 1}].inputs == 4 * 6 * 4);
    CHECK(waits[{1, 1}].gradients == 4 * 8 * 4);
    CHECK(waits[{2, 1}].inputs == 4 * 6 * 4);    // what b reads: its stage may be done with it
    CHECK(waits[{2, 1}].gradients == 4 * 8 * 4); // c's; nothing of d waits
    CHECK(waits[{1, 1}].rising(true) == waits[{1, 1}].total());
    CHECK(waits[{1, 1}].rising(false) == 4 * 8 * 4);
}
