#include <parsearch/io/onnx/patterns/normalizations.hpp>

#include <functional>

#include <doctest/doctest.h>

#include <parsearch/io/onnx/patterns/batch_norm_relu.hpp>

#include "support/onnx_patterns.hpp"

using namespace support;

namespace {

/// What layer norms are spelled with.
struct spelling {
    bool multiplied_square = false; ///< d * d, not d ^ 2
    int inverse = 0;                ///< 0: d / sqrt, 1: d * reciprocal, 2: d * (1 / sqrt), 3: d * v ^ -0.5, 4: d / v ^ 0.5
    bool twice = false;             ///< the difference is written twice
    bool axes_by_input = false;
    std::vector<std::int64_t> axes{-1}, variance_axes{-1};
    double epsilon = 1e-5;
};
value_id deviation(primitives& p, value_id v, int inverse) {
    if (inverse == 4) return p.pow(v, 0.5);
    if (inverse == 3) return p.pow(v, -0.5);
    auto const root = p.unary("Sqrt", v);
    return inverse == 1 ? p.unary("Reciprocal", root) : inverse == 2 ? p.div(p.number(1), root) : root;
}
value_id scaled(primitives& p, value_id d, value_id deviation, int inverse) {
    return inverse == 0 || inverse == 4 ? p.div(d, deviation) : p.mul(d, deviation);
}

value_id layer_norm(primitives& p, value_id x, spelling const& s = {}) {
    auto const mean = p.mean(x, s.axes, s.axes_by_input);
    auto const d = p.sub(x, mean), other = s.twice ? p.sub(x, mean) : d;
    auto const square = s.multiplied_square ? p.mul(other, other) : p.pow(other, 2);
    return scaled(p, d, deviation(p, p.add(p.mean(square, s.variance_axes, s.axes_by_input), s.epsilon), s.inverse), s.inverse);
}
value_id rms_norm(primitives& p, value_id x, spelling const& s = {}) {
    auto const square = s.multiplied_square ? p.mul(x, x) : p.pow(x, 2);
    return scaled(p, x, deviation(p, p.add(p.mean(square, s.variance_axes, s.axes_by_input), s.epsilon), s.inverse), s.inverse);
}
value_id affine(primitives& p, value_id y, shape extents) { return p.add(p.mul(y, p.parameter("g", extents)), p.parameter("b", extents)); }
/// What is recognised in `f` of a projection.
recognition found(std::function<value_id(primitives&, value_id)> const& f) {
    primitives p;
    return {p, f(p, p.linear(p.input("x", {2, 3, 8}), 8))};
}

} // namespace

TEST_CASE("layer norm: all spellings, with weight and bias") {
    for (bool const multiplied : {false, true})
        for (int inverse = 0; inverse < 5; ++inverse)
            for (bool const twice : {false, true})
                for (bool const by_input : {false, true}) {
                    CAPTURE(multiplied);
                    CAPTURE(inverse);
                    CAPTURE(twice);
                    auto const r = found([&](auto& p, auto x) { return affine(p, layer_norm(p, x, {multiplied, inverse, twice, by_input}), {8}); });
                    CHECK(r.notes == "1 x layer norm");
                    CHECK(r.types() == "MatMul parsearch.LayerNormalization");
                    CHECK(weights(r.graph[2].operation) == "g[8] b[8]");
                    CHECK(r.graph[2].operation.kind == "layer_norm");
                }
}

