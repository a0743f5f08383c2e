#include <parsearch/io/onnx/patterns/attention_pattern.hpp>

#include <cmath>
#include <functional>
#include <limits>

#include <doctest/doctest.h>

#include "support/onnx_patterns.hpp"

namespace onnx = parsearch::io::onnx;
using namespace support;
using parsearch::text;

namespace {

constexpr std::int64_t samples = 2, length = 6, heads = 4, size = 8, wide = heads * size;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// How an attention is spelled. The defaults are the plainest way.
struct spelling {
    enum scaling { none, after, divided_after, on_queries, before_heads, on_both } scale = divided_after;
    enum keys { transposed_last, transposed_at_once, by_two } key = transposed_at_once;
    enum repeat { no_repeat, by_expand, by_tile, broadcast, wrong_order } repeats = no_repeat;
    std::int64_t kv_heads = heads;
    enum result { joined, flattened, open } output = joined;
    std::function<value_id(primitives&, value_id)> scores = [](primitives&, value_id s) { return s; };        ///< what is done to scaled scores
    std::function<value_id(primitives&, value_id)> probabilities = [](primitives&, value_id s) { return s; }; ///< and behind softmax
    std::function<value_id(primitives&, value_id)> each_head = [](primitives&, value_id s) { return s; };     ///< to queries and keys by head
    std::function<value_id(primitives&, value_id)> before_transpose = [](primitives&, value_id s) { return s; };
    std::int64_t axis = -1;
};

struct operands {
    value_id q, k, v;
};

/// Projections of x[samples, length, 16].
operands project(primitives& p, std::int64_t kv_heads = heads) {
    auto const x = p.input("x", {samples, length, 16});
    auto const q = p.linear(x, wide), k = p.linear(x, kv_heads * size), v = p.linear(x, kv_heads * size);
    return {q, k, v};
}
value_id repeated(primitives& p, value_id x, spelling const& s) {
    auto const r = heads / s.kv_heads;
    auto const by_head = shape{samples, heads, length, size};
    switch (s.repeats) {
    case spelling::no_repeat:
    case spelling::broadcast: return x;
    case spelling::by_expand: return p.reshape(p.expand(p.unsqueeze(x, 2), {samples, s.kv_heads, r, length, size}), by_head);
    case spelling::by_tile: {
        auto const fifth = p.unsqueeze(x, 2), times = p.integers({1, 1, r, 1, 1});
        return p.reshape(p.node("Tile", {fifth, times}, {samples, s.kv_heads, r, length, size}), by_head);
    }
    case spelling::wrong_order: break;
    }
    return p.reshape(p.expand(p.unsqueeze(x, 1), {samples, r, s.kv_heads, length, size}), by_head);
}
value_id attend(primitives& p, operands o, spelling const& s = {}) {
    auto const root = std::sqrt(static_cast<double>(size));
    if (s.scale == spelling::before_heads) o.q = p.mul(o.q, 1 / root);
    auto const apart = [&](value_id x, std::int64_t n) { return p.reshape(x, {samples, length, n, size}); };
    auto const by_head = [&](value_id x, std::int64_t n, bool turned) {
        auto const parts = turned ? s.before_transpose(p, apart(x, n)) : apart(x, n);
        auto const forward = p.transpose(parts, {0, 2, 1, 3});
        return turned ? s.each_head(p, forward) : forward;
    };
    auto q = by_head(o.q, heads, true);
    if (s.scale == spelling::on_queries) q = p.mul(q, 1 / root);
    if (s.scale == spelling::on_both) q = p.mul(q, std::sqrt(1 / root));
    value_id k{};
    if (s.key == spelling::transposed_at_once && s.repeats == spelling::no_repeat) k = p.transpose(apart(o.k, s.kv_heads), {0, 2, 3, 1});
    else {
        k = repeated(p, by_head(o.k, s.kv_heads, true), s);
        k = p.transpose(k, {0, 1, 3, 2});
        if (s.key == spelling::by_two) k = p.transpose(p.transpose(k, {1, 0, 2, 3}), {1, 0, 2, 3});
    }
    if (s.scale == spelling::on_both) k = p.mul(k, std::sqrt(1 / root));
    auto const v = repeated(p, by_head(o.v, s.kv_heads, false), s);
    auto scores = p.matmul(q, k);
    if (s.scale == spelling::after) scores = p.mul(scores, 1 / root);
    if (s.scale == spelling::divided_after) scores = p.div(scores, root);
    auto const context = p.matmul(s.probabilities(p, p.softmax(s.scores(p, scores), s.axis)), v);
    if (s.output == spelling::open) return context;
    auto const back = p.transpose(context, {0, 2, 1, 3});
    return p.reshape(back, s.output == spelling::joined ? shape{samples, length, wide} : shape{samples * length, wide});
}
recognition found(spelling const& s = {}) {
    primitives p;
    auto const o = project(p, s.kv_heads);
    return {p, attend(p, o, s)};
}
/// "by_head by_head packed packed": the layouts of the attention.
std::string layouts(recognition const& r) {
    std::string out;
    for (auto const l : onnx::attribute_of(r.first("Attention"), "layouts", std::vector<std::int64_t>{}))
        out += text(out.empty() ? "" : " ", name_of(static_cast<ops::attention_layout>(l)));
    return out;
}
constexpr auto all_packed = "packed packed packed packed";
constexpr auto absorbed = "MatMul MatMul MatMul parsearch.Attention";

} // namespace

