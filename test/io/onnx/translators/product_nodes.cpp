#include <parsearch/io/onnx/translators/product_nodes.hpp>

#include <random>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

#include "support/onnx_network.hpp"
#include "support/refusal.hpp"

namespace onnx = parsearch::io::onnx;
using namespace support;

TEST_CASE("MatMul by a parameter is a linear layer, and a bias that follows alone is its own") {
    onnx_builder b;
    auto const x = b.input("x", {8, 5, 16});
    auto const h = b.node("MatMul", {x, b.parameter("w", {16, 32})}, {8, 5, 32});
    auto const y = b.node("Add", {b.parameter("b", {32}), h}, {8, 5, 32});
    auto const made = b.translate(b.node("Relu", {y}, {8, 5, 32}));
    CHECK(listing(made.graph) == "n0:linear n2:relu");
    auto const& op = named(made.graph, "n0");
    CHECK(weights(op) == "w[32,16] b[32]");
    CHECK(op.multiply_adds == 8 * 5 * 16 * 32);
    CHECK(made.tensors.at("n1:0") == made.tensors.at("n0:0"));
    CHECK(made.notes.empty());
}

TEST_CASE("MatMul: a bias stays an addition where its sum is not all that is read") {
    onnx_builder b;
    auto const x = b.input("x", {8, 16});
    auto const h = b.node("MatMul", {x, b.parameter("w", {16, 32})}, {8, 32});
    auto const y = b.node("Add", {h, b.parameter("b", {32})}, {8, 32});
    CHECK(listing(b.translate({h, y}).graph) == "n0:linear n1:add");
    auto const z = b.node("Mul", {h, y}, {8, 32});
    CHECK(listing(b.translate(z).graph) == "n0:linear n1:add n2:multiply");
    onnx_builder c;
    auto const g = c.node("MatMul", {c.input("x", {8, 16}), c.parameter("w", {16, 32})}, {8, 32});
    auto const made = c.translate(c.node("Add", {g, c.parameter("b", {8, 1})}, {8, 32}));
    CHECK(listing(made.graph) == "n0:linear n1:add");
    CHECK(weights(named(made.graph, "n1")) == "b[8,1]");
    CHECK(named(made.graph, "n1").dims[0].kind == ops::dim_kind::parameter); // samples index the weight
    CHECK(named(made.graph, "n1").dims[1].kind == ops::dim_kind::attribute);
}

TEST_CASE("MatMul: activations, broadcast of outer axes, stacked weights, vectors") {
    onnx_builder b;
    auto const q = b.input("q", {8, 4, 5, 16}), k = b.input("k", {8, 4, 16, 6}), one = b.input("one", {4, 16, 6}), rows = b.input("rows", {16, 6});
    auto const narrow = b.input("narrow", {8, 1, 16, 6});
    auto const scores = b.node("MatMul", {q, k}, {8, 4, 5, 6});
    auto const shared = b.node("MatMul", {q, one}, {8, 4, 5, 6});
    auto const flat = b.node("MatMul", {q, rows}, {8, 4, 5, 6});
    auto const repeated = b.node("MatMul", {q, narrow}, {8, 4, 5, 6});
    auto const experts = b.node("MatMul", {b.input("e", {4, 10, 16}), b.parameter("w", {4, 16, 6})}, {4, 10, 6});
    auto const left = b.node("MatMul", {b.parameter("v", {7, 5}), q}, {8, 4, 7, 16});
    auto const column = b.node("MatMul", {q, b.parameter("u", {16})}, {8, 4, 5});
    auto const row = b.node("MatMul", {b.input("r", {16}), rows}, {6});
    auto const dot = b.node("MatMul", {b.input("r1", {16}), b.input("r2", {16})}, {});
    auto const made = b.translate({scores, shared, flat, repeated, experts, left, column, row, dot});
    auto const& g = made.graph;
    for (auto const name : {"n0", "n1", "n2", "n3"}) {
        CAPTURE(name);
        CHECK(named(g, name).multiply_adds == 8 * 4 * 5 * 6 * 16);
    }
    CHECK(named(g, "n0").kind == "batched_matmul");
    CHECK(named(g, "n1").kind == "einsum");
    CHECK(ops::tensor_of(named(g, "n3").inputs[1]).extents == shape{8, 16, 6}); // read once for all of axis 1
    auto const& moe = named(g, "n4");
    CHECK(weights(moe) == "w[4,16,6]");
    CHECK(moe.dims[0].kind == ops::dim_kind::parameter);
    CHECK(moe.dims[1].kind == ops::dim_kind::attribute);
    CHECK(moe.dims[2].kind == ops::dim_kind::parameter);
    CHECK(moe.dims[3].kind == ops::dim_kind::reduction);
    CHECK(weights(named(g, "n5")) == "v[7,5]");
    CHECK(named(g, "n5").multiply_adds == 8 * 4 * 7 * 5 * 16);
    CHECK(weights(named(g, "n6")) == "u[1,16]");
    CHECK(named(g, "n8").multiply_adds == 16);
}

