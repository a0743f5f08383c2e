#include <parsearch/io/onnx/translators/lookup_nodes.hpp>

#include <doctest/doctest.h>

#include "support/onnx_network.hpp"
#include "support/refusal.hpp"

namespace onnx = parsearch::io::onnx;
using namespace support;
using enum parsearch::ops::dtype;

TEST_CASE("Gather: trained tables are embeddings, known runs are slices") {
    onnx_builder b;
    auto const tokens = b.input("tokens", {8, 5}, i64), x = b.input("x", {8, 5, 16});
    auto const words = b.parameter("words", {100, 16}), places = b.parameter("places", {32, 16}), deep = b.parameter("deep", {4, 6, 16});
    std::vector<onnx::value_id> const y{b.node("Gather", {words, tokens}, {8, 5, 16}),
                                        b.node("Gather", {places, b.fixed("positions", {1, 5}, i64)}, {1, 5, 16}),
                                        b.node("Gather", {x, b.integer(0)}, {8, 16}, {{"axis", std::int64_t{1}}}),
                                        b.node("Gather", {x, b.integers({-3, -2, -1})}, {8, 3, 16}, {{"axis", std::int64_t{1}}}),
                                        b.node("Gather", {x, b.integers({0, 2, 1})}, {8, 3, 16}, {{"axis", std::int64_t{1}}}),
                                        b.node("Gather", {deep, b.input("i", {3}, i32)}, {3, 6, 16}),
                                        b.node("Gather", {words, b.input("one", {}, i64)}, {16}),
                                        b.node("Gather", {x, b.input("two", {2, 3}, i64)}, {8, 2, 3, 16}, {{"axis", std::int64_t{-2}}})};
    auto const made = b.translate(y);
    CHECK(listing(made.graph) == "n0:embedding n1:embedding n2:slice n2.reshape:reshape n3:slice n4:gather n5:gather n6:gather n7:gather");
    auto const& lookup = named(made.graph, "n0");
    CHECK(weights(lookup) == "words[100,16]");
    CHECK(lookup.weights[0].touched_bytes == 8 * 5 * 16 * 4);
    CHECK(lookup.dims.back().kind == ops::dim_kind::reduction);
    CHECK_FALSE(lookup.inputs[0].differentiable);
    CHECK(named(made.graph, "n3").inputs[0].axes[1].offset == 2);
    CHECK(weights(named(made.graph, "n5")) == "deep[4,6,16]");
    CHECK(totals_of(made.graph).parameters == 1600 + 512 + 384);
    auto const bad = b.node("Gather", {x, b.integer(5)}, {8, 16}, {{"axis", std::int64_t{1}}});
    CHECK(refusal([&] { b.translate(bad); }) == "node 'n8' (Gather): index 5: must be between -5 and 4 for an axis of extent 5");
}

TEST_CASE("a table that is looked up and multiplied by is one parameter") {
    onnx_builder b;
    auto const h = b.node("Gather", {b.parameter("words", {100, 16}), b.input("tokens", {8, 5}, i64)}, {8, 5, 16});
    auto const made = b.translate(b.node("MatMul", {h, b.view("words", {16, 100})}, {8, 5, 100}));
    CHECK(weights(named(made.graph, "n0")) == "words[100,16]");
    CHECK(weights(named(made.graph, "n1")) == "words[100,16]");
    CHECK(totals_of(made.graph).parameters == 1600);
    CHECK(made.notes.empty());
}

TEST_CASE("elements, tuples, one-hot") {
    onnx_builder b;
    auto const x = b.input("x", {8, 5, 16});
    std::vector<onnx::value_id> const y{
        b.node("GatherElements", {x, b.input("e", {8, 2, 16}, i64)}, {8, 2, 16}, {{"axis", std::int64_t{1}}}),
        b.node("GatherND", {x, b.input("t", {3, 2}, i64)}, {3, 16}),
        b.node("ScatterElements", {x, b.input("se", {8, 1, 16}, i64), b.input("ue", {8, 1, 16})}, {8, 5, 16}, {{"axis", std::int64_t{1}}}),
        b.node("ScatterND", {x, b.input("st", {3, 2}, i64), b.input("ut", {3, 16})}, {8, 5, 16}),
        b.node("OneHot", {b.input("c", {8, 5}, i64), b.integer(10), b.numbers({0, 1})}, {8, 10, 5}, {{"axis", std::int64_t{1}}})};
    auto const made = b.translate(y);
    CHECK(listing(made.graph) == "n0:gather_elements n1:gather_nd n2:scatter_elements n3:scatter_nd n4.reshape:reshape n4.equal:compare n4:cast");
    CHECK(named(made.graph, "n4.equal").inputs[1].axes.size() == 2);
}

TEST_CASE("what was not folded and depends on no data is an input of the graph") {
    onnx_builder b;
    auto const zeros = b.node("ConstantOfShape", {b.input("s", {2}, i64)}, {4, 6});
    auto const made = b.translate(b.node("Add", {b.input("x", {4, 6}), zeros}, {4, 6}));
    CHECK(listing(made.graph) == "n1:add");
    CHECK(made.notes == std::vector<std::string>{"input 's' is read by no operator"});
}
