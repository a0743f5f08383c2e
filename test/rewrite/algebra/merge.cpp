#include <parsearch/rewrite/algebra/merge.hpp>

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
constexpr std::uint64_t seed = 20260311;

/// Siblings of one input, and what they are joined to by the operator's own inference.
struct family {
    std::vector<ops::operation> siblings;
    ops::operation whole;
};

template <class Op, class Set> family family_of(Op op, std::vector<ops::tensor> const& in, std::vector<std::int64_t> const& sizes, Set&& set) {
    family f;
    std::int64_t all = 0;
    for (auto const n : sizes) {
        set(op, n);
        f.siblings.push_back(op.infer(in));
        all += n;
    }
    set(op, all);
    f.whole = op.infer(in);
    return f;
}

template <class D> family random_family(D& d) {
    std::vector<std::int64_t> sizes;
    for (auto n = d.between(2, 4); n > 0; --n) sizes.push_back(d.between(1, 4));
    if (d.coin()) std::fill(sizes.begin(), sizes.end(), sizes[0]);
    switch (d.between(0, 4)) {
    case 0: return family_of(ops::linear{.bias = d.coin()}, {d.floats(2, 4)}, sizes, [](auto& op, auto n) { op.out = n; });
    case 1: {
        auto drawn = test::random_application<ops::conv2d>::draw(d);
        drawn.op.groups = 1;
        drawn.op.parameter.clear();
        return family_of(drawn.op, drawn.inputs, sizes, [](auto& op, auto n) { op.out = n; });
    }
    case 2: {
        auto drawn = test::random_application<ops::conv1d>::draw(d);
        drawn.op.groups = 1;
        drawn.op.parameter.clear();
        return family_of(drawn.op, drawn.inputs, sizes, [](auto& op, auto n) { op.out = n; });
    }
    case 3: { // heads, each of a head's size, or the other way round
        auto const x = d.floats(3, 3);
        auto const other = d.extent();
        bool const first = sizes[0] == sizes[1] || d.coin();
        ops::einsum const op{.equation = "bsd,dhk->bshk"};
        return family_of(op, {x}, sizes, [&](auto& e, auto n) { e.weight = {x.extents[2], first ? n : other, first ? other : n}; });
    }
    default: return family_of(ops::embedding{.entries = d.extent()}, {d.indices(d.extents(2))}, sizes, [](auto& op, auto n) { op.features = n; });
    }
}

/// Outputs and gradients of siblings on one input, as those of `whole` cut up: what a merging promises.
template <class R> bool same_results(std::vector<ops::operation> const& siblings, merging const& m, R& rng, bool other_input = false) {
    auto const x = random_arrays(siblings[0].inputs, rng);
    std::vector<arrays> w, g, y, dw;
    arrays dx;
    for (auto const& in : x) dx.push_back(reference::filled(in.extents));
    for (auto const& op : siblings) {
        w.push_back(random_arrays(op.weights, rng));
        g.push_back(random_arrays(op.outputs, rng));
        auto const mine = other_input && &op != &siblings[0] ? random_arrays(op.inputs, rng) : x;
        auto r = run(op, mine, w.back(), g.back());
        y.push_back(r.outputs);
        dw.push_back(r.weight_gradients);
        for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = added(dx[i], r.input_gradients[i]);
    }
    auto const join = [](std::vector<arrays> const& parts, std::vector<cut> const& cuts) {
        arrays out;
        for (std::size_t k = 0; k < cuts.size(); ++k) out.push_back(rejoined(column(parts, k), cuts[k]));
        return out;
    };
    auto const together = run(m.operation, x, join(w, m.weights), join(g, m.outputs));
    bool same = together.input_gradients == dx && together.weight_gradients == join(dw, m.weights);
    for (std::size_t k = 0; k < m.outputs.size(); ++k) same = same && cut_up(together.outputs[k], m.outputs[k]) == column(y, k);
    return same;
}
} // namespace