TEST_CASE("attention: scaled in every way, keys transposed in every way") {
    for (auto const scale :
         {spelling::none, spelling::after, spelling::divided_after, spelling::on_queries, spelling::before_heads, spelling::on_both})
        for (auto const key : {spelling::transposed_last, spelling::transposed_at_once, spelling::by_two}) {
            auto const r = found({.scale = scale, .key = key});
            CHECK(r.notes == "1 x attention (4 heads)");
            CHECK(r.types() == absorbed);
            CHECK(layouts(r) == all_packed);
            auto const& op = r.graph[r.graph.size() - 1].operation;
            CHECK(op.multiply_adds == 2 * samples * heads * length * length * size);
            CHECK(op.dims[2].extent == heads);
        }
    CHECK(found().first("Attention").name == "n11"); // the Softmax's
}

TEST_CASE("attention: grouped heads") {
    for (auto const repeats : {spelling::by_expand, spelling::by_tile})
        for (auto const kv : {1, 2}) {
            auto const r = found({.repeats = repeats, .kv_heads = kv});
            CHECK(r.notes == text("1 x attention (4 heads, ", kv, " of keys and values)"));
            CHECK(r.types() == absorbed);
            CHECK(layouts(r) == all_packed);
            CHECK(r.graph[r.graph.size() - 1].operation.dims[2].extent == kv);
        }
    // One head of keys that the products broadcast.
    auto const one = found({.key = spelling::transposed_last, .repeats = spelling::broadcast, .kv_heads = 1});
    CHECK(one.notes == "1 x attention (4 heads, 1 of keys and values)");
    CHECK(one.types() == absorbed);
    // Repeated as a whole, the heads of one group are not neighbours: repeating stays.
    auto const wrong = found({.repeats = spelling::wrong_order, .kv_heads = 2});
    CHECK(wrong.notes == "1 x attention (4 heads)");
    CHECK(layouts(wrong) == "packed by_head by_head packed");
    CHECK(wrong.types().find("Expand Expand") != std::string::npos);
}

TEST_CASE("attention: where the result goes") {
    CHECK(layouts(found({.output = spelling::open})) == "packed packed packed by_head");
    auto const flat = found({.output = spelling::flattened});
    CHECK(layouts(flat) == "packed packed packed by_position");
    CHECK(flat.types() == "MatMul MatMul MatMul Reshape parsearch.Attention");
    // Read twice behind the transpose: what is behind stays.
    primitives p;
    auto const y = attend(p, project(p), {.output = spelling::open});
    auto const back = p.transpose(y, {0, 2, 1, 3});
    auto const joined = p.reshape(back, {samples, length, wide}), other = p.unary("Relu", back);
    CHECK(layouts(recognition(p, {joined, other})) == "packed packed packed by_position");
    CHECK(layouts(recognition(p, {joined, other, y})) == "packed packed packed by_head");
}

