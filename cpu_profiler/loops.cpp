#include "cpu_profiler/loops.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace parsearch::profiler {

namespace {

/// Elements that are summed at once: they stay in the first cache.
constexpr std::int64_t block = 1024;

template <class T> void add(float* sum, T const* from, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) sum[i] += static_cast<float>(from[i]);
}
template <class T> void put(T* to, float const* from, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(from[i]);
}

/// Calls f(array, with its type).
template <class F> void typed(stream_array const& a, F f) {
    switch (a.type) {
    case dtype::i8: return f(static_cast<std::int8_t*>(a.base));
    case dtype::i32: return f(static_cast<std::int32_t*>(a.base));
    case dtype::i64: return f(static_cast<std::int64_t*>(a.base));
    default: return f(static_cast<float*>(a.base));
    }
}

/// Adds elements `at` to `at + n` of an array that is read again and again.
void add_stream(float* sum, stream_array const& a, std::int64_t at, std::int64_t n) {
    typed(a, [&](auto const* base) {
        for (std::int64_t done = 0; done < n;) {
            auto const place = (at + done) % a.elements, part = std::min(n - done, a.elements - place);
            add(sum + done, base + place, part);
            done += part;
        }
    });
}

/// The sum of a row, in parts that need not wait for each other.
float sum_of(float const* x, std::int64_t n) {
    constexpr std::int64_t parts = 32;
    std::array<float, parts> sums{};
    std::int64_t i = 0;
    for (; i + parts <= n; i += parts)
        for (std::int64_t j = 0; j < parts; ++j) sums[static_cast<std::size_t>(j)] += x[i + j];
    float sum = 0;
    for (auto const s : sums) sum += s;
    for (; i < n; ++i) sum += x[i];
    return sum;
}
} // namespace

void run_streaming(std::span<stream_array const> reads, std::span<stream_array const> writes, std::int64_t longest, std::int64_t fmas) {
    std::array<float, block> sums{};
    for (std::int64_t at = 0; at < longest; at += block) {
        auto const n = std::min(block, longest - at);
        std::fill_n(sums.begin(), n, reads.empty() ? 1.0F : 0.0F);
        for (auto const& r : reads) add_stream(sums.data(), r, at, n);
        for (std::int64_t k = 0; k < fmas; ++k)
            for (std::int64_t i = 0; i < n; ++i) sums[static_cast<std::size_t>(i)] = sums[static_cast<std::size_t>(i)] * 0.5F + 0.25F;
        for (auto const& w : writes) typed(w, [&](auto* base) { put(base + at, sums.data(), n); });
    }
    // What is only read is not left out.
    [[maybe_unused]] float volatile const seen = sums[0];
}

void run_reduction(reduction const& r, float const* x, float* y) {
    for (std::int64_t o = 0; o < r.outer; ++o) {
        auto const* const from = x + o * r.summed * r.inner;
        auto* const to = y + o * r.inner;
        if (r.inner == 1) {
            *to = sum_of(from, r.summed);
            continue;
        }
        std::copy_n(from, r.inner, to);
        for (std::int64_t s = 1; s < r.summed; ++s) add(to, from + s * r.inner, r.inner);
    }
}

void run_lookup(lookup const& l, float* table, std::int32_t const* indices, float* y) {
    for (std::int64_t i = 0; i < l.lookups; ++i) {
        auto* const row = table + indices[i] * l.width;
        auto* const bag = y + i / l.bag * l.width;
        if (l.backward) add(row, bag, l.width);
        else if (i % l.bag == 0) std::copy_n(row, l.width, bag);
        else add(bag, row, l.width);
    }
}

void run_update(weights_at const& w) {
    constexpr float rate = 1e-3F, kept = 0.9F, kept_squares = 0.999F, epsilon = 1e-8F;
    auto *const p = w.weight, *const m = w.first, *const v = w.second;
    auto const* const g = w.gradient;
    if (m == nullptr)
        for (std::int64_t i = 0; i < w.elements; ++i) p[i] -= rate * g[i];
    else if (v == nullptr)
        for (std::int64_t i = 0; i < w.elements; ++i) {
            m[i] = kept * m[i] + g[i];
            p[i] -= rate * m[i];
        }
    else
        for (std::int64_t i = 0; i < w.elements; ++i) {
            m[i] = kept * m[i] + (1 - kept) * g[i];
            v[i] = kept_squares * v[i] + (1 - kept_squares) * g[i] * g[i];
            p[i] -= rate * m[i] / (std::sqrt(v[i]) + epsilon);
        }
}

} // namespace parsearch::profiler