TEST_CASE("merged: the operator's own description of the sum, and the same results and gradients") {
    on_random(seed, 2500, [](auto& rng, auto& d) {
        auto const f = random_family(d);
        CAPTURE(f.whole.kind);
        auto const m = merged(f.siblings);
        REQUIRE_MESSAGE(m, m.why());
        ops::validate(m->operation, "merged");
        CHECK(m->operation == f.whole);
        CHECK(same_results(f.siblings, *m, rng));
        // And back.
        auto const p = parted(m->operation, m->dim, m->sizes);
        REQUIRE_MESSAGE(p, p.why());
        CHECK(p->parts == f.siblings);
        CHECK(p->weights == m->weights);
        CHECK(p->outputs == m->outputs);
        for (auto const& op : p->parts) ops::validate(op, "part");
    });
}

TEST_CASE("merged: with fused functions behind the siblings") {
    on_random(seed + 1, 1000, [](auto& rng, auto& d) {
        auto f = random_family(d);
        constexpr ops::function functions[] = {ops::function::relu, ops::function::gelu, ops::function::tanh, ops::function::scale};
        for (auto n = d.between(1, 2); n > 0; --n) {
            auto const function = functions[d.place(3)];
            auto const behind = [&](ops::operation& op) { op = *fused(op, ops::unary{function}.infer(std::vector{ops::tensor_of(op.outputs[0])})); };
            for (auto& op : f.siblings) behind(op);
            behind(f.whole);
        }
        auto const m = merged(f.siblings);
        REQUIRE_MESSAGE(m, m.why());
        CHECK(m->operation == f.whole);
        CHECK(same_results(f.siblings, *m, rng));
        CHECK(parted(m->operation, m->dim, m->sizes)->parts == f.siblings);
    });
}

TEST_CASE("merged: the check finds out siblings that read different tensors") {
    on_random(seed + 4, 300, [](auto& rng, auto& d) {
        auto const op = ops::linear{.out = d.extent()}.infer(std::vector{d.floats(2, 3)});
        std::vector const siblings{op, op};
        CHECK(same_results(siblings, *merged(siblings), rng));
        CHECK_FALSE(same_results(siblings, *merged(siblings), rng, true));
    });
}

TEST_CASE("merged: Q, K and V of a graph, with outputs, input gradients and parameter gradients of the whole") {
    on_random(seed + 2, 200, [](auto& rng, auto& d) {
        auto const shape = d.floats({2, 3, d.extent()});
        std::vector<std::int64_t> const sizes{d.extent(), d.extent(), d.extent()};
        graph::operator_graph before, after;
        auto const x = before.input("x", shape);
        auto const e = before.add("embed", ops::linear{.out = 3}, x);
        std::vector<ops::operation> siblings;
        for (std::size_t i = 0; i < 3; ++i) {
            auto const q = before.add(text("q", i), ops::linear{.out = sizes[i], .bias = true}, e);
            before.add(text("f", i), ops::gelu{}, q);
            siblings.push_back(before[q.op].operation);
        }
        auto const m = *merged(siblings);
        auto const x2 = after.input("x", shape);
        auto const e2 = after.add("embed", ops::linear{.out = 3}, x2);
        auto const q2 = after.add("q", m.operation, e2);
        auto const parts = after.add("parts", ops::split{.axis = 2, .sizes = m.outputs[0].sizes}, q2);
        for (std::uint32_t i = 0; i < 3; ++i) after.add(text("f", i), ops::gelu{}, parts[i]);
        auto const a = graph::read_graph(before).graph, b = graph::read_graph(after).graph;
        auto const values = reference::random_values(a, rng);
        auto moved = values;
        for (auto const* w : {"weight", "bias"}) {
            arrays all;
            for (std::size_t i = 0; i < 3; ++i) all.push_back(values.weights.at(text('q', i, '.', w)));
            for (std::size_t i = 0; i < 3; ++i) moved.weights.erase(text('q', i, '.', w));
            moved.weights[text("q.", w)] = reference::joined(all, 0);
        }
        auto const ends = reference::unread_outputs(a), ends2 = reference::unread_outputs(b);
        REQUIRE(ends.size() == 3);
        REQUIRE(ends2.size() == 3);
        arrays seeds;
        for (auto const& t : ends) seeds.push_back(reference::random_array(ops::tensor_of(a.operations[t.op].outputs[t.slot]).extents, rng));
        auto const one = reference::run(a, values, ends, seeds), two = reference::run(b, moved, ends2, seeds);
        CHECK(one.outputs == two.outputs);
        CHECK(one.gradients.inputs == two.gradients.inputs);
        CHECK(one.gradients.weights.at("embed.weight") == two.gradients.weights.at("embed.weight"));
        CHECK(cut_up(two.gradients.weights.at("q.weight"), m.weights[0])[1] == one.gradients.weights.at("q1.weight"));
    });
}

