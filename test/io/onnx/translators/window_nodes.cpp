#include <parsearch/io/onnx/translators/window_nodes.hpp>

#include <doctest/doctest.h>

#include "support/onnx_network.hpp"
#include "support/refusal.hpp"

using namespace support;
using list = std::vector<std::int64_t>;

TEST_CASE("Conv: shapes, groups, padding of both sides, bias, names of weights") {
    onnx_builder b;
    auto const x = b.input("x", {2, 6, 11, 9});
    auto const y = b.node("Conv", {x, b.parameter("w", {8, 3, 3, 2}), b.parameter("b", {8})}, {2, 8, 6, 9},
                          {{"group", std::int64_t{2}}, {"strides", list{2, 1}}, {"pads", list{1, 0, 2, 1}}, {"kernel_shape", list{3, 2}}});
    auto const made = b.translate(y);
    CHECK(listing(made.graph) == "n0:conv2d");
    auto const& op = named(made.graph, "n0");
    CHECK(weights(op) == "w[8,3,3,2] b[8]");
    CHECK(op.multiply_adds == 2.0 * 8 * 6 * 9 * (3 * 3 * 2));
    CHECK(op.inputs[0].axes[2].offset == -1);
    CHECK(op.inputs[0].axes[2].span == 3);
    CHECK(made.notes.empty());
    CHECK(made.tensors.at("n0:0") == parsearch::graph::tensor_ref{1, 0});
    CHECK(made.outputs.size() == 1);
}

TEST_CASE("Conv: auto_pad, dilation, one axis, weights that are no parameters") {
    struct {
        char const* padding;
        std::int64_t stride, expected, front;
    } const cases[] = {{"SAME_UPPER", 2, 4, 1}, {"SAME_LOWER", 2, 4, 2}, {"SAME_UPPER", 1, 8, 2}, {"VALID", 2, 2, 0}};
    for (auto const& c : cases) {
        CAPTURE(c.padding);
        CAPTURE(c.stride);
        onnx_builder b;
        auto const y = b.node("Conv", {b.input("x", {1, 3, 8}), b.parameter("w", {4, 3, 3})}, {1, 4, c.expected},
                              {{"auto_pad", std::string(c.padding)}, {"strides", list{c.stride}}, {"dilations", list{2}}});
        auto const made = b.translate(y);
        // Span 5: stride 2 makes 4 of 8, with (4 - 1) 2 + 5 - 8 = 3 of padding; stride 1 has 4.
        CHECK(named(made.graph, "n0").inputs[0].axes[2].offset == -c.front);
        CHECK(named(made.graph, "n0").kind == "conv1d");
    }
    onnx_builder b;
    auto const x = b.input("x", {4, 3, 8, 8}), w = b.node("Relu", {b.parameter("w", {5, 3, 3, 3})}, {5, 3, 3, 3});
    auto const made = b.translate(b.node("Conv", {x, w, b.fixed("b", {5})}, {4, 5, 6, 6}));
    auto const& op = named(made.graph, "n1");
    CHECK(op.weights.empty());
    REQUIRE(op.inputs.size() == 3);
    CHECK(op.inputs[1].name == "weight");
    CHECK(op.inputs[1].gradient_flops == op.flops - 4 * 5 * 36);
    CHECK(op.dims[1].kind == ops::dim_kind::attribute); // no weight is indexed by it
    CHECK(weights(named(made.graph, "n0")) == "w[5,3,3,3]");
}