TEST_CASE("attention: masks become operands, a triangle known for certain the option") {
    using f = std::function<value_id(primitives&, value_id)>;
    auto const masked = [](f scores) { return found({.scores = std::move(scores)}); };
    auto const causal = [&](f scores) {
        auto const r = masked(std::move(scores));
        CHECK(r.notes == "1 x attention (4 heads, causal)");
        CHECK(r.types() == absorbed);
    };
    shape const square{1, 1, length, length};
    causal([&](auto& p, auto s) { return p.add(s, p.triangle(square, 0, -infinity)); });
    causal([&](auto& p, auto s) { return p.add(p.triangle({length, length}, 0, -3.4e38), s); });
    causal([&](auto& p, auto s) { return p.add(s, p.triangle({samples, 1, length, length}, 0, -1e4)); });
    causal([&](auto& p, auto s) { return p.sub(s, p.triangle(square, 0, 1e4)); });
    causal([&](auto& p, auto s) { return p.where(p.truth_triangle(square, 1, 0), s, p.number(-1e9)); });
    causal([&](auto& p, auto s) { return p.where(p.truth_triangle(square, 0, 1), p.fixed("low", {1}), s); });
    causal([&](auto& p, auto s) { return p.sub(p.mul(s, p.triangle(square, 1, 0)), p.triangle(square, 0, 1e4)); }); // as GPT-2 was written

    auto const operand = [&](f scores, std::string const& shapes) {
        auto const r = masked(std::move(scores));
        CHECK(r.notes == "1 x attention (4 heads, masked)");
        auto const& n = r.first("Attention");
        std::string out;
        for (std::size_t i = 3; i < n.inputs.size(); ++i) out += ops::to_string(r.net[n.inputs[i]].shape);
        CHECK(out == shapes);
    };
    operand([&](auto& p, auto s) { return p.add(s, p.input("mask", {samples, 1, 1, length})); }, "f32[2,1,1,6]");
    operand([&](auto& p, auto s) { return p.add(s, p.unary("Neg", p.input("mask", {length, length}))); }, "f32[6,6]");
    operand([&](auto& p, auto s) { return p.add(s, p.fixed("mask", square)); }, "f32[1,1,6,6]");                         // contents unknown
    operand([&](auto& p, auto s) { return p.add(s, p.triangle(square, -infinity, 0)); }, "f32[1,1,6,6]");                // the other triangle
    operand([&](auto& p, auto s) { return p.add(s, p.triangle(square, 0, -1)); }, "f32[1,1,6,6]");                       // a slope
    operand([&](auto& p, auto s) { return p.where(p.truth_triangle(square, 0, 1), s, p.number(-1e9)); }, "i8[1,1,6,6]"); // keeps what comes later
    operand([&](auto& p, auto s) { return p.where(p.input("mask", square, ops::dtype::i8), s, p.number(-1e9)); }, "i8[1,1,6,6]");
    operand(
        [&](auto& p, auto s) {
            return p.add(p.add(s, p.parameter("bias", {heads, length, length})), p.input("mask", {samples, 1, 1, length}));
        },
        "f32[4,6,6]f32[2,1,1,6]");
    operand( // as GPT-2 was written, of a buffer that the file leaves out
        [&](auto& p, auto s) {
            auto const buffer = p.input("buffer", square);
            return p.sub(p.mul(s, buffer), p.mul(p.sub(p.number(1), buffer), 1e4));
        },
        "f32[1,1,6,6]f32[1,1,6,6]");
    auto const both = masked([&](auto& p, auto s) {
        return p.add(p.add(s, p.triangle(square, 0, -infinity)), p.input("mask", {samples, 1, 1, length}));
    });
    CHECK(both.notes == "1 x attention (4 heads, causal, masked)");
    // A learned bias is a weight, and trains.
    auto const learned = masked([&](auto& p, auto s) { return p.add(s, p.parameter("bias", {heads, length, length})); });
    CHECK(weights(learned.graph[learned.graph.size() - 1].operation) == "bias[4,6,6]");
}

