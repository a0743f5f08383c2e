#pragma once
/// Operators that only move or rename data: concat, split, slice, flip, reshape, flatten, transpose.

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

namespace detail {
/// The axes along all dims, of which number `at` is instead the part [begin, begin + extent) of its dim.
[[nodiscard]] std::vector<axis> part_of(operation const& op, std::size_t at, std::int64_t begin, std::int64_t extent);
} // namespace detail

/// Joins tensors along `axis`. The iteration space is the output; an input is a part of it, and a shard may read nothing of some input.
struct concat {
    static constexpr std::string_view kind = "concat";
    std::int64_t axis = 1;
    /// Inputs: one or more of one type, equal in all other extents.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// Cuts a tensor along `axis` into outputs of the given sizes. The iteration space is the input.
struct split {
    static constexpr std::string_view kind = "split";
    std::int64_t axis = 1;
    std::vector<std::int64_t> sizes{}; ///< must add up to the axis
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// The part [begin, end) of `axis`, or every `step`th position of it; negative positions count from the end. The iteration space is the output.
/// The operation's kind is "strided_slice" where `step` is not 1.
struct slice {
    static constexpr std::string_view kind = "slice";
    std::int64_t axis = 1;
    std::int64_t begin = 0, end = 0, step = 1;
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// `axis` from its end to its beginning, which is not divisible.
struct flip {
    static constexpr std::string_view kind = "flip";
    std::int64_t axis = 1;
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

namespace detail {
/// The view of `x` under another shape. Axes of both sides fall into the smallest runs of equal product. A contiguous part of a run is a part of
/// its outermost axis on either side, so there is one iteration dim per run: the largest common divisor of its two outermost extents. Axes
/// behind the outermost of a run are whole.
[[nodiscard]] operation reshaped(tensor const& x, std::vector<std::int64_t> const& shape, std::string_view kind);
} // namespace detail

/// The same data under another shape. One extent may be -1: what is left. See `detail::reshaped` for what is divisible.
struct reshape {
    static constexpr std::string_view kind = "reshape";
    std::vector<std::int64_t> shape{};
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// Joins all axes from `from_axis` on into one.
struct flatten {
    static constexpr std::string_view kind = "flatten";
    std::int64_t from_axis = 1;
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// Axis i of the output is axis `permutation[i]` of the input.
struct transpose {
    static constexpr std::string_view kind = "transpose";
    std::vector<std::int64_t> permutation{};
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/shape.ipp>
#endif
