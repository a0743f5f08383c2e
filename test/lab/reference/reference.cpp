#include <parsearch/lab/reference/reference.hpp>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/ops/all_operators.hpp>

#include "support/integer_models.hpp"
#include "support/random_operators.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;
using namespace support;
using reference::array;
using reference::product;
using reference::sum;

namespace {
constexpr std::uint64_t seed = 20260111;

/// <g, f(x + t h)> is a polynomial of t where f is one: its derivative at 0 is <gradient, h>. For an `op` that is linear or multilinear in each
/// operand on its own, the difference quotient is exact in the field.
template <class R> void check_multilinear(ops::operation const& op, R& rng) {
    auto const x = random_arrays(op.inputs, rng), w = random_arrays(op.weights, rng), g = random_arrays(op.outputs, rng);
    auto const found = run(op, x, w, g);
    auto const score = [&](arrays const& outs) {
        std::int64_t s = 0;
        for (std::size_t o = 0; o < outs.size(); ++o)
            for (std::size_t i = 0; i < outs[o].values.size(); ++i) s = sum(s, product(outs[o].values[i], g[o].values[i]));
        return s;
    };
    for (std::size_t k = 0; k < x.size() + w.size(); ++k) {
        bool const input = k < x.size();
        auto const n = input ? k : k - x.size();
        auto const step = reference::random_array((input ? x : w)[n].extents, rng);
        auto x2 = x, w2 = w;
        (input ? x2 : w2)[n] = added((input ? x : w)[n], step);
        auto const& gradient = (input ? found.input_gradients : found.weight_gradients)[n];
        std::int64_t along = 0;
        for (std::size_t i = 0; i < step.values.size(); ++i) along = sum(along, product(gradient.values[i], step.values[i]));
        CHECK(sum(score(outputs(op, x2, w2)), -score(found.outputs)) == along);
    }
}
} // namespace

TEST_CASE("reference arithmetic: residues, inverses, parts and joints") {
    CHECK(reference::residue(reference::modulus) == 0);
    CHECK(reference::residue(reference::modulus - 1) == -1);
    CHECK(reference::residue(-reference::modulus - 5) == -5);
    for (std::int64_t const v : {1, -1, 2, 3, 1000000, -77}) CHECK(product(v, reference::inverse(v)) == 1);
    array const a{{2, 3}, {1, 2, 3, 4, 5, 6}};
    CHECK(reference::part(a, 1, 1, 2) == array{{2, 2}, {2, 3, 5, 6}});
    CHECK(reference::part(a, 1, -1, 3) == array{{2, 3}, {0, 1, 2, 0, 4, 5}});
    CHECK(reference::joined(arrays{reference::part(a, 1, 0, 1), reference::part(a, 1, 1, 2)}, 1) == a);
    CHECK(reference::joined(arrays{reference::part(a, 0, 0, 1), reference::part(a, 0, 1, 1)}, 0) == a);
    CHECK_THROWS_WITH_AS((void)reference::part(a, 2, 0, 1), "axis 2 of an array of 2 axes: there is none of this number", invalid_input);
    CHECK_THROWS_WITH_AS((void)reference::filled({2, 0}), "an array has extent 0: must be at least 1", invalid_input);
    CHECK_THROWS_WITH_AS((void)reference::joined(arrays{a, array{{2}, {1, 2}}}, 0), "array 1 has 1 axes: array 0 has 2", invalid_input);
    CHECK(reference::unknown("gelu", 5) != reference::unknown("tanh", 5));
    CHECK(reference::unknown("gelu", 5) != reference::unknown("gelu", 6));
    CHECK(reference::unknown("gelu", 5) != reference::unknown("gelu", 5, true));
}

