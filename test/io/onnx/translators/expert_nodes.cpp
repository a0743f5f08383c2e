#include <parsearch/io/onnx/translators/expert_nodes.hpp>

#include <doctest/doctest.h>

#include "support/onnx_network.hpp"
#include "support/refusal.hpp"

namespace onnx = parsearch::io::onnx;
using namespace support;

namespace {

constexpr double tokens = 2 * 6, hidden = 4, width = 5, experts = 8, chosen = 2;

/// 2 samples of 6 tokens of 4 numbers, 8 experts of 5 units, of which each token has 2.
struct mixture : onnx_builder {
    onnx::value_id x = input("x", {2, 6, 4}), gates = input("gates", {12, 8});

    onnx::value_id add(std::vector<onnx::value_id> inputs, attributes given = {}, std::string type = "Experts", std::string domain = "parsearch") {
        given.emplace("k", std::int64_t{2});
        return node(std::move(type), std::move(inputs), {2, 6, 4}, std::move(given), ops::dtype::f32, std::move(domain));
    }
};

} // namespace

TEST_CASE("experts: gate and up are halves of one parameter; every token passes through as many as it has") {
    mixture m;
    auto const made = m.translate(m.add({m.x, m.gates, m.parameter("up", {8, 10, 4}), m.parameter("down", {8, 4, 5})}));
    CHECK(listing(made.graph) == "n0.reshape:reshape n0.dispatch:moe_dispatch n0.slots:reshape n0.up:einsum n0.gate:einsum n0.activation:silu "
                                 "n0.multiply:multiply n0.down:einsum n0.combine:moe_combine");
    CHECK(weights(named(made.graph, "n0.gate")) == "up[gate][8,5,4]");
    CHECK(weights(named(made.graph, "n0.up")) == "up[up][8,5,4]");
    CHECK(weights(named(made.graph, "n0.down")) == "down[8,4,5]");
    // 2 * 6 / 8 slots an expert and sample, rounded up.
    CHECK(ops::tensor_of(named(made.graph, "n0.dispatch").outputs[0]).extents == shape{2, 8, 2, 4});
    CHECK(totals_of(made.graph).parameters == 3 * experts * hidden * width);
    CHECK(totals_of(made.graph).multiply_adds >= chosen * tokens * 3 * hidden * width);
    CHECK(made.notes.empty());
}

TEST_CASE("experts: without gate, with biases, inputs before outputs") {
    mixture m;
    auto const made = m.translate(
        m.add({m.x, m.gates, m.parameter("up", {8, 4, 5}), m.parameter("down", {8, 5, 4}), m.parameter("b", {8, 5}), m.parameter("c", {8, 4})},
              {{"gated", std::int64_t{0}}, {"activation", std::string("gelu")}}));
    CHECK(listing(made.graph) == "n0.reshape:reshape n0.dispatch:moe_dispatch n0.slots:reshape n0.up:einsum n0.up.add:add n0.activation:gelu "
                                 "n0.down:einsum n0.down.add:add n0.combine:moe_combine");
    CHECK(weights(named(made.graph, "n0.up.add")) == "b[8,1,5]");
    CHECK(totals_of(made.graph).parameters == experts * (2 * hidden * width + hidden + width));
}

TEST_CASE("MoE of com.microsoft: scores of a router, three layers or a joined first one") {
    mixture m;
    auto const none = onnx::no_value;
    auto const apart = m.add({m.x, m.gates, m.parameter("w1", {8, 5, 4}), none, m.parameter("w2", {8, 4, 5}), none, m.parameter("w3", {8, 5, 4})},
                             {{"activation_type", std::string("silu")}}, "MoE", "com.microsoft");
    auto const joined = m.add({m.x, m.gates, m.parameter("v1", {8, 10, 4}), m.parameter("b1", {8, 10}), m.parameter("v2", {8, 4, 5})},
                              {{"activation_type", std::string("swiglu")}, {"swiglu_fusion", std::int64_t{2}}}, "MoE", "com.microsoft");
    auto const plain = m.add({m.x, m.gates, m.parameter("u1", {8, 5, 4}), none, m.parameter("u2", {8, 4, 5})}, {}, "MoE", "com.microsoft");
    auto const made = m.translate({apart, joined, plain});
    CHECK(named(made.graph, "n0.top_k").kind == "top_2_gate");
    CHECK(weights(named(made.graph, "n0.gate")) == "w1[8,5,4]");
    CHECK(weights(named(made.graph, "n0.up")) == "w3[8,5,4]");
    CHECK(weights(named(made.graph, "n1.gate.add")) == "b1[gate][8,1,5]");
    CHECK(named(made.graph, "n2.activation").kind == "relu");
    CHECK(totals_of(made.graph).parameters == experts * (8 * hidden * width + 2 * width));
}

TEST_CASE("experts: refusals, and tokens that are not told by sample") {
    auto const refused = [](shape up, attributes given) {
        mixture m;
        auto const y = m.add({m.x, m.gates, m.parameter("up", std::move(up)), m.parameter("down", {8, 4, 5})}, std::move(given));
        return refusal([&] { m.translate(y); });
    };
    CHECK(refused({8, 10, 4}, {{"activation", std::string("sinh")}}) ==
          "node 'n0' (parsearch.Experts): activation 'sinh' of experts is unknown: must be relu, gelu, silu, swiglu or identity");
    CHECK(refused({8, 9, 4}, {}) ==
          "node 'n0' (parsearch.Experts): experts with gates have a tensor of shape f32[8,9,4]: must be a parameter, axis 1 even");
    CHECK(refused({8, 10, 3}, {}) ==
          "node 'n0' (parsearch.Experts): experts have a weight of shape f32[8,10,3]: must be [experts, outputs, 4] or [experts, 4, outputs]");
    onnx_builder m;
    auto const list =
        m.node("Experts", {m.input("list", {12, 4}), m.input("gates", {12, 8}), m.parameter("up", {8, 10, 4}), m.parameter("down", {8, 4, 5})},
               {12, 4}, {{"k", std::int64_t{2}}}, ops::dtype::f32, "parsearch");
    auto const made = m.translate(list);
    REQUIRE(made.notes.size() == 1);
    CHECK(made.notes[0].find("tokens are not told by sample: all are taken for those of one") != std::string::npos);
    CHECK(ops::tensor_of(named(made.graph, "n0.combine").outputs[0]).extents == shape{1, 12, 4});
}
