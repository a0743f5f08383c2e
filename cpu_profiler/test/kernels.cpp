// Every kernel against a reference in double precision. Results are made NaN first, so that what is not written is seen.

#include "cpu_profiler/kernel.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/error.hpp>

#include "cpu_profiler/cpu_device.hpp"
#include "cpu_profiler/sequence.hpp"
#include "profiler/launch_cost.hpp"
#include "profiler/test/reference.hpp"

using namespace parsearch;
using namespace parsearch::profiler;
using namespace parsearch::profiler::testing;

namespace {

/// A launch that is ready to run.
class trial {
  public:
    explicit trial(launch const& l) : sequence_(std::span(&l, 1), std::make_shared<core_use>()) {}

    void run(std::initializer_list<std::size_t> outputs) {
        for (auto const o : outputs) std::memset(sequence_.array(0, o), 0xff, spec(o).bytes());
        CHECK(sequence_.run(1) >= picoseconds::zero());
    }
    /// As it lies in memory.
    numbers operator[](std::size_t array) const {
        numbers out;
        auto const* const at = sequence_.array(0, array);
        auto const each = static_cast<std::size_t>(ops::size_of(spec(array).type));
        for (std::size_t i = 0; i < static_cast<std::size_t>(spec(array).elements); ++i) out.push_back(number(spec(array).type, at + i * each));
        return out;
    }
    /// In the order of oneDNN's axes, wherever its layout has put them.
    numbers in_order(std::size_t array) const {
        auto const from = spec(array).layout;
        auto const extents = from.dims();
        dnnl::memory::dims strides(extents.size(), 1);
        for (std::size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
        dnnl::memory::desc const to(extents, dnnl::memory::data_type::f32, strides);
        std::vector<float> values(to.get_size() / sizeof(float));
        dnnl::memory source(from, cpu_engine(), sequence_.array(0, array)), target(to, cpu_engine(), values.data());
        dnnl::stream s(cpu_engine());
        dnnl::reorder(source, target).execute(s, source, target);
        s.wait();
        return {values.begin(), values.end()};
    }
    [[nodiscard]] array_spec const& spec(std::size_t array) const { return sequence_.of(0).arrays[array]; }
    [[nodiscard]] cpu_sequence& sequence() { return sequence_; }

  private:
    static double number(dtype t, std::byte const* p) {
        auto const as = [p](auto v) {
            std::memcpy(&v, p, sizeof v);
            return static_cast<double>(v);
        };
        switch (t) {
        case dtype::i8: return as(std::int8_t{});
        case dtype::i32: return as(std::int32_t{});
        case dtype::i64: return as(std::int64_t{});
        default: return as(float{});
        }
    }
    cpu_sequence sequence_;
};

/// The norm of the difference, by that of the reference.
void compare(launch const& l, numbers const& got, numbers const& wanted) {
    INFO(to_string(l));
    REQUIRE(got.size() == wanted.size());
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        difference += (got[i] - wanted[i]) * (got[i] - wanted[i]);
        norm += wanted[i] * wanted[i];
    }
    CHECK(norm > 0);
    CHECK(std::sqrt(difference / norm) <= 1e-5); // NaN is not
}
} // namespace

TEST_CASE("matmul") {
    for (bool const ta : {false, true})
        for (bool const tb : {false, true})
            for (bool const bias : {false, true})
                for (std::int64_t const batch : {1, 3})
                    for (auto const then : {activation::none, activation::relu, activation::gelu}) {
                        matmul const m{.batch = batch, .m = 24, .n = 40, .k = 56, .transpose_a = ta, .transpose_b = tb, .bias = bias, .then = then};
                        trial t(m);
                        std::size_t const kept = bias ? 4 : 3;
                        if (then == activation::gelu) t.run({2, kept});
                        else t.run({2});
                        auto const sum = product(m, t[0], t[1], bias ? t[3] : numbers{});
                        compare(m, t[2], activated(then, sum));
                        if (then == activation::gelu) compare(m, t[kept], sum);
                    }
}