TEST_CASE("MatMul: random broadcast gives NumPy's shape and count") {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const draw = [&](std::int64_t least, std::int64_t most) {
            return least + static_cast<std::int64_t>(parsearch::uniform_index(rng, static_cast<std::uint64_t>(most - least + 1)));
        };
        shape outer, a, c;
        auto const rank = draw(0, 3), shorter = draw(0, rank);
        bool const first = parsearch::bernoulli(rng, 0.5);
        double products = 1;
        for (std::int64_t i = 0; i < rank; ++i) {
            auto const e = draw(1, 3), which = draw(0, 3);
            auto ea = which == 1 ? 1 : e, ec = which == 2 ? 1 : e;
            bool const missing = i < rank - shorter;
            if (missing) (first ? ea : ec) = 1;
            if (!missing || !first) a.push_back(ea);
            if (!missing || first) c.push_back(ec);
            outer.push_back(std::max(ea, ec));
            products *= static_cast<double>(outer.back());
        }
        auto const m = draw(1, 3), k = draw(1, 3), n = draw(1, 3);
        for (auto const e : {m, k}) a.push_back(e);
        for (auto const e : {k, n}) c.push_back(e);
        for (auto const e : {m, n}) outer.push_back(e);
        onnx_builder b;
        auto const left = draw(0, 2) == 0 ? b.parameter("a", a) : b.input("a", a), right = draw(0, 2) == 0 ? b.parameter("c", c) : b.input("c", c);
        auto const made = b.translate(b.node("MatMul", {left, right}, outer));
        CHECK(totals_of(made.graph).multiply_adds == products * static_cast<double>(m * k * n));
    }
}

TEST_CASE("Gemm: transposes, factors, and biases of any shape") {
    onnx_builder b;
    auto const x = b.input("x", {8, 16}), tall = b.input("tall", {16, 8}), w = b.parameter("w", {16, 4}), v = b.parameter("v", {4, 16});
    auto const bias = b.parameter("b", {4}), row = b.parameter("row", {1, 4}), full = b.parameter("full", {8, 4}),
               single = b.parameter("single", {1});
    attributes const tb{{"transB", std::int64_t{1}}};
    std::vector<onnx::value_id> const y{b.node("Gemm", {x, w, bias}, {8, 4}),
                                        b.node("Gemm", {x, v, row}, {8, 4}, tb),
                                        b.node("Gemm", {tall, v, full}, {8, 4}, {{"transA", std::int64_t{1}}, {"transB", std::int64_t{1}}}),
                                        b.node("Gemm", {x, w, single}, {8, 4}, {{"alpha", 0.5}, {"beta", 2.0}}),
                                        b.node("Gemm", {x, w}, {8, 4}),
                                        b.node("Gemm", {x, b.input("z", {4, 16}), bias}, {8, 4}, tb),
                                        b.node("Gemm", {x, w, bias}, {8, 4}, {{"beta", 0.0}})};
    auto const made = b.translate(y);
    CHECK(listing(made.graph) ==
          "n0:linear n1:linear n2.transpose:transpose n2:linear n2.add:add n3:linear n3.scale:scale n3.scale#2:scale n3.add:add "
          "n4:linear n5:batched_matmul n5.add:add n6:linear");
    CHECK(weights(named(made.graph, "n0")) == "w[4,16] b[4]");
    CHECK(weights(named(made.graph, "n1")) == "v[4,16] row[4]");
    CHECK(weights(named(made.graph, "n2.add")) == "full[8,4]");
    CHECK(weights(named(made.graph, "n5.add")) == "b[4]");
    CHECK(totals_of(made.graph).parameters == 64 + 4 + 64 + 4 + 32 + 1);
    CHECK(totals_of(made.graph).multiply_adds == 7 * 8 * 4 * 16);
}

TEST_CASE("Einsum: implicit outputs, ellipses, parameters") {
    onnx_builder b;
    auto const x = b.input("x", {8, 5, 16}), y = b.input("y", {8, 6, 16});
    auto const scores = b.node("Einsum", {x, y}, {8, 5, 6}, {{"equation", std::string("bik, bjk -> bij")}});
    auto const implicit = b.node("Einsum", {x, b.parameter("w", {16, 4})}, {8, 5, 4}, {{"equation", std::string("abc,cd")}});
    auto const dots = b.node("Einsum", {x, b.parameter("v", {4, 16})}, {8, 5, 4}, {{"equation", std::string("...k,nk->...n")}});
    auto const made = b.translate({scores, implicit, dots});
    CHECK(weights(named(made.graph, "n1")) == "w[16,4]");
    CHECK(named(made.graph, "n1").dims[2].kind == ops::dim_kind::parameter);
    CHECK(named(made.graph, "n2").multiply_adds == 8 * 5 * 16 * 4);
    auto const bad = b.node("Einsum", {x}, {8}, {{"equation", std::string("aab->a")}});
    CHECK(refusal([&] { b.translate(bad); }).starts_with("node 'n3' (Einsum): letter 'a' is twice"));
}

TEST_CASE("FusedMatMul: transposes and a factor") {
    onnx_builder b;
    auto const q = b.input("q", {8, 5, 16}), k = b.input("k", {8, 6, 16});
    auto const y = b.node("FusedMatMul", {q, k}, {8, 5, 6}, {{"transB", std::int64_t{1}}, {"alpha", 0.25}}, ops::dtype::f32, "com.microsoft");
    CHECK(listing(b.translate(y).graph) == "n0.transpose:transpose n0:batched_matmul n0.scale:scale");
}

TEST_CASE("products: refusals") {
    onnx_builder b;
    auto const x = b.input("x", {8, 16});
    auto const y = b.node("MatMul", {x, b.parameter("w", {15, 4})}, {8, 4});
    CHECK(refusal([&] { b.translate(y); }) ==
          "node 'n0' (MatMul): inputs of shapes f32[8,16] and f32[15,4]: must agree in the axis that is summed over");
    onnx_builder c;
    auto const z = c.node("Gemm", {c.input("x", {8, 16, 1}), c.parameter("w", {15, 4})}, {8, 4});
    CHECK(refusal([&] { c.translate(z); }).find("must have two axes") != std::string::npos);
}
