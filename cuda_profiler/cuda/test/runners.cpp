/// Every runner on a GPU against the CPU references. Outputs are made NaN first, so that what is not written is seen.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "describe.hpp"
#include "devices.hpp"
#include "graphs.hpp"
#include "profiler/test/reference.hpp"
#include "support.hpp"

using namespace parsearch;
using namespace parsearch::profiler;
using namespace parsearch::profiler::testing;

namespace {

constexpr std::array<dtype, 4> types{dtype::f32, dtype::tf32, dtype::f16, dtype::bf16};

/// Of the norm of the difference to that of the reference.
double tolerance(dtype t) {
    switch (t) {
    case dtype::f64: return 1e-10;
    case dtype::f32: return 2e-5;
    case dtype::tf32: return 3e-3;
    case dtype::f16: return 5e-3;
    case dtype::bf16: return 4e-2;
    default: return 0;
    }
}

double number(dtype t, std::byte const* p) {
    auto const as = [p](auto v) {
        std::memcpy(&v, p, sizeof v);
        return v;
    };
    switch (t) {
    case dtype::f64: return as(double{});
    case dtype::f32:
    case dtype::tf32: return static_cast<double>(as(float{}));
    case dtype::f16: return static_cast<double>(__half2float(as(__half{})));
    case dtype::bf16: return static_cast<double>(__bfloat162float(as(__nv_bfloat16{})));
    case dtype::i64: return static_cast<double>(as(std::int64_t{}));
    case dtype::i32: return as(std::int32_t{});
    case dtype::i8: return as(std::int8_t{});
    }
    return 0;
}

/// Stores `v` as an element of a floating-point type of 32 or 16 bits.
void store(dtype t, std::byte* p, float v) {
    auto const as = [p](auto e) { std::memcpy(p, &e, sizeof e); };
    if (t == dtype::f16) as(__float2half(v));
    else if (t == dtype::bf16) as(__float2bfloat16(v));
    else as(v);
}

/// A launch that is ready on the device.
class trial {
  public:
    explicit trial(launch const& l, refused_graphs refused = {}) : sequence_(*session(), std::span(&l, 1), std::move(refused)), what_(describe(l)) {}
    numbers operator[](std::size_t array) {
        array_spec const s = spec(array);
        std::vector<std::byte> raw(s.bytes());
        check(cudaMemcpy(raw.data(), sequence_.array(0, array), raw.size(), cudaMemcpyDeviceToHost), "cudaMemcpy", what_);
        numbers v(static_cast<std::size_t>(s.elements));
        for (std::size_t i = 0; i < v.size(); ++i) v[i] = number(s.type, raw.data() + i * static_cast<std::size_t>(ops::size_of(s.type)));
        return v;
    }
    /// Makes the arrays NaN and runs once, in the session's stream, which waits for no other.
    void run(std::initializer_list<std::size_t> outputs) {
        for (std::size_t const o : outputs)
            check(cudaMemsetAsync(sequence_.array(0, o), 0xff, spec(o).bytes(), session()->context().stream), "cudaMemsetAsync", what_);
        sequence_.run_once();
    }
    /// Writes `v` into an array of elements of `type`, and makes again what the launch finds of another pass.
    void put(std::size_t array, numbers const& v) {
        array_spec const s = spec(array);
        REQUIRE(v.size() == static_cast<std::size_t>(s.elements));
        auto const size = static_cast<std::size_t>(ops::size_of(s.type));
        std::vector<std::byte> raw(s.bytes());
        for (std::size_t i = 0; i < v.size(); ++i) store(s.type, raw.data() + i * size, static_cast<float>(v[i]));
        check(cudaMemcpy(sequence_.array(0, array), raw.data(), raw.size(), cudaMemcpyHostToDevice), "cudaMemcpy", what_);
        std::vector<void*> all;
        for (std::size_t i = 0; i < sequence_.of(0).arrays().size(); ++i) all.push_back(sequence_.array(0, i));
        sequence_.of(0).initialize(session()->context(), {0, all, nullptr});
        check(cudaStreamSynchronize(session()->context().stream), "cudaStreamSynchronize", what_);
    }
    array_spec spec(std::size_t array) { return sequence_.of(0).arrays()[array]; }
    void* address(std::size_t array) { return sequence_.array(0, array); }
    std::string choices() const { return sequence_.choices(); }
    bool nhwc() const { return choices().find("nhwc") != std::string::npos; }

  private:
    cuda_sequence sequence_;
    std::string what_;
};

/// A launch that a library may refuse to run, which is said: then null.
std::unique_ptr<trial> if_run(launch const& l) {
    try {
        return std::make_unique<trial>(l);
    } catch (launch_failure const& e) {
        MESSAGE("refused: ", e.what());
        return nullptr;
    }
}

void compare(std::string const& what, numbers const& got, numbers const& wanted, double limit) {
    INFO(what);
    REQUIRE(got.size() == wanted.size());
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        difference += (got[i] - wanted[i]) * (got[i] - wanted[i]);
        norm += wanted[i] * wanted[i];
    }
    double const error = std::sqrt(difference / std::max(norm, 1e-30));
    CHECK(error <= limit); // NaN is not
}

/// [n, channels, rest...] of an array that lies channels last, and back.
numbers channels_first(numbers const& v, std::int64_t n, std::int64_t channels) {
    return permuted(permutation{{n, static_cast<std::int64_t>(v.size()) / n / channels, channels}, {0, 2, 1}}, v);
}

std::vector<std::int32_t> integers(numbers const& v) { return {v.begin(), v.end()}; }

} // namespace