TEST_CASE("attention: conversions, dropout and guards around the softmax") {
    auto const f16 = ops::dtype::f16, f32 = ops::dtype::f32;
    primitives p;
    auto const x = p.input("x", {samples, length, 16}, f16);
    auto const project_half = [&](std::string name) { return p.matmul(x, p.parameter(std::move(name), {16, wide}, f16)); };
    auto const q = project_half("q"), k = project_half("k"), v = project_half("v");
    auto const y = attend(p, {q, k, v},
                          {.scale = spelling::none,
                           .scores = [&](auto& b, auto s) { return b.cast(s, f32); },
                           .probabilities = [&](auto& b, auto s) { return b.unary("Dropout", b.cast(s, f16)); }});
    auto made = p.net;
    made.outputs = {y};
    CHECK(onnx::recognise(made) == std::vector<std::string>{"1 x attention (4 heads)"});
    CHECK(made.nodes.size() == 4);
    CHECK(found({.probabilities = [](auto& b, auto s) {
              auto const nan = b.node("IsNaN", {s}, b.extents(s), {}, ops::dtype::i8);
              return b.where(nan, b.number(0), s);
          }}).types() == absorbed);
    CHECK(found({.scores = [](auto& b, auto s) { return b.binary("Max", s, b.number(-3.4e38)); }}).types() == absorbed);
}

TEST_CASE("attention: softmax along another axis, or of another version, is none") {
    CHECK(found({.axis = 3}).notes == "1 x attention (4 heads)");
    CHECK(found({.axis = 2}).notes.empty());
    for (auto const version : {12, 13}) {
        primitives p;
        auto const o = project(p);
        auto const y = attend(p, o);
        for (auto& n : p.net.nodes) {
            n.version = version;
            if (n.type == "Softmax") n.attributes.clear(); // the default was axis 1 before version 13
        }
        for (auto& n : p.net.nodes)
            if (n.type != "Softmax") n.version = 17;
        CHECK(recognition(p, y).notes.empty() == (version == 12));
    }
}

TEST_CASE("attention: near misses stay as they are") {
    primitives p;
    value_id probabilities{}, scores{};
    auto const y = attend(p, project(p),
                          {.scores = [&](auto&, auto s) { return scores = s; }, .probabilities = [&](auto&, auto s) { return probabilities = s; }});
    CHECK(recognition(p, {y, probabilities}).notes.empty());
    CHECK(recognition(p, {y, scores}).notes.empty());
    CHECK(recognition(p, y).notes == "1 x attention (4 heads)");
    CHECK(found({.probabilities = [](auto& b, auto s) { return b.mul(s, b.input("head_mask", {heads, 1, 1})); }}).notes.empty());
    CHECK(found({.scores = [](auto& b, auto s) { return b.unary("Tanh", s); }}).notes.empty());
    CHECK(found({.scores = [](auto& b, auto s) { return b.where(b.input("m", {length, length}, ops::dtype::i8), s, b.number(-1)); }}).notes.empty());
    CHECK(found({.scores = [](auto& b, auto s) { return b.add(s, b.unary("Relu", s)); }}).notes.empty());
    // The softmax of something that is no product.
    primitives q;
    auto const o = project(q);
    auto const v = q.transpose(q.reshape(o.v, {samples, length, heads, size}), {0, 2, 1, 3});
    CHECK(recognition(q, q.matmul(q.softmax(q.input("scores", {samples, heads, length, length})), v)).notes.empty());
}