TEST_CASE("convolution") {
    for (auto const pass : {convolution_pass::forward, convolution_pass::data_gradient, convolution_pass::filter_gradient})
        for (std::int64_t const groups : {1, 2})
            for (std::int64_t const in : {3, 16})
                for (std::int64_t const front : {0, 1}) {
                    convolution const c{.pass = pass,
                                        .n = 2,
                                        .groups = groups,
                                        .in = in,
                                        .out = 20,
                                        .size = {10, 9},
                                        .kernel = {3, 3},
                                        .stride = {2, 1},
                                        .dilation = {1, 2},
                                        .padding = {front, 1},
                                        .padding_end = {1, 2},
                                        .result = {(10 + front + 1 - 3) / 2 + 1, 9 + 3 - 5 + 1}};
                    trial t(c);
                    std::size_t const out = pass == convolution_pass::forward ? 2 : pass == convolution_pass::data_gradient ? 0 : 1;
                    t.run({out});
                    std::size_t const first = out == 0 ? 1 : 0, second = out == 2 ? 1 : 2;
                    compare(c, t.in_order(out), convolved(c, t.in_order(first), t.in_order(second)));
                }
}

TEST_CASE("pooling") {
    for (bool const average : {false, true})
        for (bool const backward : {false, true}) {
            pooling const p{.average = average,
                            .backward = backward,
                            .n = 2,
                            .channels = 12,
                            .size = {8, 6},
                            .window = {3, 2},
                            .stride = {2, 2},
                            .padding = {1, 0},
                            .padding_end = {0, 0},
                            .result = {4, 3}};
            trial t(p);
            std::size_t const out = backward ? 3 : 1;
            t.run({out});
            compare(p, t.in_order(out), pooled(p, t.in_order(0), backward ? t.in_order(2) : numbers{}));
        }
}

TEST_CASE("softmax") {
    for (bool const backward : {false, true}) {
        softmax const s{.backward = backward, .rows = 7, .columns = 33};
        trial t(s);
        std::size_t const out = backward ? 2 : 1;
        t.run({out});
        compare(s, t[out], softmaxed(s, t[0], backward ? t[1] : numbers{}));
    }
}

TEST_CASE("normalization of rows and of channels") {
    for (auto const kind : {normalization_kind::layer, normalization_kind::batch})
        for (std::int64_t const inner : {1, 30})
            for (bool const backward : {false, true}) {
                if (kind == normalization_kind::layer && inner > 1) continue;
                normalization const n{.kind = kind, .backward = backward, .n = 6, .channels = 20, .inner = inner};
                trial t(n);
                if (!backward) {
                    t.run({3, 4, 5});
                    auto const wanted = normalized_of(n, t.in_order(0), t[1], t[2], {});
                    compare(n, t.in_order(3), wanted.y);
                    compare(n, t[4], wanted.mean);
                    continue;
                }
                t.run({5, 6, 7});
                auto const wanted = normalized_of(n, t.in_order(0), t[2], {}, t.in_order(1));
                compare(n, t.in_order(5), wanted.dx);
                compare(n, t[6], wanted.dscale);
                compare(n, t[7], wanted.dbias);
            }
}

TEST_CASE("permutation and reduction") {
    for (std::vector<std::uint32_t> const& order : {std::vector<std::uint32_t>{2, 0, 1}, {1, 0, 2}, {0, 2, 1}}) {
        permutation const p{.extents = {5, 6, 7}, .order = order};
        trial t(p);
        t.run({1});
        compare(p, t[1], permuted(p, t[0]));
    }
    for (std::int64_t const inner : {1, 9}) {
        reduction const r{.outer = 4, .summed = 70, .inner = inner};
        trial t(r);
        t.run({1});
        compare(r, t[1], summed(r, t[0]));
    }
}

TEST_CASE("streaming sums what it reads, short arrays again and again") {
    streaming const s{.reads = {{3000}, {7}, {3000, dtype::i8}, {1500, dtype::i64}}, .writes = {{3000}, {3000, dtype::i32}}, .flops = 3 + 2 * 2};
    trial t(s);
    t.run({4, 5});
    numbers wanted, rounded;
    auto const x = t[0], bias = t[1], mask = t[2], labels = t[3];
    for (std::size_t i = 0; i < x.size(); ++i) {
        double v = x[i] + bias[i % 7] + mask[i] + labels[i % 1500];
        for (int k = 0; k < 2; ++k) v = v * 0.5 + 0.25; // two multiply-adds beside the three sums
        wanted.push_back(v);
        rounded.push_back(std::trunc(v));
    }
    compare(s, t[4], wanted);
    auto const integers = t[5];
    std::size_t off = 0;
    for (std::size_t i = 0; i < integers.size(); ++i) off += std::abs(integers[i] - rounded[i]) > 1; // a sum just below or above an integer
    CHECK(off == 0);

    streaming const written{.reads = {}, .writes = {{100}}, .flops = 0};
    trial fill(written);
    fill.run({0});
    CHECK(fill[0] == numbers(100, 1.0));
}