TEST_SUITE("device") {

    TEST_CASE("matmul") {
        if (!session()) return;
        for (dtype const type : {dtype::f32, dtype::tf32, dtype::f16, dtype::bf16, dtype::f64})
            for (bool const ta : {false, true})
                for (bool const tb : {false, true})
                    for (bool const bias : {false, true})
                        for (std::int64_t const batch : {1, 3}) {
                            matmul const m{
                                .batch = batch, .m = 24, .n = 40, .k = 56, .transpose_a = ta, .transpose_b = tb, .bias = bias, .type = type};
                            trial t(m);
                            t.run({2});
                            compare(describe(m), t[2], product(m, t[0], t[1], bias ? t[3] : numbers{}), tolerance(type));
                        }
        // Epilogues, by cuBLASLt and, of 3 columns, by our own kernel.
        for (dtype const type : {dtype::f32, dtype::tf32, dtype::f16, dtype::bf16, dtype::f64})
            for (auto const then : {activation::relu, activation::gelu})
                for (bool const bias : {false, true})
                    for (std::int64_t const batch : {1, 3})
                        for (std::int64_t const n : {40, 3}) {
                            matmul const m{.batch = batch, .m = 24, .n = n, .k = 56, .transpose_b = true, .bias = bias, .then = then, .type = type};
                            trial t(m);
                            std::size_t const kept = bias ? 4 : 3;
                            if (then == activation::gelu) t.run({2, kept});
                            else t.run({2});
                            numbers const sum = product(m, t[0], t[1], bias ? t[3] : numbers{});
                            compare(describe(m), t[2], activated(then, sum), tolerance(type));
                            if (then == activation::gelu) compare("what it is a function of", t[kept], sum, tolerance(type));
                            CAPTURE(t.choices());
                            CHECK(t.choices().find(name_of(then)) != std::string::npos);
                        }
        matmul const odd{.m = 5, .n = 3, .k = 7, .type = dtype::f16};
        trial t(odd);
        t.run({2});
        compare(describe(odd), t[2], product(odd, t[0], t[1], {}), tolerance(dtype::f16));
    }

    TEST_CASE("epilogue by our own kernel") {
        if (!session()) return;
        constexpr std::int64_t rows = 37, columns = 19, elements = rows * columns;
        run_context const& c = session()->context();
        for (dtype const type : {dtype::f32, dtype::f16, dtype::bf16, dtype::f64}) {
            auto const size = static_cast<std::size_t>(ops::size_of(type));
            device_memory const result(elements * size, "a test"), bias(columns * size, "a test"), kept(elements * size, "a test");
            auto const read = [&](device_memory const& from) {
                check(cudaStreamSynchronize(c.stream), "cudaStreamSynchronize", "a test");
                std::vector<std::byte> raw(from.bytes());
                check(cudaMemcpy(raw.data(), from.get(), raw.size(), cudaMemcpyDeviceToHost), "cudaMemcpy", "a test");
                numbers v;
                for (std::size_t i = 0; i < raw.size(); i += size) v.push_back(number(type, raw.data() + i));
                return v;
            };
            fill(c.stream, bias.get(), content::random, type, columns, 0, 2, c.multiprocessors, "a test");
            for (auto const then : {activation::none, activation::relu, activation::gelu})
                for (bool const with_bias : {false, true})
                    for (bool const keeps : {false, true}) {
                        fill(c.stream, result.get(), content::random, type, elements, 0, 1, c.multiprocessors, "a test");
                        numbers sum = read(result);
                        numbers const added = read(bias);
                        if (with_bias)
                            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += added[i % added.size()];
                        check(cudaMemsetAsync(kept.get(), 0xff, kept.bytes(), c.stream), "cudaMemsetAsync", "a test");
                        run_epilogue(c.stream, then, type, result.get(), with_bias ? bias.get() : nullptr, keeps ? kept.get() : nullptr, rows,
                                     columns, c.multiprocessors, "a test");
                        compare(text(ops::name_of(type), ' ', name_of(then)), read(result), activated(then, sum), tolerance(type));
                        if (keeps) compare("the sum", read(kept), sum, tolerance(type));
                    }
        }
    }

    TEST_CASE("convolution") {
        if (!session()) return;
        for (dtype const type : types)
            for (convolution_pass const pass : {convolution_pass::forward, convolution_pass::data_gradient, convolution_pass::filter_gradient})
                for (std::int64_t const groups : {1, 2})
                    for (std::int64_t const front : {1, 0, -1}) {
                        convolution const given{.pass = pass,
                                                .n = 2,
                                                .groups = groups,
                                                .in = 8,
                                                .out = 16,
                                                .size = {10, 9},
                                                .kernel = {3, 3},
                                                .stride = {2, 1},
                                                .padding = {front, 1},
                                                .padding_end = {1, 1},
                                                .result = {(10 + front + 1 - 3) / 2 + 1, 9},
                                                .type = type};
                        convolution const c = normalized(given);
                        trial t(given);
                        CAPTURE(t.choices());
                        std::size_t const out = pass == convolution_pass::forward ? 2 : pass == convolution_pass::data_gradient ? 0 : 1;
                        t.run({out});
                        auto const array = [&](std::size_t i) {
                            numbers v = t[i];
                            return t.nhwc() ? channels_first(v, i == 1 ? groups * c.out : c.n,
                                                             i == 0   ? groups * c.in
                                                             : i == 1 ? c.in
                                                                      : groups * c.out)
                                            : v;
                        };
                        std::size_t const first = out == 0 ? 1 : 0, second = out == 2 ? 1 : 2;
                        compare(describe(given), array(out), convolved(c, array(first), array(second)), tolerance(type));
                    }
    }

    TEST_CASE("pooling") {
        if (!session()) return;
        for (dtype const type : types)
            for (bool const average : {false, true})
                for (bool const backward : {false, true}) {
                    pooling const p{.average = average,
                                    .backward = backward,
                                    .n = 2,
                                    .channels = 8,
                                    .size = {8, 6},
                                    .window = {3, 2},
                                    .stride = {2, 2},
                                    .padding = {1, 0},
                                    .padding_end = {0, 0},
                                    .result = {4, 3},
                                    .type = type};
                    trial t(p);
                    CAPTURE(t.choices());
                    std::size_t const out = backward ? 3 : 1;
                    bool const last = type != dtype::f32;
                    // Which of equal elements cuDNN pays is not said: no two of a map are equal, and every type has them exactly.
                    numbers x(static_cast<std::size_t>(p.n * p.channels * p.size[0] * p.size[1]));
                    for (std::size_t i = 0; i < x.size(); ++i) {
                        std::size_t const place = last ? i / 8 % 48 : i % 48;
                        x[i] = (static_cast<double>(place * 29 % 48) - 23.5) / 32;
                    }
                    t.put(0, x);
                    t.run({out});
                    auto const array = [&](std::size_t i) { return last ? channels_first(t[i], p.n, p.channels) : t[i]; };
                    compare(describe(p), array(out), pooled(p, array(0), backward ? array(2) : numbers{}), tolerance(type));
                }
    }

    TEST_CASE("pooling by our own kernels") {
        if (!session()) return;
        for (dtype const type : types)
            for (bool const average : {false, true})
                for (bool const backward : {false, true})
                    for (bool const last : {false, true}) {
                        pooling const p{.average = average,
                                        .backward = backward,
                                        .n = 2,
                                        .channels = 8,
                                        .size = {8, 6},
                                        .window = {3, 2},
                                        .stride = {2, 2},
                                        .padding = {1, 0},
                                        .padding_end = {0, 0},
                                        .result = {4, 3},
                                        .type = type};
                        pooling forward = p;
                        forward.backward = false;
                        trial t([&] { // for its arrays
                            pooling four = p;
                            four.backward = true;
                            return four;
                        }());
                        run_context const& c = session()->context();
                        run_pooling(c.stream, forward, last, t.address(0), t.address(1), nullptr, nullptr, c.multiprocessors, "a test");
                        if (backward)
                            run_pooling(c.stream, p, last, t.address(0), t.address(1), t.address(2), t.address(3), c.multiprocessors, "a test");
                        check(cudaStreamSynchronize(c.stream), "cudaStreamSynchronize", "a test");
                        auto const array = [&](std::size_t i) { return last ? channels_first(t[i], p.n, p.channels) : t[i]; };
                        compare(describe(p), array(backward ? 3 : 1), pooled(p, array(0), backward ? array(2) : numbers{}), tolerance(type));
                    }
    }

    TEST_CASE("softmax") {
        if (!session()) return;
        for (dtype const type : {dtype::f64, dtype::f32, dtype::tf32, dtype::f16, dtype::bf16})
            for (bool const backward : {false, true})
                for (std::int64_t const columns : {1, 37, 64, 1001, 1504, 9001, 20000}) { // a warp or a block for a row, single elements or groups
                    softmax const s{.backward = backward, .rows = 12, .columns = columns, .type = type};
                    trial t(s);
                    std::size_t const out = backward ? 2 : 1;
                    t.run({out});
                    compare(describe(s), t[out], softmaxed(s, t[0], backward ? t[1] : numbers{}), tolerance(type));
                }
    }

    TEST_CASE("normalization") {
        if (!session()) return;
        std::vector<launch> all;
        for (dtype const type : {dtype::f64, dtype::f32, dtype::tf32, dtype::f16, dtype::bf16})
            for (normalization_kind const kind : {normalization_kind::batch, normalization_kind::layer, normalization_kind::rms})
                for (bool const backward : {false, true})
                    for (std::int64_t const channels : {64, 3})
                        all.push_back(normalization{.kind = kind,
                                                    .backward = backward,
                                                    .n = 16,
                                                    .channels = channels,
                                                    .inner = kind == normalization_kind::batch ? 6 : 1,
                                                    .type = type});
        // cuDNN compiles for a second each: one after the other that takes minutes.
        session()->foresee(all, [] { return false; });
        for (launch const& l : all) {
            auto const& n = std::get<normalization>(l);
            auto const [kind, backward, channels, type] = std::tuple(n.kind, n.backward, n.channels, n.type);
            bool const batch = kind == normalization_kind::batch, rms = kind == normalization_kind::rms;
            // Only the older functions take so few channels, or f64, and not of every type; rows have our own kernels.
            bool const may_be_refused = batch && type != dtype::f32 && (channels == 3 || type == dtype::f64);
            auto const made = may_be_refused ? if_run(n) : std::make_unique<trial>(n);
            if (!made) continue;
            trial& t = *made;
            CAPTURE(t.choices());
            bool const last = batch && t.choices().find("nchw") == std::string::npos; // graphs lie channels last
            auto const data = [&](std::size_t i) { return last ? channels_first(t[i], n.n, n.channels) : t[i]; };
            std::string const what = describe(n);
            // How cuDNN adds up f64 is its own affair.
            double const limit = batch ? std::max(tolerance(type), 1e-6) : tolerance(type);
            if (!backward) {
                std::size_t const y = rms ? 2 : 3;
                t.run({y, y + 1});
                auto const r = normalized_of(n, data(0), t[1], rms ? numbers{} : t[2], {});
                compare(what, data(y), r.y, limit);
                if (!rms) compare(what + " mean", t[4], r.mean, 1e-4);
                compare(what + " deviation", t[rms ? 3 : 5], r.deviation, 1e-3);
                continue;
            }
            std::size_t const dx = rms ? 4 : 5;
            t.run({dx, dx + 1});
            auto const r = normalized_of(n, data(0), t[2], {}, data(1));
            compare(what + " statistics", t[dx - 1], r.deviation, 1e-3);
            compare(what + " dx", data(dx), r.dx, limit);
            compare(what + " dscale", t[dx + 1], r.dscale, limit);
            if (!rms) compare(what + " dbias", t[dx + 2], r.dbias, limit);
        }
    }

    TEST_CASE("normalization of rows by our own kernels") {
        if (!session()) return;
        for (dtype const type : {dtype::f64, dtype::f32, dtype::f16, dtype::bf16})
            for (normalization_kind const kind : {normalization_kind::layer, normalization_kind::rms})
                for (bool const backward : {false, true})
                    for (std::int64_t const channels : {3, 64, 1001, 1504, 9001}) {
                        bool const rms = kind == normalization_kind::rms;
                        normalization const n{.kind = kind, .backward = backward, .n = 70, .channels = channels, .type = type};
                        trial t(n, {{n, "a test"}});
                        CHECK(t.choices() == "own normalization (in place of cudnn: a test)");
                        std::string const what = describe(n);
                        if (!backward) {
                            std::size_t const y = rms ? 2 : 3;
                            if (rms) t.run({y, y + 1});
                            else t.run({y, y + 1, y + 2});
                            auto const r = normalized_of(n, t[0], t[1], rms ? numbers{} : t[2], {});
                            compare(what, t[y], r.y, tolerance(type));
                            if (!rms) compare(what + " mean", t[4], r.mean, 1e-4);
                            compare(what + " deviation", t[rms ? 3 : 5], r.deviation, 1e-3);
                            continue;
                        }
                        std::size_t const dx = rms ? 4 : 5;
                        if (rms) t.run({dx, dx + 1});
                        else t.run({dx, dx + 1, dx + 2});
                        auto const r = normalized_of(n, t[0], t[2], {}, t[1]);
                        compare(what + " dx", t[dx], r.dx, tolerance(type));
                        compare(what + " dscale", t[dx + 1], r.dscale, tolerance(type));
                        if (!rms) compare(what + " dbias", t[dx + 2], r.dbias, tolerance(type));
                    }
    }

    TEST_CASE("normalization of rows of sums, with dropout and without") {
        if (!session()) return;
        for (dtype const type : {dtype::f64, dtype::f32, dtype::f16, dtype::bf16})
            for (normalization_kind const kind : {normalization_kind::layer, normalization_kind::rms})
                for (bool const dropout : {false, true})
                    for (std::int64_t const channels : {3, 64, 1001, 1504, 9001}) {
                        bool const rms = kind == normalization_kind::rms;
                        normalization n{.kind = kind, .n = 70, .channels = channels, .type = type, .sum = true, .dropout = dropout};
                        std::string what = describe(n);
                        auto const through = [](numbers const& mask, numbers v) {
                            for (std::size_t i = 0; i < v.size(); ++i) v[i] *= mask[i] * dropout_scale;
                            return v;
                        };
                        auto const plus = [](numbers v, numbers const& w) {
                            for (std::size_t i = 0; i < v.size(); ++i) v[i] += w[i];
                            return v;
                        };
                        {
                            trial t(n);
                            CHECK(t.choices() == (dropout ? "own normalization with sum and dropout" : "own normalization with sum"));
                            std::size_t const y = rms ? 2 : 3, residual = rms ? 4 : 6, sum = residual + 1, mask = sum + 1;
                            if (dropout) t.run({y, y + 1, sum, mask});
                            else t.run({y, y + 1, sum});
                            numbers x = t[0];
                            if (dropout) {
                                numbers const kept = t[mask];
                                CHECK(kept == [&] {
                                    numbers v;
                                    for (std::int64_t i = 0; i < std::ssize(x); ++i) v.push_back(kept_by_dropout(dropout_number(i), i) ? 1 : 0);
                                    return v;
                                }());
                                x = through(kept, std::move(x));
                            }
                            compare(what + " sum", t[sum], plus(std::move(x), t[residual]), tolerance(type));
                            auto const r = normalized_of(n, t[sum], t[1], rms ? numbers{} : t[2], {});
                            compare(what, t[y], r.y, tolerance(type));
                            if (!rms) compare(what + " mean", t[4], r.mean, 1e-4);
                            compare(what + " deviation", t[rms ? 3 : 5], r.deviation, 1e-3);
                        }
                        n.backward = true;
                        for (bool const passed_on : {false, true}) {
                            n.sum = passed_on;
                            if (!n.sum && !n.dropout) continue; // as without a sum
                            trial t(n);
                            what = describe(n);
                            std::size_t const dx = rms ? 4 : 5, more = rms ? 6 : 8, mask = more + (passed_on ? 1 : 0), dropped = mask + 1;
                            if (dropout) t.run({dx, dx + 1, dropped});
                            else t.run({dx, dx + 1});
                            auto const r = normalized_of(n, t[0], t[2], {}, t[1]);
                            numbers const wanted = passed_on ? plus(r.dx, t[more]) : r.dx;
                            compare(what + " dx", t[dx], wanted, tolerance(type));
                            if (dropout) compare(what + " dropped", t[dropped], through(t[mask], wanted), tolerance(type));
                            compare(what + " dscale", t[dx + 1], r.dscale, tolerance(type));
                            if (!rms) compare(what + " dbias", t[dx + 2], r.dbias, tolerance(type));
                        }
                    }
    }

    TEST_CASE("attention that is refused its graph is composed") {
        if (!session()) return;
        attention const a{.batch = 2, .heads = 4, .kv_heads = 2, .queries = 64, .keys = 64, .size = 32, .value_size = 32, .type = dtype::f16};
        trial t(a, {{a, "a test"}});
        CHECK(t.choices().starts_with("attention composed of"));
        CHECK(t.choices().ends_with("(in place of cudnn: a test)"));
        t.run({3});
        compare(t.choices(), t[3], attend(a, t[0], t[1], t[2], {}).o, tolerance(dtype::f16));
    }

    TEST_CASE("attention, fused and composed") {
        if (!session()) return;
        for (dtype const type : types)
            for (bool const causal : {false, true})
                for (bool const backward : {false, true})
                    for (std::int64_t const size : {32, 20}) { // engines want a size that 8 divides; else the composed form
                        attention const a{.backward = backward,
                                          .causal = causal,
                                          .batch = 2,
                                          .heads = 4,
                                          .kv_heads = 2,
                                          .queries = 64,
                                          .keys = 64,
                                          .size = size,
                                          .value_size = size,
                                          .type = type};
                        trial t(a);
                        std::string const what = text(describe(a), ": ", t.choices());
                        bool const composed = t.choices().starts_with("attention composed");
                        if (!backward) {
                            t.run({3});
                            compare(what, t[3], attend(a, t[0], t[1], t[2], {}).o, tolerance(type));
                            continue;
                        }
                        std::size_t const d_o = composed ? 3 : 4, dq = composed ? 5 : 6;
                        t.run({dq, dq + 1, dq + 2});
                        attended const r = attend(a, t[0], t[1], t[2], t[d_o]);
                        compare(what + " dq", t[dq], r.dq, 2 * tolerance(type));
                        compare(what + " dk", t[dq + 1], r.dk, 2 * tolerance(type));
                        compare(what + " dv", t[dq + 2], r.dv, 2 * tolerance(type));
                    }
    }

    namespace {

    /// Where the weights of a layer are in its opaque array: offsets in elements of w, r, b, c of every gate.
    struct weight_places {
        std::vector<std::size_t> w{}, r{}, b{}, c{};
    };
    weight_places places_of(recurrent const& r, std::size_t bytes) {
        weight_places p;
        cudnnHandle_t const handle = session()->context().cudnn;
        owned<cudnnDropoutDescriptor_t, &cudnnDestroyDropoutDescriptor> dropout;
        owned<cudnnRNNDescriptor_t, &cudnnDestroyRNNDescriptor> layer;
        owned<cudnnTensorDescriptor_t, &cudnnDestroyTensorDescriptor> matrix, vector;
        REQUIRE(cudnnCreateDropoutDescriptor(dropout.out()) == CUDNN_STATUS_SUCCESS);
        REQUIRE(cudnnSetDropoutDescriptor(dropout.get(), handle, 0, nullptr, 0, 0) == CUDNN_STATUS_SUCCESS);
        REQUIRE(cudnnCreateRNNDescriptor(layer.out()) == CUDNN_STATUS_SUCCESS);
        REQUIRE(cudnnCreateTensorDescriptor(matrix.out()) == CUDNN_STATUS_SUCCESS);
        REQUIRE(cudnnCreateTensorDescriptor(vector.out()) == CUDNN_STATUS_SUCCESS);
        cudnnRNNMode_t const cell = r.cell == cell_kind::lstm ? CUDNN_LSTM : r.cell == cell_kind::gru ? CUDNN_GRU : CUDNN_RNN_TANH;
        auto const features = static_cast<int>(r.features), hidden = static_cast<int>(r.hidden);
        REQUIRE(cudnnSetRNNDescriptor_v8(layer.get(), CUDNN_RNN_ALGO_STANDARD, cell, r.bias ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_NO_BIAS,
                                         CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, cudnn_type(r.type, "a test"), CUDNN_DATA_FLOAT, CUDNN_FMA_MATH,
                                         features, hidden, hidden, 1, dropout.get(), CUDNN_RNN_PADDED_IO_ENABLED) == CUDNN_STATUS_SUCCESS);
        device_memory const space(bytes, "a test");
        auto const* const base = static_cast<std::byte const*>(space.get());
        auto const offset = [&](void const* address) {
            return static_cast<std::size_t>(static_cast<std::byte const*>(address) - base) / static_cast<std::size_t>(ops::size_of(r.type));
        };
        int const gates = gates_of(r.cell);
        for (int i = 0; i < 2 * gates; ++i) {
            void *m = nullptr, *v = nullptr;
            REQUIRE(cudnnGetRNNWeightParams(handle, layer.get(), 0, bytes, space.get(), i, matrix.get(), &m, vector.get(), &v) ==
                    CUDNN_STATUS_SUCCESS);
            (i < gates ? p.w : p.r).push_back(offset(m));
            (i < gates ? p.b : p.c).push_back(v != nullptr ? offset(v) : 0);
        }
        return p;
    }
    cell_weights weights_at(recurrent const& r, weight_places const& p, numbers const& all) {
        cell_weights w;
        auto const cut = [&](std::size_t from, std::int64_t n) {
            return numbers(all.begin() + static_cast<std::ptrdiff_t>(from), all.begin() + static_cast<std::ptrdiff_t>(from) + n);
        };
        for (std::size_t g = 0; g < p.w.size(); ++g) {
            w.w.push_back(cut(p.w[g], r.hidden * r.features));
            w.r.push_back(cut(p.r[g], r.hidden * r.hidden));
            w.b.push_back(cut(p.b[g], r.bias ? r.hidden : 0));
            w.c.push_back(cut(p.c[g], r.bias ? r.hidden : 0));
        }
        return w;
    }

    } // namespace

    TEST_CASE("recurrent layers") {
        if (!session()) return;
        for (dtype const type : types)
            for (cell_kind const cell : {cell_kind::lstm, cell_kind::gru, cell_kind::rnn})
                for (bool const bias : {true, false})
                    for (bool const backward : {false, true}) {
                        recurrent const r{
                            .cell = cell, .backward = backward, .samples = 2, .steps = 3, .features = 8, .hidden = 8, .bias = bias, .type = type};
                        auto const made = type == dtype::bf16 ? if_run(r) : std::make_unique<trial>(r); // not every version has layers of bf16
                        if (!made) continue;
                        trial& t = *made;
                        std::string const what = describe(r);
                        weight_places const places = places_of(r, t.spec(1).bytes());
                        numbers const x = t[0], w = t[1];
                        if (!backward) {
                            t.run({2});
                            compare(what, t[2], recur(r, x, weights_at(r, places, w)), tolerance(type));
                            continue;
                        }
                        t.run({6, 7});
                        numbers const dy = t[5];
                        // By central differences of the reference.
                        auto const loss = [&](numbers const& in, numbers const& weights) {
                            numbers const y = recur(r, in, weights_at(r, places, weights));
                            double sum = 0;
                            for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
                            return sum;
                        };
                        auto const slopes = [&](numbers v, auto f) {
                            numbers d(v.size());
                            for (std::size_t i = 0; i < v.size(); ++i) {
                                double const keep = v[i];
                                v[i] = keep + 1e-5;
                                double const up = f(v);
                                v[i] = keep - 1e-5;
                                d[i] = (up - f(v)) / 2e-5;
                                v[i] = keep;
                            }
                            return d;
                        };
                        compare(what + " dx", t[6], slopes(x, [&](numbers const& v) { return loss(v, w); }), 2 * tolerance(type));
                        compare(what + " dw", t[7], slopes(w, [&](numbers const& v) { return loss(x, v); }), 2 * tolerance(type));
                    }
    }

    TEST_CASE("streaming") {
        if (!session()) return;
        auto const check_one = [](streaming const& s, double limit) {
            trial t(s);
            std::size_t const reads = s.reads.size();
            for (std::size_t w = 0; w < s.writes.size(); ++w) t.run({reads + w});
            t.run({});
            std::int64_t longest = 0;
            for (auto const* all : {&s.reads, &s.writes})
                for (stream const& a : *all) longest = std::max(longest, a.elements);
            numbers sum(static_cast<std::size_t>(longest), s.reads.empty() ? 1 : 0);
            for (std::size_t a = 0; a < reads; ++a) {
                numbers const v = t[a];
                for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += v[i % v.size()];
            }
            for (double& v : sum)
                for (std::int64_t k = 0; k < fmas_of(s); ++k) v = v / 2 + 0.25;
            for (std::size_t w = 0; w < s.writes.size(); ++w) {
                numbers const got = t[reads + w];
                compare(describe(s), got, numbers(sum.begin(), sum.begin() + static_cast<std::ptrdiff_t>(got.size())), limit);
            }
        };
        for (dtype const type : {dtype::f64, dtype::f32, dtype::f16, dtype::bf16})
            for (std::int64_t const n : {1, 1000, 4096, 100003})
                for (std::size_t reads = 0; reads <= 6; ++reads)
                    for (std::size_t writes = 1; writes <= 3; ++writes)
                        check_one({.reads = std::vector<stream>(reads, {n, type}), .writes = std::vector<stream>(writes, {n, type}), .flops = 5},
                                  tolerance(type));
        check_one({.reads = {{1000, dtype::f16}, {40, dtype::f32}, {7, dtype::bf16}},
                   .writes = {{1000, dtype::f32}, {500, dtype::f16}, {3, dtype::f64}},
                   .flops = 2},
                  tolerance(dtype::f16));
        check_one({.reads = {{999, dtype::i32}, {999, dtype::i8}}, .writes = {{999, dtype::i64}}, .flops = 1}, 0);
        trial alone(streaming{.reads = {{5000, dtype::f32}}, .writes = {}}); // runs, and writes nothing
        alone.run({});
        CHECK(alone[1] == numbers{0});
    }

    TEST_CASE("reduction") {
        if (!session()) return;
        for (dtype const type : {dtype::f64, dtype::f32, dtype::f16, dtype::bf16, dtype::i32, dtype::i64})
            for (auto const& [outer, summed, inner] :
                 {std::array<std::int64_t, 3>{1, 1, 1}, {1, 100000, 1}, {300, 77, 1}, {3, 5, 7}, {1, 5000, 64}, {2, 4097, 3}}) {
                reduction const r{.outer = outer, .summed = summed, .inner = inner, .type = type};
                trial t(r);
                t.run({1});
                // Odd numbers of both signs cancel: errors are measured against the sum of the absolute values.
                numbers const x = t[0], got = t[1], wanted = testing::summed(r, x);
                numbers sizes = x;
                for (double& v : sizes) v = std::abs(v);
                numbers const whole = testing::summed(r, sizes);
                INFO(describe(r));
                for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - wanted[i]) <= tolerance(type) * whole[i]);
            }
    }

    TEST_CASE("permutation") {
        if (!session()) return;
        for (dtype const type : {dtype::i8, dtype::f16, dtype::f32, dtype::f64})
            for (permutation p : {permutation{{2, 3}, {1, 0}},
                                  {{64, 33, 5}, {0, 2, 1}},
                                  {{64, 33, 5}, {2, 1, 0}},
                                  {{3, 40, 8}, {1, 0, 2}},
                                  {{7}, {0}},
                                  {{2, 50, 3, 16}, {0, 2, 1, 3}},
                                  {{5, 100, 70}, {0, 2, 1}}}) {
                p.type = type;
                trial t(p);
                t.run({1});
                CHECK(t[1] == permuted(p, t[0]));
            }
    }

    TEST_CASE("lookup") {
        if (!session()) return;
        for (dtype const type : {dtype::f64, dtype::f32, dtype::f16, dtype::bf16})
            for (bool const backward : {false, true})
                for (std::int64_t const width : {64, 6, 5})
                    for (std::int64_t const bag : {1, 4}) {
                        lookup const l{.backward = backward, .rows = 50, .width = width, .lookups = 40, .bag = bag, .type = type};
                        trial t(l);
                        // Preparing has run the launch? It has not: there is nothing to choose. The table is as it was filled.
                        numbers const table = t[0], dy = t[2];
                        if (backward) t.run({});
                        else t.run({2});
                        compare(describe(l), t[backward ? 0 : 2], looked_up(l, table, integers(t[1]), dy), tolerance(type));
                    }
    }

    TEST_CASE("optimizer update") {
        if (!session()) return;
        std::vector<std::vector<std::int64_t>> cases{{1001}, {3, 1, 70000, 4}, {}};
        for (std::int64_t i = 0; i < 2 * most_adam_sets + 3; ++i) cases.back().push_back(1 + i * i % 300); // three kernels
        for (auto const& sizes : cases) {
            optimizer_update all;
            for (std::int64_t const n : sizes) all.sets.push_back({.flops = 12 * n, .bytes = 28 * n});
            trial t(all);
            std::vector<numbers> before;
            for (std::size_t i = 0; i < 4 * sizes.size(); ++i) before.push_back(t[i]);
            t.run({});
            for (std::size_t s = 0; s < sizes.size(); ++s) {
                CAPTURE(s);
                numbers w = before[4 * s], m = before[4 * s + 1], v = before[4 * s + 2];
                numbers const& slope = before[4 * s + 3];
                for (std::size_t i = 0; i < w.size(); ++i) {
                    m[i] = 0.9 * m[i] + 0.1 * slope[i];
                    v[i] = 0.999 * v[i] + 0.001 * slope[i] * slope[i];
                    w[i] -= 1e-3 * m[i] / std::sqrt(v[i] + 1e-16);
                }
                compare("parameters", t[4 * s], w, 1e-5);
                compare("first moments", t[4 * s + 1], m, 1e-5);
                compare("second moments", t[4 * s + 2], v, 1e-5);
            }
        }
    }

    TEST_CASE("runs are timed, recorded or not, and give the same results in every set") {
        if (!session()) return;
        matmul const m{.m = 256, .n = 256, .k = 256, .type = dtype::f32};
        launch const l = m;
        cuda_sequence s(*session(), std::span(&l, 1));
        auto const fetched = [&](std::size_t array, std::size_t set) {
            std::vector<float> v(256 * 256);
            check(cudaMemcpy(v.data(), s.array(0, array, set), v.size() * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy", "a test");
            return v;
        };
        auto const every_set_is_right = [&] {
            numbers const a = [&] {
                auto const v = fetched(0, 0);
                return numbers(v.begin(), v.end());
            }();
            numbers const b = [&] {
                auto const v = fetched(1, 0);
                return numbers(v.begin(), v.end());
            }();
            numbers const wanted = product(m, a, b, {});
            std::vector<float> const first = fetched(2, 0);
            compare("set 0", numbers(first.begin(), first.end()), wanted, tolerance(dtype::f32));
            for (std::size_t k = 1; k < s.sets(); ++k) {
                CAPTURE(k);
                bool const same = fetched(2, k) == first; // NaN equals nothing
                CHECK(same);
            }
        };
        auto const forget = [&] {
            for (std::size_t k = 0; k < s.sets(); ++k)
                check(cudaMemsetAsync(s.array(0, 2, k), 0xff, 256 * 256 * sizeof(float), session()->context().stream), "cudaMemsetAsync", "a test");
        };
        CHECK(s.sets() > 1);
        forget();
        for (std::size_t k = 0; k < s.sets(); ++k) s.run_once(k);
        every_set_is_right();
        for (std::int64_t const runs : {1, 7, 100, 300, 1000}) { // recordings of several lengths
            forget();
            auto const all = static_cast<std::int64_t>(s.sets());
            CHECK(s.run((runs + all - 1) / all * all).count() > 0);
            CHECK(s.run(runs).count() > 0);
            every_set_is_right();
        }
        picoseconds const first = s.run(1), many = s.run(1000), again = s.run(1000);
        CHECK(first.count() > 0);
        CHECK(many.count() > 0);
        CHECK(again.count() > 0);
        CHECK(again.count() < 4 * many.count());
        CHECK(s.memory() > 0);
    }

    TEST_CASE("every set looks up rows of its own in a common table") {
        if (!session()) return;
        lookup const l{.rows = 200'000, .width = 64, .lookups = 500, .type = dtype::f32};
        launch const one = l;
        cuda_sequence s(*session(), std::span(&one, 1));
        REQUIRE(s.sets() > 1);
        auto const fetched = [&](auto zero, std::size_t array, std::size_t set) {
            std::vector<decltype(zero)> v(static_cast<std::size_t>(s.of(0).arrays()[array].elements));
            check(cudaMemcpy(v.data(), s.array(0, array, set), v.size() * sizeof zero, cudaMemcpyDeviceToHost), "cudaMemcpy", "a test");
            return v;
        };
        CHECK(s.run(static_cast<std::int64_t>(s.sets())).count() > 0);
        auto const before = fetched(std::int32_t{}, 1, 0);
        for (std::size_t const k : {std::size_t{0}, std::size_t{1}, s.sets() - 1}) {
            auto const indices = fetched(std::int32_t{}, 1, k);
            if (k > 0) CHECK((indices != before));
            auto const table = fetched(float{}, 0, k), y = fetched(float{}, 2, k);
            compare(text("set ", k), numbers(y.begin(), y.end()), looked_up(l, numbers(table.begin(), table.end()), indices, {}), 0);
        }
    }

    TEST_CASE("a delay keeps the device busy") {
        if (!session()) return;
        run_context const& c = session()->context();
        event_owner begin, end;
        check(cudaEventCreate(begin.out()), "cudaEventCreate", "a test");
        check(cudaEventCreate(end.out()), "cudaEventCreate", "a test");
        check(cudaEventRecord(begin.get(), c.stream), "cudaEventRecord", "a test");
        run_delay(c.stream, 3e-3, "a test");
        check(cudaEventRecord(end.get(), c.stream), "cudaEventRecord", "a test");
        check(cudaEventSynchronize(end.get()), "cudaEventSynchronize", "a test");
        float ms = 0;
        check(cudaEventElapsedTime(&ms, begin.get(), end.get()), "cudaEventElapsedTime", "a test");
        CHECK(ms > 2.5F);
        CHECK(ms < 50.0F);
    }

    TEST_CASE("what several streams record is replayed, all or none") {
        if (!session()) return;
        stream_owner other;
        check(cudaStreamCreateWithFlags(other.out(), cudaStreamNonBlocking), "cudaStreamCreateWithFlags", "a test");
        std::array const streams{session()->context().stream, other.get()};
        constexpr std::int64_t elements = 1000;
        device_memory const memory(2 * elements * sizeof(float), "a test");
        auto* const at = static_cast<float*>(memory.get());
        auto const write = [&](std::int64_t value) {
            for (std::size_t i = 0; i < 2; ++i)
                fill(streams[i], at + static_cast<std::int64_t>(i) * elements, content::constant, dtype::f32, elements,
                     value + static_cast<std::int64_t>(i), 0, 1, "a test");
        };
        auto const read = [&] {
            for (cudaStream_t const s : streams) check(cudaStreamSynchronize(s), "cudaStreamSynchronize", "a test");
            std::vector<float> v(2 * elements);
            check(cudaMemcpy(v.data(), at, v.size() * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy", "a test");
            return std::pair{v.front(), v.back()};
        };
        write(1);
        auto const ready = record(streams, [&] { write(5); });
        CHECK(read() == std::pair{1.F, 2.F}); // nothing has run
        REQUIRE(ready.size() == 2);
        for (std::size_t i = 0; i < 2; ++i) check(cudaGraphLaunch(ready[i].get(), streams[i]), "cudaGraphLaunch", "a test");
        CHECK(read() == std::pair{5.F, 6.F});
        CHECK(record(streams, [] { throw launch_failure("cannot be recorded"); }).empty());
        write(7);
        CHECK(read() == std::pair{7.F, 8.F}); // both streams run again
    }

    TEST_CASE("a group: collectives, small ones replayed") {
        if (!session()) return;
        if (cuda_device_count() < 2 || nccl_version().empty()) {
            MESSAGE("two devices and NCCL are needed");
            return;
        }
        std::array const ordinals{0, 1};
        std::unique_ptr<device_group> const group = open_cuda_group(ordinals);
        for (auto const k : {collective_kind::all_reduce, collective_kind::all_gather, collective_kind::reduce_scatter, collective_kind::all_to_all})
            for (byte_count const bytes : {byte_count{4096}, byte_count{64} << 20, byte_count{1}}) {
                (void)group->run(k, bytes, 8);
                series_time const t = group->run(k, bytes, 150); // in several parts
                CHECK(t.time.count() > 0);
                CHECK(t.replayed == (bytes <= 4096));
            }
    }

    TEST_CASE("what does not fit is refused, and the device lives on") {
        if (!session()) return;
        launch const l = streaming{.reads = {{std::int64_t{1} << 42, dtype::f32}}, .writes = {{1, dtype::f32}}};
        CHECK_THROWS_AS(cuda_sequence(*session(), std::span(&l, 1)), launch_failure);
        launch const small = softmax{.rows = 2, .columns = 2};
        CHECK_NOTHROW(cuda_sequence(*session(), std::span(&small, 1)));
    }

    TEST_CASE("a device: facts, copies, an iteration") {
        if (!session()) return;
        std::unique_ptr<device> const d = open_cuda_device(0);
        device_facts const f = d->facts();
        CHECK_FALSE(f.name.empty());
        CHECK(f.memory > 0);
        CHECK(f.libraries.contains("cudnn"));
        for (copy_kind const k : {copy_kind::host_to_device, copy_kind::device_to_host, copy_kind::device_to_device})
            for (byte_count const bytes :
                 {byte_count{1}, byte_count{1} << 20, byte_count{256} << 20, byte_count{4096}}) // the memory grows, and stays
                CHECK(d->copy(k, bytes, 3, 0).time.count() > 0);
        // 200 copies of 16 MiB are no faster than ten of 256 MiB, which the last cache does not hold, by more than a third.
        auto const rate = [&](byte_count bytes, std::int64_t times) {
            (void)d->copy(copy_kind::device_to_device, bytes, times, 0);
            return static_cast<double>(bytes * times) / to_seconds(d->copy(copy_kind::device_to_device, bytes, times, 0).time);
        };
        double const large = rate(byte_count{256} << 20, 10);
        CHECK(rate(byte_count{16} << 20, 200) < 1.34 * large);
        std::vector<std::vector<launch>> const kernels{{matmul{.m = 64, .n = 64, .k = 64}},
                                                       {softmax{.rows = 64, .columns = 64}, matmul{.m = 64, .n = 64, .k = 64}},
                                                       {lookup{.rows = 10, .width = 8, .lookups = 16}},
                                                       {recurrent{.backward = true, .samples = 2, .steps = 2, .features = 8, .hidden = 8}}};
        auto const times = d->run_in_order(kernels, 3);
        CHECK(times.size() == 3);
        for (picoseconds const t : times) CHECK(t.count() > 0);
    }

} // TEST_SUITE