TEST_CASE("linear: as two nested loops, forward and backward") {
    on_random(seed + 1, 600, [](auto& rng, auto& d) {
        auto const s = d.extent(), k = d.extent(), o = d.extent();
        bool const bias = d.coin();
        auto const op = ops::linear{.out = o, .bias = bias}.infer(std::vector{d.floats({s, k})});
        auto const x = random_arrays(op.inputs, rng), w = random_arrays(op.weights, rng), g = random_arrays(op.outputs, rng);
        auto const found = run(op, x, w, g);
        auto y = reference::filled({s, o}), dx = reference::filled({s, k}), dw = reference::filled({o, k}), db = reference::filled({o});
        for (std::int64_t j = 0; j < o; ++j)
            for (std::int64_t i = 0; i < s; ++i) {
                element(y, {i, j}) = bias ? element(w[1], {j}) : 0;
                auto const gij = element(g[0], {i, j});
                element(db, {j}) = sum(element(db, {j}), gij);
                for (std::int64_t l = 0; l < k; ++l) {
                    element(y, {i, j}) = sum(element(y, {i, j}), product(element(x[0], {i, l}), element(w[0], {j, l})));
                    element(dx, {i, l}) = sum(element(dx, {i, l}), product(gij, element(w[0], {j, l})));
                    element(dw, {j, l}) = sum(element(dw, {j, l}), product(gij, element(x[0], {i, l})));
                }
            }
        CHECK(found.outputs[0] == y);
        CHECK(found.input_gradients[0] == dx);
        CHECK(found.weight_gradients[0] == dw);
        if (bias) CHECK(found.weight_gradients[1] == db);
    });
}

TEST_CASE("conv2d: as a scatter from padded inputs, with groups, strides and dilations") {
    on_random(seed + 2, 500, [](auto& rng, auto& d) {
        auto const drawn = test::random_application<ops::conv2d>::draw(d);
        auto const& c = drawn.op;
        auto const op = drawn.infer();
        auto const x = random_arrays(op.inputs, rng), w = random_arrays(op.weights, rng), g = random_arrays(op.outputs, rng);
        auto const found = run(op, x, w, g);
        auto const& e = x[0].extents;
        auto const ye = ops::tensor_of(op.outputs[0]).extents;
        auto y = reference::filled(ye), dx = reference::filled(e), dw = reference::filled(w[0].extents);
        auto const group_in = e[1] / c.groups, group_out = c.out / c.groups;
        for (std::int64_t s = 0; s < e[0]; ++s)
            for (std::int64_t in = 0; in < e[1]; ++in)
                for (std::int64_t h = 0; h < e[2]; ++h)
                    for (std::int64_t v = 0; v < e[3]; ++v)
                        for (std::int64_t kh = 0; kh < c.kernel[0]; ++kh)
                            for (std::int64_t kv = 0; kv < c.kernel[1]; ++kv) {
                                auto const up = h + c.padding[0] - kh * c.dilation[0], left = v + c.padding[1] - kv * c.dilation[1];
                                if (up < 0 || left < 0 || up % c.stride[0] || left % c.stride[1]) continue;
                                auto const oh = up / c.stride[0], ov = left / c.stride[1];
                                if (oh >= ye[2] || ov >= ye[3]) continue;
                                for (std::int64_t o = in / group_in * group_out; o < (in / group_in + 1) * group_out; ++o) {
                                    auto const weight = element(w[0], {o, in % group_in, kh, kv}), value = element(x[0], {s, in, h, v});
                                    auto const back = element(g[0], {s, o, oh, ov});
                                    element(y, {s, o, oh, ov}) = sum(element(y, {s, o, oh, ov}), product(weight, value));
                                    element(dx, {s, in, h, v}) = sum(element(dx, {s, in, h, v}), product(weight, back));
                                    auto& to = element(dw, {o, in % group_in, kh, kv});
                                    to = sum(to, product(value, back));
                                }
                            }
        if (c.bias)
            for (std::size_t i = 0; i < y.values.size(); ++i)
                y.values[i] = sum(y.values[i], w[1].values[i / static_cast<std::size_t>(ye[2] * ye[3]) % static_cast<std::size_t>(ye[1])]);
        CHECK(found.outputs[0] == y);
        CHECK(found.input_gradients[0] == dx);
        CHECK(found.weight_gradients[0] == dw);
    });
}

