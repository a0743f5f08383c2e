#pragma once
/// Tables over several variables, and the sharing of equal ones.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/search/additive/cost_network.hpp>

namespace parsearch::search::additive {

/// A table over the variables of `scope`, row major: the last is innermost. Equal `id`s mean equal tables.
template <class N> struct factor {
    std::vector<std::uint32_t> scope;
    numbers<N> table;
    std::uint64_t id = 0;
};

/// Where an entry of a table is, as a sum over variables: the stride of each variable of `scope`.
[[nodiscard]] std::vector<std::size_t> strides_of(std::span<std::uint32_t const> scope, std::span<std::uint32_t const> sizes);

namespace detail {
/// Copies a matrix turned, in blocks that stay in the cache.
template <class N> void transpose(N const* in, std::size_t rows, std::size_t columns, N* out) {
    constexpr std::size_t block = 16;
    for (std::size_t r = 0; r < rows; r += block)
        for (std::size_t c = 0; c < columns; c += block)
            for (std::size_t i = r; i < std::min(rows, r + block); ++i)
                for (std::size_t j = c; j < std::min(columns, c + block); ++j) out[j * rows + i] = in[i * columns + j];
}
} // namespace detail

/// The same table with its variables in another order. Complexity: O(entries), and O(1) where the order is the same.
template <class N>
[[nodiscard]] numbers<N> permuted(factor<N> const& f, std::vector<std::uint32_t> const& order, std::span<std::uint32_t const> sizes) {
    if (f.scope == order) return f.table;
    std::vector<N> out(f.table.size);
    if (order.size() == 2) {
        detail::transpose(f.table.data, sizes[f.scope[0]], sizes[f.scope[1]], out.data());
        return numbers<N>(std::move(out));
    }
    auto const from = strides_of(f.scope, sizes);
    std::vector<std::size_t> stride, extent, at(order.size(), 0);
    for (auto const v : order) {
        stride.push_back(from[static_cast<std::size_t>(std::find(f.scope.begin(), f.scope.end(), v) - f.scope.begin())]);
        extent.push_back(sizes[v]);
    }
    std::size_t offset = 0;
    for (auto& x : out) {
        x = f.table.data[offset];
        for (std::size_t d = order.size(); d-- > 0;) {
            offset += stride[d];
            if (++at[d] < extent[d]) break;
            offset -= stride[d] * extent[d];
            at[d] = 0;
        }
    }
    return numbers<N>(std::move(out));
}

/// The table with variable `v` fixed to `value`.
template <class N> [[nodiscard]] factor<N> fixed(factor<N> const& f, std::uint32_t v, std::uint32_t value, std::span<std::uint32_t const> sizes) {
    std::vector<std::uint32_t> order{v}, rest;
    for (auto const x : f.scope)
        if (x != v) rest.push_back(x);
    order.insert(order.end(), rest.begin(), rest.end());
    auto const turned = permuted(f, order, sizes);
    std::size_t const size = turned.size / sizes[v];
    return {std::move(rest), numbers<N>(std::vector<N>(turned.data + value * size, turned.data + (value + 1) * size)), 0};
}

/// Gives equal tables one number, and remembers what was computed from which: repeated blocks of a network are solved once.
template <class N> class table_pool {
  public:
    /// The number of a table of these extents: by hash, then by comparison. Complexity: O(entries).
    [[nodiscard]] std::uint64_t number_of(numbers<N> const& t, std::size_t rows) {
        std::uint64_t h = 0xcbf29ce484222325 ^ rows; // FNV-1a's offset basis; four lanes, so that products overlap
        std::uint64_t lane[4] = {h, h + 1, h + 2, h + 3};
        for (std::size_t i = 0; i < t.size; ++i) {
            std::uint64_t word = 0;
            std::memcpy(&word, t.data + i, std::min(sizeof word, sizeof(N)));
            lane[i % 4] = (lane[i % 4] ^ word) * 0x9e3779b97f4a7c15;
            lane[i % 4] ^= lane[i % 4] >> 29;
        }
        for (auto const l : lane) h = (h ^ l) * 0x9e3779b97f4a7c15;
        for (auto const& known : tables_[h])
            if (known.rows == rows && known.table.size == t.size && std::equal(t.data, t.data + t.size, known.table.data)) return known.id;
        tables_[h].push_back({t, rows, ++last_});
        return last_;
    }
    [[nodiscard]] std::uint64_t fresh() noexcept { return ++last_; }

    struct result {
        numbers<N> table;
        std::uint64_t id = 0;
    };
    /// What was computed under `key`, to be filled in where it is empty.
    [[nodiscard]] result& computed(std::vector<std::uint64_t> const& key) { return results_[key]; }

  private:
    struct entry {
        numbers<N> table;
        std::size_t rows;
        std::uint64_t id;
    };
    std::unordered_map<std::uint64_t, std::vector<entry>> tables_;
    std::map<std::vector<std::uint64_t>, result> results_;
    std::uint64_t last_ = 0;
};

} // namespace parsearch::search::additive

#ifndef PARSEARCH_COMPILED
#include <parsearch/search/additive/factor.ipp>
#endif
