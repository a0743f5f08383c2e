#pragma once
/// Embedding tables, looked up row by row or summed over a bag of rows.

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

namespace detail {
/// Dims: those of the indices, o (parameter), v (reduction: a shard that holds part of the rows yields zeros for the others, so
/// outputs are partial sums). With `bag`, the last axis of the indices is a reduction dim too. One pass touches a row per index.
[[nodiscard]] operation table_lookup(std::span<tensor const> inputs, std::string_view kind, std::int64_t entries, std::int64_t features, dtype type,
                                     std::string_view parameter, bool bag);
} // namespace detail

/// indices[s, ...] -> y[s, ..., features]: row indices[s, ...] of the table.
struct embedding {
    static constexpr std::string_view kind = "embedding";
    std::int64_t entries = 0, features = 0;
    dtype type = dtype::f32; ///< of the table and the output
    std::string parameter{};
    /// Input: indices (i64 or i32). Weight: weight[entries, features].
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        kit::expect_inputs(inputs, 1);
        kit::expect_least_rank(inputs, 0, 1);
        return detail::table_lookup(inputs, kind, entries, features, type, parameter, false);
    }
};

/// indices[s, bag] -> y[s, features]: the sum of the rows of each bag.
struct embedding_bag {
    static constexpr std::string_view kind = "embedding_bag";
    std::int64_t entries = 0, features = 0;
    dtype type = dtype::f32;
    std::string parameter{};
    /// Input: indices (i64 or i32). Weight: weight[entries, features].
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const {
        kit::expect_inputs(inputs, 1);
        kit::expect_rank(inputs, 0, 2);
        return detail::table_lookup(inputs, kind, entries, features, type, parameter, true);
    }
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/embedding.ipp>
#endif
