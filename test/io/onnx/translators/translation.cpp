#include <parsearch/io/onnx/translators/translation.hpp>

#include <doctest/doctest.h>

#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>

#include "support/onnx_network.hpp"
#include "support/refusal.hpp"

namespace onnx = parsearch::io::onnx;
using namespace support;

namespace {
/// Translates a network of one node of type "T" with `f`.
template <class F> onnx::translated with(onnx_builder& b, F f) {
    auto known = onnx::builtin_operators();
    known.add("", "T", f);
    return onnx::translate(b.net, known);
}
} // namespace

TEST_CASE("translation: attributes, inputs, outputs") {
    onnx_builder b;
    auto const x = b.input("x", {4, 6}), w = b.parameter("w", {6});
    b.net.outputs = b.nodes("T", {x, onnx::no_value, w, b.integers({3, 4}), b.number(0.5)}, {{{4, 6}}, {{4, 6}}},
                            {{"i", std::int64_t{7}}, {"f", 1.5}, {"s", std::string("word")}, {"l", std::vector<std::int64_t>{1, 2}}});
    b.net.nodes[0].outputs.push_back(onnx::no_value);
    with(b, [&](onnx::translation& t) {
        CHECK(t.node().name == "n0");
        CHECK(t.version() == 17);
        CHECK(t.integer("i", 0) == 7);
        CHECK(t.integer("j", 5) == 5);
        CHECK(t.number("f", 0) == 1.5);
        CHECK(t.word("s", "") == "word");
        CHECK(t.has("l"));
        CHECK(refusal([&] { return t.number("i", 0); }) == "node 'n0' (T): attribute 'i' has another kind than the operator's definition says");
        CHECK(t.integers("l") == std::vector<std::int64_t>{1, 2});
        CHECK(t.integers("m", 3) == std::vector<std::int64_t>{3, 4});
        CHECK(t.integers("m") == std::nullopt);
        CHECK(t.integers("m", 1) == std::nullopt);
        CHECK(refusal([&] { return t.integers("m", 0); }) == "input 0 ('x', the m) is computed in the network: must be known when it is read");
        CHECK(t.scalar(4) == 0.5);
        CHECK(t.scalar(3) == std::nullopt);
        CHECK(t.inputs() == 5);
        CHECK(t.all_inputs().size() == 4);
        CHECK_FALSE(t.has_input(1));
        CHECK_FALSE(t.has_input(9));
        CHECK(t.is_parameter(2));
        CHECK(t.is_fixed(3));
        CHECK(t.wants_gradient(t.input(2)));
        CHECK_FALSE(t.wants_gradient(t.input(0)));
        CHECK(refusal([&] { return t.input(1); }) == "has no input 1: the operator needs it");
        CHECK(t.outputs() == 3);
        CHECK_FALSE(t.has_output(2));
        CHECK(t.known_output(1)->extents == shape{4, 6});
        CHECK(t.is_read(0));
        t.output(0, t.input(0));
        t.output(1, t.emit(ops::relu{}, t.input(0)));
        t.output(2, t.input(0));
    });
}

TEST_CASE("translation: names of operators, operands in any order, fixed values made once") {
    onnx_builder b;
    auto const x = b.input("x", {4, 6});
    b.net.outputs = {b.node("T", {x, b.parameter("w", {8, 6}), b.fixed("f", {8})}, {4, 8})};
    auto const made = with(b, [](onnx::translation& t) {
        auto const h = t.emit(ops::relu{}, t.input(0));
        auto const y = t.emit(ops::linear{.out = 8}, {h}, {t.input(1), t.input(2)});
        auto const z = t.as("scale").emit(ops::add{}, y, t.as("twice").emit(ops::add{}, y, t.input(2)));
        t.emit(ops::relu{}, z);
    });
    CHECK(listing(made.graph) == "n0:relu n0.linear:linear n0.twice:add n0.scale:add n0.relu:relu");
    CHECK(made.graph.size() == 7); // and the inputs x and f
    auto const& op = named(made.graph, "n0.linear");
    CHECK(weights(op) == "w[8,6]");
    CHECK(op.inputs.size() == 2);
    CHECK(op.inputs[1].name == "bias");
    CHECK(op.inputs[1].parameter.empty());
}

TEST_CASE("translation: an operator whose name is taken gets a number") {
    onnx_builder b;
    auto const x = b.input("n0", {4});
    CHECK(listing(b.translate(b.node("Relu", {x}, {4})).graph) == "n0#2:relu");
}

TEST_CASE("translation: uses of a parameter under other axes are shared where they permute, and counted apart with a note where they do not") {
    onnx_builder b;
    auto const x = b.input("x", {4, 6}), z = b.input("z", {4, 8});
    auto const first = b.node("MatMul", {x, b.parameter("w", {6, 8})}, {4, 8}); // weight[8, 6]
    auto const second = b.node("MatMul", {z, b.view("w", {8, 6})}, {4, 6});     // weight[6, 8]
    auto const single = b.node("Mul", {z, b.view("w", {6, 1, 8})}, {6, 4, 8});  // [6, 1, 8]
    auto const made = b.translate({first, second, single});
    CHECK(weights(named(made.graph, "n1")) == "w[8,6]");
    auto const& mul = named(made.graph, "n2");
    CHECK(weights(mul) == "w[8,6]");
    CHECK(mul.weights[0].axes[0].terms[0].dim == 2);
    CHECK(made.notes.empty());
    CHECK(totals_of(made.graph).parameters == 48);

    auto const other = b.node("Add", {b.input("u", {4, 48}), b.view("w", {48})}, {4, 48});
    auto const apart = b.translate({first, second, single, other});
    CHECK(weights(named(apart.graph, "n3")) == "w as f32[48][48]");
    CHECK(apart.notes == std::vector<std::string>{"parameter 'w' of shape f32[8,6] is also used as f32[48]: counted as two parameters"});
}

TEST_CASE("translation: operands that do not fit are refused") {
    onnx_builder b;
    auto const x = b.input("x", {4, 6});
    b.net.outputs = {b.node("T", {x, b.parameter("w", {5, 8})}, {4, 8})};
    CHECK(refusal([&] { with(b, [](onnx::translation& t) { t.emit(ops::linear{.out = 8}, {t.input(0)}, {t.input(1)}); }); }) ==
          "node 'n0' (T): operand 'weight' of linear has shape f32[8,6] and is given 'w' of shape f32[5,8]");
    CHECK(refusal([&] { with(b, [](onnx::translation& t) { t.emit(ops::relu{}, {t.input(0)}, {t.input(1)}); }); }) ==
          "node 'n0' (T): operator relu of 0 weights is given 1");
    CHECK(refusal([&] { with(b, [](onnx::translation& t) { t.insert(t.infer(ops::relu{}, {t.input(0)}), {}); }); }) ==
          "node 'n0' (T): operator relu of 1 inputs is given 0");
    CHECK(refusal([&] { with(b, [](onnx::translation& t) { t.emit(ops::add{}, t.input(0)); }); }) == "node 'n0' (T): 1 inputs: must have at least 2");
}

TEST_CASE("translation: integers get no gradient") {
    onnx_builder b;
    auto const i = b.input("i", {4}, ops::dtype::i64);
    auto const made = b.translate(b.node("Mul", {i, i}, {4}, {}, ops::dtype::i64));
    for (auto const& in : named(made.graph, "n0").inputs) {
        CHECK_FALSE(in.differentiable);
        CHECK(in.gradient_flops == 0);
    }
}