TEST_CASE("attention: operands that something stands before are taken as they are") {
    auto const norm = [](primitives& p, value_id x) { return p.unary("Relu", x); };
    auto const by_head = found({.key = spelling::transposed_last, .each_head = norm});
    CHECK(layouts(by_head) == "by_head by_head packed packed");
    CHECK(by_head.types() == "MatMul MatMul MatMul Relu Relu Reshape Reshape Transpose Transpose parsearch.Attention");
    auto const by_position = found({.key = spelling::transposed_last, .before_transpose = norm});
    CHECK(layouts(by_position) == "by_position by_position packed packed");
    CHECK(by_position.types() == "MatMul MatMul MatMul Relu Relu Reshape Reshape parsearch.Attention");
    // Keys and values given out, as to a cache.
    primitives p;
    auto const o = project(p);
    auto const q = p.transpose(p.reshape(o.q, {samples, length, heads, size}), {0, 2, 1, 3}),
               k = p.transpose(p.reshape(o.k, {samples, length, heads, size}), {0, 2, 1, 3});
    auto const y =
        p.matmul(p.softmax(p.matmul(q, p.transpose(k, {0, 1, 3, 2}))), p.transpose(p.reshape(o.v, {samples, length, heads, size}), {0, 2, 1, 3}));
    CHECK(layouts(recognition(p, {y, k})) == "packed by_head packed by_head");
    // Keys that are never but transposed.
    primitives c;
    auto const maps = c.reshape(c.matmul(c.parameter("w", {wide, 16}), c.input("x", {samples, 16, length})), {samples, heads, size, length});
    auto const values = c.unary("Relu", c.transpose(maps, {0, 1, 3, 2}));
    auto const queries = c.input("queries", {samples, heads, length, size});
    auto const context = c.matmul(c.softmax(c.matmul(queries, c.unary("Relu", maps))), values);
    auto made = c.net;
    made.outputs = {context};
    onnx::recognise(made);
    auto const at = std::find_if(made.nodes.begin(), made.nodes.end(), [](auto const& n) { return n.type == "Attention"; });
    REQUIRE(at != made.nodes.end());
    CHECK(onnx::attribute_of(*at, "layouts", std::vector<std::int64_t>{})[1] == static_cast<std::int64_t>(ops::attention_layout::transposed));
}

TEST_CASE("attention: rotary embeddings between projections and products are moved before the heads come forward") {
    for (bool const before : {false, true})
        for (auto const kv : {heads, std::int64_t{2}}) {
            auto const rotate = [&](primitives& p, value_id x) {
                auto const turned = p.concat(p.unary("Neg", p.slice(x, -1, size / 2, size)), p.slice(x, -1, 0, size / 2));
                auto const table = before ? shape{length, 1, size} : shape{length, size};
                return p.add(p.mul(x, p.fixed(text("c", p.net.values.size()), table)), p.mul(turned, p.fixed(text("s", p.net.values.size()), table)));
            };
            spelling s{.key = spelling::transposed_last, .repeats = kv == heads ? spelling::no_repeat : spelling::by_expand, .kv_heads = kv};
            (before ? s.before_transpose : s.each_head) = rotate;
            auto const r = found(s);
            CHECK(r.types() == "MatMul MatMul MatMul parsearch.Attention parsearch.RotaryEmbedding parsearch.RotaryEmbedding");
            CHECK(layouts(r) == all_packed);
            auto const& rotary = r.first("RotaryEmbedding");
            CHECK(onnx::attribute_of(rotary, "layout", std::int64_t{-1}) == static_cast<std::int64_t>(ops::attention_layout::packed));
            CHECK(r.net[rotary.outputs[0]].shape.extents == shape{samples, length, wide});
            CHECK(named(r.graph, rotary.name).dims[1].extent == length);
        }
}

