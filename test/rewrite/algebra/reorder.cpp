#include <parsearch/rewrite/algebra/reorder.hpp>

#include <doctest/doctest.h>

#include <parsearch/ops/all_operators.hpp>

#include "support/integer_models.hpp"
#include "support/operators.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;
using namespace support;

namespace {
constexpr std::uint64_t seed = 20260511;

/// A move of floating-point tensors that the reference runs.
template <class D> ops::operation random_move(D& d) {
    switch (d.between(0, 7)) {
    case 0:
    case 1: {
        auto e = d.extents(d.between(1, 3));
        auto const at = d.place(e.size());
        std::vector<ops::tensor> shapes;
        for (auto n = d.between(1, 3); n > 0; --n) {
            e[at] = d.extent();
            shapes.push_back(d.floats(e));
        }
        return ops::concat{.axis = static_cast<std::int64_t>(at)}.infer(shapes);
    }
    case 2: {
        auto const x = d.floats({4, d.between(3, 6), 2});
        auto const first = d.between(1, x.extents[1] - 1);
        return ops::split{.axis = 1, .sizes = {first, x.extents[1] - first}}.infer(std::vector{x});
    }
    case 3: return ops::slice{.axis = 0, .begin = 1, .end = 4, .step = d.between(1, 2)}.infer(std::vector{d.floats({d.between(4, 6), 3})});
    case 4: return test::random_application<ops::transpose>::draw(d).infer();
    case 5: return ops::flatten{.from_axis = 1}.infer(std::vector{d.floats(2, 4)});
    case 6: return ops::expand{.shape = {3, 2}}.infer(std::vector{d.floats({d.coin() ? 3 : 1, 1})});
    default: return ops::tile{.repeats = {2, d.between(1, 3)}}.infer(std::vector{d.floats(2, 2)});
    }
}

/// Each of `functions` on its array.
arrays each(std::vector<ops::operation> const& functions, arrays const& x) {
    arrays out;
    for (std::size_t i = 0; i < x.size(); ++i) out.push_back(outputs(functions[i], {x[i]})[0]);
    return out;
}
arrays each_gradient(std::vector<ops::operation> const& functions, arrays const& x, arrays const& g) {
    arrays out;
    for (std::size_t i = 0; i < x.size(); ++i) out.push_back(run(functions[i], {x[i]}, {}, {g[i]}).input_gradients[0]);
    return out;
}

/// That `functions` behind `move` and `before` in front of `moved` give the same, forward and backward.
template <class R>
void check_same(std::vector<ops::operation> const& before, ops::operation const& moved, ops::operation const& move,
                std::vector<ops::operation> const& functions, R& rng) {
    for (auto const* list : {&before, &functions})
        for (auto const& op : *list) ops::validate(op, "function");
    ops::validate(moved, "moved");
    auto const inputs_of_move = before.empty() ? std::vector<ops::operand>{} : [&] {
        std::vector<ops::operand> out;
        for (auto const& f : before) out.push_back(f.inputs[0]);
        return out;
    }();
    auto const x = random_arrays(inputs_of_move, rng);
    auto const fx = each(before, x), y = outputs(move, x);
    auto const late = each(functions, y);
    CHECK(outputs(moved, fx) == late);
    arrays g;
    for (auto const& a : late) g.push_back(reference::random_array(a.extents, rng));
    auto const early_gradient = each_gradient(before, x, run(moved, fx, {}, g).input_gradients);
    CHECK(early_gradient == run(move, x, {}, each_gradient(functions, y, g)).input_gradients);
}

ops::operation unary(ops::function f, ops::operand const& o) { return ops::unary{f}.infer(std::vector{ops::tensor_of(o)}); }
} // namespace

