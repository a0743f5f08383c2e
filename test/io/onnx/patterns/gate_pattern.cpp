#include <parsearch/io/onnx/patterns/gate_pattern.hpp>

#include <functional>

#include <doctest/doctest.h>

#include "support/onnx_patterns.hpp"

using namespace support;

namespace {

struct chosen {
    value_id values, indices;
};
/// What is recognised in gates whose values `f` makes of the `k` largest of 8 probabilities of 6 tokens.
recognition gates(std::int64_t k, std::function<value_id(primitives&, chosen)> const& f, attributes const& scatter = {{"axis", std::int64_t{-1}}},
                  double background = 0) {
    primitives p;
    auto const x = p.softmax(p.linear(p.input("x", {6, 4}), 8));
    auto const count = p.integers({k});
    auto const top = p.nodes("TopK", {x, count}, {{{6, k}, ops::dtype::f32}, {{6, k}, ops::dtype::i64}});
    auto const values = f(p, {top[0], top[1]});
    auto const zeros = p.matrix({6, 8}, std::vector<double>(48, background));
    return {p, p.node("ScatterElements", {zeros, top[1], values}, {6, 8}, scatter)};
}
value_id share(primitives& p, value_id values) {
    auto const axes = p.integers({-1});
    return p.div(values, p.node("ReduceSum", {values, axes}, {6, 1}));
}

} // namespace

TEST_CASE("gates of experts: the largest probabilities, shared out or not, scaled, in the places of their experts") {
    for (auto const &f : {std::function<value_id(primitives&, chosen)>([](auto& p, chosen c) { return share(p, c.values); }),
                          {[](auto&, chosen c) { return c.values; }},
                          {[](auto& p, chosen c) { return p.mul(share(p, c.values), 2.5); }}}) {
        auto const r = gates(2, f);
        CHECK(r.notes == "1 x gate of experts");
        CHECK(r.types() == "MatMul Softmax parsearch.TopKGate");
        CHECK(std::get<std::int64_t>(r.first("TopKGate").attributes.at("k")) == 2);
        CHECK(listing(r.graph).ends_with(":top_2_gate"));
    }
}

TEST_CASE("gates of experts: what is something else stays") {
    auto const values = [](primitives&, chosen c) { return c.values; };
    CHECK(gates(2, values, {{"axis", std::int64_t{0}}}).notes.empty());                                    // along tokens
    CHECK(gates(2, values, {{"axis", std::int64_t{1}}, {"reduction", std::string("add")}}).notes.empty()); // added to what is there
    CHECK(gates(2, values, {{"axis", std::int64_t{1}}}, 0.5).notes.empty());                               // and that is not 0
    CHECK(gates(2, [](auto& p, chosen c) { return p.unary("Exp", c.values); }).notes.empty());             // of something else
    CHECK(gates(2, [](auto& p, chosen c) { return p.div(c.values, share(p, c.values)); }).notes.empty());  // over another sum
    CHECK(gates(2, values, {{"axis", std::int64_t{1}}, {"reduction", std::string("none")}}).notes == "1 x gate of experts");
}
