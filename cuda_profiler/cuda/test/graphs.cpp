/// What cuDNN says of our graphs without a device: it is given the properties of an H100 (cuDNN >= 9.8) and asked which engines would run them.
/// Engines that cuDNN compiles while it runs need the driver's library to say so; where that is not there, those graphs are checked up to
/// their operations only.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <dlfcn.h>

#include "describe.hpp"
#include "graph_store.hpp"
#include "runner.hpp"

using namespace parsearch;
using namespace parsearch::profiler;

namespace {

/// In the words that cuDNN writes of a device: public figures of an H100 SXM (NVIDIA H100 Tensor Core GPU Architecture; CUDA C++ Programming Guide,
/// "Compute Capabilities", 9.0).
constexpr std::string_view h100 = R"({"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
    "multiProcessorCount": 132, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "l2CacheSize": 52428800, "warpSize": 32,
    "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
    "pciDeviceId": 0, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1,
    "deviceVer": 900, "driverVer": 13000, "totalGlobalMem": 85029158912, "deviceName": "NVIDIA H100 80GB HBM3", "cudaDeviceId": 0})";

/// Whether cuDNN takes those properties: from 9.8 on.
bool can_ask() {
    if (cudnnGetVersion() >= 90800) return true;
    MESSAGE("skipped: cuDNN ", cudnnGetVersion(), " answers nothing without a device");
    return false;
}
bool has_driver() {
    static bool const found = [] {
        void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (library != nullptr) (void)dlclose(library);
        return library != nullptr;
    }();
    return found;
}

} // namespace

TEST_CASE("strides of packed arrays") {
    std::array<std::int64_t, 4> const e{2, 3, 4, 5};
    CHECK(strides_of(e) == std::vector<std::int64_t>{60, 20, 5, 1});
    CHECK(strides_of(e, layout::nchw) == std::vector<std::int64_t>{60, 20, 5, 1});
    CHECK(strides_of(e, layout::nhwc) == std::vector<std::int64_t>{60, 1, 15, 3});
}

TEST_CASE("cuDNN takes a tensor, and refuses one that is none") {
    cudnn_graph g("a test");
    CHECK(g.tensor(CUDNN_DATA_HALF, {2, 8, 4, 4}, {128, 1, 32, 8}) == 1);
    CHECK(g.scalar(1.F, 4) == 2);
    CHECK_THROWS_AS((void)g.tensor(CUDNN_DATA_HALF, {2, -8, 4, 4}, {128, 1, 32, 8}), launch_failure);
    CHECK_THROWS_AS((void)cudnn_type(dtype::i8, "x"), launch_failure);
}

TEST_CASE("cuDNN has plans for convolutions of every type, pass and padding") {
    if (!can_ask()) return;
    cudnn_descriptor const device = cudnn_device_properties(h100);
    for (dtype const type : {dtype::f16, dtype::bf16, dtype::tf32, dtype::f32, dtype::f64})
        for (convolution_pass const pass : {convolution_pass::forward, convolution_pass::data_gradient, convolution_pass::filter_gradient})
            for (std::int64_t const groups : {1, 2})
                for (std::int64_t const front : {1, 0}) {
                    convolution const c{.pass = pass,
                                        .n = 2,
                                        .groups = groups,
                                        .in = 16,
                                        .out = 32,
                                        .size = {14, 14},
                                        .kernel = {3, 3},
                                        .padding = {front, front},
                                        .padding_end = {1, 1},
                                        .result = {13 + front, 13 + front},
                                        .type = type};
                    CAPTURE(describe(c));
                    layout const l = type == dtype::f64 ? layout::nchw : layout::nhwc;
                    built_graph g = convolution_graph(normalized(c), l);
                    auto const plans = g.graph.plans({.properties = &device}, {.tensor_cores = type != dtype::f32});
                    CHECK(!plans.empty());
                    for (cudnn_plan const& p : plans) {
                        CHECK(p.workspace >= 0);
                        if (type == dtype::f32) CHECK_FALSE(p.tensor_cores);
                    }
                    if (type == dtype::f16) CHECK(std::any_of(plans.begin(), plans.end(), [](cudnn_plan const& p) { return p.tensor_cores; }));
                }
    // One axis is two with a height of one.
    convolution const line{.n = 2, .in = 8, .out = 8, .size = {1, 50}, .kernel = {1, 5}, .stride = {1, 2}, .result = {1, 23}, .type = dtype::f32};
    CHECK(!convolution_graph(normalized(line), layout::nchw).graph.plans({.properties = &device}, {.tensor_cores = false}).empty());
}

