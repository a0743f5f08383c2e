#include <parsearch/rewrite/algebra/fuse.hpp>

#include <doctest/doctest.h>

#include <parsearch/ops/all_operators.hpp>
#include <parsearch/ops/shard.hpp>

#include "support/integer_models.hpp"
#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;
using namespace support;

namespace {
constexpr std::uint64_t seed = 20260211;

std::vector<std::int32_t> const whole(ops::max_dims, 1);
ops::shard_work work(ops::operation const& op, ops::pass p) { return ops::work_of(op, std::span(whole).first(op.dims.size()), p); }
double bytes(ops::operand const& o) { return static_cast<double>(ops::bytes_of(o)); }

/// Bytes that an operation keeps until backward, of all but operand `but`.
double kept(ops::operation const& op, ops::operand const* but) {
    double n = op.saved_bytes;
    for (auto const* operands : {&op.inputs, &op.outputs})
        for (auto const& o : *operands)
            if (&o != but && o.saved) n += bytes(o);
    return n;
}

/// What holds of flops, kept and moved bytes of `fused` beside those of its parts, which hand on a tensor as input `slot` of `second`.
void check_amounts(ops::operation const& fused, ops::operation const& first, ops::operation const& second, std::size_t slot) {
    ops::validate(fused, "fused");
    auto const &y = first.outputs[0], &x = second.inputs[slot];
    CHECK(fused.flops == first.flops + second.flops);
    CHECK(fused.multiply_adds == first.multiply_adds + second.multiply_adds);
    CHECK(work(fused, ops::pass::backward).flops == work(first, ops::pass::backward).flops + work(second, ops::pass::backward).flops);
    CHECK(kept(fused, nullptr) == kept(first, &y) + kept(second, &x) + (y.saved || x.saved ? bytes(y) : 0));
    CHECK(fused.intermediate_bytes == first.intermediate_bytes + second.intermediate_bytes);
    CHECK(fused.backward_intermediate_bytes == first.backward_intermediate_bytes + second.backward_intermediate_bytes);
    CHECK(fused.product_flops == first.product_flops + second.product_flops);
    if (first.work != ops::work_class::view) { // what is between is not read, and written where it is kept
        double const parts = work(first, ops::pass::forward).bytes + work(second, ops::pass::forward).bytes;
        CHECK(work(fused, ops::pass::forward).bytes == parts - (y.saved || x.saved ? 1 : 2) * bytes(y));
    }
}
} // namespace

TEST_CASE("fused: outputs and gradients are those of the parts, flops add up, and nothing kept is lost") {
    constexpr ops::function functions[] = {ops::function::relu,   ops::function::gelu,   ops::function::tanh,  ops::function::sigmoid,
                                           ops::function::negate, ops::function::square, ops::function::scale, ops::function::clip};
    on_random(seed, 3000, [&](auto& rng, auto& d) {
        auto const producer = random_known_operation(d);
        CAPTURE(producer.kind);
        auto x = random_arrays(producer.inputs, rng);
        auto const w = random_arrays(producer.weights, rng);
        auto op = producer;
        auto y = outputs(op, x, w);
        struct stage {
            ops::operation op;
            arrays read;
            std::size_t slot;
        };
        std::vector<stage> stages;
        for (auto n = d.between(1, 3); n > 0; --n) {
            auto const shape = ops::tensor_of(op.outputs[0]);
            bool const combines = d.between(0, 2) == 0;
            stage s{{}, y, combines ? d.place(2) : 0};
            if (combines) {
                s.op = ops::nary{d.coin() ? ops::combine::add : ops::combine::multiply}.infer(std::vector{shape, shape});
                x.push_back(reference::random_array(shape.extents, rng));
                s.read.insert(s.read.begin() + (s.slot ? 0 : 1), x.back());
            } else {
                s.op = ops::unary{functions[d.place(std::size(functions))]}.infer(std::vector{shape});
            }
            auto const next = combines ? fused(op, s.op, s.slot) : fused(op, s.op);
            REQUIRE_MESSAGE(next, next.why());
            check_amounts(*next, op, s.op, s.slot);
            y = outputs(s.op, s.read);
            op = *next;
            stages.push_back(std::move(s));
        }
        auto const g = random_arrays(op.outputs, rng);
        auto const found = run(op, x, w, g);
        CHECK(found.outputs == y);
        // Backward through the stages, then the producer, one by one.
        auto back = g;
        auto further = x.size();
        for (auto s = stages.rbegin(); s != stages.rend(); ++s) {
            auto const gradients = run(s->op, s->read, {}, back).input_gradients;
            if (gradients.size() == 2) CHECK(found.input_gradients[--further] == gradients[1 - s->slot]);
            back = {gradients[s->slot]};
        }
        REQUIRE(further == producer.inputs.size());
        x.resize(further);
        auto const alone = run(producer, x, w, back);
        CHECK(alone.weight_gradients == found.weight_gradients);
        for (std::size_t i = 0; i < further; ++i) CHECK(alone.input_gradients[i] == found.input_gradients[i]);
    });
}

TEST_CASE("fused: what is summed may not be split where a function follows, unless the function is additive") {
    auto const x = test::f32({4, 8});
    auto const linear = test::infer(ops::linear{.out = 6}, {x});
    auto const y = test::f32({4, 6});
    CHECK(test::dims(*fused(linear, test::infer(ops::relu{}, {y}))) == "s4 o6* k8!");
    CHECK(test::dims(*fused(linear, test::infer(ops::unary{ops::function::negate}, {y}))) == "s4 o6* k8+");
    CHECK(test::dims(*fused(linear, test::infer(ops::add{}, {y, y}), 0)) == "s4 o6* k8!");
    auto const pool = test::infer(ops::pool2d{.kernel = {2, 2}}, {test::f32({2, 3, 4, 4})});
    CHECK(test::dims(*fused(pool, test::infer(ops::relu{}, {test::f32({2, 3, 3, 3})}))) == "s2 c3~ h3~ w3~");
}

