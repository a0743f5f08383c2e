#pragma once
/// Repetition along axes, and padding.

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

/// x repeated to the shape that it and `shape` broadcast to, as in NumPy.
struct expand {
    static constexpr std::string_view kind = "expand";
    std::vector<std::int64_t> shape{};
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// x behind itself, `repeats[i]` times along axis i. Repetitions are divisible; within an axis that is repeated, x is not.
struct tile {
    static constexpr std::string_view kind = "tile";
    std::vector<std::int64_t> repeats{};
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// x with `before[i]` elements in front and `after[i]` behind along axis i; negative numbers cut off. The iteration space is the output.
/// Elements that repeat those of x near the border are read where they are written, as if they were constant.
struct pad {
    static constexpr std::string_view kind = "pad";
    std::vector<std::int64_t> before{}, after{};
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/broadcast.ipp>
#endif
