#include <parsearch/rewrite/algebra/distribute.hpp>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/all_operators.hpp>
#include <parsearch/rewrite/algebra/fuse.hpp>

#include "support/integer_models.hpp"
#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;
using namespace support;

namespace {
constexpr std::uint64_t seed = 20260611;

/// Terms of a sum of contractions, and what they are joined to by the operator's own inference.
struct terms_of_sum {
    std::vector<ops::operation> terms;
    ops::operation whole;
    bool biased;
};
template <class D> terms_of_sum random_terms(D& d) {
    std::vector<std::int64_t> sizes;
    std::int64_t all = 0;
    for (auto n = d.between(2, 4); n > 0; --n) {
        sizes.push_back(d.between(1, 4));
        all += sizes.back();
    }
    if (d.coin()) {
        std::fill(sizes.begin(), sizes.end(), sizes[0]);
        all = sizes[0] * static_cast<std::int64_t>(sizes.size());
    }
    bool const bias = d.coin();
    auto const biased = d.place(sizes.size());
    terms_of_sum out{{}, {}, false};
    auto const make = [&](auto&& infer) {
        for (std::size_t i = 0; i < sizes.size(); ++i) out.terms.push_back(infer(sizes[i], bias && i == biased));
        out.whole = infer(all, bias);
    };
    switch (d.between(0, 3)) {
    case 0: {
        auto const e = d.extents(d.between(1, 3));
        auto const o = d.extent();
        make([&](std::int64_t k, bool b) {
            auto x = e;
            x.push_back(k);
            return ops::linear{.out = o, .bias = b}.infer(std::vector{d.floats(x)});
        });
        out.biased = bias;
        break;
    }
    case 1: {
        auto drawn = test::random_application<ops::conv2d>::draw(d);
        drawn.op.groups = 1;
        drawn.op.parameter.clear();
        make([&](std::int64_t c, bool b) {
            drawn.op.bias = b;
            drawn.inputs[0].extents[1] = c;
            return drawn.infer();
        });
        out.biased = bias;
        break;
    }
    case 2: {
        auto const b = d.extent(), m = d.extent(), n = d.extent();
        ops::batched_matmul const op{.transpose_a = d.coin(), .transpose_b = d.coin()};
        make([&](std::int64_t k, bool) {
            return op.infer(std::vector{d.floats(op.transpose_a ? std::vector{b, k, m} : std::vector{b, m, k}),
                                        d.floats(op.transpose_b ? std::vector{b, n, k} : std::vector{b, k, n})});
        });
        break;
    }
    default: {
        auto const s = d.extent(), o = d.extent(), h = d.extent();
        make([&](std::int64_t k, bool) {
            return ops::einsum{.equation = "skh,hko->so", .weight = {h, k, o}}.infer(std::vector{d.floats({s, k, h})});
        });
        break;
    }
    }
    return out;
}

arrays joined_columns(std::vector<arrays> const& rows, std::vector<cut> const& cuts) {
    arrays out;
    for (std::size_t k = 0; k < cuts.size(); ++k) out.push_back(rejoined(column(rows, k), cuts[k]));
    return out;
}

/// That a sum of `terms` is `whole` of their operands joined: outputs, and gradients of all operands.
template <class R>
bool is_sum(std::vector<ops::operation> const& terms, ops::operation const& whole, std::vector<cut> const& input_cuts,
            std::vector<cut> const& weight_cuts, R& rng) {
    auto const g = random_arrays(whole.outputs, rng);
    std::vector<arrays> x, w, dx, dw;
    arrays bias, bias_gradient;
    auto total = reference::filled(g[0].extents);
    for (auto const& t : terms) {
        x.push_back(random_arrays(t.inputs, rng));
        w.push_back(random_arrays(t.weights, rng));
        auto r = run(t, x.back(), w.back(), g); // an addition hands its gradient on
        total = added(total, r.outputs[0]);
        if (t.weights.size() > weight_cuts.size()) {
            bias = {w.back().back()};
            bias_gradient = {r.weight_gradients.back()};
        }
        dx.push_back(r.input_gradients);
        dw.push_back(r.weight_gradients);
    }
    auto weights = joined_columns(w, weight_cuts), weight_gradients = joined_columns(dw, weight_cuts);
    weights.insert(weights.end(), bias.begin(), bias.end());
    weight_gradients.insert(weight_gradients.end(), bias_gradient.begin(), bias_gradient.end());
    auto const r = run(whole, joined_columns(x, input_cuts), weights, g);
    return r.outputs == arrays{total} && r.input_gradients == joined_columns(dx, input_cuts) && r.weight_gradients == weight_gradients;
}
} // namespace