TEST_CASE("pool2d: maxima and means of windows cut out one by one") {
    on_random(seed + 3, 500, [](auto& rng, auto& d) {
        auto drawn = test::random_application<ops::pool2d>::draw(d);
        if (drawn.op.mode == ops::pool_mode::norm) drawn.op.mode = ops::pool_mode::max;
        auto const& p = drawn.op;
        auto const op = drawn.infer();
        auto const x = random_arrays(op.inputs, rng), g = random_arrays(op.outputs, rng);
        arrays got;
        try {
            got = outputs(op, x);
        } catch (invalid_input const& e) { // in ceil mode a last window may lie in the padding
            CHECK(std::string(e.what()).find("has a window that holds nothing") != std::string::npos);
            return;
        }
        auto const e = op.outputs[0].axes;
        auto const found = run(op, x, {}, g);
        auto dx = reference::filled(x[0].extents);
        for (std::int64_t s = 0; s < e[0].extent; ++s)
            for (std::int64_t c = 0; c < e[1].extent; ++c)
                for (std::int64_t h = 0; h < e[2].extent; ++h)
                    for (std::int64_t v = 0; v < e[3].extent; ++v) {
                        auto const block = reference::part(reference::part(reference::part(reference::part(x[0], 0, s, 1), 1, c, 1), 2,
                                                                           std::max<std::int64_t>(0, h * p.stride[0] - p.padding[0]),
                                                                           std::min(x[0].extents[2], h * p.stride[0] - p.padding[0] + p.kernel[0]) -
                                                                               std::max<std::int64_t>(0, h * p.stride[0] - p.padding[0])),
                                                           3, std::max<std::int64_t>(0, v * p.stride[1] - p.padding[1]),
                                                           std::min(x[0].extents[3], v * p.stride[1] - p.padding[1] + p.kernel[1]) -
                                                               std::max<std::int64_t>(0, v * p.stride[1] - p.padding[1]));
                        auto const back = element(g[0], {s, c, h, v});
                        std::int64_t expected = 0;
                        auto const share = reference::inverse(p.kernel[0] * p.kernel[1]);
                        if (p.mode == ops::pool_mode::max) expected = *std::max_element(block.values.begin(), block.values.end());
                        else
                            for (auto const b : block.values) expected = sum(expected, product(b, share));
                        CHECK(element(found.outputs[0], {s, c, h, v}) == expected);
                        for (std::int64_t i = 0; i < x[0].extents[2]; ++i)
                            for (std::int64_t j = 0; j < x[0].extents[3]; ++j) {
                                auto const di = i + p.padding[0] - h * p.stride[0], dj = j + p.padding[1] - v * p.stride[1];
                                if (di < 0 || dj < 0 || di >= p.kernel[0] || dj >= p.kernel[1]) continue;
                                auto& to = element(dx, {s, c, i, j}); // random residues have no ties
                                if (p.mode == ops::pool_mode::average) to = sum(to, product(back, share));
                                else if (element(x[0], {s, c, i, j}) == expected) to = sum(to, back);
                            }
                    }
        CHECK(found.input_gradients[0] == dx);
    });
}

TEST_CASE("concat, split, slice and transpose: as parts and joints, and there and back") {
    on_random(seed + 4, 800, [](auto& rng, auto& d) {
        auto first = d.extents(3);
        auto const at = d.place(3);
        std::vector<ops::tensor> shapes;
        std::vector<std::int64_t> sizes;
        for (std::int64_t n = d.between(1, 4); n > 0; --n) {
            first[at] = d.extent();
            sizes.push_back(first[at]);
            shapes.push_back(d.floats(first));
        }
        auto const joint = ops::concat{.axis = static_cast<std::int64_t>(at)}.infer(shapes);
        auto const x = random_arrays(joint.inputs, rng), g = random_arrays(joint.outputs, rng);
        auto const found = run(joint, x, {}, g);
        CHECK(found.outputs[0] == reference::joined(x, at));
        std::vector<ops::tensor> const whole{ops::tensor_of(joint.outputs[0])};
        auto const cut = ops::split{.axis = static_cast<std::int64_t>(at), .sizes = sizes}.infer(whole);
        CHECK(outputs(cut, found.outputs) == x);
        CHECK(outputs(cut, g) == found.input_gradients);
        CHECK(run(cut, found.outputs, {}, x).input_gradients == found.outputs);

        auto const last = whole[0].extents[at];
        auto const begin = d.between(0, last - 1), end = d.between(begin + 1, last);
        auto const slice = ops::slice{.axis = static_cast<std::int64_t>(at), .begin = begin, .end = end}.infer(whole);
        auto const piece = outputs(slice, found.outputs);
        CHECK(piece[0] == reference::part(found.outputs[0], at, begin, end - begin));
        CHECK(run(slice, found.outputs, {}, piece).input_gradients[0] == reference::part(piece[0], at, -begin, last));

        std::vector<std::int64_t> order{0, 1, 2};
        d.shuffle(order);
        auto const turned = ops::transpose{.permutation = order}.infer(whole);
        auto const y = run(turned, found.outputs, {}, outputs(turned, found.outputs));
        auto const& e = whole[0].extents;
        for (std::int64_t a = 0; a < e[0]; ++a)
            for (std::int64_t b = 0; b < e[1]; ++b)
                for (std::int64_t c = 0; c < e[2]; ++c) {
                    std::vector<std::int64_t> const p{a, b, c};
                    auto const i = [&](std::size_t k) { return p[static_cast<std::size_t>(order[k])]; };
                    CHECK(element(y.outputs[0], {i(0), i(1), i(2)}) == element(found.outputs[0], {a, b, c}));
                }
        CHECK(y.input_gradients == found.outputs);
    });
}