TEST_CASE("Conv: refusals name node and operands") {
    onnx_builder b;
    auto const x = b.input("x", {1, 3, 8, 8}), w = b.parameter("w", {4, 3, 3, 3});
    auto const y = b.node("Conv", {x, w}, {1, 4, 6, 7});
    CHECK(refusal([&] { b.translate(y); }) ==
          "node 'n0' (Conv): output 0 ('n0:0') has shape f32[1,4,6,6] by the operators it was translated to, and f32[1,4,6,7] by the network");
    b.net.nodes[0].attributes["group"] = std::int64_t{3};
    CHECK(refusal([&] { b.translate(y); }).starts_with("node 'n0' (Conv): input 0 of shape f32[1,3,8,8] in 3 groups: must have the channels"));
    b.net.nodes[0].attributes["group"] = 1.5;
    CHECK(refusal([&] { b.translate(y); }) == "node 'n0' (Conv): attribute 'group' has another kind than the operator's definition says");
    b.net.nodes[0].attributes = {{"auto_pad", std::string("SAME")}};
    CHECK(refusal([&] { b.translate(y); }).find("attribute auto_pad is 'SAME': must be NOTSET") != std::string::npos);
    b.net.nodes[0].attributes = {{"strides", list{1}}};
    CHECK(refusal([&] { b.translate(y); }) == "node 'n0' (Conv): attribute strides has 1 numbers: must have 2");
    b.net.nodes[0].attributes = {{"dilations", list{std::int64_t{1} << 40, 1}}};
    CHECK_FALSE(refusal([&] { b.translate(y); }).empty());
    b.net.nodes[0].attributes = {};
    b.net.nodes[0].inputs.pop_back();
    CHECK(refusal([&] { b.translate(y); }) == "node 'n0' (Conv): has no input 1: the operator needs it");
}

TEST_CASE("ConvTranspose: extents by padding, by output_shape, by auto_pad") {
    onnx_builder b;
    auto const x = b.input("x", {2, 6, 5, 4}), w = b.parameter("w", {6, 3, 3, 3}), bias = b.parameter("b", {6});
    // (5 - 1) 2 + 3 - 2 + 1 = 10, (4 - 1) 2 + 3 - 2 + 1 = 8; two groups of three.
    auto const y = b.node("ConvTranspose", {x, w, bias}, {2, 6, 10, 8},
                          {{"strides", list{2, 2}}, {"pads", list{1, 1, 1, 1}}, {"output_padding", list{1, 1}}, {"group", std::int64_t{2}}});
    auto const given = b.node("ConvTranspose", {x, w}, {2, 3, 10, 8}, {{"strides", list{2, 2}}, {"output_shape", list{10, 8}}});
    auto const same = b.node("ConvTranspose", {x, w}, {2, 3, 10, 8}, {{"strides", list{2, 2}}, {"auto_pad", std::string("SAME_UPPER")}});
    auto const made = b.translate({y, given, same});
    auto const& op = named(made.graph, "n0");
    CHECK(op.kind == "conv_transpose2d");
    CHECK(weights(op) == "w[6,3,3,3] b[6]");
    CHECK(op.multiply_adds == 2.0 * 6 * 5 * 4 * 3 * 9);
    CHECK(op.flops == 2 * op.multiply_adds + 2 * 6 * 80);
}

TEST_CASE("pooling: modes, rounding up, and the version of it that the network has") {
    onnx_builder b;
    auto const x = b.input("x", {1, 2, 6, 6});
    attributes const up{{"kernel_shape", list{3, 3}}, {"strides", list{2, 2}}, {"ceil_mode", std::int64_t{1}}};
    auto const y = b.node("MaxPool", {x}, {1, 2, 3, 3}, up);
    auto const average = b.node("AveragePool", {x}, {1, 2, 2, 2}, {{"kernel_shape", list{3, 3}}, {"strides", list{2, 2}}});
    auto const norm = b.node("LpPool", {x}, {1, 2, 6, 6}, {{"kernel_shape", list{3, 3}}, {"auto_pad", std::string("SAME_UPPER")}});
    auto const whole = b.node("GlobalAveragePool", {x}, {1, 2, 1, 1}), largest = b.node("GlobalMaxPool", {x}, {1, 2, 1, 1});
    auto const made = b.translate({y, average, norm, whole, largest});
    CHECK(listing(made.graph) == "n0:max_pool2d n1:average_pool2d n2:norm_pool2d n3:average_global_pool n4:max_global_pool");
    CHECK(named(made.graph, "n0").flops == 2 * 9 * 9);
    // 5 positions, padding 1, kernel 2, stride 2: a fourth window would begin in the padding behind. PyTorch and ONNX 22 drop it.
    for (std::int64_t const n : {3, 4}) {
        onnx_builder c;
        auto const v = c.input("x", {1, 1, 5});
        auto const z = c.node("MaxPool", {v}, {1, 1, n},
                              {{"kernel_shape", list{2}}, {"strides", list{2}}, {"pads", list{1, 1}}, {"ceil_mode", std::int64_t{1}}});
        CHECK(refusal([&] { c.translate(z); }) == "");
    }
}
