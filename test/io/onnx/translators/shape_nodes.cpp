#include <parsearch/io/onnx/translators/shape_nodes.hpp>

#include <limits>

#include <doctest/doctest.h>

#include "support/onnx_network.hpp"
#include "support/refusal.hpp"

namespace onnx = parsearch::io::onnx;
using namespace support;
using list = std::vector<std::int64_t>;

TEST_CASE("Reshape: 0 copies, -1 is the rest, a computed shape is the network's; Flatten; Squeeze and Unsqueeze by attribute and input") {
    onnx_builder b;
    auto const x = b.input("x", {4, 6, 1, 10});
    std::vector<onnx::value_id> const y{b.node("Reshape", {x, b.integers({0, -1, 5})}, {4, 12, 5}),
                                        b.node("Reshape", {x, b.input("s", {2}, ops::dtype::i64)}, {24, 10}),
                                        b.node("Flatten", {x}, {24, 10}, {{"axis", std::int64_t{-2}}}),
                                        b.node("Flatten", {x}, {1, 240}, {{"axis", std::int64_t{0}}}),
                                        b.node("Squeeze", {x}, {4, 6, 10}, {{"axes", list{-2}}}),
                                        b.node("Squeeze", {x, b.integers({2})}, {4, 6, 10}),
                                        b.node("Squeeze", {x}, {4, 6, 10}),
                                        b.node("Unsqueeze", {x, b.integers({0, -1})}, {1, 4, 6, 1, 10, 1})};
    auto const made = b.translate(y);
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(named(made.graph, parsearch::text('n', i)).work == ops::work_class::view);
    auto const bad = b.node("Squeeze", {x, b.integers({1})}, {4, 1, 10});
    CHECK(refusal([&] { b.translate(bad); }) == "node 'n8' (Squeeze): axis 1 of input 0 of shape f32[4,6,1,10]: must have extent 1 to be squeezed");
}

TEST_CASE("Transpose, Concat, Split") {
    onnx_builder b;
    auto const x = b.input("x", {4, 6, 10});
    auto const t = b.node("Transpose", {x}, {10, 6, 4}), u = b.node("Transpose", {x}, {4, 10, 6}, {{"perm", list{0, 2, 1}}});
    // A class token of one sample, expanded and joined.
    auto const token = b.node("Expand", {b.parameter("token", {1, 1, 10}), b.integers({4, 1, 10})}, {4, 1, 10});
    auto const joined = b.node("Concat", {token, x}, {4, 7, 10}, {{"axis", std::int64_t{1}}});
    auto const parts = b.nodes("Split", {x}, {{{4, 6, 4}}, {{4, 6, 4}}, {{4, 6, 2}}}, {{"axis", std::int64_t{-1}}, {"num_outputs", std::int64_t{3}}});
    auto const given = b.nodes("Split", {x, b.integers({1, 5})}, {{{4, 1, 10}}, {{4, 5, 10}}}, {{"axis", std::int64_t{1}}});
    auto const old = b.nodes("Split", {x}, {{{1, 6, 10}}, {{3, 6, 10}}}, {{"split", list{1, 3}}});
    auto const made = b.translate({t, u, joined, parts[0], parts[2], given[1], old[0], old[1]});
    CHECK(listing(made.graph) == "n0:transpose n1:transpose n2:expand n3:concat n4:split n5:split n6:split");
    auto const& expand = named(made.graph, "n2");
    CHECK(weights(expand) == "token[1,1,10]");
    CHECK(expand.inputs.empty());
    CHECK(expand.dims[0].kind == ops::dim_kind::sample);
    CHECK(expand.weights[0].gradient_flops == 40);
    CHECK(totals_of(made.graph).parameters == 10);
    CHECK(made.tensors.at("n4:2") == parsearch::graph::tensor_ref{made.tensors.at("n4:0").producer, 2});
}

