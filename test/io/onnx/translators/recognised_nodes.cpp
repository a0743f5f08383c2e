#include <parsearch/io/onnx/translators/recognised_nodes.hpp>

#include <doctest/doctest.h>

#include "support/onnx_network.hpp"
#include "support/refusal.hpp"

namespace onnx = parsearch::io::onnx;
using namespace support;

namespace {
constexpr auto domain = "parsearch";
}

TEST_CASE("recognised nodes: functions, reshapes, splits") {
    onnx_builder b;
    auto const x = b.input("x", {2, 6, 12});
    std::vector<onnx::value_id> made;
    for (auto const* const type : {"Gelu", "Silu", "Mish", "HardSwish"}) made.push_back(b.node(type, {x}, {2, 6, 12}, {}, ops::dtype::f32, domain));
    made.push_back(b.node("Reshape", {x}, {12, 12}, {{"shape", shape{12, 12}}}, ops::dtype::f32, domain));
    ops::tensor const part{{2, 6, 4}};
    for (auto const v : b.nodes("Split", {x}, {part, part, part}, {{"axis", std::int64_t{2}}}, domain)) made.push_back(v);
    CHECK(listing(b.translate(made).graph) == "n0:gelu n1:silu n2:mish n3:hard_swish n4:reshape n5:split");
}

TEST_CASE("recognised nodes: norms take the weights that they have") {
    onnx_builder b;
    auto const x = b.input("x", {2, 6, 12}), g = b.parameter("g", {12}), c = b.parameter("b", {12}), h = b.parameter("h", {6, 12});
    auto const norm = [&](char const* type, std::vector<onnx::value_id> in, std::int64_t axes) {
        return b.node(type, std::move(in), {2, 6, 12}, {{"axes", axes}}, ops::dtype::f32, domain);
    };
    auto const made =
        b.translate(std::vector{norm("LayerNormalization", {x}, 1), norm("LayerNormalization", {x, g}, 1), norm("LayerNormalization", {x, g, c}, 1),
                                norm("RMSNormalization", {x}, 1), norm("RMSNormalization", {x, h}, 2)});
    std::string all;
    for (std::size_t i = 1; i < made.graph.size(); ++i)
        all += parsearch::text(made.graph[i].operation.kind, " [", weights(made.graph[i].operation), "] ");
    CHECK(all == "layer_norm [] layer_norm [g[12]] layer_norm [g[12] b[12]] rms_norm [] rms_norm [h[6,12]] ");
}

TEST_CASE("recognised nodes: batch norm with ReLU leaves running statistics aside") {
    onnx_builder b;
    auto const x = b.input("x", {2, 4, 3, 3});
    std::vector<onnx::value_id> in{x};
    for (auto const* const name : {"g", "b", "mean", "variance"}) in.push_back(b.parameter(name, {4}));
    auto const made = b.translate(b.node("BatchNormalizationRelu", in, {2, 4, 3, 3}, {}, ops::dtype::f32, domain));
    CHECK(listing(made.graph) == "n0:batch_norm_relu");
    CHECK(weights(named(made.graph, "n0")) == "g[4] b[4]");
    CHECK(made.notes.empty());
}

TEST_CASE("recognised nodes: attention and rotary embedding in their layouts; a learned operand is a weight") {
    onnx_builder b;
    auto const q = b.parameter("queries", {2, 4, 6, 8}), k = b.input("k", {2, 5, 32}), mask = b.fixed("mask", {1, 1, 1, 5});
    auto const y = b.node("Attention", {q, k, k, mask}, {6, 2, 32},
                          {{"heads", std::int64_t{4}}, {"kv_heads", std::int64_t{4}}, {"causal", std::int64_t{0}}, {"layouts", shape{2, 0, 0, 4}}},
                          ops::dtype::f32, domain);
    auto const table = b.fixed("table", {5, 8});
    auto const z = b.node("RotaryEmbedding", {k, table, table}, {2, 5, 32},
                          {{"heads", std::int64_t{4}}, {"layout", std::int64_t{0}}, {"tables", std::int64_t{2}}}, ops::dtype::f32, domain);
    auto const made = b.translate(std::vector{y, z});
    auto const& op = named(made.graph, "n0");
    CHECK(op.kind == "attention");
    CHECK(weights(op) == "queries[2,4,6,8]");
    CHECK(op.inputs.size() == 3);
    CHECK(op.outputs[0].axes[0].extent == 6);
    CHECK(named(made.graph, "n1").kind == "rotary_embedding");
}

TEST_CASE("recognised nodes: refusals") {
    auto const refused = [](char const* type, shape x, attributes given) {
        return refusal([&] {
            onnx_builder b;
            auto const in = b.input("x", x);
            (void)b.translate(b.node(type, {in, in, in}, x, std::move(given), ops::dtype::f32, domain));
        });
    };
    CHECK(refused("Attention", {2, 6, 8}, {{"heads", std::int64_t{2}}, {"layouts", shape{0, 0}}}) ==
          "node 'n0' (parsearch.Attention): attribute layouts has 2 numbers: must have 4");
    CHECK(refused("Attention", {2, 6, 8}, {{"heads", std::int64_t{2}}, {"layouts", shape{0, 0, 0, 9}}}) ==
          "node 'n0' (parsearch.Attention): layout 9 does not exist: must be between 0 and 4");
    CHECK(refused("Attention", {2, 6, 8}, {{"heads", std::int64_t{3}}}) ==
          "node 'n0' (parsearch.Attention): input 0 of shape f32[2,6,8]: axis 2 must be a multiple of its 3 heads");
    onnx_builder b;
    auto const x = b.input("x", {2, 7});
    auto const parts = b.nodes("Split", {x}, {{{2, 3}}, {{2, 3}}}, {{"axis", std::int64_t{1}}}, domain);
    CHECK(refusal([&] { (void)b.translate(parts); }) ==
          "node 'n0' (parsearch.Split): has 2 outputs: must divide axis 1 of input 0 of shape f32[2,7]");
}
