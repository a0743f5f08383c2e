/// How much memory a sequence gets, what does not fit, and what opening a device says where there is none.
#include <doctest/doctest.h>

#include <string>

#include "buffers.hpp"
#include "describe.hpp"
#include "devices.hpp"
#include "graphs.hpp"
#include "prepared.hpp"

using namespace parsearch;
using namespace parsearch::profiler;

namespace {
constexpr std::size_t mib = std::size_t{1} << 20;
}

TEST_CASE("buffers rotate past the last cache, as far as memory goes") {
    // 50 MiB of cache, 30 MiB a set: four sets are 120 MiB.
    auto const whole = [](std::size_t bytes) { return array_bytes{.own = bytes, .common = 0, .touched = bytes}; };
    buffer_plan const p = plan_buffers(whole(30 * mib), 5 * mib, 50 * mib, 80000 * mib, "x");
    CHECK(p.sets == 4);
    CHECK(p.total() == 125 * mib);
    CHECK(plan_buffers(whole(100 * mib), 0, 50 * mib, 80000 * mib, "x").sets == 1);
    CHECK(plan_buffers(whole(512), 0, 50 * mib, 80000 * mib, "x").sets == most_sets);
    CHECK(plan_buffers({}, 0, 50 * mib, 80000 * mib, "x").sets == 1);
    // Half of what is free: (856 - 256) / 2 / 100 = 3, where the cache asks for 4.
    CHECK(plan_buffers(whole(100 * mib), 0, 200 * mib, 856 * mib, "x").sets == 3);
    CHECK(plan_buffers(whole(600 * mib), 0, 200 * mib, 856 * mib, "x").sets == 1);
}

