#include "profiler/test/reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace parsearch::profiler::testing {

namespace {
std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
} // namespace

numbers product(matmul const& m, numbers const& a, numbers const& b, numbers const& bias, double scale) {
    numbers c(at(m.batch * m.m * m.n));
    for (std::int64_t s = 0; s < m.batch; ++s)
        for (std::int64_t i = 0; i < m.m; ++i)
            for (std::int64_t j = 0; j < m.n; ++j) {
                double sum = 0;
                for (std::int64_t l = 0; l < m.k; ++l)
                    sum += a[at(s * m.m * m.k + (m.transpose_a ? l * m.m + i : i * m.k + l))] *
                           b[at(s * m.k * m.n + (m.transpose_b ? j * m.k + l : l * m.n + j))];
                c[at((s * m.m + i) * m.n + j)] = scale * sum + (m.bias ? bias[at(j)] : 0);
            }
    return c;
}

numbers activated(activation then, numbers x) {
    for (double& v : x)
        if (then == activation::relu) v = std::max(v, 0.0);
        else if (then == activation::gelu) v *= (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v))) / 2;
    return x;
}

numbers convolved(convolution const& c, numbers const& first, numbers const& second) {
    std::int64_t const x_size = c.n * c.groups * c.in * c.size[0] * c.size[1], y_size = c.n * c.groups * c.out * c.result[0] * c.result[1];
    std::int64_t const w_size = c.groups * c.out * c.in * c.kernel[0] * c.kernel[1];
    numbers out(at(c.pass == convolution_pass::forward ? y_size : c.pass == convolution_pass::data_gradient ? x_size : w_size));
    for (std::int64_t n = 0; n < c.n; ++n)
        for (std::int64_t g = 0; g < c.groups; ++g)
            for (std::int64_t o = 0; o < c.out; ++o)
                for (std::int64_t i = 0; i < c.in; ++i)
                    for (std::int64_t y0 = 0; y0 < c.result[0]; ++y0)
                        for (std::int64_t y1 = 0; y1 < c.result[1]; ++y1)
                            for (std::int64_t k0 = 0; k0 < c.kernel[0]; ++k0)
                                for (std::int64_t k1 = 0; k1 < c.kernel[1]; ++k1) {
                                    std::int64_t const x0 = y0 * c.stride[0] + k0 * c.dilation[0] - c.padding[0];
                                    std::int64_t const x1 = y1 * c.stride[1] + k1 * c.dilation[1] - c.padding[1];
                                    if (x0 < 0 || x1 < 0 || x0 >= c.size[0] || x1 >= c.size[1]) continue;
                                    std::size_t const x = at((((n * c.groups + g) * c.in + i) * c.size[0] + x0) * c.size[1] + x1);
                                    std::size_t const w = at((((g * c.out + o) * c.in + i) * c.kernel[0] + k0) * c.kernel[1] + k1);
                                    std::size_t const y = at((((n * c.groups + g) * c.out + o) * c.result[0] + y0) * c.result[1] + y1);
                                    if (c.pass == convolution_pass::forward) out[y] += first[x] * second[w];
                                    else if (c.pass == convolution_pass::data_gradient) out[x] += first[w] * second[y];
                                    else out[w] += first[x] * second[y];
                                }
    return out;
}