TEST_CASE("layer norm: without weights, with weight alone, over several axes, named after its mean of squares") {
    auto const bare = found([](auto& p, auto x) { return layer_norm(p, x); });
    CHECK(bare.notes == "1 x layer norm");
    CHECK(bare.graph[2].operation.weights.empty());
    CHECK(bare.first("LayerNormalization").name == "n4");
    auto const weighted = found([](auto& p, auto x) { return p.mul(p.parameter("g", {8}), layer_norm(p, x)); });
    CHECK(weights(weighted.graph[2].operation) == "g[8]");
    auto const both = found([](auto& p, auto x) { return affine(p, layer_norm(p, x, {.axes = {1, 2}, .variance_axes = {-2, -1}}), {3, 8}); });
    CHECK(both.types() == "MatMul parsearch.LayerNormalization");
    CHECK(weights(both.graph[2].operation) == "g[3,8] b[3,8]");
    CHECK(both.graph[2].operation.dims[1].kind == ops::dim_kind::fixed);
    // Weights of other extents, or that are computed, stay outside.
    auto const wide = found([](auto& p, auto x) { return affine(p, layer_norm(p, x), {3, 8}); });
    CHECK(wide.types() == "Add MatMul Mul parsearch.LayerNormalization");
    auto const modulated = found([](auto& p, auto x) { return p.mul(layer_norm(p, x), p.linear(p.input("condition", {2, 1, 4}), 8)); });
    CHECK(modulated.types() == "MatMul MatMul Mul parsearch.LayerNormalization");
    auto const bias_alone = found([](auto& p, auto x) { return p.add(layer_norm(p, x), p.parameter("b", {8})); });
    CHECK(bias_alone.types() == "Add MatMul parsearch.LayerNormalization");
}

TEST_CASE("layer norm as TensorFlow writes it: weight and deviation are one factor") {
    auto const spelled = [](bool weight_first, bool swapped) {
        return found([=](auto& p, auto x) {
            auto const mean = p.mean(x);
            auto const d = p.sub(x, mean);
            auto const inverse = p.unary("Reciprocal", p.unary("Sqrt", p.add(p.mean(p.mul(d, d)), 1e-12)));
            auto const g = p.parameter("g", {8}), b = p.parameter("b", {8});
            auto const w = weight_first ? p.mul(g, inverse) : p.mul(inverse, g);
            auto const left = p.mul(x, w), right = p.sub(b, p.mul(mean, w));
            return swapped ? p.add(right, left) : p.add(left, right);
        });
    };
    for (bool const weight_first : {false, true})
        for (bool const swapped : {false, true}) {
            auto const r = spelled(weight_first, swapped);
            CHECK(r.types() == "MatMul parsearch.LayerNormalization");
            CHECK(weights(r.graph[2].operation) == "g[8] b[8]");
        }
}

TEST_CASE("RMS norm: all spellings, and the weight on either side") {
    for (bool const multiplied : {false, true})
        for (int inverse = 0; inverse < 5; ++inverse) {
            auto const r = found([&](auto& p, auto x) {
                auto const y = rms_norm(p, x, {multiplied, inverse});
                return inverse % 2 ? p.mul(p.parameter("g", {8}), y) : p.mul(y, p.parameter("g", {1, 1, 8}));
            });
            CHECK(r.notes == "1 x RMS norm");
            CHECK(r.types() == "MatMul parsearch.RMSNormalization");
            CHECK(r.graph[2].operation.kind == "rms_norm");
            CHECK(r.graph[2].operation.weights.size() == 1);
        }
    // 1 + weight (Gemma) is computed: it stays.
    CHECK(found([](auto& p, auto x) { return p.mul(rms_norm(p, x), p.add(p.parameter("g", {8}), 1.0)); }).types() ==
          "Add MatMul Mul parsearch.RMSNormalization");
}

TEST_CASE("norms in another precision: conversions there and back are absorbed, others stay") {
    auto const f16 = ops::dtype::f16, f32 = ops::dtype::f32;
    primitives p;
    auto const x = p.matmul(p.input("x", {2, 3, 8}, f16), p.parameter("w", {8, 8}, f16));
    auto const y = p.cast(rms_norm(p, p.cast(x, f32)), f16);
    recognition const r(p, p.mul(p.parameter("g", {8}, f16), y));
    CHECK(r.types() == "MatMul parsearch.RMSNormalization");
    CHECK(r.graph[2].operation.outputs[0].type == f16);
    CHECK(weights(r.graph[2].operation) == "g[8]");

    primitives widened; // only the statistics are taken in single precision
    auto const a = widened.matmul(widened.input("x", {2, 3, 8}, f16), widened.parameter("w", {8, 8}, f16));
    auto const root = widened.unary("Sqrt", widened.add(widened.mean(widened.pow(widened.cast(a, f32), 2)), 1e-6));
    recognition const statistics(widened, widened.mul(a, widened.cast(widened.unary("Reciprocal", root), f16)));
    CHECK(statistics.types() == "MatMul parsearch.RMSNormalization");

    primitives q; // the result stays in single precision
    auto const z = q.matmul(q.input("x", {2, 3, 8}, f16), q.parameter("w", {8, 8}, f16));
    CHECK(recognition(q, layer_norm(q, q.cast(z, f32))).types() == "Cast MatMul parsearch.LayerNormalization");
}