TEST_CASE("work space is bounded") {
    if (!can_ask()) return;
    cudnn_descriptor const device = cudnn_device_properties(h100);
    convolution const c{.n = 8,
                        .in = 64,
                        .out = 128,
                        .size = {56, 56},
                        .kernel = {3, 3},
                        .padding = {1, 1},
                        .padding_end = {1, 1},
                        .result = {56, 56},
                        .type = dtype::f16};
    // In NCHW all engines on tensor cores turn the arrays first, in 9 MiB and more.
    CHECK(!convolution_graph(c, layout::nchw).graph.plans({.properties = &device}, {}).empty());
    for (cudnn_plan const& p : convolution_graph(c, layout::nchw).graph.plans({.properties = &device}, {.workspace = 1 << 20}))
        CHECK(p.workspace <= 1 << 20);
}

TEST_CASE("cuDNN knows the graphs of attention") {
    if (!can_ask()) return;
    cudnn_descriptor const device = cudnn_device_properties(h100);
    if (!has_driver()) MESSAGE("skipped in part: without the driver's library cuDNN proposes none of the engines that it compiles");
    for (dtype const type : {dtype::f16, dtype::bf16})
        for (bool const backward : {false, true})
            for (bool const causal : {false, true})
                for (auto const& [heads, kv_heads, sequence, size] :
                     {std::array<std::int64_t, 4>{16, 16, 512, 64}, {8, 2, 256, 128}, {2, 2, 33, 40}}) {
                    attention const a{.backward = backward,
                                      .causal = causal,
                                      .batch = 2,
                                      .heads = heads,
                                      .kv_heads = kv_heads,
                                      .queries = sequence,
                                      .keys = sequence,
                                      .size = size,
                                      .value_size = size,
                                      .type = type};
                    CAPTURE(describe(a));
                    built_graph g = attention_graph(a);
                    CHECK(g.tensors.size() == (backward ? 11 : 5));
                    std::size_t const engines = g.graph.proposed({.properties = &device});
                    if (has_driver()) CHECK(engines > 0);
                    else CHECK(g.graph.why().find("PATTERN") == std::string::npos); // refused for its form
                }
}

TEST_CASE("cuDNN knows the graphs of normalizations") {
    if (!can_ask()) return;
    cudnn_descriptor const device = cudnn_device_properties(h100);
    for (dtype const type : {dtype::f16, dtype::bf16, dtype::f32})
        for (normalization_kind const kind : {normalization_kind::batch, normalization_kind::layer, normalization_kind::rms})
            for (bool const backward : {false, true}) {
                bool const batch = kind == normalization_kind::batch, rms = kind == normalization_kind::rms;
                normalization const n{.kind = kind, .backward = backward, .n = 32, .channels = 256, .inner = batch ? 49 : 1, .type = type};
                CAPTURE(describe(n));
                built_graph g = normalization_graph(n);
                CHECK(g.tensors.size() == (batch ? (backward ? 8U : 10U) : rms ? (backward ? 6U : 4U) : (backward ? 8U : 6U)));
                std::size_t const engines = g.graph.proposed({.properties = &device});
                if (has_driver()) CHECK(engines > 0);
            }
}

TEST_CASE("values are known by launch") {
    launch_map<int> numbers;
    // Equal in words, which leave out padding.
    convolution const one{.size = {4, 4}, .kernel = {3, 3}, .padding = {1, 1}, .padding_end = {1, 1}, .result = {4, 4}};
    convolution other = one;
    other.padding = {2, 1};
    other.padding_end = {0, 1};
    CHECK(describe(one) == describe(other));
    CHECK(numbers.find(one) == nullptr);
    numbers.add(one, 1);
    CHECK(numbers.find(other) == nullptr);
    numbers.add(other, 2);
    numbers.add(matmul{}, 3);
    REQUIRE(numbers.find(one) != nullptr);
    CHECK(*numbers.find(one) == 1);
    CHECK(*numbers.find(other) == 2);
    numbers.erase(one);
    numbers.erase(one);
    CHECK(numbers.find(one) == nullptr);
    CHECK(*numbers.find(other) == 2);
    CHECK(numbers.size() == 2);
}

TEST_CASE("a backward pass that reads what forward made names that") {
    CHECK(forward_of(normalization{.backward = true, .n = 4}) == launch{normalization{.n = 4}});
    CHECK(forward_of(attention{.backward = true, .queries = 8}) == launch{attention{.queries = 8}});
    CHECK(forward_of(normalization{.n = 4}) == std::nullopt);
    CHECK(forward_of(softmax{.backward = true}) == std::nullopt);
}

