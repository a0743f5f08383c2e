#include <parsearch/io/onnx/patterns/activations.hpp>

#include <array>
#include <cmath>
#include <functional>

#include <doctest/doctest.h>

#include "support/onnx_patterns.hpp"

using namespace support;

namespace {

/// What is recognised in `f` of a projection, which keeps it from being a data input alone.
std::string found(std::function<value_id(primitives&, value_id)> const& f) {
    primitives p;
    auto const x = p.linear(p.input("x", {2, 3, 4}), 4);
    recognition const r(p, f(p, x));
    if (!r.notes.empty()) CHECK(r.net.nodes.size() == 2);
    return r.notes;
}
double const half_root = 1 / std::sqrt(2.0), root_2_pi = std::sqrt(2 / std::acos(-1.0));

} // namespace

TEST_CASE("GELU by erf: every order of its factors") {
    auto const gate = [](primitives& p, value_id x, bool divides) {
        return p.add(p.unary("Erf", divides ? p.div(x, std::sqrt(2.0)) : p.mul(x, half_root)), 1.0);
    };
    for (bool const divides : {false, true}) {
        CAPTURE(divides);
        CHECK(found([&](auto& p, auto x) { return p.mul(p.mul(x, 0.5), gate(p, x, divides)); }) == "1 x GELU");
        CHECK(found([&](auto& p, auto x) { return p.mul(p.mul(x, gate(p, x, divides)), 0.5); }) == "1 x GELU");
        CHECK(found([&](auto& p, auto x) { return p.mul(x, p.mul(p.number(0.5), gate(p, x, divides))); }) == "1 x GELU");
        CHECK(found([&](auto& p, auto x) { return p.div(p.mul(gate(p, x, divides), x), 2.0); }) == "1 x GELU");
        CHECK(found([&](auto& p, auto x) { return p.mul(p.div(gate(p, x, divides), 2.0), x); }) == "1 x GELU");
    }
    // A number that the file leaves out may be the right one.
    CHECK(found([](auto& p, auto x) {
              auto const unknown = [&] { return p.fixed(parsearch::text("u", p.net.values.size()), {1}); };
              return p.mul(p.mul(x, unknown()), p.add(p.unary("Erf", p.div(x, unknown())), unknown()));
          }) == "1 x GELU");
    // 0.7071 in half precision.
    CHECK(found([](auto& p, auto x) { return p.mul(p.mul(x, 0.5), p.add(p.unary("Erf", p.mul(x, 0.70703125)), 1.0)); }) == "1 x GELU");
}

TEST_CASE("GELU by tanh and by sigmoid") {
    auto const cube = [](primitives& p, value_id x) { return p.add(x, p.mul(p.pow(x, 3), 0.044715)); };
    CHECK(found([&](auto& p, auto x) { return p.mul(p.mul(x, 0.5), p.add(p.unary("Tanh", p.mul(cube(p, x), root_2_pi)), 1.0)); }) == "1 x GELU");
    CHECK(found([&](auto& p, auto x) { return p.mul(p.mul(p.add(p.unary("Tanh", p.mul(p.number(root_2_pi), cube(p, x))), 1.0), 0.5), x); }) ==
          "1 x GELU");
    CHECK(found([&](auto& p, auto x) {
              auto const product = p.mul(p.number(0.044715), p.mul(x, p.mul(x, x)));
              return p.mul(p.mul(x, 0.5), p.add(p.unary("Tanh", p.mul(p.add(product, x), root_2_pi)), 1.0));
          }) == "1 x GELU");
    CHECK(found([&](auto& p, auto x) { // x out of the brackets
              auto const brackets = p.add(p.mul(p.mul(p.number(0.044715), x), x), 1.0);
              return p.mul(p.mul(x, 0.5), p.add(p.unary("Tanh", p.mul(p.mul(x, root_2_pi), brackets)), 1.0));
          }) == "1 x GELU");
    CHECK(found([](auto& p, auto x) { return p.mul(x, p.unary("Sigmoid", p.mul(x, 1.702))); }) == "1 x GELU");
}

TEST_CASE("SiLU, Mish, hard swish") {
    CHECK(found([](auto& p, auto x) { return p.mul(x, p.unary("Sigmoid", x)); }) == "1 x SiLU");
    CHECK(found([](auto& p, auto x) { return p.mul(p.unary("Sigmoid", x), x); }) == "1 x SiLU");
    CHECK(found([](auto& p, auto x) { return p.mul(x, p.unary("Tanh", p.unary("Softplus", x))); }) == "1 x Mish");
    CHECK(found([](auto& p, auto x) { return p.mul(x, p.unary("HardSigmoid", x, {{"alpha", 1.0 / 6}, {"beta", 0.5}})); }) == "1 x hard swish");
    auto const clip = [](primitives& p, value_id x) { return p.node("Clip", {p.add(x, 3.0), p.number(0), p.number(6)}, p.extents(x)); };
    CHECK(found([&](auto& p, auto x) { return p.div(p.mul(x, clip(p, x)), 6.0); }) == "1 x hard swish");
    CHECK(found([&](auto& p, auto x) { return p.mul(x, p.div(clip(p, x), 6.0)); }) == "1 x hard swish");
    CHECK(found([](auto& p, auto x) {
              return p.div(p.mul(x, p.unary("Clip", p.add(x, 3.0), {{"min", 0.0}, {"max", 6.0}})), 6.0);
          }) == "1 x hard swish");
}

