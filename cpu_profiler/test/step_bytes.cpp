// Steps of an iteration become bytes and the same steps again.

#include "cpu_profiler/step_bytes.hpp"

#include <vector>

#include <doctest/doctest.h>

using namespace parsearch::profiler;

namespace {
std::vector<group_step> some_steps() {
    return {{.launches = {matmul{.m = 2, .n = 3, .k = 4, .bias = true}, streaming{.reads = {{5}, {6, dtype::i8}}, .writes = {{6}}, .flops = 7},
                          convolution{.in = 3, .out = 8}, pooling{.average = true}, softmax{.rows = 9}, normalization{.sum = true}},
             .all_reduce = 123},
            {.launches = {recurrent{.hidden = 4}, attention{.keys = 5}, reduction{.summed = 6}, permutation{.extents = {2, 3}, .order = {1, 0}},
                          lookup{.rows = 10}, optimizer_update{.sets = {{.flops = 2, .bytes = 12}, {.flops = 4, .bytes = 20}}}},
             .all_reduce = 0}};
}
} // namespace

TEST_CASE("steps of all launches are read back") {
    auto const steps = some_steps();
    CHECK(steps_of(bytes_of(steps)) == steps);
    CHECK(steps_of(bytes_of({})).empty());
}

TEST_CASE("bytes that are cut off or too many are refused") {
    auto bytes = bytes_of(some_steps());
    bytes.pop_back();
    CHECK_THROWS_WITH((void)steps_of(bytes), "the steps of an iteration are cut off");
    bytes = bytes_of(some_steps());
    bytes.push_back(std::byte{0});
    CHECK_THROWS_WITH((void)steps_of(bytes), "the steps of an iteration have bytes behind them");
}