numbers pooled(pooling const& p, numbers const& x, numbers const& dy) {
    numbers out(p.backward ? x.size() : at(p.n * p.channels * p.result[0] * p.result[1]));
    double const count = static_cast<double>(p.window[0] * p.window[1]);
    for (std::int64_t c = 0; c < p.n * p.channels; ++c)
        for (std::int64_t y0 = 0; y0 < p.result[0]; ++y0)
            for (std::int64_t y1 = 0; y1 < p.result[1]; ++y1) {
                std::size_t const y = at((c * p.result[0] + y0) * p.result[1] + y1);
                double best = -std::numeric_limits<double>::infinity(), sum = 0;
                std::size_t place = 0;
                for (std::int64_t k0 = 0; k0 < p.window[0]; ++k0)
                    for (std::int64_t k1 = 0; k1 < p.window[1]; ++k1) {
                        std::int64_t const x0 = y0 * p.stride[0] + k0 - p.padding[0], x1 = y1 * p.stride[1] + k1 - p.padding[1];
                        if (x0 < 0 || x1 < 0 || x0 >= p.size[0] || x1 >= p.size[1]) continue;
                        std::size_t const from = at((c * p.size[0] + x0) * p.size[1] + x1);
                        sum += x[from];
                        if (p.average && p.backward) out[from] += dy[y] / count;
                        if (x[from] > best) {
                            best = x[from];
                            place = from;
                        }
                    }
                if (!p.backward) out[y] = p.average ? sum / count : best;
                else if (!p.average) out[place] += dy[y];
            }
    return out;
}

numbers softmaxed(softmax const& s, numbers const& x, numbers const& dy) {
    numbers out(x.size());
    for (std::int64_t r = 0; r < s.rows; ++r) {
        double most = -std::numeric_limits<double>::infinity(), sum = 0;
        for (std::int64_t c = 0; c < s.columns; ++c) {
            std::size_t const i = at(r * s.columns + c);
            most = std::max(most, x[i]);
            if (s.backward) sum += x[i] * dy[i];
        }
        if (!s.backward)
            for (std::int64_t c = 0; c < s.columns; ++c) sum += std::exp(x[at(r * s.columns + c)] - most);
        for (std::int64_t c = 0; c < s.columns; ++c) {
            std::size_t const i = at(r * s.columns + c);
            out[i] = s.backward ? x[i] * (dy[i] - sum) : std::exp(x[i] - most) / sum;
        }
    }
    return out;
}

normalized_numbers normalized_of(normalization const& n, numbers const& x, numbers const& scale, numbers const& bias, numbers const& dy) {
    bool const batch = n.kind == normalization_kind::batch, rms = n.kind == normalization_kind::rms;
    std::int64_t const groups = batch ? n.channels : n.n, each = batch ? n.n * n.inner : n.channels;
    normalized_numbers r;
    r.y.resize(x.size());
    r.dx.resize(x.size());
    r.dscale.resize(at(n.channels));
    r.dbias.resize(at(n.channels));
    // Element `i` of group `g`, and its channel.
    auto const place = [&](std::int64_t g, std::int64_t i) {
        return batch ? at((i / n.inner * n.channels + g) * n.inner + i % n.inner) : at(g * n.channels + i);
    };
    auto const channel = [&](std::int64_t g, std::int64_t i) { return at(batch ? g : i); };
    for (std::int64_t g = 0; g < groups; ++g) {
        double sum = 0, squares = 0;
        for (std::int64_t i = 0; i < each; ++i) sum += x[place(g, i)];
        double const mean = rms ? 0 : sum / static_cast<double>(each);
        for (std::int64_t i = 0; i < each; ++i) squares += (x[place(g, i)] - mean) * (x[place(g, i)] - mean);
        double const deviation = 1 / std::sqrt(squares / static_cast<double>(each) + 1e-5);
        r.mean.push_back(mean);
        r.deviation.push_back(deviation);
        double first = 0, second = 0; // sums of the gradient of the normalized values, and of it times them
        for (std::int64_t i = 0; i < each; ++i) {
            std::size_t const p = place(g, i), c = channel(g, i);
            double const hat = (x[p] - mean) * deviation;
            r.y[p] = hat * scale[c] + (rms || bias.empty() ? 0 : bias[c]);
            if (dy.empty()) continue;
            first += dy[p] * scale[c];
            second += dy[p] * scale[c] * hat;
            r.dscale[c] += dy[p] * hat;
            r.dbias[c] += dy[p];
        }
        if (dy.empty()) continue;
        for (std::int64_t i = 0; i < each; ++i) {
            std::size_t const p = place(g, i);
            double const hat = (x[p] - mean) * deviation;
            r.dx[p] = deviation * (dy[p] * scale[channel(g, i)] - ((rms ? 0 : first) + hat * second) / static_cast<double>(each));
        }
    }
    return r;
}