TEST_CASE("attention: queries, keys and values of one projection are split once") {
    for (bool const by_split : {false, true})
        for (bool const length_first : {false, true}) {
            primitives p;
            auto const a = length_first ? length : samples, b = length_first ? samples : length;
            auto const all = p.linear(p.input("x", {a, b, 16}), 3 * wide);
            auto const parts = p.transpose(p.reshape(all, {a, b, 3, heads, size}),
                                           length_first ? std::vector<std::int64_t>{2, 1, 3, 0, 4} : std::vector<std::int64_t>{2, 0, 3, 1, 4});
            shape const by_head{samples, heads, length, size}, one{1, samples, heads, length, size};
            std::vector<value_id> o;
            if (by_split)
                for (auto const part : p.nodes("Split", {parts}, {{one}, {one}, {one}}, {{"axis", std::int64_t{0}}})) {
                    auto const axes = p.integers({0});
                    o.push_back(p.node("Squeeze", {part, axes}, by_head));
                }
            else
                for (auto const i : {0, 1, 2}) {
                    auto const index = p.integer(i);
                    o.push_back(p.node("Gather", {parts, index}, by_head, {{"axis", std::int64_t{0}}}));
                }
            auto const context = p.matmul(p.softmax(p.matmul(p.mul(o[0], 0.35), p.transpose(o[1], {0, 1, 3, 2}))), o[2]);
            auto const y = p.reshape(
                p.transpose(context, length_first ? std::vector<std::int64_t>{2, 0, 1, 3} : std::vector<std::int64_t>{0, 2, 1, 3}), {a, b, wide});
            recognition const r(p, y);
            CHECK(r.notes == "1 x attention (4 heads)");
            CHECK(r.types() == "MatMul parsearch.Attention parsearch.Split");
            CHECK(layouts(r) == (length_first ? "length_first length_first length_first length_first" : all_packed));
            // With one part read elsewhere, too, operands stay by head.
            CHECK(layouts(recognition(p, {y, parts})).substr(0, 24) == "by_head by_head by_head ");
        }
}

TEST_CASE("attention: samples and heads as one axis, as in torch.nn.MultiheadAttention") {
    for (bool const flat : {false, true})
        for (bool const masked : {false, true}) {
            primitives p;
            auto const x = p.input("x", {length, samples, 16});
            auto const q = p.linear(x, wide), k = p.linear(x, wide), v = p.linear(x, wide);
            auto const by_head = [&](value_id z) { return p.transpose(p.reshape(z, {length, samples * heads, size}), {1, 0, 2}); };
            auto scores = p.matmul(p.div(by_head(q), 2.83), p.transpose(by_head(k), {0, 2, 1}));
            if (masked) { // added where heads have an axis of their own
                scores = p.add(p.reshape(scores, {samples, heads, length, length}), p.input("mask", {samples, 1, 1, length}));
                scores = p.reshape(scores, {samples * heads, length, length});
            }
            auto const context = p.transpose(p.matmul(p.softmax(scores), by_head(v)), {1, 0, 2});
            auto const y = p.reshape(context, flat ? shape{length * samples, wide} : shape{length, samples, wide});
            recognition const r(p, y);
            CHECK(r.notes == text("1 x attention (4 heads", masked ? ", masked" : "", ")"));
            CHECK(r.types() == (flat ? "MatMul MatMul MatMul parsearch.Attention parsearch.Reshape" : absorbed));
            CHECK(layouts(r) == "length_first length_first length_first length_first");
        }
    // Nothing tells heads from samples: each is a sample of one head.
    primitives p;
    auto const q = p.input("q", {8, length, size}), k = p.input("k", {8, length, size}), v = p.input("v", {8, length, size});
    recognition const r(p, p.matmul(p.softmax(p.matmul(q, p.transpose(k, {0, 2, 1}))), v));
    CHECK(r.notes == "1 x attention (1 head)");
    CHECK(layouts(r) == all_packed);
    CHECK(r.types() == "parsearch.Attention");
}

