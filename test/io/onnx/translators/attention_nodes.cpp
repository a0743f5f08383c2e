#include <parsearch/io/onnx/translators/attention_nodes.hpp>

#include <doctest/doctest.h>

#include "support/onnx_network.hpp"
#include "support/refusal.hpp"

namespace onnx = parsearch::io::onnx;
using namespace support;

TEST_CASE("Attention of operator set 23: heads as an axis and joined, grouped, masked") {
    onnx_builder b;
    b.version = 23;
    auto const q = b.input("q", {2, 8, 5, 16}), k = b.input("k", {2, 4, 6, 16}), v = b.input("v", {2, 4, 6, 16});
    auto const parted = b.node("Attention", {q, k, v, b.fixed("mask", {5, 6})}, {2, 8, 5, 16});
    auto const joined = b.node("Attention", {b.input("jq", {2, 5, 128}), b.input("jk", {2, 5, 64}), b.input("jv", {2, 5, 64})}, {2, 5, 128},
                               {{"q_num_heads", std::int64_t{8}}, {"kv_num_heads", std::int64_t{4}}, {"is_causal", std::int64_t{1}}});
    auto const made = b.translate({parted, joined});
    CHECK(listing(made.graph) == "n0:attention n1:attention");
    CHECK(named(made.graph, "n0").multiply_adds == 2.0 * 2 * 8 * 5 * 6 * 16);
    CHECK(named(made.graph, "n0").inputs.size() == 4);
    CHECK(named(made.graph, "n1").multiply_adds == 2.0 * 2 * 8 * 5 * 5 * 16);
    auto const cached = b.node("Attention", {q, k, v, onnx::no_value, k, v}, {2, 8, 5, 16});
    CHECK(refusal([&] { b.translate(cached); }) == "node 'n2' (Attention): input 4 ('k'): keys and values of earlier steps are not supported");
}

TEST_CASE("MultiHeadAttention and Attention of com.microsoft") {
    onnx_builder b;
    auto const x = b.input("x", {2, 5, 128});
    attributes const heads{{"num_heads", std::int64_t{8}}};
    auto const multi = b.node("MultiHeadAttention", {x, x, x, b.parameter("b", {384}), b.input("keys", {2, 5}, ops::dtype::i32)}, {2, 5, 128}, heads,
                              ops::dtype::f32, "com.microsoft");
    auto const fused =
        b.node("Attention", {x, b.parameter("w", {128, 384}), b.parameter("c", {384})}, {2, 5, 128}, heads, ops::dtype::f32, "com.microsoft");
    auto const made = b.translate({multi, fused});
    CHECK(listing(made.graph) ==
          "n0.bias:add n0.bias#2:add n0.bias#3:add n0.reshape:reshape n0:attention n1.projection:linear n1.split:split n1:attention");
    CHECK(weights(named(made.graph, "n0.bias#2")) == "b[k][128]");
    CHECK(ops::tensor_of(named(made.graph, "n0").inputs[3]).extents == shape{2, 1, 1, 5});
    CHECK(weights(named(made.graph, "n1.projection")) == "w[384,128] c[384]");
    CHECK(totals_of(made.graph).parameters == 384 + 128 * 384 + 384);
    CHECK(named(made.graph, "n1").multiply_adds == 2.0 * 2 * 5 * 5 * 128);
}

TEST_CASE("RotaryEmbedding: tables whole, and rows of them by position") {
    onnx_builder b;
    auto const x = b.input("x", {2, 5, 128}), h = b.input("h", {2, 8, 5, 16}), places = b.input("places", {2, 5}, ops::dtype::i64);
    auto const cosine = b.fixed("cos", {32, 8}), sine = b.fixed("sin", {32, 8});
    auto const rows = b.node("RotaryEmbedding", {x, cosine, sine, places}, {2, 5, 128}, {{"num_heads", std::int64_t{8}}});
    auto const whole = b.node("RotaryEmbedding", {h, b.fixed("c3", {2, 5, 8}), b.fixed("s3", {2, 5, 8})}, {2, 8, 5, 16});
    auto const other = b.node("RotaryEmbedding", {h, places, cosine, sine}, {2, 8, 5, 16}, {}, ops::dtype::f32, "com.microsoft");
    auto const made = b.translate({rows, whole, other});
    CHECK(named(made.graph, "n0").kind == "rotary_embedding");
    CHECK(named(made.graph, "n1").inputs.size() == 3);
    CHECK(named(made.graph, "n2.rows").kind == "gather");
    auto const part = b.node("RotaryEmbedding", {x, cosine, sine, places}, {2, 5, 128},
                             {{"num_heads", std::int64_t{8}}, {"rotary_embedding_dim", std::int64_t{4}}});
    CHECK(refusal([&] { b.translate(part); }).find("only rotation of whole heads is supported") != std::string::npos);
}