attended attend(attention const& a, numbers const& q, numbers const& k, numbers const& v, numbers const& d_o) {
    attended r;
    r.o.resize(at(a.batch * a.heads * a.queries * a.value_size));
    r.statistics.resize(at(a.batch * a.heads * a.queries));
    r.dq.resize(q.size());
    r.dk.resize(k.size());
    r.dv.resize(v.size());
    double const scale = 1 / std::sqrt(static_cast<double>(a.size));
    for (std::int64_t b = 0; b < a.batch; ++b)
        for (std::int64_t h = 0; h < a.heads; ++h)
            for (std::int64_t i = 0; i < a.queries; ++i) {
                std::int64_t const row = (b * a.heads + h) * a.queries + i, kv = (b * a.kv_heads + h / (a.heads / a.kv_heads)) * a.keys;
                std::int64_t const keys = a.causal ? std::min(a.keys, i + 1) : a.keys;
                numbers p(at(keys));
                double most = -std::numeric_limits<double>::infinity(), sum = 0;
                for (std::int64_t j = 0; j < keys; ++j) {
                    for (std::int64_t d = 0; d < a.size; ++d) p[at(j)] += q[at(row * a.size + d)] * k[at((kv + j) * a.size + d)] * scale;
                    most = std::max(most, p[at(j)]);
                }
                for (double& s : p) sum += s = std::exp(s - most);
                r.statistics[at(row)] = most + std::log(sum);
                for (double& s : p) s /= sum;
                for (std::int64_t j = 0; j < keys; ++j)
                    for (std::int64_t d = 0; d < a.value_size; ++d) r.o[at(row * a.value_size + d)] += p[at(j)] * v[at((kv + j) * a.value_size + d)];
                if (d_o.empty()) continue;
                numbers dp(at(keys));
                double total = 0;
                for (std::int64_t j = 0; j < keys; ++j) {
                    for (std::int64_t d = 0; d < a.value_size; ++d) {
                        dp[at(j)] += d_o[at(row * a.value_size + d)] * v[at((kv + j) * a.value_size + d)];
                        r.dv[at((kv + j) * a.value_size + d)] += p[at(j)] * d_o[at(row * a.value_size + d)];
                    }
                    total += p[at(j)] * dp[at(j)];
                }
                for (std::int64_t j = 0; j < keys; ++j) {
                    double const ds = p[at(j)] * (dp[at(j)] - total) * scale;
                    for (std::int64_t d = 0; d < a.size; ++d) {
                        r.dq[at(row * a.size + d)] += ds * k[at((kv + j) * a.size + d)];
                        r.dk[at((kv + j) * a.size + d)] += ds * q[at(row * a.size + d)];
                    }
                }
            }
    return r;
}

int gates_of(cell_kind k) noexcept { return k == cell_kind::lstm ? 4 : k == cell_kind::gru ? 3 : 1; }