TEST_CASE("norms: near misses stay as they are") {
    auto const none = [](std::function<value_id(primitives&, value_id)> const& f) { return found(f).notes.empty(); };
    CHECK(none([](auto& p, auto x) { return layer_norm(p, x, {.axes = {1}, .variance_axes = {1}}); }));
    CHECK(none([](auto& p, auto x) { return layer_norm(p, x, {.axes = {-1}, .variance_axes = {1, 2}}); }));
    CHECK(none([](auto& p, auto x) { return layer_norm(p, x, {.epsilon = 3}); }));
    CHECK(none([](auto& p, auto x) { return rms_norm(p, x, {.variance_axes = {0}}); }));
    CHECK(none([](auto& p, auto x) { return rms_norm(p, x, {.variance_axes = {0, 1, 2}}); })); // samples are normalised apart
    CHECK(none([](auto& p, auto x) { return p.div(x, p.unary("Sqrt", p.add(p.mean(p.pow(x, 3)), 1e-5))); }));
    CHECK(none([](auto& p, auto x) { return p.div(p.unary("Relu", x), p.unary("Sqrt", p.add(p.mean(p.pow(x, 2)), 1e-5))); }));
    CHECK(none([](auto& p, auto x) { return p.div(x, p.unary("Exp", p.add(p.mean(p.pow(x, 2)), 1e-5))); }));
    CHECK(none([](auto& p, auto x) { return p.div(x, p.unary("Sqrt", p.add(p.mean(p.pow(x, 2)), p.parameter("epsilon", {1})))); }));
    // Values inside that are wanted outside.
    for (int which = 0; which < 3; ++which) {
        primitives p;
        auto const x = p.linear(p.input("x", {2, 3, 8}), 8), mean = p.mean(x), d = p.sub(x, mean), variance = p.mean(p.pow(d, 2));
        auto const y = p.div(d, p.unary("Sqrt", p.add(variance, 1e-5)));
        CHECK(recognition(p, {y, which == 0 ? mean : which == 1 ? d : variance}).notes.empty());
        CHECK(recognition(p, y).notes == "1 x layer norm");
    }
}

TEST_CASE("batch norm and ReLU are one operator where nothing else reads what is between") {
    primitives p;
    auto const conv = p.node("Conv", {p.input("x", {2, 3, 8, 8}), p.parameter("w", {4, 3, 3, 3})}, {2, 4, 6, 6});
    auto const norm = [&](value_id x, std::string const& name) {
        return p.node("BatchNormalization",
                      {x, p.parameter(name + ".g", {4}), p.parameter(name + ".b", {4}), p.parameter(name + ".m", {4}), p.parameter(name + ".v", {4})},
                      {2, 4, 6, 6});
    };
    auto const first = p.unary("Relu", norm(conv, "n1"));
    auto const second = norm(conv, "n2");
    auto const y = p.add(p.unary("Relu", second), p.add(second, first));
    recognition const r(p, y);
    CHECK(r.notes == "1 x batch norm + ReLU");
    CHECK(r.types() == "Add Add BatchNormalization Conv Relu parsearch.BatchNormalizationRelu");
    CHECK(r.first("BatchNormalizationRelu").name == "n1");
    auto const& fused = named(r.graph, "n1");
    CHECK(fused.kind == "batch_norm_relu");
    CHECK(weights(fused) == "n1.g[4] n1.b[4]");
    CHECK(r.flops == r.flops_before);
}
