#include <parsearch/io/onnx/translators/translate_network.hpp>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/onnx_network.hpp"
#include "support/refusal.hpp"

namespace onnx = parsearch::io::onnx;
using namespace support;

TEST_CASE("translate: inputs that are read, tensors by name, outputs, what is not used") {
    onnx_builder b;
    auto const x = b.input("x", {4, 6}), spare = b.input("spare", {4});
    (void)spare;
    (void)b.parameter("unused", {7});
    (void)b.parameter("cut", {7});
    b.net.divided.insert("cut"); // its parts are parameters
    auto const y = b.node("Relu", {x}, {4, 6});
    auto const made = b.translate({y, x, b.fixed("known", {3})});
    CHECK(made.graph.size() == 2);
    CHECK(made.graph[0].operation.work == ops::work_class::source);
    CHECK(made.outputs == std::vector<parsearch::graph::tensor_ref>{{1, 0}, {0, 0}});
    CHECK(made.tensors.size() == 2);
    CHECK(made.notes == std::vector<std::string>{"input 'spare' is read by no operator", "parameter 'unused' is used by no operator"});
}

TEST_CASE("translate: an unknown operator runs whole where that is asked for") {
    onnx_builder b;
    auto const h = b.node("Relu", {b.input("x", {8, 6})}, {8, 6});
    auto const y =
        b.nodes("Mystery", {h, b.parameter("w", {3, 2}), b.input("i", {2}, ops::dtype::i64)}, {{{8, 4}}, {{}, ops::dtype::i64}}, {}, "com.mine");
    auto const z = b.node("Relu", {y[0]}, {8, 4});
    CHECK(refusal([&] { b.translate({z, y[1]}); }).find("is unknown. Register it") != std::string::npos);
    auto const made = b.translate({z, y[1]}, true);
    auto const& op = named(made.graph, "n1");
    CHECK(op.kind == "Mystery");
    CHECK(op.dims.empty());
    CHECK(op.flops == 0);
    CHECK(weights(op) == "w[3,2]");
    CHECK(op.inputs.size() == 2);
    CHECK_FALSE(op.inputs[1].differentiable);
    CHECK(op.outputs.size() == 2);
    CHECK(made.notes == std::vector<std::string>{"node 'n1' (com.mine.Mystery): is unknown: runs whole, without counted work"});

    // A problem can be made of it, and the strategy is evaluated.
    namespace ps = parsearch;
    auto const cluster = ps::topology::nodes({.count = 1, .gpus_per_node = 4, .device = ps::topology::h100_sxm});
    ps::cost::roofline const oracle{cluster};
    auto const problem = ps::make_problem(made.graph, cluster, oracle);
    auto evaluate = problem.evaluator();
    CHECK(ps::to_seconds(evaluate(ps::data_parallel(problem))) > 0);
}

TEST_CASE("translate: an output that the translator leaves out may not be read") {
    onnx_builder b;
    ops::tensor const t{{4, 6, 8}}, c{{6}};
    auto const x = b.input("x", t.extents), s = b.parameter("s", {6});
    auto const y = b.nodes("BatchNormalization", {x, s, s, s, s}, {t, c, c});
    CHECK(refusal([&] { b.translate(y[0]); }) == "");
    CHECK(refusal([&] { b.translate({y[0], y[1]}); }) == "node 'n0' (BatchNormalization): its translator gives no output 1 ('n0:1'), which is read");
}

TEST_CASE("translate: shapes and types are those of the network") {
    onnx_builder b;
    auto const y = b.node("Relu", {b.input("x", {4, 6})}, {4, 6}, {}, ops::dtype::f16);
    CHECK(refusal([&] { b.translate(y); }) ==
          "node 'n0' (Relu): output 0 ('n0:0') has shape f32[4,6] by the operators it was translated to, and f16[4,6] by the network");
}

TEST_CASE("shape_by_translation: one node, of which the outputs are not known") {
    onnx_builder b;
    auto const x = b.input("x", {4, 6});
    auto const h = b.node("Relu", {x}, {4, 6});
    b.nodes("Split", {h}, {{}, {}}, {{"axis", std::int64_t{1}}});
    b.nodes("Mystery", {h}, {{}});
    b.nodes("MatMul", {h, b.parameter("w", {5, 6})}, {{}});
    auto known = onnx::builtin_operators();
    auto const infer = onnx::shape_by_translation(known);
    CHECK(infer(b.net, b.net.nodes[1]) == std::vector<ops::tensor>{{{4, 3}}, {{4, 3}}});
    CHECK(infer(b.net, b.net.nodes[2]) == std::nullopt);
    CHECK(refusal([&] { return infer(b.net, b.net.nodes[3]); }).starts_with("node 'n3' (MatMul): inputs of shapes"));
    known.add("", "Mystery", [](onnx::translation& t) { t.emit(ops::reshape{{-1}}, t.input(0)); });
    CHECK(infer(b.net, b.net.nodes[2]) == std::nullopt); // it keeps the operators that it was given
    CHECK(onnx::shape_by_translation(known)(b.net, b.net.nodes[2]) == std::vector<ops::tensor>{{{24}}});
}
