#include <parsearch/io/onnx/translators/elementwise_nodes.hpp>

#include <doctest/doctest.h>

#include "support/onnx_network.hpp"
#include "support/refusal.hpp"

namespace onnx = parsearch::io::onnx;
using namespace support;

TEST_CASE("functions of one tensor") {
    onnx_builder b;
    auto v = b.input("x", {4, 6});
    for (auto const type : {"Relu", "LeakyRelu", "Elu",  "Selu",  "Celu", "Softplus", "Softsign", "HardSigmoid", "HardSwish", "Sigmoid",
                            "Tanh", "Erf",       "Gelu", "Mish",  "Exp",  "Log",      "Sqrt",     "Reciprocal",  "Neg",       "Abs",
                            "Sign", "Floor",     "Ceil", "Round", "Sin",  "Cos",      "Trilu",    "Identity"})
        v = b.node(type, {v}, {4, 6});
    v = b.node("Clip", {v, b.number(0), b.number(6)}, {4, 6});
    auto const made = b.translate(v);
    CHECK(listing(made.graph) ==
          "n0:relu n1:leaky_relu n2:elu n3:selu n4:celu n5:softplus n6:softsign n7:hard_sigmoid n8:hard_swish n9:sigmoid n10:tanh n11:erf n12:gelu "
          "n13:mish "
          "n14:exp n15:log n16:sqrt n17:reciprocal n18:negate n19:absolute n20:sign n21:round n22:round n23:round n24:sin n25:cos n26:mask n28:clip");
    CHECK(made.tensors.at("n27:0") == made.tensors.at("n26:0"));
}

TEST_CASE("arithmetic: numbers make functions, parameters are weights, fixed tensors are inputs of the graph") {
    onnx_builder b;
    auto const x = b.input("x", {4, 5, 6}), h = b.node("Exp", {x}, {4, 5, 6});
    std::vector<onnx::value_id> const y{b.node("Mul", {h, b.number(2)}, {4, 5, 6}),
                                        b.node("Div", {b.number(1), h}, {4, 5, 6}),
                                        b.node("Sub", {h, b.number(1)}, {4, 5, 6}),
                                        b.node("Pow", {h, b.number(2)}, {4, 5, 6}),
                                        b.node("Pow", {h, b.number(0.5)}, {4, 5, 6}),
                                        b.node("Pow", {h, b.number(3)}, {4, 5, 6}),
                                        b.node("Add", {h, b.parameter("table", {5, 6})}, {4, 5, 6}),
                                        b.node("Mul", {h, b.fixed("mask", {5, 1})}, {4, 5, 6}),
                                        b.node("Mul", {h, h}, {4, 5, 6}),
                                        b.node("Max", {h, h, h}, {4, 5, 6}),
                                        b.node("PRelu", {h, b.parameter("slope", {5, 1})}, {4, 5, 6}),
                                        b.node("Sum", {h}, {4, 5, 6})};
    auto const made = b.translate(y);
    CHECK(listing(made.graph) ==
          "n0:exp n1:scale n2:reciprocal n3:shift n4:square n5:sqrt n6:power n7:add n8:multiply n9:multiply n10:maximum n11:prelu");
    auto const& table = named(made.graph, "n7");
    CHECK(weights(table) == "table[5,6]");
    CHECK(table.weights[0].gradient_flops == 4 * 5 * 6);
    CHECK(table.dims[0].kind == ops::dim_kind::sample);
    CHECK(table.dims[1].kind == ops::dim_kind::parameter);
    auto const& masked = named(made.graph, "n8");
    CHECK(masked.inputs.size() == 2);
    CHECK_FALSE(masked.inputs[0].saved); // the mask is not trained
    CHECK(masked.inputs[1].saved);
    CHECK(named(made.graph, "n9").inputs[0].saved);
    CHECK(weights(named(made.graph, "n11")) == "slope[5,1]");
}

