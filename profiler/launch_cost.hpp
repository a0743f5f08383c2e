#pragma once
/// What launches amount to: arithmetic, traffic, memory, and their names.

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>

#include "launch.hpp"

namespace parsearch::profiler {

/// The bytes that a launch reads and writes if each array is moved once. Of a convolution and a pooling the padding is no traffic; of a lookup, the
/// rows that are looked up, not the table.
struct launch_traffic {
    double read = 0, written = 0;
    [[nodiscard]] double all() const noexcept { return read + written; }
};

namespace detail {
[[nodiscard]] inline double bytes_of(double elements, dtype t) noexcept { return elements * static_cast<double>(ops::size_of(t)); }
template <class... T> [[nodiscard]] double product(T... factors) noexcept { return (1.0 * ... * static_cast<double>(factors)); }
template <class... F> struct overloaded : F... {
    using F::operator()...;
};
template <class... F> overloaded(F...) -> overloaded<F...>;
[[nodiscard]] inline std::int64_t gates_of(cell_kind c) noexcept { return c == cell_kind::lstm ? 4 : c == cell_kind::gru ? 3 : 1; }
} // namespace detail

/// Of all sets of an update.
[[nodiscard]] inline updated_weights sum_of(optimizer_update const& u) noexcept {
    updated_weights sum;
    for (auto const& s : u.sets) sum = {.flops = sum.flops + s.flops, .bytes = sum.bytes + s.bytes};
    return sum;
}

/// Multiply-adds of a launch's contractions (0 for the others). Recomputation, as in a fused attention's backward pass, is not counted.
[[nodiscard]] inline double multiply_adds(launch const& l) {
    using detail::product;
    return std::visit(
        detail::overloaded{
            [](matmul const& x) { return product(x.batch, x.m, x.n, x.k); },
            [](convolution const& x) { return product(x.n, x.groups, x.in, x.out, x.kernel[0], x.kernel[1], x.result[0], x.result[1]); },
            [](recurrent const& x) {
                auto const both = product(x.samples, x.steps, detail::gates_of(x.cell), x.hidden, x.features + x.hidden);
                return x.backward ? 2 * both : both;
            },
            [](attention const& x) { return (x.backward ? 2 : 1) * product(x.batch, x.heads, x.queries, x.keys, x.size + x.value_size); },
            [](auto const&) { return 0.0; }},
        l);
}

[[nodiscard]] inline launch_traffic traffic_of(launch const& l) {
    using detail::bytes_of;
    using detail::product;
    return std::visit(
        detail::overloaded{
            [](matmul const& x) -> launch_traffic {
                return {bytes_of(product(x.batch, x.m, x.k) + product(x.batch, x.k, x.n) + (x.bias ? static_cast<double>(x.n) : 0), x.type),
                        bytes_of((x.then == activation::gelu ? 2 : 1) * product(x.batch, x.m, x.n), x.type)};
            },
            [](convolution const& x) -> launch_traffic {
                double const data = bytes_of(product(x.n, x.groups, x.in, x.size[0], x.size[1]), x.type);
                double const weight = bytes_of(product(x.groups, x.in, x.out, x.kernel[0], x.kernel[1]), x.type);
                double const result = bytes_of(product(x.n, x.groups, x.out, x.result[0], x.result[1]), x.type);
                if (x.pass == convolution_pass::forward) return {data + weight, result};
                if (x.pass == convolution_pass::data_gradient) return {result + weight, data};
                return {data + result, weight};
            },
            [](pooling const& x) -> launch_traffic {
                double const data = bytes_of(product(x.n, x.channels, x.size[0], x.size[1]), x.type);
                double const result = bytes_of(product(x.n, x.channels, x.result[0], x.result[1]), x.type);
                // Backward of a maximum finds it again, or reads where it was.
                return x.backward ? launch_traffic{x.average ? result : 2 * result + data, data} : launch_traffic{data, result};
            },
            [](softmax const& x) -> launch_traffic {
                double const size = bytes_of(product(x.rows, x.columns), x.type);
                return {x.backward ? 2 * size : size, size};
            },
            [](normalization const& x) -> launch_traffic {
                double const size = bytes_of(product(x.n, x.channels, x.inner), x.type), weights = bytes_of(product(x.channels), x.type);
                double const more = x.sum ? size : 0, mask = x.dropout ? bytes_of(product(x.n, x.channels), dtype::i8) : 0;
                return x.backward ? launch_traffic{2 * size + weights + more + mask, size + 2 * weights + (x.dropout ? size : 0)}
                                  : launch_traffic{size + 2 * weights + more, size + more + mask};
            },
            [](recurrent const& x) -> launch_traffic {
                auto const gates = detail::gates_of(x.cell);
                double const weights = bytes_of(product(gates, x.hidden, x.features + x.hidden + (x.bias ? 2 : 0)), x.type);
                double const in = bytes_of(product(x.samples, x.steps, x.features), x.type),
                             out = bytes_of(product(x.samples, x.steps, x.hidden), x.type);
                double const kept = bytes_of(product(x.samples, x.steps, gates, x.hidden), x.type);
                return x.backward ? launch_traffic{weights + in + 2 * out + kept, weights + in} : launch_traffic{weights + in, out + kept};
            },
            [](attention const& x) -> launch_traffic {
                double const q = bytes_of(product(x.batch, x.heads, x.queries, x.size), x.type),
                             k = bytes_of(product(x.batch, x.kv_heads, x.keys, x.size), x.type);
                double const v = bytes_of(product(x.batch, x.kv_heads, x.keys, x.value_size), x.type);
                double const y = bytes_of(product(x.batch, x.heads, x.queries, x.value_size), x.type),
                             rows = 4 * product(x.batch, x.heads, x.queries);
                return x.backward ? launch_traffic{q + k + v + 2 * y + rows, q + k + v} : launch_traffic{q + k + v, y + rows};
            },
            [](streaming const& x) -> launch_traffic {
                launch_traffic t;
                for (auto const& s : x.reads) t.read += bytes_of(static_cast<double>(s.elements), s.type);
                for (auto const& s : x.writes) t.written += bytes_of(static_cast<double>(s.elements), s.type);
                return t;
            },
            [](reduction const& x) -> launch_traffic {
                return {bytes_of(product(x.outer, x.summed, x.inner), x.type), bytes_of(product(x.outer, x.inner), x.type)};
            },
            [](permutation const& x) -> launch_traffic {
                double n = 1;
                for (auto const e : x.extents) n *= static_cast<double>(e);
                return {bytes_of(n, x.type), bytes_of(n, x.type)};
            },
            [](lookup const& x) -> launch_traffic {
                double const rows = bytes_of(product(x.lookups, x.width), x.type), results = bytes_of(product(x.lookups / x.bag, x.width), x.type);
                double const indices = bytes_of(static_cast<double>(x.lookups), dtype::i64);
                return x.backward ? launch_traffic{results + indices + rows, rows} : launch_traffic{rows + indices, results};
            },
            [](optimizer_update const& x) -> launch_traffic {
                auto const bytes = static_cast<double>(sum_of(x).bytes);
                return {bytes * 2 / 3, bytes / 3};
            }},
        l);
}

/// "matmul 64x1024x512 bf16", for lists and messages.
[[nodiscard]] inline std::string to_string(launch const& l) {
    auto const sizes = [](std::array<std::int64_t, 2> const& a) { return a[0] == 1 ? text(a[1]) : text(a[0], 'x', a[1]); };
    auto const direction = [](bool backward) { return backward ? " backward" : ""; };
    return std::visit(
        detail::overloaded{
            [](matmul const& x) {
                return text("matmul ", x.batch == 1 ? "" : text(x.batch, '*'), x.m, 'x', x.n, 'x', x.k, x.transpose_a ? " ta" : "",
                            x.transpose_b ? " tb" : "", x.bias ? " bias" : "", x.then == activation::none ? "" : text(' ', name_of(x.then)), ' ',
                            name_of(x.type));
            },
            [&](convolution const& x) {
                constexpr std::array<std::string_view, 3> passes{"", " data gradient", " filter gradient"};
                return text("convolution", passes[static_cast<std::size_t>(x.pass)], " n", x.n, x.groups == 1 ? "" : text(" groups", x.groups), ' ',
                            x.in, "->", x.out, ' ', sizes(x.size), "->", sizes(x.result), " kernel ", sizes(x.kernel), ' ', name_of(x.type));
            },
            [&](pooling const& x) {
                return text(x.average ? "average" : "max", " pooling", direction(x.backward), " n", x.n, " c", x.channels, ' ', sizes(x.size), "->",
                            sizes(x.result), ' ', name_of(x.type));
            },
            [&](softmax const& x) { return text("softmax", direction(x.backward), ' ', x.rows, 'x', x.columns, ' ', name_of(x.type)); },
            [&](normalization const& x) {
                constexpr std::array<std::string_view, 3> kinds{"batch", "layer", "rms"};
                return text(kinds[static_cast<std::size_t>(x.kind)], " normalization", direction(x.backward), x.sum ? " sum" : "",
                            x.dropout ? " dropout" : "", ' ', x.n, 'x', x.channels, 'x', x.inner, ' ', name_of(x.type));
            },
            [&](recurrent const& x) {
                constexpr std::array<std::string_view, 3> cells{"lstm", "gru", "rnn"};
                return text(cells[static_cast<std::size_t>(x.cell)], direction(x.backward), " n", x.samples, " steps", x.steps, ' ', x.features, "->",
                            x.hidden, ' ', name_of(x.type));
            },
            [&](attention const& x) {
                return text(x.causal ? "causal " : "", "attention", direction(x.backward), " n", x.batch, " heads", x.heads, '/', x.kv_heads, ' ',
                            x.queries, 'x', x.keys, " size", x.size, ' ', name_of(x.type));
            },
            [](streaming const& x) {
                std::int64_t n = 0;
                for (auto const* const list : {&x.reads, &x.writes})
                    for (auto const& s : *list) n = std::max(n, s.elements);
                auto const type = x.writes.empty() ? x.reads.front().type : x.writes.front().type;
                return text("streaming ", n, " reads", x.reads.size(), " writes", x.writes.size(), ' ', name_of(type));
            },
            [](reduction const& x) { return text("reduction ", x.outer, 'x', x.summed, 'x', x.inner, ' ', name_of(x.type)); },
            [](permutation const& x) {
                std::string out = "permutation";
                for (std::size_t i = 0; i < x.extents.size(); ++i) out += text(i ? "x" : " ", x.extents[i]);
                out += " to";
                for (auto const o : x.order) out += text(' ', o);
                return text(out, ' ', name_of(x.type));
            },
            [&](lookup const& x) {
                return text("lookup", direction(x.backward), ' ', x.lookups, " of ", x.rows, 'x', x.width, x.bag == 1 ? "" : text(" bags of ", x.bag),
                            ' ', name_of(x.type));
            },
            [](optimizer_update const& x) {
                auto const sum = sum_of(x);
                return text("update", x.sets.size() == 1 ? "" : text(" of ", x.sets.size(), " sets"), " flops=", sum.flops, " bytes=", sum.bytes);
            }},
        l);
}

} // namespace parsearch::profiler
