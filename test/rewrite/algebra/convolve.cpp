#include <parsearch/rewrite/algebra/convolve.hpp>

#include <doctest/doctest.h>

#include <parsearch/ops/all_operators.hpp>
#include <parsearch/rewrite/algebra/merge.hpp>

#include "support/integer_models.hpp"
#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;
using namespace support;

namespace {
constexpr std::uint64_t seed = 20260411;

/// A kernel with its border of zeros.
reference::array bordered(reference::array w, std::vector<std::int64_t> const& border) {
    for (std::size_t i = 0; i < border.size(); ++i) w = reference::part(w, 2 + i, -border[i], w.extents[2 + i] + 2 * border[i]);
    return w;
}
reference::array without_border(reference::array w, std::vector<std::int64_t> const& border) {
    for (std::size_t i = 0; i < border.size(); ++i) w = reference::part(w, 2 + i, border[i], w.extents[2 + i] - 2 * border[i]);
    return w;
}
} // namespace

TEST_CASE("enlarged: the operator's own description of the larger kernel, and the same results but for the border's gradient") {
    on_random(seed, 1200, [](auto& rng, auto& d) {
        auto drawn = test::random_application<ops::conv2d>::draw(d);
        auto& c = drawn.op;
        c.parameter.clear();
        for (std::size_t i = 0; i < 2; ++i)
            if (c.kernel[i] == 1) c.dilation[i] = 1;
        auto const op = drawn.infer();
        std::vector<std::int64_t> kernel;
        auto larger = c;
        for (std::size_t i = 0; i < 2; ++i) {
            auto const half = d.between(0, 2);
            kernel.push_back(c.kernel[i] + 2 * half);
            larger.kernel[i] = kernel[i];
            larger.padding[i] += half * c.dilation[i];
            if (c.padding_end[i] >= 0) larger.padding_end[i] += half * c.dilation[i];
        }
        auto const found = enlarged(op, kernel, purpose::inference);
        REQUIRE_MESSAGE(found, found.why());
        ops::validate(found->operation, "enlarged");
        CHECK(found->operation == larger.infer(drawn.inputs));
        auto const x = random_arrays(op.inputs, rng), w = random_arrays(op.weights, rng), g = random_arrays(op.outputs, rng);
        auto wide = w;
        wide[0] = bordered(w[0], found->border);
        auto const before = run(op, x, w, g), after = run(found->operation, x, wide, g);
        CHECK(before.outputs == after.outputs);
        CHECK(before.input_gradients == after.input_gradients);
        auto weights = after.weight_gradients;
        weights[0] = without_border(weights[0], found->border);
        CHECK(before.weight_gradients == weights);
    });
}

TEST_CASE("enlarged, then merged: branches of 1x1 and 3x3 of one input") {
    on_random(seed + 1, 400, [](auto& rng, auto& d) {
        std::vector const x{d.floats({2, d.between(1, 3), d.between(3, 5), d.between(3, 5)})};
        auto const a = ops::conv2d{.out = d.between(1, 3)}.infer(x);
        auto const b = ops::conv2d{.out = d.between(1, 3), .kernel = {3, 3}, .padding = {1, 1}}.infer(x);
        std::vector<std::int64_t> const kernel{3, 3};
        auto const wide = *enlarged(a, kernel, purpose::training, true);
        std::vector const siblings{wide.operation, b};
        CHECK_FALSE(merged(std::vector{a, b}));
        auto const m = merged(siblings);
        REQUIRE_MESSAGE(m, m.why());
        auto const values = random_arrays(a.inputs, rng);
        auto const wa = random_arrays(a.weights, rng), wb = random_arrays(b.weights, rng);
        arrays const both{reference::joined(arrays{bordered(wa[0], wide.border), wb[0]}, 0), reference::joined(arrays{wa[1], wb[1]}, 0)};
        auto const y = outputs(m->operation, values, both);
        CHECK(cut_up(y[0], m->outputs[0]) == arrays{outputs(a, values, wa)[0], outputs(b, values, wb)[0]});
    });
}

