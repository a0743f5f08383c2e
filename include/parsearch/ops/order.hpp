#pragma once
/// Operators along an axis in which order counts: the largest entries, the place of the largest, running sums.

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

/// x -> values and indices (i64) of the `k` largest, or smallest, entries along `axis`.
struct top_k {
    static constexpr std::string_view kind = "top_k";
    std::int64_t k = 1;
    std::int64_t axis = -1;
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// x -> the index (i64) of the largest, or smallest, entry along `axis`. No gradient flows.
struct arg_max {
    static constexpr std::string_view kind = "arg_max";
    std::int64_t axis = 0;
    bool keep = false; ///< the axis stays, with extent 1
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// x -> y of the same shape: sums of the entries up to each one along `axis`.
struct cumulative_sum {
    static constexpr std::string_view kind = "cumulative_sum";
    std::int64_t axis = 0;
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/order.ipp>
#endif