TEST_CASE("lookups in a large table rotate over its rows") {
    // 6400 of ten million rows of 1 KiB, f32: a run touches 6.25 MiB of the table, its indices and the result. The table is there once.
    lookup const dlrm{.rows = 10'000'000, .width = 256, .lookups = 6400, .type = dtype::f32};
    array_bytes const one = bytes_of(make_runner(run_context{}, launch{dlrm})->arrays());
    CHECK(one.common == 10'240'000'000);
    CHECK(one.own == 25600 + 6553600);
    CHECK(one.touched == 25600 + 2 * 6553600);
    buffer_plan const p = plan_buffers(one, 0, 50 * mib, 80000 * mib, "x");
    CHECK(p.sets == 8); // 8 times 12.5 MiB
    CHECK(p.copies == 1);
    CHECK(p.total() == one.common + 8 * one.own);
    CHECK_THROWS_AS((void)plan_buffers(one, 0, 50 * mib, 10000 * mib, "x"), launch_failure);

    // A table of the cache's size would be found there: 16 of it, but not more than there are sets.
    array_bytes const small{.own = mib, .common = 50 * mib, .touched = 2 * mib};
    buffer_plan const q = plan_buffers(small, 0, 50 * mib, 80000 * mib, "x");
    CHECK(q.sets == 50);
    CHECK(q.copies == 16);
    CHECK(plan_buffers({.own = mib, .common = 20 * mib, .touched = 10 * mib}, 0, 50 * mib, 80000 * mib, "x").copies == 10);
    // Tables take half of what is free: (856 - 256 - 1) / 2 / 50 = 5; the sets half of the rest.
    buffer_plan const r = plan_buffers(small, 0, 50 * mib, 856 * mib, "x");
    CHECK(r.copies == 5);
    CHECK(r.sets == 50);
    CHECK(r.total() <= 600 * mib);
    for (std::size_t free = 256; free < 3000; free += 7)
        for (array_bytes const& a : {array_bytes{30 * mib, 40 * mib, 31 * mib}, array_bytes{0, 40 * mib, mib}, array_bytes{mib, 1000 * mib, 2 * mib}})
            if (a.own + a.common + 3 * mib <= (free - 256) * mib) {
                buffer_plan const any = plan_buffers(a, 3 * mib, 50 * mib, free * mib, "x");
                CHECK(any.total() <= (free - 256) * mib);
                CHECK(any.copies >= 1);
                CHECK(any.copies <= any.sets);
            }
}

TEST_CASE("lookups of all rows of a table touch all of it") {
    for (std::int64_t const lookups : {1000, 5000}) {
        array_bytes const all = bytes_of(make_runner(run_context{}, launch{lookup{.rows = 1000, .width = 64, .lookups = lookups}})->arrays());
        CHECK(all.common == 0);
        CHECK(all.touched == all.own);
    }
}

TEST_CASE("an array of which a run touches all is each set's own") {
    CHECK_FALSE(array_spec{.elements = 8}.common());
    CHECK_FALSE(array_spec{.elements = 8, .used = 8}.common());
    CHECK_FALSE(array_spec{.elements = 8, .used = 9}.common());
    CHECK(array_spec{.elements = 8, .used = 7}.common());
}

TEST_CASE("what does not fit is refused with both figures") {
    try {
        (void)plan_buffers({.own = 600 * mib, .common = 0, .touched = 600 * mib}, 1, 50 * mib, 856 * mib, "matmul");
        FAIL("fits");
    } catch (launch_failure const& e) {
        CHECK(std::string(e.what()) == "matmul: needs 629145601 bytes of device memory, of which 629145600 are available");
    }
    CHECK_THROWS_AS((void)plan_buffers({.own = 1, .common = 0, .touched = 1}, 0, 1, 0, "x"), launch_failure);
    CHECK_THROWS_AS((void)plan_buffers({.own = 1, .common = 0, .touched = 1}, ~std::size_t{0}, 1, 856 * mib, "x"), launch_failure);
}

TEST_CASE("a ring gives pieces that lie inside it") {
    ring r(100);
    CHECK(r.take(60) == 0);
    CHECK(r.take(40) == 60);
    CHECK(r.take(1) == 0);
    CHECK(r.take(100) == 0);
    CHECK(r.take(0) == 100);
}

TEST_CASE("arrays are aligned") {
    CHECK(aligned(0) == 0);
    CHECK(aligned(1) == 512);
    CHECK(aligned(512) == 512);
    std::array<array_spec, 2> const a{{{.type = dtype::f16, .elements = 3}, {.type = dtype::f64, .elements = 65}}};
    CHECK(a[1].bytes() == 520);
    CHECK(bytes_of(a).own == 1536);
    CHECK(bytes_of(a).touched == 1536);
    CHECK(bytes_of(a).common == 0);
}

TEST_CASE("windows are normalized") {
    // ResNet's first convolution, with and without the column that no window reaches.
    convolution c{.n = 1,
                  .in = 3,
                  .out = 64,
                  .size = {224, 224},
                  .kernel = {7, 7},
                  .stride = {2, 2},
                  .padding = {3, 3},
                  .padding_end = {3, 3},
                  .result = {112, 112}};
    CHECK(normalized(c).padding_end == c.padding_end);
    CHECK(normalized(c).size == c.size);
    // Negative padding cuts.
    convolution cut{.size = {10, 10}, .kernel = {3, 1}, .padding = {-2, 0}, .padding_end = {-1, 0}, .result = {5, 10}};
    CHECK(normalized(cut).size == std::array<std::int64_t, 2>{7, 10});
    CHECK(normalized(cut).padding == std::array<std::int64_t, 2>{0, 0});
    // A part of the result: the rest of x is left out, first its padding.
    convolution part{.size = {10, 1}, .kernel = {3, 1}, .padding = {1, 0}, .padding_end = {1, 0}, .result = {4, 1}};
    CHECK(normalized(part).size[0] == 5);
    CHECK(normalized(part).padding_end[0] == 0);
    pooling asymmetric{.n = 1, .channels = 1, .size = {5, 5}, .window = {2, 2}, .stride = {2, 2}, .padding_end = {1, 1}, .result = {3, 3}};
    CHECK(normalized(asymmetric).padding_end == std::array<std::int64_t, 2>{1, 1});
    convolution much{.size = {4, 4}, .kernel = {3, 3}, .result = {3, 2}};
    CHECK_THROWS_AS((void)normalized(much), launch_failure);
}

TEST_CASE("launches in words") {
    CHECK(describe(matmul{.batch = 2, .m = 3, .n = 4, .k = 5, .transpose_b = true, .bias = true, .type = dtype::bf16}) ==
          "matmul bf16 c[2,3,4] over 5 bT + bias");
    CHECK(describe(permutation{{2, 3}, {1, 0}, dtype::f32}) == "permutation f32 [2,3] to (1,0)");
    CHECK(describe(streaming{.reads = {{8}, {2}}, .writes = {{8}}}) == "streaming of 2 arrays into 1, of up to 8 elements");
}

TEST_CASE("statuses have names, and a failure names its call") {
    CHECK(name_of(CUBLAS_STATUS_NOT_SUPPORTED) == "CUBLAS_STATUS_NOT_SUPPORTED");
    if (cuda_device_count() > 0) return; // with a device the message is the same, but the state of this process is not ours to break
    try {
        check(CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatmul", "a product");
        FAIL("no exception");
    } catch (launch_failure const& e) {
        CHECK(std::string(e.what()) == "a product: cuBLASLt: cublasLtMatmul answers CUBLAS_STATUS_INVALID_VALUE");
    }
}

TEST_CASE("without a device there is one line that says so") {
    if (cuda_device_count() > 0) {
        CHECK_NOTHROW((void)open_cuda_device(0));
        CHECK_THROWS_AS((void)open_cuda_device(cuda_device_count()), no_device);
        return;
    }
    try {
        (void)open_cuda_device(0);
        FAIL("opened");
    } catch (no_device const& e) {
        std::string const message = e.what();
        CHECK(message.starts_with("no device"));
        CHECK(message.find('\n') == std::string::npos);
    }
    std::array<int, 2> const both{0, 1};
    CHECK_THROWS_AS((void)open_cuda_group(both), no_device);
}