numbers recur(recurrent const& r, numbers const& x, cell_weights const& w) {
    numbers y(at(r.samples * r.steps * r.hidden));
    auto const sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    for (std::int64_t s = 0; s < r.samples; ++s) {
        numbers h(at(r.hidden)), state(at(r.hidden));
        for (std::int64_t t = 0; t < r.steps; ++t) {
            auto const input = [&](std::size_t gate, std::int64_t j) {
                double sum = r.bias ? w.b[gate][at(j)] : 0;
                for (std::int64_t f = 0; f < r.features; ++f) sum += w.w[gate][at(j * r.features + f)] * x[at((s * r.steps + t) * r.features + f)];
                return sum;
            };
            auto const back = [&](std::size_t gate, std::int64_t j) {
                double sum = r.bias ? w.c[gate][at(j)] : 0;
                for (std::int64_t f = 0; f < r.hidden; ++f) sum += w.r[gate][at(j * r.hidden + f)] * h[at(f)];
                return sum;
            };
            auto const gate = [&](std::size_t g, std::int64_t j) { return input(g, j) + back(g, j); };
            numbers next(at(r.hidden));
            for (std::int64_t j = 0; j < r.hidden; ++j) {
                double& c = state[at(j)];
                switch (r.cell) {
                case cell_kind::lstm: // input, forget, new, output
                    c = sigmoid(gate(1, j)) * c + sigmoid(gate(0, j)) * std::tanh(gate(2, j));
                    next[at(j)] = sigmoid(gate(3, j)) * std::tanh(c);
                    break;
                case cell_kind::gru: { // reset, update, new
                    double const z = sigmoid(gate(1, j)), fresh = std::tanh(input(2, j) + sigmoid(gate(0, j)) * back(2, j));
                    next[at(j)] = (1 - z) * fresh + z * h[at(j)];
                    break;
                }
                case cell_kind::rnn: next[at(j)] = std::tanh(gate(0, j)); break;
                }
            }
            h = next;
            std::copy(h.begin(), h.end(), y.begin() + (s * r.steps + t) * r.hidden);
        }
    }
    return y;
}

numbers summed(reduction const& r, numbers const& x) {
    numbers y(at(r.outer * r.inner));
    for (std::int64_t o = 0; o < r.outer; ++o)
        for (std::int64_t s = 0; s < r.summed; ++s)
            for (std::int64_t i = 0; i < r.inner; ++i) y[at(o * r.inner + i)] += x[at((o * r.summed + s) * r.inner + i)];
    return y;
}

numbers permuted(permutation const& p, numbers const& x) {
    numbers y(x.size());
    std::vector<std::int64_t> place(p.extents.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
        auto left = static_cast<std::int64_t>(i);
        for (std::size_t a = p.order.size(); a-- > 0;) {
            place[p.order[a]] = left % p.extents[p.order[a]];
            left /= p.extents[p.order[a]];
        }
        std::int64_t from = 0;
        for (std::size_t a = 0; a < place.size(); ++a) from = from * p.extents[a] + place[a];
        y[i] = x[at(from)];
    }
    return y;
}

numbers looked_up(lookup const& l, numbers const& table, std::vector<std::int32_t> const& indices, numbers const& dy) {
    numbers out = l.backward ? table : numbers(at(l.lookups / l.bag * l.width));
    for (std::int64_t i = 0; i < l.lookups; ++i)
        for (std::int64_t w = 0; w < l.width; ++w) {
            std::size_t const row = at(indices[at(i)] * l.width + w), result = at(i / l.bag * l.width + w);
            if (l.backward) out[row] += dy[result];
            else out[result] += table[row];
        }
    return out;
}

} // namespace parsearch::profiler::testing

using namespace parsearch::profiler;
using namespace parsearch::profiler::testing;

TEST_CASE("reference: products by hand") {
    numbers const a{1, 2, 3, 4}, b{5, 6, 7, 8}; // [[1,2],[3,4]] [[5,6],[7,8]]
    matmul m{.m = 2, .n = 2, .k = 2};
    CHECK(product(m, a, b, {}) == numbers{19, 22, 43, 50});
    m.transpose_a = true;
    CHECK(product(m, a, b, {}) == numbers{26, 30, 38, 44});
    m.transpose_b = true;
    m.bias = true;
    CHECK(product(m, a, b, {100, 200}) == numbers{123, 231, 134, 246});
    CHECK(product({.m = 1, .n = 1, .k = 2}, {1, 2}, {3, 4}, {}, 0.5) == numbers{5.5});
}