TEST_CASE("enlarged: flops grow with the kernel, bias and fused functions aside") {
    std::vector<std::int64_t> const three{3, 3};
    auto const op = test::infer(ops::conv2d{.out = 2}, {test::f32({1, 4, 5, 5})});
    auto const with_relu = *fused(op, test::infer(ops::relu{}, {test::f32({1, 2, 5, 5})}));
    auto const large = enlarged(with_relu, three, purpose::inference)->operation;
    CHECK(large.kind == "conv2d+relu");
    CHECK(large.multiply_adds == 9 * op.multiply_adds);
    CHECK(large.flops == 2 * large.multiply_adds + 50 + 50);
    CHECK(large.weights[0].gradient_flops == 9 * op.weights[0].gradient_flops);
    CHECK(large.weights[1] == op.weights[1]);

    auto const why = [&](ops::operation const& o, std::vector<std::int64_t> const& k) { return enlarged(o, k, purpose::inference).why(); };
    CHECK(why(op, {3}) == "1 kernel extents: conv2d has 2 spatial axes");
    CHECK(why(op, {2, 3}) == "kernel 1 can not be written as 2: it must grow by an even number");
    CHECK(why(enlarged(op, three, purpose::inference)->operation, {1, 1}) == "kernel 3 can not be written as 1: it must grow by an even number");
    CHECK(why(test::infer(ops::linear{.out = 2}, {test::f32({4, 8})}), {3}) == "linear is no convolution");
    CHECK(why(test::infer(ops::conv2d{.out = 2, .parameter = "p"}, {test::f32({1, 4, 5, 5})}), {3, 3}) ==
          "weight 'weight' of conv2d is parameter 'p.weight', which others may share");
    CHECK(enlarged(op, three, purpose::training).why() == "in training the border of the larger kernel would not stay zero");
}

TEST_CASE("folded: a convolution or linear layer and its batch normalization, for inference") {
    on_random(seed + 2, 1200, [](auto& rng, auto& d) {
        bool const relu = d.coin();
        ops::operation op, with_bias;
        switch (d.between(0, 2)) {
        case 0: {
            auto drawn = test::random_application<ops::conv2d>::draw(d);
            op = drawn.infer();
            drawn.op.bias = true;
            drawn.op.parameter.clear();
            with_bias = drawn.infer();
            break;
        }
        case 1: {
            auto drawn = test::random_application<ops::conv1d>::draw(d);
            op = drawn.infer();
            drawn.op.bias = true;
            drawn.op.parameter.clear();
            with_bias = drawn.infer();
            break;
        }
        default: {
            ops::linear l{.out = d.extent(), .bias = d.coin(), .parameter = "p"};
            std::vector const x{d.floats(2, 2)};
            op = l.infer(x);
            l.bias = true;
            l.parameter.clear();
            with_bias = l.infer(x);
        }
        }
        std::vector const y{ops::tensor_of(op.outputs[0])};
        auto const norm = ops::batch_norm{.relu = relu}.infer(y);
        auto const one = folded(op, norm, purpose::inference);
        REQUIRE_MESSAGE(one, one.why());
        ops::validate(*one, "folded");
        CHECK(*one == (relu ? *fused(with_bias, ops::relu{}.infer(y)) : with_bias));

        auto const x = random_arrays(op.inputs, rng), w = random_arrays(op.weights, rng), affine = random_arrays(norm.weights, rng);
        auto const expected = outputs(norm, outputs(op, x, w), affine, purpose::inference);
        arrays both{w[0], affine[1]};
        auto const channels = static_cast<std::size_t>(w[0].extents[0]), each = w[0].values.size() / channels;
        for (std::size_t i = 0; i < both[0].values.size(); ++i) both[0].values[i] = reference::product(both[0].values[i], affine[0].values[i / each]);
        if (w.size() == 2)
            for (std::size_t c = 0; c < channels; ++c)
                both[1].values[c] = reference::sum(both[1].values[c], reference::product(w[1].values[c], affine[0].values[c]));
        CHECK(outputs(*one, x, both, purpose::inference) == expected);
        // With statistics of the batch it would be something else.
        if (!relu) CHECK(outputs(norm, outputs(op, x, w), affine, purpose::training) != expected);
    });
}

TEST_CASE("folded: refusals") {
    auto const image = test::f32({2, 3, 4, 4});
    auto const conv = test::infer(ops::conv2d{.out = 3}, {image}), norm = test::infer(ops::batch_norm{}, {image});
    auto const why = [](auto const& a, auto const& b) { return folded(a, b, purpose::inference).why(); };
    CHECK(folded(conv, norm, purpose::training).why() ==
          "in training the statistics of a batch normalization depend on the batch: folding is for inference");
    CHECK(why(conv, test::infer(ops::layer_norm{}, {image})) == "layer_norm is no batch normalization with scale and offset");
    CHECK(why(conv, *fused(norm, test::infer(ops::gelu{}, {image}))) == "batch_norm+gelu is no batch normalization with scale and offset");
    CHECK(why(test::infer(ops::relu{}, {image}), norm) == "relu is no convolution or linear layer");
    CHECK(why(conv, test::infer(ops::batch_norm{}, {test::f32({2, 3, 4, 5})})) == "batch_norm reads f32[2,3,4,5]: conv2d makes f32[2,3,4,4]");
    auto const sequence = test::f32({2, 3, 4});
    CHECK(why(test::infer(ops::linear{.out = 4}, {sequence}), test::infer(ops::batch_norm{}, {sequence})) ==
          "axis 1 of what linear makes is not that of its weights");
}
