#include "profiler/launch_cost.hpp"

#include <doctest/doctest.h>

using namespace parsearch;
using namespace parsearch::profiler;
using ops::dtype;

TEST_CASE("launch cost: products and bytes of each launch, by hand") {
    launch const product = matmul{.batch = 2, .m = 3, .n = 5, .k = 7, .bias = true, .type = dtype::bf16};
    CHECK(multiply_adds(product) == 210);
    CHECK(traffic_of(product).read == 2 * (2 * (21 + 35) + 5));
    CHECK(traffic_of(product).written == 2 * 30);
    CHECK(to_string(product) == "matmul 2*3x5x7 bias bf16");

    convolution c{.n = 2, .groups = 3, .in = 4, .out = 5, .size = {8, 9}, .kernel = {3, 1}, .result = {6, 9}, .type = dtype::f32};
    double const x = 4 * 2 * 12 * 72, w = 4 * 3 * 4 * 5 * 3, y = 4 * 2 * 15 * 54;
    CHECK(multiply_adds(c) == 2 * 3 * 4 * 5 * 3 * 54);
    CHECK(traffic_of(c).read == x + w);
    CHECK(traffic_of(c).written == y);
    c.pass = convolution_pass::filter_gradient;
    CHECK(traffic_of(c).read == x + y);
    CHECK(traffic_of(c).written == w);
    CHECK(to_string(c) == "convolution filter gradient n2 groups3 4->5 8x9->6x9 kernel 3x1 f32");

    attention const a{.batch = 2, .heads = 4, .kv_heads = 2, .queries = 8, .keys = 16, .size = 32, .value_size = 32, .type = dtype::f16};
    CHECK(multiply_adds(a) == 2 * (2 * 4 * 8 * 16 * 32));
    CHECK(traffic_of(a).read == 2 * (2 * 4 * 8 * 32 + 2 * (2 * 2 * 16 * 32)));
    recurrent const r{.cell = cell_kind::gru, .samples = 2, .steps = 3, .features = 4, .hidden = 5};
    CHECK(multiply_adds(r) == 2 * 3 * 3 * 5 * 9);
    CHECK(traffic_of(softmax{.backward = true, .rows = 3, .columns = 4}).all() == 3 * 48);
    CHECK(traffic_of(reduction{.outer = 2, .summed = 3, .inner = 4}).all() == 4 * (24 + 8));
    CHECK(traffic_of(permutation{.extents = {2, 3}, .order = {1, 0}, .type = dtype::f64}).all() == 2 * 48);
    CHECK(to_string(launch{permutation{.extents = {2, 3}, .order = {1, 0}, .type = dtype::f64}}) == "permutation 2x3 to 1 0 f64");
    CHECK(traffic_of(lookup{.rows = 1000, .width = 8, .lookups = 6, .bag = 3}).read == 6 * 8 * 4 + 6 * 8);
    CHECK(traffic_of(lookup{.rows = 1000, .width = 8, .lookups = 6, .bag = 3}).written == 2 * 8 * 4);
    matmul ended{.batch = 2, .m = 3, .n = 5, .k = 7, .bias = true, .type = ops::dtype::f16};
    auto const plain = traffic_of(ended);
    ended.then = activation::relu;
    CHECK(traffic_of(ended).all() == plain.all());
    ended.then = activation::gelu; // keeps what it is a function of
    CHECK(traffic_of(ended).read == plain.read);
    CHECK(traffic_of(ended).written == 2 * plain.written);
    CHECK(to_string(ended) == "matmul 2*3x5x7 bias gelu f16");
    CHECK(traffic_of(optimizer_update{.sets = {{.flops = 1, .bytes = 600}, {.flops = 2, .bytes = 60}}}).all() == 660);
    launch const stream_of_two = streaming{.reads = {{10, dtype::f32}, {2, dtype::i8}}, .writes = {{10, dtype::f16}}, .flops = 3};
    CHECK(traffic_of(stream_of_two).read == 42);
    CHECK(traffic_of(stream_of_two).written == 20);
    CHECK(multiply_adds(stream_of_two) == 0);
    CHECK(to_string(stream_of_two) == "streaming 10 reads2 writes1 f16");
    CHECK(to_string(launch{pooling{.average = true, .backward = true, .n = 2, .channels = 3, .size = {1, 8}, .result = {1, 4}}}) ==
          "average pooling backward n2 c3 8->4 f32");
    CHECK(to_string(launch{normalization{.kind = normalization_kind::rms, .n = 4, .channels = 8}}) == "rms normalization 4x8x1 f32");
    normalization rows{.n = 4, .channels = 8, .sum = true, .dropout = true}; // x and residual in, y, sum and mask out
    CHECK(to_string(rows) == "layer normalization sum dropout 4x8x1 f32");
    CHECK(traffic_of(rows).read == 2 * 128 + 2 * 32);
    CHECK(traffic_of(rows).written == 2 * 128 + 32);
    rows.backward = true; // sum, two gradients and the mask in, dx and what is left of it out
    CHECK(traffic_of(rows).read == 3 * 128 + 32 + 32);
    CHECK(traffic_of(rows).written == 2 * 128 + 2 * 32);
}