TEST_CASE("reference: what products end in, by hand") {
    CHECK(activated(activation::none, {-2, 0.5}) == numbers{-2, 0.5});
    CHECK(activated(activation::relu, {-2, 0.5, 0}) == numbers{0, 0.5, 0});
    numbers const x{-3, -1, 0, 0.5, 2};
    numbers const y = activated(activation::gelu, x);
    // Near x times the normal distribution's share below x (D. Hendrycks, K. Gimpel, "Gaussian error linear units", 2016).
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(std::abs(y[i] - x[i] * std::erfc(-x[i] / std::sqrt(2.0)) / 2) < 1e-3);
    CHECK(y[2] == 0);
}

TEST_CASE("reference: convolutions and pooling by hand") {
    convolution c{.size = {1, 4}, .kernel = {1, 3}, .padding = {0, 1}, .padding_end = {0, 0}, .result = {1, 3}};
    numbers const x{1, 2, 3, 4}, w{1, 10, 100};
    CHECK(convolved(c, x, w) == numbers{210, 321, 432});
    c.pass = convolution_pass::data_gradient;
    CHECK(convolved(c, w, {1, 0, 2}) == numbers{10, 102, 20, 200});
    c.pass = convolution_pass::filter_gradient;
    CHECK(convolved(c, x, {1, 0, 2}) == numbers{4, 7, 10});
    pooling p{.n = 1, .channels = 1, .size = {1, 4}, .window = {1, 2}, .stride = {1, 2}, .result = {1, 2}};
    CHECK(pooled(p, {1, 3, 5, 4}, {}) == numbers{3, 5});
    p.backward = true;
    CHECK(pooled(p, {1, 3, 5, 4}, {7, 9}) == numbers{0, 7, 9, 0});
    CHECK(pooled(p, {3, 3, 5, 5}, {7, 9}) == numbers{7, 0, 9, 0}); // the first of equal ones
    p.average = true;
    CHECK(pooled(p, {1, 3, 5, 4}, {8, 2}) == numbers{4, 4, 1, 1});
    p.backward = false;
    CHECK(pooled(p, {1, 3, 5, 4}, {}) == numbers{2, 4.5});
}

namespace {
/// The gradient of `sum(weights * f(x))`, by central differences.
template <class F> numbers slope(F f, numbers x, numbers const& weights) {
    numbers d(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        double const keep = x[i], step = 1e-5;
        double side[2];
        for (int s = 0; s < 2; ++s) {
            x[i] = keep + (s == 0 ? -step : step);
            numbers const y = f(x);
            side[s] = 0;
            for (std::size_t j = 0; j < y.size(); ++j) side[s] += weights[j] * y[j];
        }
        x[i] = keep;
        d[i] = (side[1] - side[0]) / (2 * step);
    }
    return d;
}
void near(numbers const& a, numbers const& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-6).scale(1));
}
numbers wave(std::size_t n, double from) {
    numbers v(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = std::sin(from + 1.7 * static_cast<double>(i));
    return v;
}
} // namespace