TEST_CASE("comparisons, truth values, Where, casts, integers: no gradient flows") {
    using enum ops::dtype;
    onnx_builder b;
    auto const x = b.input("x", {4, 6}), i = b.input("i", {4, 6}, i64);
    auto const less = b.node("Less", {x, b.number(0)}, {4, 6}, {}, i8);
    auto const not_less = b.node("Not", {less}, {4, 6}, {}, i8);
    auto const both = b.node("And", {less, not_less}, {4, 6}, {}, i8);
    auto const chosen = b.node("Where", {both, x, b.parameter("w", {6})}, {4, 6});
    auto const as_number = b.node("Cast", {i}, {4, 6}, {{"to", std::int64_t{1}}});
    auto const sum = b.node("Add", {i, i}, {4, 6}, {}, i64);
    auto const same = b.node("Cast", {x}, {4, 6}, {{"to", std::int64_t{1}}});
    auto const like = b.node("CastLike", {x, b.input("h", {1}, bf16)}, {4, 6}, {}, bf16);
    auto const made = b.translate({chosen, as_number, sum, same, like});
    CHECK(listing(made.graph) == "n0:compare n1:complement n2:logical n3:select n4:cast n5:add n7:cast");
    CHECK_FALSE(named(made.graph, "n0").inputs[0].differentiable);
    CHECK(weights(named(made.graph, "n3")) == "w[6]");
    CHECK(named(made.graph, "n3").inputs[0].type == i8);
    CHECK_FALSE(named(made.graph, "n4").inputs[0].differentiable);
    CHECK_FALSE(named(made.graph, "n5").inputs[0].saved);
    CHECK(made.outputs[3] == made.tensors.at("x"));
    auto const narrow = b.node("Cast", {i}, {4, 6}, {{"to", std::int64_t{5}}}, i32);
    CHECK(named(b.translate(narrow).graph, "n8").outputs[0].type == i32);
    auto const bad = b.node("Cast", {x}, {4, 6}, {{"to", std::int64_t{8}}});
    CHECK(refusal([&] { b.translate(bad); }).starts_with("node 'n9' (Cast): element type number 8 is not supported"));
}

TEST_CASE("Dropout: ratio as attribute and as input; 0 leaves nothing; a mask of it is not made") {
    onnx_builder b;
    auto const x = b.input("x", {4, 6});
    auto const half = b.node("Dropout", {x}, {4, 6}), some = b.node("Dropout", {x, b.number(0.1)}, {4, 6}),
               none = b.node("Dropout", {x, b.number(0)}, {4, 6});
    CHECK(listing(b.translate({half, some, none}).graph) == "n0:dropout n1:dropout");
    onnx_builder old;
    old.version = 10;
    auto const y = old.node("Dropout", {old.input("x", {4})}, {4}, {{"ratio", 0.0}});
    CHECK(listing(old.translate(y).graph) == "");
    old.net.nodes[0].attributes["ratio"] = 1.0;
    CHECK(refusal([&] { old.translate(y); }) == "node 'n0' (Dropout): option rate is 1: must be at least 0 and below 1");
    onnx_builder masked;
    auto const z = masked.nodes("Dropout", {masked.input("x", {4})}, {{{4}}, {{4}, ops::dtype::i8}});
    CHECK(refusal([&] { masked.translate(z[0]); }) == "");
    CHECK(refusal([&] { masked.translate(z); }) == "node 'n0' (Dropout): its translator gives no output 1 ('n0:1'), which is read");
}

TEST_CASE("activations of com.microsoft") {
    onnx_builder b;
    auto const x = b.input("x", {4, 6});
    auto const y = b.node("BiasGelu", {x, b.parameter("b", {6})}, {4, 6}, {}, ops::dtype::f32, "com.microsoft");
    auto const z = b.node("FastGelu", {y}, {4, 6}, {}, ops::dtype::f32, "com.microsoft");
    CHECK(listing(b.translate(z).graph) == "n0.bias:add n0:gelu n1:gelu");
}
