#include <parsearch/io/onnx/patterns/views_of_all.hpp>

#include <doctest/doctest.h>

#include "support/onnx_patterns.hpp"

using namespace support;

TEST_CASE("slices of all, expansions and reshapes to the shape that there is go; a slice backwards, and what is an output, stay") {
    primitives p;
    auto const x = p.linear(p.input("x", {2, 6, 4}), 4);
    auto const same = p.reshape(p.expand(p.slice(p.unary("Identity", x), 1, 0, 6), {2, 6, 4}), {2, 6, 4});
    auto const back = p.slice(p.unary("Relu", same), 1, 0, 6, 1);
    auto const wanted = p.slice(x, 0, 0, 2);
    auto const from = p.integers({5}), to = p.integers({-9}), axis = p.integers({1}), by = p.integers({-1});
    auto const flipped = p.node("Slice", {back, from, to, axis, by}, {2, 6, 4});
    p.net.outputs = {flipped, wanted};
    parsearch::io::onnx::patterns::remove_views_of_all(p.net);
    std::string types;
    for (auto const& n : p.net.nodes) types += n.type + ' ';
    CHECK(types == "MatMul Relu Slice Slice ");
    CHECK(p.net.nodes[1].inputs[0] == x);
    CHECK(p.net.nodes[3].inputs[0] == p.net.nodes[1].outputs[0]);
    CHECK(p.net[p.net.nodes[3].outputs[0]].producer == 3);
}