TEST_CASE("Slice: attributes and inputs, ends beyond the axis, steps, backwards") {
    onnx_builder b;
    auto const x = b.input("x", {4, 6, 10});
    constexpr auto far = std::numeric_limits<std::int64_t>::max(), near = std::numeric_limits<std::int64_t>::min();
    std::vector<onnx::value_id> const y{b.node("Slice", {x}, {4, 5, 3}, {{"starts", list{1, -3}}, {"ends", list{far, far}}, {"axes", list{1, 2}}}),
                                        b.node("Slice", {x, b.integers({0, 2}), b.integers({2, -1})}, {2, 3, 10}),
                                        b.node("Slice", {x, b.integers({1}), b.integers({far}), b.integers({-1}), b.integers({4})}, {4, 6, 3}),
                                        b.node("Slice", {x, b.integers({-1}), b.integers({near}), b.integers({1}), b.integers({-1})}, {4, 6, 10}),
                                        b.node("Slice", {x, b.integers({far}), b.integers({0}), b.integers({2}), b.integers({-2})}, {4, 6, 5}),
                                        b.node("Slice", {x, b.integers({0}), b.integers({far}), b.integers({0})}, {4, 6, 10})};
    auto const made = b.translate(y);
    CHECK(listing(made.graph) == "n0:slice n0.slice:slice n1:slice n1.slice:slice n2:strided_slice n3:flip n4:strided_slice n4.flip:flip");
    // 9, 7, 5, 3, 1.
    CHECK(named(made.graph, "n4").inputs[0].axes[2] == ops::axis{.extent = 10, .terms = {{2, 2}}, .offset = 1});
    CHECK(made.outputs[5] == made.tensors.at("x"));
    auto const open = b.node("Slice", {x, b.input("where", {1}, ops::dtype::i64), b.integers({3})}, {3, 6, 10});
    CHECK(refusal([&] { b.translate(open); }) ==
          "node 'n6' (Slice): input 1 ('where', the starts) is computed in the network: must be known when it is read");
    b.net.nodes.pop_back();
    auto const empty = b.node("Slice", {x, b.integers({3}), b.integers({3})}, {0});
    CHECK(refusal([&] { b.translate(empty); }) == "node 'n6' (Slice): slice [3, 3) of axis 0 of extent 4: must hold something");
}

TEST_CASE("Expand, Tile, Pad leave out what changes nothing") {
    onnx_builder b;
    auto const x = b.input("x", {4, 1, 10});
    std::vector<onnx::value_id> const y{b.node("Expand", {x, b.integers({6, 1})}, {4, 6, 10}),
                                        b.node("Expand", {x, b.integers({1, 10})}, {4, 1, 10}),
                                        b.node("Tile", {x, b.integers({1, 3, 2})}, {4, 3, 20}),
                                        b.node("Tile", {x, b.integers({1, 1, 1})}, {4, 1, 10}),
                                        b.node("Pad", {x, b.integers({0, 1, 2, 0, 1, -3})}, {4, 3, 9}),
                                        b.node("Pad", {x, b.integers({5, 6}), onnx::no_value, b.integers({2})}, {4, 1, 21}),
                                        b.node("Pad", {x}, {4, 1, 10}, {{"pads", list{0, 0, 0, 0, 0, 0}}})};
    auto const made = b.translate(y);
    CHECK(listing(made.graph) == "n0:expand n2:tile n4:pad n5:pad");
}

TEST_CASE("DepthToSpace and SpaceToDepth are a transpose between two reshapes") {
    onnx_builder b;
    auto const x = b.input("x", {2, 12, 4, 6});
    auto const deep = b.node("SpaceToDepth", {x}, {2, 48, 2, 3}, {{"blocksize", std::int64_t{2}}});
    auto const wide = b.node("DepthToSpace", {x}, {2, 3, 8, 12}, {{"blocksize", std::int64_t{2}}});
    auto const other = b.node("DepthToSpace", {x}, {2, 3, 8, 12}, {{"blocksize", std::int64_t{2}}, {"mode", std::string("CRD")}});
    auto const made = b.translate({deep, wide, other});
    CHECK(listing(made.graph) ==
          "n0.split:reshape n0:transpose n0.join:reshape n1.split:reshape n1:transpose n1.join:reshape n2.split:reshape n2:transpose "
          "n2.join:reshape");
    auto const bad = b.node("DepthToSpace", {x}, {2, 3, 8, 12}, {{"blocksize", std::int64_t{5}}});
    CHECK(refusal([&] { b.translate(bad); }).find("must consist of blocks of 5 by 5") != std::string::npos);
}