TEST_CASE("joined_sum and parted_sum: the operator's own description, the same results and gradients, there and back") {
    on_random(seed, 2000, [](auto& rng, auto& d) {
        auto const f = random_terms(d);
        CAPTURE(f.whole.kind);
        auto const j = joined_sum(f.terms, purpose::training);
        REQUIRE_MESSAGE(j, j.why());
        ops::validate(j->operation, "joined");
        CHECK(j->operation == f.whole);
        CHECK(j->biases.size() == (f.biased ? 1 : 0));
        for (auto const i : j->biases) CHECK(f.terms[i].weights.size() == 2);
        CHECK(is_sum(f.terms, j->operation, j->inputs, j->weights, rng));
        auto const p = parted_sum(j->operation, j->dim, j->sizes);
        REQUIRE_MESSAGE(p, p.why());
        for (auto const& t : p->parts) ops::validate(t, "part");
        ops::validate(p->sum, "sum");
        CHECK(p->inputs == j->inputs);
        CHECK(p->weights == j->weights);
        CHECK(is_sum(p->parts, j->operation, p->inputs, p->weights, rng));
        CHECK(p->sum.inputs.size() == f.terms.size());
        double parts = 0, terms = 0;
        for (auto const& t : p->parts) parts += t.flops;
        for (auto const& t : f.terms) terms += t.flops;
        CHECK(parts == terms);
        CHECK(parts == j->operation.flops);
        if (!f.biased) CHECK(p->parts == f.terms);
    });
}

TEST_CASE("joined_sum: several biases are one bias in inference only") {
    on_random(seed + 1, 300, [](auto& rng, auto& d) {
        auto const o = d.extent(), s = d.extent();
        std::vector const terms{ops::linear{.out = o}.infer(std::vector{d.floats({s, 2})}),
                                ops::linear{.out = o}.infer(std::vector{d.floats({s, 3})})};
        CHECK(joined_sum(terms, purpose::training).why() == "2 terms have a bias: in training they are not one");
        auto const j = *joined_sum(terms, purpose::inference);
        CHECK(j.biases == std::vector<std::size_t>{0, 1});
        CHECK(j.operation == ops::linear{.out = o}.infer(std::vector{d.floats({s, 5})}));
        std::vector<arrays> x, w;
        arrays y;
        for (auto const& t : terms) {
            x.push_back(random_arrays(t.inputs, rng));
            w.push_back(random_arrays(t.weights, rng));
            y.push_back(outputs(t, x.back(), w.back())[0]);
        }
        CHECK(outputs(j.operation, joined_columns(x, j.inputs), {reference::joined(arrays{w[0][0], w[1][0]}, 1), added(w[0][1], w[1][1])})[0] ==
              added(y[0], y[1]));
    });
}

TEST_CASE("factored and distributed: graphs before and after give the same outputs, input gradients and parameter gradients") {
    on_random(seed + 2, 1500, [](auto& rng, auto& d) {
        auto const count = static_cast<std::size_t>(d.between(2, 3));
        auto product = [&]() -> ops::operation {
            switch (d.between(0, 2)) {
            case 0: return ops::linear{.out = d.extent(), .bias = false, .parameter = "p"}.infer(std::vector{d.floats(2, 3)});
            case 1: {
                auto drawn = test::random_application<ops::conv2d>::draw(d);
                drawn.op.bias = false;
                return drawn.infer();
            }
            default:
                return ops::einsum{.equation = "sk,kho->sho", .weight = {3, d.extent(), d.extent()}, .parameter = "p"}.infer(
                    std::vector{d.floats({d.extent(), 3})});
            }
        }();
        auto const shape = ops::tensor_of(product.inputs[0]);
        auto const f = factored(std::vector(count, product));
        REQUIRE_MESSAGE(f, f.why());
        ops::validate(f->sum, "sum");
        ops::validate(f->product, "product");
        auto const t = distributed(f->sum, f->product);
        REQUIRE_MESSAGE(t, t.why());
        CHECK(t->products == std::vector(count, product));

        graph::operator_graph sum_first, products_first;
        std::vector<graph::tensor_ref> terms, made;
        for (std::size_t i = 0; i < count; ++i) terms.push_back(sum_first.input(text('x', i), shape));
        auto const s = sum_first.insert("sum", f->sum, terms);
        sum_first.add("product", f->product, s);
        for (std::size_t i = 0; i < count; ++i) (void)products_first.input(text('x', i), shape);
        for (std::size_t i = 0; i < count; ++i) made.push_back(products_first.add(text("product", i), t->products[i], terms[i]));
        products_first.insert("sum", t->sum, made);
        auto const a = graph::read_graph(sum_first).graph, b = graph::read_graph(products_first).graph;
        auto const values = reference::random_values(a, rng);
        auto const ends = reference::unread_outputs(a), ends2 = reference::unread_outputs(b);
        arrays const seeds{reference::random_array(ops::tensor_of(product.outputs[0]).extents, rng)};
        auto const one = reference::run(a, values, ends, seeds), two = reference::run(b, values, ends2, seeds);
        CHECK(one.outputs == two.outputs);
        CHECK(one.gradients == two.gradients);
    });
}