TEST_CASE("reference: softmax and normalization, and their gradients by differences") {
    softmax s{.rows = 2, .columns = 3};
    numbers const x = wave(6, 0), dy = wave(6, 5);
    numbers const y = softmaxed(s, x, {});
    CHECK(y[0] + y[1] + y[2] == doctest::Approx(1));
    CHECK(y[0] / y[1] == doctest::Approx(std::exp(x[0] - x[1])));
    softmax b = s;
    b.backward = true;
    near(softmaxed(b, y, dy), slope([&](numbers const& v) { return softmaxed(s, v, {}); }, x, dy));
    for (normalization_kind const kind : {normalization_kind::batch, normalization_kind::layer, normalization_kind::rms}) {
        bool const batch = kind == normalization_kind::batch;
        normalization const n{.kind = kind, .n = 3, .channels = 4, .inner = batch ? 2 : 1, .type = dtype::f32};
        std::size_t const size = batch ? 24 : 12;
        numbers const in = wave(size, 1), out = wave(size, 2), scale = wave(4, 3), bias = wave(4, 4);
        auto const all = normalized_of(n, in, scale, bias, out);
        near(all.dx, slope([&](numbers const& v) { return normalized_of(n, v, scale, bias, {}).y; }, in, out));
        near(all.dscale, slope([&](numbers const& v) { return normalized_of(n, in, v, bias, {}).y; }, scale, out));
        if (kind != normalization_kind::rms)
            near(all.dbias, slope([&](numbers const& v) { return normalized_of(n, in, scale, v, {}).y; }, bias, out));
    }
    auto const two = normalized_of({.kind = normalization_kind::layer, .n = 1, .channels = 2}, {1, 3}, {1, 1}, {0, 0}, {});
    CHECK(two.mean == numbers{2});
    CHECK(two.y[1] == doctest::Approx(1).epsilon(1e-4));
}

TEST_CASE("reference: attention, and its gradients by differences") {
    for (bool const causal : {false, true}) {
        attention const a{.causal = causal, .batch = 2, .heads = 4, .kv_heads = 2, .queries = 3, .keys = 3, .size = 2, .value_size = 3};
        numbers const q = wave(48, 0), k = wave(24, 1), v = wave(36, 2), d = wave(72, 3);
        auto const all = attend(a, q, k, v, d);
        near(all.dq, slope([&](numbers const& w) { return attend(a, w, k, v, {}).o; }, q, d));
        near(all.dk, slope([&](numbers const& w) { return attend(a, q, w, v, {}).o; }, k, d));
        near(all.dv, slope([&](numbers const& w) { return attend(a, q, k, w, {}).o; }, v, d));
        if (causal) // the first query sees the first key alone
            for (std::size_t i = 0; i < 3; ++i) CHECK(all.o[i] == doctest::Approx(v[i]));
    }
}

TEST_CASE("reference: recurrent cells by hand") {
    // One unit, one feature, two steps.
    cell_weights w{.w = {{0.5}, {0.25}, {1}, {2}}, .r = {{1}, {1}, {1}, {1}}, .b = {{0}, {0}, {0}, {0}}, .c = {{0}, {0}, {0}, {0}}};
    auto const sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    recurrent r{.cell = cell_kind::rnn, .samples = 1, .steps = 2, .features = 1, .hidden = 1};
    double const h = std::tanh(0.5);
    near(recur(r, {1, 1}, w), {h, std::tanh(0.5 + h)});
    r.cell = cell_kind::lstm;
    double const c = sigmoid(0.5) * std::tanh(1);
    CHECK(recur(r, {1, 1}, w)[0] == doctest::Approx(sigmoid(2) * std::tanh(c)));
    r.cell = cell_kind::gru;
    CHECK(recur(r, {1, 1}, w)[0] == doctest::Approx((1 - sigmoid(0.25)) * std::tanh(1)));
}

TEST_CASE("reference: sums, permutations and lookups by hand") {
    CHECK(summed({.outer = 2, .summed = 2, .inner = 2}, {1, 2, 3, 4, 5, 6, 7, 8}) == numbers{4, 6, 12, 14});
    CHECK(permuted(permutation{{2, 3}, {1, 0}}, {1, 2, 3, 4, 5, 6}) == numbers{1, 4, 2, 5, 3, 6});
    lookup l{.rows = 3, .width = 2, .lookups = 4, .bag = 2};
    CHECK(looked_up(l, {1, 2, 3, 4, 5, 6}, {0, 2, 1, 1}, {}) == numbers{6, 8, 6, 8});
    l.backward = true;
    CHECK(looked_up(l, numbers(6, 0), {0, 2, 1, 1}, {1, 2, 3, 4}) == numbers{1, 2, 6, 8, 1, 2});
}
