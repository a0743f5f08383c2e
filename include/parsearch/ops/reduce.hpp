#pragma once
/// Reductions over axes.

#include <array>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

enum class reduction_mode : std::uint8_t { sum, mean, max, min, product, l1, l2, sum_square, log_sum, log_sum_exp };

/// Flops per element of the input, forward and for its gradient, and what backward keeps.
struct reduction_traits {
    std::string_view name;
    double forward, backward;
    bool keeps_input, keeps_output;
};

inline constexpr std::array<reduction_traits, 10> reduction_table{{
    {"sum", 1, 0, false, false}, // the gradient is only broadcast
    {"mean", 1, 1, false, false},
    {"max", 1, 1, true, true},
    {"min", 1, 1, true, true},
    {"product", 1, 2, true, true},
    {"l1", 2, 2, true, false},
    {"l2", 2, 2, true, true},
    {"sum_square", 2, 2, true, false},
    {"log_sum", 1, 1, false, true},
    {"log_sum_exp", 4, 3, true, true},
}};

[[nodiscard]] constexpr std::string_view name_of(reduction_mode m) noexcept { return reduction_table[static_cast<std::size_t>(m)].name; }

/// Sum, mean, maximum, norm, ... over `axes`. These are reduction dims: splitting one leaves a partial result of every output element per
/// part, which takes the same reduction over the parts to join (partial maxima are "partial sums" of another addition).
/// The operation's kind names the mode: "reduce_sum".
struct reduce {
    static constexpr std::string_view kind = "reduce";
    reduction_mode mode = reduction_mode::sum;
    std::vector<std::int64_t> axes{}; ///< negative ones count from the end
    bool keep = false;                ///< reduced axes stay, with extent 1
    /// Input: one tensor.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/reduce.ipp>
#endif
