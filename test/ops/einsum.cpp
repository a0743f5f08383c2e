#include <parsearch/ops/einsum.hpp>

#include <doctest/doctest.h>

#include <parsearch/ops/linear.hpp>

#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::test;

TEST_CASE("einsum: a batched matrix product is batched_matmul") {
    auto const a = infer(ops::einsum{.equation = "bmk,bkn->bmn"}, {f32({4, 5, 8}), f32({4, 8, 3})});
    auto const b = infer(ops::batched_matmul{}, {f32({4, 5, 8}), f32({4, 8, 3})});
    CHECK(dims(a) == "b4 m5~ n3~ k8+");
    CHECK(a.flops == b.flops);
    CHECK(a.multiply_adds == b.multiply_adds);
    CHECK(extents(a.outputs[0]) == extents(b.outputs[0]));
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(a.inputs[i].axes == b.inputs[i].axes);
        CHECK(a.inputs[i].gradient_flops == b.inputs[i].gradient_flops);
    }
}

TEST_CASE("einsum: a weight makes parameter dims") {
    auto const op = infer(ops::einsum{.equation = " sk , ok -> so ", .weight = {6, 8}, .parameter = "p"}, {f32({4, 8})});
    auto const linear = infer(ops::linear{.out = 6, .bias = false}, {f32({4, 8})});
    CHECK(op.dims == linear.dims);
    CHECK(op.weights[0].axes == linear.weights[0].axes);
    CHECK(op.weights[0].parameter == "p.weight");
    CHECK(op.flops == linear.flops);
    // A weight per expert: experts are a parameter dim, so that they may live on different devices.
    auto const experts = infer(ops::einsum{.equation = "ecm,emo->eco", .weight = {2, 8, 6}}, {f32({2, 5, 8})});
    CHECK(dims(experts) == "e2* c5~ o6* m8+");
}

TEST_CASE("einsum: products of one, two and three operands cost what their loops do") {
    auto const moved = infer(ops::einsum{.equation = "ab->ba"}, {f32({4, 5})});
    CHECK(moved.flops == 0);
    CHECK(moved.work == ops::work_class::memory);
    CHECK_FALSE(moved.inputs[0].saved);
    auto const summed = infer(ops::einsum{.equation = "ab->a"}, {f32({4, 5})});
    CHECK(summed.flops == 20);
    CHECK(summed.multiply_adds == 0);
    CHECK(summed.inputs[0].gradient_flops == 0);
    auto const outer = infer(ops::einsum{.equation = "a,b->ab"}, {f32({4}), f32({5})});
    CHECK(outer.flops == 20);
    CHECK(outer.multiply_adds == 0);
    CHECK(outer.inputs[0].gradient_flops == 40);
    CHECK(outer.work == ops::work_class::elementwise);
    auto const three = infer(ops::einsum{.equation = "ai,bi,ci->abc"}, {f32({2, 7}), f32({3, 7}), f32({4, 7})});
    CHECK(three.flops == 3 * 2 * 3 * 4 * 7);
    CHECK(three.multiply_adds == 2 * 3 * 4 * 7);
    auto const scalar = infer(ops::einsum{.equation = "i,i->"}, {f32({7}), f32({7})});
    CHECK(scalar.outputs[0].axes.empty());
    CHECK(dims(scalar) == "i7+");
}

TEST_CASE("einsum: refusals") {
    auto const one = [](std::string equation) { return refusal(ops::einsum{.equation = std::move(equation)}, {f32({4, 4})}); };
    CHECK(one("ij") == "equation 'ij' has no '->': the output must be written out");
    CHECK(one("ii->i") == "letter 'i' is twice in 'ii' of equation 'ii->i': must be once in an operand");
    CHECK(one("ij->jj") == "letter 'j' is twice in 'jj' of equation 'ij->jj': must be once in an operand");
    CHECK(one("i...->i") == "'.' in equation 'i...->i': indices must be letters");
    CHECK(one("ij->ik") == "letter 'k' of the output of equation 'ij->ik' is in no operand: must be in one");
    CHECK(one("ijk->i") == "input 0 of shape f32[4,4]: must have one axis per letter of 'ijk' in equation 'ijk->i'");
    CHECK(one("ij,jk->ik") == "1 inputs: must have 2");
    CHECK(refusal(ops::einsum{.equation = "ij,jk->ik"}, {f32({4, 5}), f32({6, 7})}) ==
          "letter 'j' of equation 'ij,jk->ik' has extents 5 and 6: must be equal");
    CHECK(refusal(ops::einsum{.equation = "ij,jk->ik", .weight = {5}}, {f32({4, 5})}) ==
          "weight of 1 axes: must have one axis per letter of 'jk' in equation 'ij,jk->ik'");
    CHECK(refusal(ops::einsum{.equation = "ij->i", .weight = {5, 5}}, {}) ==
          "equation 'ij->i' has no operand beside the weight: must have at least one");
    CHECK(refusal(ops::einsum{.equation = "abcdef,ghijkl->abcdefghijkl"}, {f32({1, 1, 1, 1, 1, 1}), f32({1, 1, 1, 1, 1, 1})}) ==
          "equation 'abcdef,ghijkl->abcdefghijkl' has 12 letters: at most 10 are supported");
}