TEST_CASE("attention: products written as Einsum, as Keras does") {
    auto const product = [](primitives& p, char const* equation, value_id a, value_id b, shape y) {
        return p.node("Einsum", {a, b}, std::move(y), {{"equation", std::string(equation)}});
    };
    shape const scores{samples, heads, length, length}, apart{samples, length, heads, size};
    auto const keras = [&](char const* first, char const* second, bool keys_first) {
        primitives p;
        auto const o = project(p);
        auto const q = p.mul(p.reshape(o.q, apart), 0.35), k = p.reshape(o.k, apart), v = p.reshape(o.v, apart);
        auto const s = p.add(product(p, first, keys_first ? k : q, keys_first ? q : k, scores), p.input("mask", {samples, 1, length, length}));
        return recognition(p, p.reshape(product(p, second, p.softmax(s), v, apart), {samples, length, wide}));
    };
    for (bool const keys_first : {false, true}) {
        auto const r = keras(keys_first ? "aecd,abcd->acbe" : "abcd, aecd -> acbe", "acbe,aecd->abcd", keys_first);
        CHECK(r.notes == "1 x attention (4 heads, masked)");
        CHECK(r.types() == absorbed);
        CHECK(layouts(r) == all_packed);
    }
    CHECK(keras("abcd,aecd->acbe", "aceb,aecd->abcd", false).notes.empty()); // probabilities are taken the other way round
    // Values before probabilities, as JAX does.
    primitives j;
    auto const o = project(j);
    auto const shares = j.softmax(product(j, "abcd,aecd->acbe", j.reshape(o.q, apart), j.reshape(o.k, apart), scores));
    auto const turned = product(j, "abcd,aceb->acde", j.reshape(o.v, apart), shares, {samples, heads, size, length});
    recognition const jax(j, j.reshape(j.transpose(turned, {0, 3, 1, 2}), {samples, length, wide}));
    CHECK(jax.notes == "1 x attention (4 heads)");
    CHECK(jax.types() == absorbed);
    CHECK(layouts(jax) == all_packed);
    // Heads in front of what is multiplied.
    primitives p;
    auto const q = p.input("q", {samples, heads, length, size}), k = p.input("k", {samples, heads, length, size});
    auto const y = product(p, "bhqk,bhkd->bqhd", p.softmax(product(p, "bhqd,bhkd->bhqk", q, k, scores)), k, apart);
    CHECK(layouts(recognition(p, p.reshape(y, {samples, length, wide}))) == "by_head by_head by_head packed");
}

TEST_CASE("attention: a node Attention takes in the moves of heads around it") {
    auto const made = [](std::int64_t kv_heads, bool masked, bool alone) {
        primitives p;
        auto const o = project(p, kv_heads);
        auto const by_head = [&](value_id x, std::int64_t n) { return p.transpose(p.reshape(x, {samples, length, n, size}), {0, 2, 1, 3}); };
        std::vector<value_id> operands{by_head(o.q, heads), by_head(o.k, kv_heads), by_head(o.v, kv_heads)};
        if (alone)
            for (auto& x : operands) x = p.unary("Relu", x);
        if (masked) operands.push_back(p.input("mask", {1, 1, length, length}));
        auto const y = p.node("Attention", operands, {samples, heads, length, size}, {{"is_causal", std::int64_t{!masked}}});
        if (alone) return recognition(p, y);
        return recognition(p, p.reshape(p.transpose(y, {0, 2, 1, 3}), {samples, length, wide}));
    };
    for (auto const kv : {heads, std::int64_t{2}}) {
        auto const causal = made(kv, false, false);
        CHECK(causal.types() == absorbed);
        CHECK(layouts(causal) == all_packed);
        CHECK(causal.notes == (kv == heads ? "1 x attention (4 heads, causal)" : "1 x attention (4 heads, 2 of keys and values, causal)"));
        CHECK(causal.graph[causal.graph.size() - 1].operation.multiply_adds == found().graph[found().graph.size() - 1].operation.multiply_adds);
        auto const masked = made(kv, true, false);
        CHECK(masked.types() == absorbed);
        CHECK(masked.first("Attention").inputs.size() == 4);
    }
    // Left as it is where nothing moves heads right before or behind it.
    CHECK(made(heads, false, true).notes.empty());
}