TEST_CASE("an activation in a product with something else: the gate of a gated layer stays") {
    primitives p;
    auto const x = p.input("x", {2, 3, 4});
    auto const gate = p.linear(x, 8), up = p.linear(x, 8);
    recognition const r(p, p.mul(p.mul(gate, p.unary("Sigmoid", gate)), up));
    CHECK(r.notes == "1 x SiLU");
    CHECK(r.types() == "MatMul MatMul Mul parsearch.Silu");
    CHECK(r.first("Silu").name == "n2"); // the Sigmoid's
    // Also where the product that is gated is one itself.
    primitives q;
    auto const y = q.input("y", {2, 3});
    auto const squared = q.mul(q.linear(y, 3), q.linear(y, 3));
    CHECK(recognition(q, q.mul(squared, q.unary("Sigmoid", squared))).types() == "MatMul MatMul Mul parsearch.Silu");
}

TEST_CASE("activations: near misses stay as they are") {
    auto const erf = [](double outer, double inner, double one) {
        return found([&](auto& p, auto x) { return p.mul(p.mul(x, outer), p.add(p.unary("Erf", p.mul(x, inner)), one)); });
    };
    CHECK(erf(0.5, half_root, 1) == "1 x GELU");
    CHECK(erf(1, half_root, 1).empty());
    CHECK(erf(0.5, 0.5, 1).empty());
    CHECK(erf(0.5, half_root, 2.0).empty());
    CHECK(found([](auto& p, auto x) { return p.mul(x, p.unary("Sigmoid", p.mul(x, 1.5))); }).empty());
    CHECK(found([](auto& p, auto x) { return p.mul(p.mul(x, 2.0), p.unary("Sigmoid", x)); }).empty());
    CHECK(found([](auto& p, auto x) { return p.mul(x, p.unary("Tanh", x)); }).empty());
    CHECK(found([](auto& p, auto x) { // another value is gated
              auto const y = p.unary("Relu", x);
              return p.mul(y, p.unary("Sigmoid", x));
          })
              .empty());
    CHECK(found([](auto& p, auto x) { return p.mul(x, p.unary("Sigmoid", p.mul(x, p.parameter("slope", {1})))); }).empty()); // a trained slope
    CHECK(found([](auto& p, auto x) { return p.mul(x, p.unary("HardSigmoid", x)); }).empty()); // its default slope is 0.2
    CHECK(found([](auto& p, auto x) {
              return p.div(p.mul(x, p.node("Clip", {p.add(x, 3.0), p.number(0), p.number(1)}, p.extents(x))), 6.0);
          }).empty());
    CHECK(found([](auto& p, auto x) { // the other bracket
              return p.mul(p.mul(x, 0.5), p.add(p.unary("Tanh", p.mul(p.add(x, p.mul(p.pow(x, 2), 0.044715)), root_2_pi)), 1.0));
          })
              .empty());
}

TEST_CASE("activations: a value inside that is read elsewhere, or given out, keeps them from being replaced") {
    for (bool const output : {false, true}) {
        primitives p;
        auto const x = p.linear(p.input("x", {2, 4}), 4);
        auto const gate = p.unary("Sigmoid", x);
        auto const y = p.mul(x, gate);
        std::vector<value_id> results{y};
        results.push_back(output ? gate : p.unary("Relu", gate));
        CHECK(recognition(p, results).notes.empty());
    }
}

TEST_CASE("factors of a product: numbers are joined, values kept, with a bound on their number") {
    using namespace parsearch::io::onnx;
    primitives p;
    auto const x = p.input("x", {2}), y = p.unary("Relu", x);
    auto const product_value = p.div(p.mul(p.mul(p.number(3), x), p.mul(y, p.pow(x, 3))), 2.0);
    auto deep = x;
    for (int i = 0; i < 10'000; ++i) deep = p.mul(deep, y);
    p.net.outputs = {product_value, deep};
    rewriting const net(p.net);
    claim c(net);
    auto const found = factors_of(c, product_value, true);
    CHECK(found.coefficient.known == 1.5);
    CHECK(found.factors == std::vector{x, y, x, x, x});
    CHECK(c.nodes().size() == 5);
    claim other(net);
    CHECK(factors_of(other, deep, true).factors.size() <= 9);
}