TEST_CASE("lookup") {
    for (bool const backward : {false, true})
        for (std::int64_t const bag : {1, 4}) {
            lookup const l{.backward = backward, .rows = 50, .width = 24, .lookups = 64, .bag = bag};
            trial t(l);
            auto const table = t[0];
            if (backward) t.run({});
            else t.run({2});
            auto const raw = t[1];
            std::vector<std::int32_t> const indices(raw.begin(), raw.end());
            CHECK(std::ranges::min(indices) >= 0);
            CHECK(std::ranges::max(indices) < 50);
            compare(l, t[backward ? 0 : 2], looked_up(l, table, indices, t[2]));
        }
}

TEST_CASE("updates follow the rule that their arithmetic tells") {
    struct rule {
        std::int64_t flops, bytes;
        std::size_t arrays;
    };
    for (auto const& [flops, bytes, arrays] : {rule{2, 12, 2}, rule{4, 20, 3}, rule{14, 28, 4}}) {
        optimizer_update const u{.sets = {{.flops = flops * 100, .bytes = bytes * 100}, {.flops = flops * 30, .bytes = bytes * 30}}};
        trial t(u);
        REQUIRE(t.sequence().of(0).arrays.size() == 2 * arrays);
        std::vector<numbers> before;
        for (std::size_t i = 0; i < 2 * arrays; ++i) before.push_back(t[i]);
        t.run({});
        for (std::size_t set = 0; set < 2; ++set) {
            auto const* const old = &before[set * arrays];
            numbers m, v, p;
            for (std::size_t i = 0; i < old[0].size(); ++i) {
                double const g = old[1][i];
                m.push_back(arrays == 2 ? g : arrays == 3 ? 0.9 * old[2][i] + g : 0.9 * old[2][i] + 0.1 * g);
                if (arrays == 4) v.push_back(0.999 * old[3][i] + 0.001 * g * g);
                p.push_back(old[0][i] - 1e-3 * m[i] / (arrays == 4 ? std::sqrt(v[i]) + 1e-8 : 1.0));
            }
            CHECK(old[0].size() == (set == 0 ? 100 : 30));
            compare(u, t[set * arrays], p);
            if (arrays > 2) compare(u, t[set * arrays + 2], m);
            if (arrays > 3) compare(u, t[set * arrays + 3], v);
        }
    }
}

TEST_CASE("what a core does not run is refused by name") {
    auto const refused = [](launch const& l, std::string const& why) {
        try {
            (void)make_kernel(l);
            FAIL(to_string(l), " is not refused");
        } catch (launch_failure const& e) {
            CAPTURE(e.what());
            CHECK(std::string(e.what()).find(why) != std::string::npos);
        }
    };
    refused(matmul{.type = dtype::bf16}, "matmul 1x1x1 bf16: is run in f32 alone on a CPU");
    refused(streaming{.reads = {{4, dtype::f16}}}, "streams are of f32, i8, i32 or i64 on a CPU");
    refused(recurrent{}, "is not run on a CPU");
    refused(attention{.type = dtype::f32}, "is not run on a CPU");
    refused(normalization{.kind = normalization_kind::rms}, "oneDNN 2 has no such normalization");
    refused(normalization{.sum = true}, "no sums");
    refused(lookup{.lookups = 5, .bag = 2}, "bags do not divide the lookups");
}

TEST_CASE("sets of arrays rotate and hold the same") {
    launch const small = softmax{.rows = 4, .columns = 16};
    cpu_sequence sequence({&small, 1}, std::make_shared<core_use>());
    auto const sets = sequence.sets(); // as many as the last cache wants
    CHECK(sets <= most_sets);
    CHECK(sequence.memory() >= static_cast<byte_count>(sets * 2 * 4 * 16 * 4));
    auto const set = static_cast<std::size_t>(sequence.memory()) / sets;
    CHECK(sets == std::min(most_sets, std::max<std::size_t>(1, (2 * last_cache() + set - 1) / set)));
    CHECK(sequence.run(static_cast<std::int64_t>(sets)) > picoseconds::zero());
    for (std::size_t s = 1; s < sets; ++s) // each has run, on equal numbers
        REQUIRE(std::memcmp(sequence.array(0, 1), sequence.array(0, 1) + s * set, 4 * 16 * 4) == 0);
    cpu_sequence alone({&small, 1}, std::make_shared<core_use>(), 1);
    CHECK(alone.sets() == 1);
}
