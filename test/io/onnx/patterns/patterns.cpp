#include <parsearch/io/onnx/patterns/patterns.hpp>

#include <cmath>
#include <random>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

#include "support/onnx_patterns.hpp"

namespace onnx = parsearch::io::onnx;
using namespace support;

namespace {

/// Networks of random nodes among which patterns, whole or nearly so, come up.
struct random_blocks {
    primitives p{};
    std::mt19937_64 rng;
    std::vector<value_id> open{}; ///< values of shape [2, 4, 6, 6]

    explicit random_blocks(std::uint64_t seed) : rng(seed) {}
    std::uint64_t draw(std::uint64_t n) { return parsearch::uniform_index(rng, n); }
    value_id any() { return open[draw(open.size())]; }
    double about(double right) { return draw(6) ? right : 2 * right; }

    void activation(value_id x) {
        switch (draw(3)) {
        case 0: open.push_back(p.mul(x, p.unary("Sigmoid", draw(2) ? x : p.mul(x, about(1.702))))); break;
        case 1: open.push_back(p.mul(p.mul(x, about(0.5)), p.add(p.unary("Erf", p.div(x, std::sqrt(2.0))), 1.0))); break;
        default: {
            auto const bracket = p.add(x, p.mul(p.pow(x, about(3)), 0.044715));
            open.push_back(p.mul(p.mul(p.add(p.unary("Tanh", p.mul(bracket, 0.79788456)), 1.0), 0.5), x));
        }
        }
    }
    void norm(value_id x) {
        auto const d = draw(2) ? p.sub(x, p.mean(x)) : x;
        auto const variance = p.mean(p.pow(draw(5) ? d : x, 2), {draw(5) ? -1 : 2});
        auto y = p.div(d, p.unary("Sqrt", p.add(variance, 1e-5)));
        if (draw(2)) y = p.mul(y, p.parameter(parsearch::text('g', p.net.values.size()), {6}));
        if (draw(2)) y = p.add(y, p.parameter(parsearch::text('b', p.net.values.size()), {6}));
        open.push_back(y);
        if (!draw(4)) open.push_back(d);
    }
    void attention(value_id q, value_id k, value_id v) {
        auto s = p.matmul(q, p.transpose(k, {0, 1, 3, 2}));
        if (draw(2)) s = p.div(s, 2.4);
        if (draw(3) == 0) s = p.add(s, p.triangle({6, 6}, 0, draw(2) ? -1e9 : -1));
        if (draw(3) == 0) s = p.add(s, any());
        auto const probabilities = p.softmax(s, draw(5) ? 3 : 2);
        if (!draw(5)) open.push_back(probabilities);
        auto y = p.matmul(probabilities, v);
        if (draw(2)) { // together and apart again
            auto const joined = p.reshape(p.transpose(y, {0, 2, 1, 3}), {2, 6, 24});
            y = p.transpose(p.reshape(p.linear(joined, 24), {2, 6, 4, 6}), {0, 2, 1, 3});
        }
        open.push_back(y);
    }
    void rotary(value_id x) {
        auto const turned = p.concat(p.unary("Neg", p.slice(x, -1, draw(5) ? 3 : 2, draw(5) ? 6 : 5)), p.slice(x, -1, 0, 3));
        if (p.extents(turned) == p.extents(x)) open.push_back(p.add(p.mul(x, p.fixed("c", {6, 6})), p.mul(turned, p.fixed("s", {6, 6}))));
    }
    recognition build(std::uint64_t blocks) {
        open.push_back(p.transpose(p.reshape(p.linear(p.input("x", {2, 6, 5}), 24), {2, 6, 4, 6}), {0, 2, 1, 3}));
        while (blocks-- > 0) switch (draw(6)) {
            case 0: activation(any()); break;
            case 1: norm(any()); break;
            case 2: rotary(any()); break;
            case 3: attention(any(), any(), any()); break;
            case 4: open.push_back(p.add(any(), any())); break;
            default: open.push_back(p.unary("Relu", any()));
            }
        std::vector<value_id> results{open.back()};
        if (draw(2)) results.push_back(any());
        return {p, std::move(results)};
    }
};

} // namespace

