#include <parsearch/io/onnx/translators/recurrent_nodes.hpp>

#include <doctest/doctest.h>

#include "support/onnx_network.hpp"
#include "support/refusal.hpp"

namespace onnx = parsearch::io::onnx;
using namespace support;

TEST_CASE("LSTM: one direction, its weights are parts of the tensors, states that are fixed cost nothing") {
    onnx_builder b;
    auto const x = b.input("x", {7, 4, 10}); // length, samples, features
    ops::tensor const y{{7, 1, 4, 16}}, state{{1, 4, 16}};
    auto const out = b.nodes("LSTM",
                             {x, b.parameter("W", {1, 64, 10}), b.parameter("R", {1, 64, 16}), b.parameter("B", {1, 128}), onnx::no_value,
                              b.fixed("zeros", {1, 4, 16}), b.fixed("zeros too", {1, 4, 16})},
                             {y, state, state}, {{"hidden_size", std::int64_t{16}}});
    auto const made = b.translate(out);
    CHECK(listing(made.graph) ==
          "n0.samples_first:transpose n0:lstm n0.length_first:transpose n0.direction:reshape n0.direction#2:reshape n0.direction#3:reshape");
    auto const& op = named(made.graph, "n0");
    CHECK(weights(op) == "W[input_weight][4,16,10] R[hidden_weight][4,16,16] B[input_bias][4,16] B[hidden_bias][4,16]");
    CHECK(op.multiply_adds == 7.0 * 4 * 64 * (10 + 16));
    CHECK(op.inputs.size() == 1);
    CHECK(totals_of(made.graph).parameters == 64 * 10 + 64 * 16 + 128);
    CHECK(made.notes.empty());
}

TEST_CASE("LSTM: both directions, given states, samples in front") {
    onnx_builder b;
    auto const x = b.input("x", {4, 7, 10});
    auto const h = b.input("h", {4, 2, 16}), c = b.input("c", {4, 2, 16});
    auto const out = b.nodes("LSTM", {x, b.parameter("W", {2, 64, 10}), b.parameter("R", {2, 64, 16}), onnx::no_value, onnx::no_value, h, c},
                             {{{4, 7, 2, 16}}, {{4, 2, 16}}},
                             {{"hidden_size", std::int64_t{16}}, {"direction", std::string("bidirectional")}, {"layout", std::int64_t{1}}});
    auto const made = b.translate(out);
    CHECK(named(made.graph, "n0").inputs.size() == 3);
    CHECK(weights(named(made.graph, "n0")) == "W[input_weight.0][4,16,10] R[hidden_weight.0][4,16,16]");
    CHECK(weights(named(made.graph, "n0.backward")) == "W[input_weight.1][4,16,10] R[hidden_weight.1][4,16,16]");
    CHECK(totals_of(made.graph).parameters == 2 * 64 * 26);
    CHECK(totals_of(made.graph).multiply_adds == 2.0 * 7 * 4 * 64 * 26);
    CHECK(named(made.graph, "n0.directions").kind == "concat");
}

TEST_CASE("GRU and RNN; refusals") {
    onnx_builder b;
    auto const x = b.input("x", {7, 4, 10});
    auto const g = b.nodes(
        "GRU", {x, b.parameter("W", {1, 48, 10}), b.parameter("R", {1, 48, 16}), b.parameter("B", {1, 96}), b.input("lengths", {4}, ops::dtype::i32)},
        {{{7, 1, 4, 16}}}, {{"hidden_size", std::int64_t{16}}, {"direction", std::string("reverse")}});
    auto const r =
        b.nodes("RNN", {x, b.parameter("V", {1, 16, 10}), b.parameter("S", {1, 16, 16})}, {{{7, 1, 4, 16}}}, {{"hidden_size", std::int64_t{16}}});
    auto const made = b.translate({g[0], r[0]});
    CHECK(weights(named(made.graph, "n0")) == "W[input_weight][3,16,10] R[hidden_weight][3,16,16] B[input_bias][3,16] B[hidden_bias][3,16]");
    CHECK(named(made.graph, "n1").multiply_adds == 7.0 * 4 * 16 * 26);
    CHECK(made.notes == std::vector<std::string>{"node 'n0' (GRU): lengths of sequences are not taken into account: all are counted as 7",
                                                 "input 'lengths' is read by no operator"});
    auto const bad =
        b.nodes("LSTM", {x, b.parameter("X", {1, 64, 11}), b.parameter("Y", {1, 64, 16})}, {{{7, 1, 4, 16}}}, {{"hidden_size", std::int64_t{16}}});
    CHECK(refusal([&] { b.translate(bad); }) == "node 'n2' (LSTM): input 1 has shape f32[1,64,11]: must have f32[1,64,10]");
}