TEST_CASE("a launch whose graph cannot be made is run in its other form, and says why") {
    // Without a device cuDNN makes no plan.
    graph_store graphs;
    run_context const none{.graphs = &graphs};
    normalization const rows{.kind = normalization_kind::layer, .n = 4, .channels = 3, .type = dtype::f64};
    auto const r = make_runner(none, launch{rows});
    CHECK(r->choice() == "own normalization");
    CHECK_FALSE(r->refusal().empty());
    CHECK(r->account() == "own normalization (in place of cudnn: " + r->refusal() + ")");
    CHECK(r->arrays().size() == 6);
    normalization const back{.kind = normalization_kind::rms, .backward = true, .n = 4, .channels = 3, .type = dtype::f16};
    auto const given = make_runner(none, launch{back}, {{launch{rows}, "not this"}, {launch{back}, "it failed"}});
    CHECK(given->account() == "own normalization (in place of cudnn: it failed)");
    CHECK(given->arrays().size() == 6);
    CHECK(given->workspace() == 2 * 3 * sizeof(float));
    // What has no other form says so, and what fails in both says both reasons.
    CHECK_THROWS_WITH_AS((void)make_runner(none, launch{convolution{.size = {4, 4}, .kernel = {3, 3}, .result = {2, 2}}}),
                         doctest::Contains("cuDNN has no engine for it: "), launch_failure);
    CHECK_THROWS_WITH_AS((void)make_runner(none, launch{attention{.queries = 8, .keys = 8, .size = 8, .value_size = 8}}, {}),
                         doctest::Contains("; and by a graph: "), launch_failure);
    // Extents that cuDNN's older functions do not count: our own kernel.
    pooling const large{.n = 1 << 16, .channels = 1 << 10, .size = {8, 8}, .window = {2, 2}, .stride = {2, 2}, .result = {4, 4}, .type = dtype::f16};
    auto const pool = make_runner(none, launch{large});
    CHECK(pool->account() == "own pooling nhwc (in place of cudnn: " + pool->refusal() + ")");
    CHECK(pool->refusal().find("4294967296") != std::string::npos);
}

TEST_CASE("normalizations with sums are run by our own kernels, of the arrays that they need") {
    run_context const none{};
    auto const data = [](array_spec const& a) { return a.type == dtype::bf16 && a.elements == 4 * 8; };
    for (normalization_kind const kind : {normalization_kind::layer, normalization_kind::rms})
        for (bool const backward : {false, true})
            for (bool const dropout : {false, true})
                for (bool const sum : {true, false}) {
                    normalization n{.kind = kind, .backward = backward, .n = 4, .channels = 8, .type = dtype::bf16};
                    std::size_t const plain = n.kind == normalization_kind::rms ? (backward ? 6 : 4) : (backward ? 8 : 6);
                    n.sum = sum;
                    n.dropout = dropout;
                    CAPTURE(describe(n));
                    if (!sum && (!dropout || !backward)) {
                        if (dropout) CHECK_THROWS_AS((void)make_runner(none, launch{n}), launch_failure); // nothing to sum
                        continue;
                    }
                    auto const r = make_runner(none, launch{n});
                    CHECK(r->account() == (sum && dropout ? "own normalization with sum and dropout"
                                           : sum          ? "own normalization with sum"
                                                          : "own normalization with dropout"));
                    auto const arrays = r->arrays();
                    // Forward x, y, residual and sum, backward x, dy, dx, another gradient and what dropout leaves.
                    CHECK(std::ranges::count_if(arrays, data) == (backward ? 3 + sum + dropout : 4));
                    CHECK(std::ranges::count(arrays, dtype::i8, &array_spec::type) == dropout);
                    std::size_t const further = sum ? 1 : 0, masked = dropout ? 1 : 0;
                    CHECK(arrays.size() == plain + (backward ? further + 2 * masked : 2 + masked));
                }
}

TEST_CASE("a graph that fails when it is tried asks for the other form, once") {
    struct failing final : runner {
        void choose(run_context const&, buffer_set const&) override { throw launch_failure("no engine of cuDNN runs"); }
        void enqueue(run_context const&, buffer_set const&) override {}
        std::string choice() const override { return "x"; }
    } r;
    auto const tried = [&](launch const& l) {
        try {
            try_out(l, r, [&] { r.choose({}, {}); });
        } catch (graph_failure const& e) {
            CHECK(e.refused == l);
            CHECK(std::string(e.what()) == "no engine of cuDNN runs");
            return true;
        } catch (launch_failure const&) {
            return false;
        }
        return false;
    };
    CHECK(tried(attention{.type = dtype::bf16}));
    CHECK(tried(normalization{}));
    CHECK_FALSE(tried(normalization{.sum = true}));
    CHECK_FALSE(tried(attention{.type = dtype::f32}));
    CHECK_FALSE(tried(convolution{}));
    CHECK_FALSE(tried(matmul{}));
    r.set_refusal("it failed before");
    CHECK_FALSE(tried(normalization{}));
    CHECK_NOTHROW(try_out(launch{normalization{}}, r, [] {}));
}