TEST_CASE("gradients of sums and products are their exact derivatives") {
    on_random(seed + 5, 400, [](auto& rng, auto& d) {
        check_multilinear(test::random_application<ops::einsum>::draw(d).infer(), rng);
        check_multilinear(test::random_application<ops::batched_matmul>::draw(d).infer(), rng);
        check_multilinear(test::random_application<ops::conv1d>::draw(d).infer(), rng);
        check_multilinear(test::random_application<ops::linear>::draw(d).infer(), rng);
        check_multilinear(test::random_application<ops::tile>::draw(d).infer(), rng);
        check_multilinear(test::random_application<ops::pad>::draw(d).infer(), rng);
        check_multilinear(test::random_application<ops::flatten>::draw(d).infer(), rng);
        auto const x = d.floats(2, 3);
        auto thin = x;
        thin.extents.back() = 1;
        for (auto const c : {ops::combine::add, ops::combine::subtract, ops::combine::multiply, ops::combine::mean})
            check_multilinear(ops::nary{c}.infer(std::vector{x, thin}), rng);
        check_multilinear(ops::reduce{.mode = ops::reduction_mode::mean, .axes = {-1}}.infer(std::vector{x}), rng);
        check_multilinear(ops::reduce{.axes = {0}}.infer(std::vector{x}), rng);
    });
}

TEST_CASE("embedding: rows by index; normalizations and softmax depend on their group and nothing else") {
    on_random(seed + 6, 300, [](auto& rng, auto& d) {
        auto const rows = d.extent(), features = d.extent(), n = d.extent(), bag = d.extent();
        auto const table = ops::embedding{.entries = rows, .features = features}.infer(std::vector{d.indices({n, bag})});
        auto const bags = ops::embedding_bag{.entries = rows, .features = features}.infer(std::vector{d.indices({n, bag})});
        auto const x = random_arrays(table.inputs, rng), w = random_arrays(table.weights, rng);
        auto const each = outputs(table, x, w)[0], together = outputs(bags, x, w)[0];
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t o = 0; o < features; ++o) {
                std::int64_t all = 0;
                for (std::int64_t b = 0; b < bag; ++b) {
                    auto const row = ((element(x[0], {i, b}) % rows) + rows) % rows;
                    CHECK(element(each, {i, b, o}) == element(w[0], {row, o}));
                    all = sum(all, element(w[0], {row, o}));
                }
                CHECK(element(together, {i, o}) == all);
            }

        auto const shape = d.floats({2, 3, 2});
        auto const check_groups = [&](ops::operation const& op, auto&& same_group) {
            auto v = random_arrays(op.inputs, rng);
            auto const weights = random_arrays(op.weights, rng);
            auto const before = outputs(op, v, weights)[0];
            auto const changed = d.place(12);
            v[0].values[changed] = sum(v[0].values[changed], 1);
            auto const after = outputs(op, v, weights)[0];
            for (std::size_t i = 0; i < 12; ++i) CHECK((before.values[i] != after.values[i]) == same_group(i, changed));
        };
        check_groups(ops::layer_norm{}.infer(std::vector{shape}), [](auto i, auto j) { return i / 2 == j / 2; });
        check_groups(ops::softmax{.axis = 1}.infer(std::vector{shape}), [](auto i, auto j) { return i / 6 == j / 6 && i % 2 == j % 2; });
        check_groups(ops::batch_norm{}.infer(std::vector{shape}), [](auto i, auto j) { return i / 2 % 3 == j / 2 % 3; });
        check_groups(ops::group_norm{.groups = 3}.infer(std::vector{shape}), [](auto i, auto j) { return i / 2 == j / 2; });
        check_groups(ops::group_norm{.groups = 1}.infer(std::vector{shape}), [](auto i, auto j) { return i / 6 == j / 6; });
        check_groups(ops::gelu{}.infer(std::vector{shape}), [](auto i, auto j) { return i == j; });
    });
}