TEST_CASE("fused: what is kept, worked out by hand") {
    auto const linear = test::infer(ops::linear{.out = 6}, {test::f32({4, 8})});
    auto const y = test::f32({4, 6});
    auto const with_relu = *fused(linear, test::infer(ops::relu{}, {y}));
    CHECK(with_relu.kind == "linear+relu");
    CHECK(with_relu.outputs[0].saved);
    CHECK(with_relu.saved_bytes == 0);
    CHECK(with_relu.backward_flops == 24);
    auto const with_gelu = *fused(linear, test::infer(ops::gelu{}, {y}));
    CHECK_FALSE(with_gelu.outputs[0].saved);
    CHECK(with_gelu.saved_bytes == 24 * 4);
    auto const twice = *fused(with_relu, test::infer(ops::unary{ops::function::tanh}, {y}));
    CHECK(twice.kind == "linear+relu+tanh");
    CHECK(twice.outputs[0].saved);
    CHECK(twice.saved_bytes == 24 * 4); // what relu kept
    auto const dropped = *fused(linear, test::infer(ops::dropout{}, {y}));
    CHECK(dropped.saved_bytes == 24); // the mask
    auto const gated = *fused(linear, test::infer(ops::multiply{}, {y, y}), 1);
    CHECK(gated.inputs.size() == 2);
    CHECK(gated.inputs[1].saved);
    CHECK(gated.inputs[1].gradient_flops == 24);
    CHECK(gated.saved_bytes == 24 * 4);
    auto const residual = *fused(linear, test::infer(ops::add{}, {y, y}), 1);
    CHECK(residual.saved_bytes == 0);
    CHECK(residual.inputs[1].gradient_flops == 0);
    CHECK_FALSE(residual.inputs[1].saved);
}

TEST_CASE("fused: a batch normalization and relu is what ops::batch_norm makes") {
    on_random(seed + 1, 200, [](auto&, auto& d) {
        auto const x = d.floats(2, 4);
        auto const y = *fused(ops::batch_norm{}.infer(std::vector{x}), ops::relu{}.infer(std::vector{x}));
        CHECK(y == ops::batch_norm{.relu = true}.infer(std::vector{x}));
        CHECK(parts_of(y.kind) == fused_kind{"batch_norm", {"relu"}});
    });
}

TEST_CASE("fused: refusals") {
    auto const y = test::f32({4, 6});
    auto const linear = test::infer(ops::linear{.out = 6}, {test::f32({4, 8})});
    auto const relu = test::infer(ops::relu{}, {y}), add = test::infer(ops::add{}, {y, y});
    CHECK(fused(linear, test::infer(ops::relu{}, {test::f32({4, 5})})).why() == "relu reads f32[4,5]: linear makes f32[4,6]");
    CHECK(fused(linear, linear).why() == "linear is no function of single elements of one tensor");
    CHECK(fused(linear, test::infer(ops::softmax{}, {y})).why() == "softmax is no function of single elements of one tensor");
    CHECK(fused(test::infer(ops::split{.sizes = {3, 3}}, {y}), relu).why() == "split has 2 outputs: must have one");
    CHECK(fused(test::infer(ops::reshape{.shape = {4, 6}}, {y}), relu).why() == "reshape computes nothing: there is no work to fuse to");
    CHECK(fused(linear, test::infer(ops::cast{.type = ops::dtype::i32}, {y})).why() == "no gradient flows through cast");
    CHECK(fused(linear, add, 2).why() == "a combination of two inputs has no input 2");
    CHECK(fused(linear, test::infer(ops::add{}, {y, y, y}), 0).why() ==
          "add of 3 inputs and 0 weights: only an add or multiply of two inputs can be fused");
    CHECK(fused(linear, test::infer(ops::nary{ops::combine::divide}, {y, y}), 0).why() ==
          "divide of 2 inputs and 0 weights: only an add or multiply of two inputs can be fused");
    CHECK(fused(linear, test::infer(ops::add{}, {y, test::f32({6})}), 0).why() ==
          "add of f32[4,6] and f32[6]: both must be f32[4,6], what linear makes");
    CHECK(fused(linear, test::infer(ops::add{}, {test::f32({4, 1}), test::f32({1, 6})}), 0).why() ==
          "add of f32[4,1] and f32[1,6]: both must be f32[4,6], what linear makes");
}

TEST_CASE("a fusion in the wrong order is found by the reference") {
    on_random(seed + 2, 200, [](auto& rng, auto& d) {
        auto const shape = d.floats({3, d.between(4, 6)});
        auto const add = ops::add{}.infer(std::vector{shape, shape}), gelu = ops::gelu{}.infer(std::vector{shape});
        auto const linear = ops::linear{.out = shape.extents[1]}.infer(std::vector{shape});
        auto const right = *fused(*fused(linear, gelu), add, 0), wrong = *fused(*fused(linear, add, 0), gelu);
        auto const x = random_arrays(right.inputs, rng), w = random_arrays(right.weights, rng);
        CHECK(outputs(right, x, w) != outputs(wrong, x, w));
    });
}