TEST_CASE("recognise: notes count what was replaced, names are those of the nodes") {
    primitives p;
    auto x = p.linear(p.input("x", {2, 6, 8}), 8);
    for (int i = 0; i < 3; ++i) {
        auto const y = p.linear(x, 8);
        x = p.add(x, p.mul(y, p.unary("Sigmoid", y)));
    }
    x = p.mul(p.div(x, p.unary("Sqrt", p.add(p.mean(p.mul(x, x)), 1e-6))), p.parameter("g", {8}));
    recognition const r(p, x);
    CHECK(r.notes == "1 x RMS norm; 3 x SiLU");
    CHECK(r.types() == "Add Add Add MatMul MatMul MatMul MatMul parsearch.RMSNormalization parsearch.Silu parsearch.Silu parsearch.Silu");
    CHECK(listing(r.graph).find("n2:silu") != std::string::npos);
}

TEST_CASE("recognise: nodes that nobody reads do not keep a pattern from being found") {
    primitives p;
    auto const x = p.linear(p.input("x", {2, 8}), 8), gate = p.unary("Sigmoid", x);
    p.net.outputs = {p.mul(x, gate)};
    (void)p.unary("Relu", gate);
    CHECK(onnx::recognise(p.net) == std::vector<std::string>{"1 x SiLU"});
    CHECK(p.net.nodes.size() == 2);
}

TEST_CASE("recognise: an empty network, nodes with too few inputs, inputs left out") {
    onnx::network empty;
    CHECK(onnx::recognise(empty).empty());
    for (auto const* const type :
         {"Mul", "Div", "Add", "Sub", "Where", "MatMul", "Concat", "Reshape", "Cast", "Relu", "Softmax", "ReduceMean", "Clip", "Slice", "Transpose"})
        for (auto const* const reader : {"Mul", "MatMul", "Add", "Reshape", "Concat", "Cast", "Relu"})
            for (int inputs = 0; inputs < 4; ++inputs) {
                primitives p;
                auto const x = p.input("x", {2, 3, 4, 4});
                std::vector<value_id> given(static_cast<std::size_t>(inputs), x);
                if (inputs > 1) given[static_cast<std::size_t>(inputs) - 1] = onnx::no_value;
                if (inputs == 3) given[0] = onnx::no_value;
                auto const made = p.node(type, given, {2, 3, 4, 4});
                auto const soft = p.softmax(made);
                p.net.outputs = {p.node(reader, {made, made}, {2, 3, 4, 4}), p.node(reader, {soft, x}, {2, 3, 4, 4}),
                                 p.node(reader, {made}, {2, 3, 4, 4}), p.node("Mul", {x, p.unary("Sigmoid", made)}, {2, 3, 4, 4})};
                auto const nodes = p.net.nodes.size();
                CHECK(onnx::recognise(p.net).size() <= 1);
                CHECK(p.net.nodes.size() <= nodes);
            }
}

TEST_CASE("recognise: parameters, multiply-adds and results stay, and a second time nothing is found, in random networks") {
    constexpr std::uint64_t first_seed = 7311, networks = 300;
    std::size_t found = 0;
    std::string all;
    for (std::uint64_t seed = first_seed; seed < first_seed + networks; ++seed) {
        CAPTURE(seed);
        auto const r = random_blocks(seed).build(seed % 24 + 1);
        found += !r.notes.empty();
        all += r.notes;
    }
    // The trials mean something: every pattern came up.
    CHECK(found > networks / 2);
    for (auto const* const name : {"GELU", "SiLU", "layer norm", "RMS norm", "rotary embedding", "attention (4 heads)", "attention (4 heads, causal)",
                                   "attention (4 heads, masked)"})
        CHECK(all.find(name) != std::string::npos);
    MESSAGE("seeds ", first_seed, " to ", first_seed + networks - 1, ", ", found, " networks with patterns");
}

TEST_CASE("recognise: long chains take linear time and no stack") {
    primitives p;
    auto const x = p.input("x", {1, 2, 3, 3});
    auto scores = p.matmul(x, x), product_value = x;
    for (int i = 0; i < 20'000; ++i) scores = p.add(scores, x);
    for (int i = 0; i < 20'000; ++i) product_value = p.mul(product_value, x);
    auto y = p.matmul(p.softmax(scores), x);
    for (int i = 0; i < 20'000; ++i) y = p.transpose(y, {0, 2, 1, 3});
    p.net.outputs = {y, product_value};
    CHECK(onnx::recognise(p.net).empty());
    CHECK(p.net.nodes.size() == 60'003);
}
