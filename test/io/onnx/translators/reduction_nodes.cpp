#include <parsearch/io/onnx/translators/reduction_nodes.hpp>

#include <doctest/doctest.h>

#include "support/onnx_network.hpp"
#include "support/refusal.hpp"

namespace onnx = parsearch::io::onnx;
using namespace support;
using list = std::vector<std::int64_t>;

TEST_CASE("reductions: axes as attribute and as input, all of them, none of them") {
    onnx_builder b;
    auto const x = b.input("x", {4, 6, 10});
    std::vector<onnx::value_id> const y{b.node("ReduceMean", {x}, {4, 6, 1}, {{"axes", list{-1}}}),
                                        b.node("ReduceSum", {x, b.integers({0, 2})}, {6}, {{"keepdims", std::int64_t{0}}}),
                                        b.node("ReduceMax", {x}, {1, 1, 1}),
                                        b.node("ReduceSum", {x}, {4, 6, 10}, {{"noop_with_empty_axes", std::int64_t{1}}}),
                                        b.node("ReduceLogSumExp", {x, b.integers({1})}, {4, 1, 10})};
    auto const made = b.translate(y);
    CHECK(listing(made.graph) == "n0:reduce_mean n1:reduce_sum n2:reduce_max n4:reduce_log_sum_exp");
    CHECK(made.outputs[3] == made.tensors.at("x"));
}

TEST_CASE("ArgMax, TopK, CumSum") {
    onnx_builder b;
    auto const x = b.input("x", {4, 6, 10});
    auto const best = b.node("ArgMax", {x}, {4, 6}, {{"axis", std::int64_t{-1}}, {"keepdims", std::int64_t{0}}}, ops::dtype::i64);
    auto const some = b.nodes("TopK", {x, b.integers({3})}, {{{4, 6, 3}}, {{4, 6, 3}, ops::dtype::i64}});
    auto const sums = b.node("CumSum", {x, b.integer(1)}, {4, 6, 10});
    auto const made = b.translate({best, some[0], some[1], sums});
    CHECK(listing(made.graph) == "n0:arg_max n1:top_k n2:cumulative_sum");
    auto const bad = b.nodes("TopK", {x, b.integers({11})}, {{{4, 6, 11}}, {{4, 6, 11}, ops::dtype::i64}});
    CHECK(refusal([&] { b.translate(bad); }) == "node 'n3' (TopK): option k is 11: must be at most axis 2 of input 0 of shape f32[4,6,10]");
}

TEST_CASE("Resize and Upsample: scales, sizes, axes, and nothing to do") {
    onnx_builder b;
    auto const x = b.input("x", {2, 3, 8, 6});
    std::vector<onnx::value_id> const y{
        b.node("Resize", {x, onnx::no_value, b.numbers({1, 1, 2, 1.5})}, {2, 3, 16, 9}),
        b.node("Resize", {x, onnx::no_value, onnx::no_value, b.integers({2, 3, 4, 3})}, {2, 3, 4, 3}, {{"mode", std::string("linear")}}),
        b.node("Resize", {x, onnx::no_value, onnx::no_value, b.integers({16, 18})}, {2, 3, 16, 12},
               {{"axes", list{2, 3}}, {"keep_aspect_ratio_policy", std::string("not_larger")}, {"mode", std::string("cubic")}}),
        b.node("Upsample", {x, b.numbers({1, 1, 1, 1})}, {2, 3, 8, 6})};
    auto const made = b.translate(y);
    CHECK(listing(made.graph) == "n0:resize_nearest n1:resize_linear n2:resize_cubic");
    auto const bad = b.node("Resize", {x, onnx::no_value, b.numbers({1, 1, 2})}, {2, 3, 16, 6});
    CHECK(refusal([&] { b.translate(bad); }) == "node 'n4' (Resize): has 3 sizes or scales for 4 axes: must have as many");
}
