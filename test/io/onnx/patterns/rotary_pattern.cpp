#include <parsearch/io/onnx/patterns/rotary_pattern.hpp>

#include <functional>

#include <doctest/doctest.h>

#include "support/onnx_patterns.hpp"

using namespace support;

namespace {

struct rotation {
    bool alternate = false; ///< pairs are neighbours, not in halves
    bool sin_first = false, swapped = false;
    bool by_split = false;
};
value_id quarter_turn(primitives& p, value_id x, rotation const& how) {
    auto const d = p.extents(x).back();
    if (how.alternate) {
        auto const even = p.slice(x, -1, 0, d, 2), odd = p.slice(x, 3, 1, std::int64_t{1} << 60, 2);
        auto const stacked = p.concat(p.unsqueeze(p.unary("Neg", odd), -1), p.unsqueeze(even, -1));
        return p.reshape(stacked, p.extents(x));
    }
    if (how.by_split) {
        auto half = p.extents(x);
        half.back() /= 2;
        auto const parts = p.nodes("Split", {x}, {{half}, {half}}, {{"axis", std::int64_t{3}}});
        return p.concat(p.unary("Neg", parts[1]), parts[0]);
    }
    return p.concat(p.unary("Neg", p.slice(x, -1, d / 2, std::int64_t{1} << 60)), p.slice(x, 3, 0, d / 2));
}
value_id rotated(primitives& p, value_id x, value_id cosines, value_id sines, rotation const& how = {}) {
    auto const turned = quarter_turn(p, x, how);
    auto const straight = how.swapped ? p.mul(cosines, x) : p.mul(x, cosines), across = how.swapped ? p.mul(sines, turned) : p.mul(turned, sines);
    return how.sin_first ? p.add(across, straight) : p.add(straight, across);
}
/// Heads of a projection: [2, 4, 6, 8].
value_id heads(primitives& p) { return p.transpose(p.reshape(p.linear(p.input("x", {2, 6, 16}), 32), {2, 6, 4, 8}), {0, 2, 1, 3}); }

} // namespace

TEST_CASE("rotary embedding: halves and neighbours, in every order") {
    for (bool const alternate : {false, true})
        for (bool const by_split : {false, true})
            for (bool const sin_first : {false, true})
                for (bool const swapped : {false, true}) {
                    primitives p;
                    auto const x = heads(p), cosines = p.fixed("cos", {1, 1, 6, 8}), sines = p.fixed("sin", {1, 1, 6, 8});
                    recognition const r(p, rotated(p, x, cosines, sines, {alternate, sin_first, swapped, by_split}));
                    CHECK(r.notes == "1 x rotary embedding");
                    CHECK(r.types() == "MatMul Reshape Transpose parsearch.RotaryEmbedding");
                    auto const& op = r.graph[r.graph.size() - 1].operation;
                    CHECK(op.kind == "rotary_embedding");
                    CHECK(op.dims[2].extent == 4);
                    CHECK(op.inputs[1].name == "cos");
                    CHECK(r.first("RotaryEmbedding").inputs == std::vector{x, cosines, sines});
                }
}

TEST_CASE("rotary embedding before heads are brought forward, and tables computed from positions") {
    primitives p;
    auto const x = p.reshape(p.linear(p.input("x", {2, 6, 16}), 32), {2, 6, 4, 8});
    auto const angles = p.mul(p.input("positions", {2, 6, 1, 1}), p.fixed("frequencies", {8}));
    recognition const r(p, rotated(p, x, p.unary("Cos", angles), p.unary("Sin", angles)));
    CHECK(r.types() == "Cos MatMul Mul Reshape Sin parsearch.RotaryEmbedding");
    auto const& op = r.graph[r.graph.size() - 1].operation;
    CHECK(op.dims[1].extent == 6);
    CHECK(op.dims[2].extent == 4);
}

TEST_CASE("rotary embedding written with half tables") {
    auto const halves = [](primitives& p, value_id x, bool alternate, bool crossed) {
        auto const d = p.extents(x).back();
        auto const a = alternate ? p.slice(x, -1, 0, d, 2) : p.slice(x, -1, 0, d / 2),
                   b = alternate ? p.slice(x, -1, 1, d, 2) : p.slice(x, -1, d / 2, d);
        auto const c = p.fixed("cos", {6, 4}), s = p.fixed("sin", {6, 4});
        auto const first = p.sub(p.mul(a, c), p.mul(s, b)), second = p.add(p.mul(crossed ? a : b, c), p.mul(crossed ? b : a, s));
        return alternate ? p.reshape(p.concat(p.unsqueeze(first, -1), p.unsqueeze(second, -1)), p.extents(x)) : p.concat(first, second);
    };
    for (bool const alternate : {false, true}) {
        primitives p;
        auto const x = heads(p);
        recognition const r(p, halves(p, x, alternate, false));
        CHECK(r.types() == "MatMul Reshape Transpose parsearch.RotaryEmbedding");
        primitives q;
        auto const y = heads(q);
        CHECK(recognition(q, halves(q, y, alternate, true)).notes.empty());
    }
}

TEST_CASE("rotary embedding: near misses stay as they are") {
    auto const found = [](std::function<value_id(primitives&, value_id)> const& f) {
        primitives p;
        auto const x = heads(p);
        return recognition(p, f(p, x)).notes;
    };
    auto const table = [](primitives& p, shape extents = {6, 8}) { return p.fixed(parsearch::text("t", p.net.values.size()), std::move(extents)); };
    CHECK(found([&](auto& p, auto x) { return rotated(p, x, table(p), table(p)); }) == "1 x rotary embedding");
    CHECK(found([&](auto& p, auto x) { // the other half is negated
              auto const turned = p.concat(p.unary("Neg", p.slice(x, -1, 0, 4)), p.slice(x, -1, 4, 8));
              return p.add(p.mul(x, table(p)), p.mul(turned, table(p)));
          })
              .empty());
    CHECK(found([&](auto& p, auto x) { // nothing is negated
              return p.add(p.mul(x, table(p)), p.mul(p.concat(p.slice(x, -1, 4, 8), p.slice(x, -1, 0, 4)), table(p)));
          })
              .empty());
    CHECK(found([&](auto& p, auto x) { // not in the middle
              return p.add(p.mul(x, table(p)), p.mul(p.concat(p.unary("Neg", p.slice(x, -1, 3, 8)), p.slice(x, -1, 0, 3)), table(p)));
          })
              .empty());
    CHECK(found([&](auto& p, auto x) { // another value is turned
              return p.add(p.mul(p.unary("Relu", x), table(p)), p.mul(quarter_turn(p, x, {}), table(p)));
          })
              .empty());
    CHECK(found([&](auto& p, auto x) { return rotated(p, x, table(p), table(p, {1, 8})); }).empty()); // tables of two shapes
    primitives p;
    auto const x = heads(p), turned = quarter_turn(p, x, {});
    auto const y = p.add(p.mul(x, table(p)), p.mul(turned, table(p)));
    CHECK(recognition(p, {y, turned}).notes.empty());
}