TEST_CASE("hoisted and sunk: functions of single elements change places with moves, as their own inference describes them") {
    constexpr ops::function functions[] = {ops::function::relu, ops::function::gelu, ops::function::tanh, ops::function::negate};
    on_random(seed, 3000, [&](auto& rng, auto& d) {
        auto const move = random_move(d);
        CAPTURE(move.kind);
        auto const f = functions[d.place(std::size(functions))];
        std::vector<ops::operation> behind, front;
        for (auto const& o : move.outputs) behind.push_back(unary(f, o));
        for (auto const& o : move.inputs) front.push_back(unary(f, o));
        auto const up = hoisted(move, behind[d.place(behind.size())]);
        REQUIRE_MESSAGE(up, up.why());
        CHECK(up->move == move);
        CHECK(up->others == front);
        check_same(up->others, up->move, move, behind, rng);
        auto const down = sunk(front[d.place(front.size())], move);
        REQUIRE_MESSAGE(down, down.why());
        CHECK(down->move == move);
        CHECK(down->others == behind);
    });
}

TEST_CASE("sunk_transpose: transposes in front of a concat or split go behind it, along another axis") {
    on_random(seed + 1, 1000, [](auto& rng, auto& d) {
        auto const rank = static_cast<std::size_t>(d.between(1, 4));
        auto e = d.extents(static_cast<std::int64_t>(rank));
        std::vector<std::int64_t> order(rank);
        for (std::size_t i = 0; i < rank; ++i) order[i] = static_cast<std::int64_t>(i);
        d.shuffle(order);
        auto const at = d.place(rank);
        auto const joined_axis = static_cast<std::int64_t>(at);
        std::vector<ops::operation> before, after;
        std::vector<ops::tensor> turned;
        bool const joins = d.coin();
        for (auto n = joins ? d.between(1, 3) : 1; n > 0; --n) {
            e[static_cast<std::size_t>(order[at])] = d.between(2, 4);
            before.push_back(ops::transpose{.permutation = order}.infer(std::vector{d.floats(e)}));
            turned.push_back(ops::tensor_of(before.back().outputs[0]));
        }
        auto const move = joins ? ops::concat{.axis = joined_axis}.infer(turned)
                                : ops::split{.axis = joined_axis, .sizes = {1, turned[0].extents[at] - 1}}.infer(turned);
        auto const found = sunk_transpose(before[d.place(before.size())], move);
        REQUIRE_MESSAGE(found, found.why());
        check_same(before, move, found->move, found->others, rng);
    });
}

TEST_CASE("flattened: concats of concats and splits of splits") {
    on_random(seed + 2, 1000, [](auto& rng, auto& d) {
        auto e = d.extents(3);
        auto const at = d.place(3);
        auto const axis = static_cast<std::int64_t>(at);
        auto const some = [&](std::int64_t least) {
            std::vector<ops::tensor> out;
            for (auto n = d.between(least, 3); n > 0; --n) {
                e[at] = d.extent();
                out.push_back(d.floats(e));
            }
            return out;
        };
        auto const inner = ops::concat{.axis = axis}.infer(some(1));
        auto shapes = some(1);
        auto const slot = d.place(shapes.size());
        shapes[slot] = ops::tensor_of(inner.outputs[0]);
        auto const outer = ops::concat{.axis = axis}.infer(shapes);
        auto const flat = flattened_concat(inner, outer, slot);
        REQUIRE_MESSAGE(flat, flat.why());
        ops::validate(*flat, "flat");
        auto const a = random_arrays(inner.inputs, rng);
        auto b = random_arrays(outer.inputs, rng);
        b[slot] = outputs(inner, a)[0];
        auto all = b;
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(slot));
        all.insert(all.begin() + static_cast<std::ptrdiff_t>(slot), a.begin(), a.end());
        auto const y = outputs(outer, b);
        CHECK(outputs(*flat, all) == y);

        // The same cuts the other way.
        auto const cuts = [](ops::operation const& joint) {
            return ops::split{.axis = static_cast<std::int64_t>(read_concat(joint)->axis), .sizes = read_concat(joint)->sizes}.infer(
                std::vector{ops::tensor_of(joint.outputs[0])});
        };
        auto const outer_split = cuts(outer), inner_split = cuts(inner);
        auto const flat_split = flattened_split(outer_split, slot, inner_split);
        REQUIRE_MESSAGE(flat_split, flat_split.why());
        CHECK(outputs(*flat_split, y) == all);
        CHECK(cancel(*flat, *flat_split));
        CHECK(cancel(*flat_split, *flat));
    });
}