TEST_CASE("graphs: values by name, shared parameters, gradients added up where tensors are read twice") {
    graph::operator_graph g;
    auto const x = g.input("x", {{2, 3}});
    auto const a = g.add("a", ops::linear{.out = 3, .bias = false, .parameter = "w"}, x);
    auto const b = g.add("b", ops::linear{.out = 3, .bias = false, .parameter = "w"}, a);
    auto const c = g.add("c", ops::multiply{}, b, a);
    g.add("d", ops::relu{}, c);
    auto const dense = graph::read_graph(g).graph;
    CHECK(reference::unread_outputs(dense) == std::vector<reference::tensor_number>{{4, 0}});
    split_mix rng(seed);
    auto const values = reference::random_values(dense, rng);
    CHECK(values.weights.size() == 1);
    auto const wanted = reference::unread_outputs(dense);
    arrays const seeds{reference::random_array({2, 3}, rng)};
    auto const found = reference::run(dense, values, wanted, seeds);

    // By hand, with the operations one by one.
    auto const &la = g[a.op].operation, &lc = g[c.op].operation, &ld = g[4].operation;
    arrays const w{values.weights.at("w.weight")};
    auto const va = outputs(la, {values.inputs.at("x")}, w), vb = outputs(la, va, w);
    auto const vc = outputs(lc, {vb[0], va[0]});
    CHECK(found.outputs == outputs(ld, vc));
    auto const gc = run(ld, vc, {}, seeds).input_gradients;
    auto const gba = run(lc, {vb[0], va[0]}, {}, gc).input_gradients;
    auto const back_b = run(la, va, w, {gba[0]});
    auto const back_a = run(la, {values.inputs.at("x")}, w, {added(gba[1], back_b.input_gradients[0])});
    CHECK(found.gradients.weights.at("w.weight") == added(back_a.weight_gradients[0], back_b.weight_gradients[0]));
    CHECK(found.gradients.inputs.at("x") == back_a.input_gradients[0]);

    auto missing = values;
    missing.weights.clear();
    CHECK_THROWS_WITH_AS((void)reference::run(dense, missing, wanted), "operator 'a' (linear): parameter 'w.weight' has no value: each needs one",
                         invalid_input);
    std::vector<reference::tensor_number> const nowhere{{9, 0}};
    CHECK_THROWS_WITH_AS((void)reference::run(dense, values, nowhere), "wanted is output 0 of operator 9, which does not exist", invalid_input);
}

TEST_CASE("the reference refuses what it does not know") {
    auto const message = [](ops::operation const& op, arrays const& x) {
        try {
            (void)outputs(op, x);
        } catch (invalid_input const& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    auto const f = [](std::vector<std::int64_t> e) { return std::vector<ops::tensor>{{std::move(e)}}; };
    CHECK(message(ops::flip{}.infer(f({2, 3})), {reference::filled({2, 3})}) == "operator of kind 'flip' is not known to the reference");
    CHECK(message(ops::dropout{}.infer(f({2, 3})), {reference::filled({2, 3})}) == "operator of kind 'dropout' is not known to the reference");
    CHECK(message(ops::relu{}.infer(f({2, 3})), {reference::filled({3, 2})}) ==
          "operator of kind 'relu': array 0 does not have the shape of input 'x', f32[2,3]");
    CHECK(message(ops::relu{}.infer(f({2, 3})), {}) == "operator of kind 'relu': 0 arrays: must be one per input, 1");
}