TEST_CASE("distributed: the bias counts once, weights get a name to be shared by, two inputs share the other") {
    auto const x = test::f32({4, 8});
    auto const sum = test::infer(ops::add{}, {x, x}), linear = test::infer(ops::linear{.out = 6}, {x});
    CHECK(distributed(sum, linear).why() == "weight 'weight' has no parameter name to be shared by");
    auto const d = *distributed(sum, linear, 0, "fc");
    CHECK(d.products[0].weights.size() == 2);
    CHECK(d.products[1] == test::infer(ops::linear{.out = 6, .bias = false, .parameter = "fc"}, {x}));
    CHECK(d.products[0].flops == d.products[1].flops + 24);
    CHECK(d.sum == test::infer(ops::add{}, {test::f32({4, 6}), test::f32({4, 6})}));

    split_mix rng(seed);
    auto const a = test::f32({2, 3, 4}), b = test::f32({2, 4, 5});
    auto const product = test::infer(ops::batched_matmul{}, {a, b});
    auto const both = *distributed(test::infer(ops::add{}, {b, b}), product, 1);
    auto const left = reference::random_array(a.extents, rng);
    arrays const right{reference::random_array(b.extents, rng), reference::random_array(b.extents, rng)};
    CHECK(outputs(both.sum, {outputs(both.products[0], {left, right[0]})[0], outputs(both.products[1], {left, right[1]})[0]}) ==
          outputs(product, {left, added(right[0], right[1])}));
}

TEST_CASE("distributivity: refusals, and wrong ones that the reference finds out") {
    auto const x = test::f32({4, 8});
    auto const linear = test::infer(ops::linear{.out = 6}, {x}), plain = test::infer(ops::linear{.out = 6, .bias = false}, {x});
    auto const relu = *fused(plain, test::infer(ops::relu{}, {test::f32({4, 6})}));
    auto const joined = [](std::vector<ops::operation> const& t) { return joined_sum(t, purpose::training).why(); };
    CHECK(joined({plain}) == "1 terms: at least two can be joined");
    CHECK(joined({plain, relu}) == "linear+relu is no plain contraction: functions of a sum are not sums");
    CHECK(joined({plain, test::infer(ops::softmax{}, {x})}) == "softmax is no contraction");
    CHECK(joined({plain, test::infer(ops::linear{.out = 6, .bias = false, .parameter = "p"}, {x})}) ==
          "weight 'weight' of linear is parameter 'p.weight', which others may share");
    CHECK(joined({plain, test::infer(ops::linear{.out = 5, .bias = false}, {x})}) == "dim 'o' of linear is not summed over");
    auto const conv = [](ops::conv2d c) {
        c.out = 2;
        c.bias = false;
        return test::infer(c, {test::f32({1, 2, 5, 5})});
    };
    CHECK(joined({conv({}), conv({.kernel = {3, 3}, .padding = {1, 1}})}) == "operands 'x' of conv2d are not indexed the same way");
    CHECK(joined({conv({.groups = 2}), conv({.groups = 2})}) == "conv2d has no reduction dim");

    CHECK(factored(std::vector{plain, plain}).why() == "weight 'weight' has no parameter name: the terms do not share it");
    CHECK(factored(std::vector{linear, linear}).why() == "terms with a bias have no common factor");
    CHECK(factored(std::vector{plain}).why() == "1 terms: at least two can be factored");
    auto const named = [&](char const* p) { return test::infer(ops::linear{.out = 6, .bias = false, .parameter = p}, {x}); };
    CHECK(factored(std::vector{named("p"), named("q")}).why() == "the terms are not equal: they have no common factor");
    CHECK(factored(std::vector{named("p"), named("p")}, 1).why() == "linear of 1 inputs has no input 1");
    auto const sum = test::infer(ops::add{}, {x, x});
    CHECK(distributed(test::infer(ops::multiply{}, {x, x}), plain, 0, "p").why() == "multiply is no sum of tensors of one shape");
    CHECK(distributed(test::infer(ops::add{}, {x, test::f32({8})}), plain, 0, "p").why() == "add is no sum of tensors of one shape");
    CHECK(distributed(sum, relu, 0, "p").why() == "linear+relu is no plain contraction: functions of a sum are not sums");
    CHECK(distributed(sum, test::infer(ops::linear{.out = 6}, {test::f32({4, 7})}), 0, "p").why() == "the sum is f32[4,8]: linear reads f32[4,7]");
    std::vector<std::int64_t> const halves{4, 4}, one{8};
    CHECK(parted_sum(plain, 1, halves).why() == "dim 'o' of linear is not summed over");
    CHECK(parted_sum(plain, 2, one).why() == "two or more parts of dim 'k' must add up to 8");
    CHECK(parted_sum(plain, 7, halves).why() == "linear has no dim 7");

    // What the refusals keep away is wrong: relu(a) + relu(b) is not relu of the joined sum, and a bias per term is not one bias.
    split_mix rng(seed + 5);
    auto const j = *joined_sum(std::vector{plain, plain}, purpose::training);
    CHECK(is_sum({plain, plain}, j.operation, j.inputs, j.weights, rng));
    auto wrong = j.operation;
    wrong.kind = "linear+relu";
    CHECK_FALSE(is_sum({relu, relu}, wrong, j.inputs, j.weights, rng));
    auto const biased = *joined_sum(std::vector{linear, linear}, purpose::inference);
    CHECK_FALSE(is_sum({linear, linear}, biased.operation, biased.inputs, biased.weights, rng));
}
