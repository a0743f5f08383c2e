#pragma once
/// Min-plus products of dense matrices: where nearly all of the time of exact search goes.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <parsearch/search/additive/number.hpp>

namespace parsearch::search::additive {

namespace detail {

// Inner loops have constant bounds: compilers then unroll and vectorise them at -O2 too.
inline constexpr std::size_t tile_rows = 4, tile_columns = 4, run = 8;

/// c[k] = min(c[k], a + b[k]).
template <class N> void min_plus_row(N* __restrict c, N a, N const* __restrict b, std::size_t columns) {
    std::size_t const whole = columns - columns % run;
    for (std::size_t k = 0; k < whole; k += run)
        for (std::size_t x = 0; x < run; ++x) {
            N const t = number<N>::sum(a, b[k + x]);
            c[k + x] = t < c[k + x] ? t : c[k + x];
        }
    for (std::size_t k = whole; k < columns; ++k) {
        N const t = number<N>::sum(a, b[k]);
        c[k] = t < c[k] ? t : c[k];
    }
}

/// A tile of the product, kept in registers: `a` has `tile_rows` rows `stride` apart, `panel` has `tile_columns` columns.
template <class N> void min_plus_tile(N const* __restrict a, std::size_t stride, N const* __restrict panel, std::size_t inner, N* __restrict out) {
    N acc[tile_rows][tile_columns];
    for (auto& row : acc)
        for (auto& x : row) x = number<N>::infinity();
    for (std::size_t j = 0; j < inner; ++j)
        for (std::size_t r = 0; r < tile_rows; ++r) {
            N const left = a[r * stride + j];
            for (std::size_t x = 0; x < tile_columns; ++x) {
                N const t = number<N>::sum(left, panel[j * tile_columns + x]);
                acc[r][x] = t < acc[r][x] ? t : acc[r][x];
            }
        }
    for (std::size_t r = 0; r < tile_rows; ++r)
        for (std::size_t x = 0; x < tile_columns; ++x) out[r * tile_columns + x] = acc[r][x];
}

} // namespace detail

/// c = a * b with minimum for plus and plus for times: c[i][k] = min over j of a[i][j] + b[j][k]. Row major, contiguous. `panel` is scratch.
/// Complexity: O(rows * inner * columns).
template <class N> void min_plus(N* c, N const* a, N const* b, std::size_t rows, std::size_t inner, std::size_t columns, std::vector<N>& panel) {
    using namespace detail;
    std::size_t const tiled = rows - rows % tile_rows;
    panel.resize(inner * tile_columns);
    for (std::size_t k = 0; tiled > 0 && k < columns; k += tile_columns) {
        std::size_t const width = std::min(tile_columns, columns - k);
        for (std::size_t j = 0; j < inner; ++j)
            for (std::size_t x = 0; x < tile_columns; ++x) panel[j * tile_columns + x] = x < width ? b[j * columns + k + x] : number<N>::infinity();
        for (std::size_t i = 0; i < tiled; i += tile_rows) {
            N out[tile_rows * tile_columns];
            min_plus_tile(a + i * inner, inner, panel.data(), inner, out);
            for (std::size_t r = 0; r < tile_rows; ++r) std::copy_n(out + r * tile_columns, width, c + (i + r) * columns + k);
        }
    }
    for (std::size_t i = tiled; i < rows; ++i) {
        std::fill_n(c + i * columns, columns, number<N>::infinity());
        for (std::size_t j = 0; j < inner; ++j)
            if (!number<N>::is_infinite(a[i * inner + j])) min_plus_row(c + i * columns, a[i * inner + j], b + j * columns, columns);
    }
}

} // namespace parsearch::search::additive