TEST_CASE("parted: by hand") {
    auto const op = test::infer(ops::linear{.out = 6}, {test::f32({4, 8})});
    std::vector<std::int64_t> const sizes{2, 4};
    auto const p = *parted(op, 1, sizes);
    CHECK(p.parts[0] == test::infer(ops::linear{.out = 2}, {test::f32({4, 8})}));
    CHECK(p.parts[1] == test::infer(ops::linear{.out = 4}, {test::f32({4, 8})}));
    CHECK(p.weights == std::vector<cut>{{0, {2, 4}}, {0, {2, 4}}});
    CHECK(p.outputs == std::vector<cut>{{1, {2, 4}}});
    auto const refusal = [&](ops::operation const& o, std::uint32_t d, std::vector<std::int64_t> const& s) { return parted(o, d, s).why(); };
    CHECK(refusal(op, 9, {6}) == "linear has no dim 9");
    CHECK(refusal(op, 0, {2, 2}) == "dim 's' of linear is no parameter dim");
    CHECK(refusal(op, 1, {2, 2}) == "parts of dim 'o' must be at least 1 and add up to 6");
    CHECK(refusal(op, 1, {0, 6}) == "parts of dim 'o' must be at least 1 and add up to 6");
    CHECK(refusal(op, 1, {}) == "parts of dim 'o' must be at least 1 and add up to 6");
    CHECK(refusal(op, 1, {5, 5}) == "parts of dim 'o' must be at least 1 and add up to 6");
    // One function with an untold number is the same in all parts, but those of two operations may differ.
    auto const scaled = *fused(op, test::infer(ops::unary{ops::function::scale}, {test::f32({4, 6})}));
    CHECK(parted(scaled, 1, sizes));
    CHECK(merged(std::vector{scaled, scaled}).why() == "linear+scale: 'scale' does not tell its function");
    auto const masked = *fused(op, test::infer(ops::unary{ops::function::mask}, {test::f32({4, 6})}));
    CHECK(refusal(masked, 1, sizes) == "linear+mask: 'mask' does not tell its function");
}

TEST_CASE("merged and parted: blocks of a head's size per value of the dim") {
    auto const heads = [](std::int64_t n) { // y[s, n * 5] = x[s, k] w[n * 5, k], split by heads
        ops::axis const s{.extent = 4, .terms = {{0, 1}}}, h{.extent = n * 5, .terms = {{1, 5}}, .span = 5}, k{.extent = 3, .terms = {{2, 1}}};
        double const points = static_cast<double>(4 * n * 5 * 3);
        return ops::operation{.kind = "head_projection",
                              .work = ops::work_class::matmul,
                              .dims = {{"s", 4, ops::dim_kind::sample}, {"h", n, ops::dim_kind::parameter}, {"k", 3, ops::dim_kind::reduction}},
                              .inputs = {{.name = "x", .axes = {s, k}, .saved = true, .gradient_flops = 2 * points}},
                              .weights = {{.name = "w", .axes = {h, k}, .gradient_flops = 2 * points}},
                              .outputs = {{.name = "y", .axes = {s, h}}},
                              .flops = 2 * points,
                              .multiply_adds = points};
    };
    std::vector const siblings{heads(2), heads(1), heads(3)};
    auto const m = *merged(siblings);
    CHECK(m.operation == heads(6));
    CHECK(m.sizes == std::vector<std::int64_t>{2, 1, 3});
    CHECK(m.weights == std::vector<cut>{{0, {10, 5, 15}}});
    CHECK(m.outputs == std::vector<cut>{{1, {10, 5, 15}}});
    auto const p = *parted(m.operation, 1, m.sizes);
    CHECK(p.parts == siblings);
    CHECK(p.outputs == m.outputs);
    auto overlapping = heads(2);
    overlapping.weights[0].axes[0].span = 6; // the blocks share rows
    CHECK(merged(std::vector{overlapping, overlapping}).why() == "dim 'h' of head_projection does not count consecutive blocks of one axis of 'w'");
}