TEST_CASE("cancel and composed: transposes, views, and cuts that are joined again") {
    on_random(seed + 3, 1500, [](auto& rng, auto& d) {
        auto const first = test::random_application<ops::transpose>::draw(d).infer();
        auto const between = ops::tensor_of(first.outputs[0]);
        std::vector<std::int64_t> order(between.extents.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
        d.shuffle(order);
        auto const second = ops::transpose{.permutation = order}.infer(std::vector{between});
        auto const x = random_arrays(first.inputs, rng);
        auto const y = outputs(second, outputs(first, x));
        auto const both = composed(first, second);
        if (cancel(first, second)) {
            CHECK(x == y);
            CHECK(both.why() == "the two transposes cancel");
        } else {
            REQUIRE_MESSAGE(both, both.why());
            CHECK(outputs(*both, x) == y);
        }
        // Axes of one element may change places unnoticed; of others a random tensor shows it.
        auto const& e = x[0].extents;
        if (std::find(e.begin(), e.end(), 1) == e.end()) CHECK(cancel(first, second) == (x == y));
        auto const back = [&] {
            std::vector<std::int64_t> p(order.size());
            auto const there = *read_transpose(first);
            for (std::size_t i = 0; i < p.size(); ++i) p[static_cast<std::size_t>(there[i])] = static_cast<std::int64_t>(i);
            return ops::transpose{.permutation = p}.infer(std::vector{between});
        }();
        CHECK(cancel(first, back));

        auto const shape = d.floats({2, 3, d.extent(), 2});
        auto const flat = ops::flatten{.from_axis = d.between(0, 3)}.infer(std::vector{shape});
        ops::reshape const other{.shape = d.coin() ? shape.extents : std::vector<std::int64_t>{-1, 6}};
        auto const again = other.infer(std::vector{ops::tensor_of(flat.outputs[0])});
        auto const v = random_arrays(flat.inputs, rng);
        CHECK(outputs(*composed(flat, again), v) == outputs(again, outputs(flat, v)));
        CHECK(cancel(flat, again) == (ops::tensor_of(again.outputs[0]) == shape));
    });
    auto const x = test::f32({4, 6});
    auto const split = test::infer(ops::split{.sizes = {2, 4}}, {x});
    CHECK(cancel(split, test::infer(ops::concat{}, {test::f32({4, 2}), test::f32({4, 4})})));
    CHECK_FALSE(cancel(split, test::infer(ops::concat{}, {test::f32({4, 4}), test::f32({4, 2})})));
    auto const even = test::infer(ops::split{.axis = 0, .sizes = {2, 2}}, {test::f32({4, 2})});
    CHECK_FALSE(cancel(even, test::infer(ops::concat{.axis = 1}, {test::f32({2, 2}), test::f32({2, 2})})));
    CHECK_FALSE(cancel(test::infer(ops::relu{}, {x}), test::infer(ops::relu{}, {x})));
    auto const square = test::infer(ops::transpose{.permutation = {1, 0}}, {test::f32({3, 3})});
    CHECK(cancel(square, square));
    CHECK_FALSE(cancel(square, test::infer(ops::transpose{.permutation = {0, 1}}, {test::f32({3, 3})})));
    auto const turn = test::infer(ops::transpose{.permutation = {1, 2, 0}}, {test::f32({3, 3, 3})});
    CHECK_FALSE(cancel(turn, turn));
    CHECK(cancel(turn, *composed(turn, turn)));
}

TEST_CASE("reordering: refusals") {
    auto const x = test::f32({4, 6}), half = test::f32({4, 3});
    auto const relu = test::infer(ops::relu{}, {x}), scale = test::infer(ops::unary{ops::function::scale}, {x});
    auto const concat = test::infer(ops::concat{}, {half, half}), split = test::infer(ops::split{.sizes = {3, 3}}, {x});
    auto const half_scale = test::infer(ops::unary{ops::function::scale}, {half});
    CHECK(hoisted(test::infer(ops::add{}, {x, x}), relu).why() == "add does more than to move elements");
    CHECK(sunk(relu, test::infer(ops::linear{.out = 2}, {x})).why() == "linear does more than to move elements");
    CHECK(sunk(relu, test::infer(ops::pad{.before = {0, 1}, .after = {0, 0}}, {x})).why() == "pad does more than to move elements");
    CHECK(hoisted(concat, test::infer(ops::softmax{}, {x})).why() == "softmax is no function of single elements of one tensor");
    CHECK(hoisted(concat, test::infer(ops::relu{}, {half})).why() == "relu of f32[4,3] is not next to concat: no operand has this shape");
    CHECK(hoisted(concat, test::infer(ops::dropout{}, {x})).why() == "dropout depends on more than its element");
    CHECK(hoisted(concat, test::infer(ops::unary{ops::function::mask}, {x})).why() == "mask depends on more than its element");
    CHECK(hoisted(concat, test::infer(ops::cast{.type = ops::dtype::f16}, {x})).why() == "cast changes the type");
    CHECK(hoisted(concat, scale)); // one number before, the same twice after
    CHECK(sunk(half_scale, concat).why() == "'scale' does not tell its function, and there are 2");
    CHECK(sunk(scale, split));
    CHECK(hoisted(split, half_scale).why() == "'scale' does not tell its function, and there are 2");

    auto const tall = test::infer(ops::concat{.axis = 0}, {x, test::f32({2, 6})});
    CHECK(flattened_concat(concat, tall, 0).why() == "the concats join axes 1 and 0");
    CHECK(flattened_concat(concat, tall, 1).why() == "the inner concat makes f32[4,6]: the outer reads f32[2,6]");
    CHECK(flattened_concat(concat, tall, 2).why() == "a concat of 2 inputs has no input 2");
    CHECK(flattened_concat(relu, tall, 0).why() == "relu is no concat of inputs alone");
    CHECK(flattened_split(split, 1, test::infer(ops::split{.axis = 0, .sizes = {2, 2}}, {half})).why() == "the splits cut axes 1 and 0");
    CHECK(flattened_split(split, 2, split).why() == "a split into 2 has no output 2");
    CHECK(flattened_split(split, 0, split).why() == "the outer split makes f32[4,3]: the inner reads f32[4,6]");
    CHECK(flattened_split(relu, 0, split).why() == "relu is no split");
    CHECK(sunk_transpose(relu, concat).why() == "relu is no transpose");
    auto const turn = test::infer(ops::transpose{.permutation = {1, 0}}, {x});
    CHECK(sunk_transpose(turn, relu).why() == "relu is no concat or split");
    CHECK(sunk_transpose(turn, concat).why() == "the transpose makes f32[6,4]: concat reads no such tensor");
    CHECK(composed(turn, turn).why() == "transpose does not read what transpose makes");
    CHECK(composed(relu, relu).why() == "relu and relu are neither two transposes nor two views");
}

TEST_CASE("relu does not go through an addition: the reference finds it out") {
    on_random(seed + 4, 300, [](auto& rng, auto& d) {
        auto const shape = d.floats({4, d.between(4, 6)});
        auto const add = ops::add{}.infer(std::vector{shape, shape}), relu = ops::relu{}.infer(std::vector{shape});
        CHECK_FALSE(hoisted(add, relu));
        auto const x = random_arrays(add.inputs, rng);
        CHECK(outputs(relu, outputs(add, x)) != outputs(add, each({relu, relu}, x)));
    });
}
