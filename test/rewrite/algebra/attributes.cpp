#include <parsearch/rewrite/algebra/attributes.hpp>

#include <doctest/doctest.h>

#include <parsearch/ops/all_operators.hpp>
#include <parsearch/ops/kit/weighted.hpp>

#include "support/cases.hpp"
#include "support/operators.hpp"
#include "support/random_operators.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

TEST_CASE("parts_of: kinds with and without stages") {
    CHECK(parts_of("linear") == fused_kind{"linear", {}});
    CHECK(parts_of("linear+relu") == fused_kind{"linear", {"relu"}});
    CHECK(parts_of("conv2d+add+relu") == fused_kind{"conv2d", {"add", "relu"}});
    CHECK(parts_of("batch_norm_relu") == fused_kind{"batch_norm", {"relu"}});
    CHECK(parts_of("batch_norm_relu+add") == fused_kind{"batch_norm", {"relu", "add"}});
    CHECK(parts_of("") == fused_kind{"", {}});
    CHECK(parts_of("a+") == fused_kind{"a", {""}});
    CHECK(stage_inputs(parts_of("conv2d+add+relu+multiply")) == 2);
    CHECK(stage_inputs(parts_of("add+relu")) == 0);
}

TEST_CASE("knowledge_of: every function of the library is classified, what is unknown is not trusted") {
    CHECK(knowledge_of("relu") == knowledge::told);
    CHECK(knowledge_of("gelu") == knowledge::told);
    CHECK(knowledge_of("scale") == knowledge::numbers);
    CHECK(knowledge_of("cast") == knowledge::numbers);
    CHECK(knowledge_of("mask") == knowledge::positional);
    CHECK(knowledge_of("dropout") == knowledge::positional);
    CHECK(knowledge_of("mine") == knowledge::positional);
    std::size_t told = 0;
    for (auto const& f : ops::function_table) told += knowledge_of(f.name) == knowledge::told;
    CHECK(told == 24); // of 35: one is positional, ten have numbers
}

TEST_CASE("readings give back the options that operators were made with") {
    constexpr std::uint64_t seed = 20260711;
    split_mix rng(seed);
    test::drawer d(rng);
    for (int i = 0; i < support::cases(1500); ++i) {
        CAPTURE(seed);
        CAPTURE(i);
        auto const c = test::random_application<ops::conv2d>::draw(d);
        auto const windows = read_windows(c.infer());
        REQUIRE(windows);
        for (std::size_t a = 0; a < 2; ++a)
            CHECK((*windows)[a] == window{c.op.kernel[a], c.op.stride[a], c.op.padding[a], c.op.kernel[a] == 1 ? 1 : c.op.dilation[a]});

        auto const t = test::random_application<ops::transpose>::draw(d);
        auto order = t.op.permutation;
        for (auto& p : order) p += p < 0 ? static_cast<std::int64_t>(order.size()) : 0;
        CHECK(read_transpose(t.infer()) == order);

        auto e = d.extents(3);
        auto const at = d.place(3);
        cut expected{at, {}};
        std::vector<ops::tensor> parts;
        for (auto n = d.between(2, 4); n > 0; --n) {
            e[at] = d.extent();
            expected.sizes.push_back(e[at]);
            parts.push_back(d.floats(e));
        }
        auto const joint = ops::concat{.axis = static_cast<std::int64_t>(at)}.infer(parts);
        CHECK(read_concat(joint) == expected);
        auto const whole = ops::tensor_of(joint.outputs[0]);
        CHECK(read_split(ops::split{.axis = static_cast<std::int64_t>(at), .sizes = expected.sizes}.infer(std::vector{whole})) == expected);
        CHECK(is_reshape(ops::flatten{}.infer(std::vector{whole})));
        CHECK(is_unary(ops::gelu{}.infer(std::vector{whole})));
    }
}

TEST_CASE("readings do not trust a kind") {
    auto const x = test::f32({4, 6});
    auto concat = test::infer(ops::concat{}, {x, x});
    CHECK(read_concat(concat));
    auto shifted = concat;
    shifted.inputs[1].axes[1].offset = -5; // overlaps the first
    CHECK_FALSE(read_concat(shifted));
    auto short_of = concat;
    short_of.inputs.pop_back(); // leaves a gap behind
    CHECK_FALSE(read_concat(short_of));
    CHECK_FALSE(read_split(concat));
    CHECK_FALSE(read_concat(ops::with_weights(concat, {{.input = 0}})));
    auto turned = test::infer(ops::transpose{.permutation = {1, 0}}, {x});
    CHECK(read_transpose(turned));
    turned.outputs[0].axes[0] = turned.outputs[0].axes[1];
    CHECK_FALSE(read_transpose(turned));
    CHECK_FALSE(read_windows(test::infer(ops::linear{.out = 3}, {x})));
    CHECK_FALSE(read_windows(test::infer(ops::conv_transpose2d{.out = 3}, {test::f32({1, 2, 3, 3})})));
    CHECK_FALSE(is_unary(test::infer(ops::softmax{}, {x})));
    CHECK_FALSE(is_unary(test::infer(ops::add{}, {x, x})));
    CHECK_FALSE(is_unary(ops::with_weights(test::infer(ops::add{}, {x, x}), {{.input = 1}})));
    CHECK_FALSE(is_reshape(test::infer(ops::transpose{.permutation = {1, 0}}, {x})));
    CHECK(is_contraction(test::infer(ops::linear{.out = 3}, {x})));
    CHECK_FALSE(is_contraction(test::infer(ops::conv_transpose2d{.out = 3}, {test::f32({1, 2, 3, 3})})));
}