TEST_CASE("merged: refusals") {
    auto const x = test::f32({4, 8});
    auto const six = test::infer(ops::linear{.out = 6}, {x}), plain = test::infer(ops::linear{.out = 6, .bias = false}, {x});
    auto const why = [](std::vector<ops::operation> const& list) { return merged(list).why(); };
    CHECK(why({six}) == "1 operations: at least two can be merged");
    CHECK(why({six, plain}) == "linear of 2 and of 1 operands in the same role");
    CHECK(why({six, test::infer(ops::linear{.out = 6, .parameter = "p"}, {x})}) ==
          "weight 'weight' of linear is parameter 'p.weight', which others may share");
    CHECK(why({six, test::infer(ops::linear{.out = 3}, {test::f32({4, 9})})}) == "linear differ in dims 'o' and 'k': only one may");
    CHECK(why({six, test::infer(ops::linear{.out = 6}, {test::f32({4, 9})})}) == "dim 'k' of linear is no parameter dim");
    CHECK(why({six, test::infer(ops::linear{.out = 6}, {test::f32({5, 8})})}) == "dim 's' of linear is no parameter dim");
    CHECK(why({six, test::infer(ops::relu{}, {x})}) == "relu is no contraction or embedding: its parts may depend on each other");
    CHECK(why({six, test::infer(ops::linear{.out = 6}, {ops::tensor{{4, 8}, ops::dtype::bf16}})}) ==
          "operands 'x' f32[4,8] and 'x' bf16[4,8] of linear are not indexed the same way");
    auto const image = test::f32({2, 4, 7, 7});
    auto const conv = [&](ops::conv2d const& c) { return test::infer(c, {image}); };
    auto const three = conv({.out = 2, .kernel = {3, 3}, .padding = {1, 1}});
    CHECK(why({three, conv({.out = 2})}) == "operands 'x' f32[2,4,7,7] and 'x' f32[2,4,7,7] of conv2d are not indexed the same way");
    CHECK(why({three, conv({.out = 2, .kernel = {3, 3}, .padding = {2, 2}, .dilation = {2, 2}})}) ==
          "operands 'x' f32[2,4,7,7] and 'x' f32[2,4,7,7] of conv2d are not indexed the same way");
    auto const grouped = conv({.out = 4, .groups = 2});
    CHECK(why({grouped, grouped}) == "dim 'g' of conv2d indexes input 'x': parts would not read the same");
    CHECK(why({conv({.out = 4, .groups = 2}), conv({.out = 8, .groups = 2})}) == "dim 'o' of conv2d is no parameter dim");
    auto const product = test::infer(ops::batched_matmul{}, {test::f32({2, 3, 4}), test::f32({2, 4, 5})});
    CHECK(why({product, product}) == "batched_matmul has no parameter dim");
    auto const norm = test::infer(ops::batch_norm{}, {image});
    CHECK(why({norm, norm}) == "batch_norm is no contraction or embedding: its parts may depend on each other");
}

TEST_CASE("forget_unshared: names that one weight has fall away, shared ones stay") {
    auto const x = test::f32({4, 8});
    std::vector<ops::operation> model{test::infer(ops::linear{.out = 6, .parameter = "a"}, {x}),
                                      test::infer(ops::linear{.out = 6, .parameter = "b"}, {x}),
                                      test::infer(ops::linear{.out = 6, .bias = false, .parameter = "b"}, {x})};
    forget_unshared(model);
    CHECK(model[0] == test::infer(ops::linear{.out = 6}, {x}));
    CHECK(model[1].weights[0].parameter == "b.weight");
    CHECK(model[1].weights[1].parameter.empty());
    CHECK(model[2].weights[0].parameter == "b.weight");
}
