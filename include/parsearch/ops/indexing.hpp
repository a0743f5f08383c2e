#pragma once
/// Operators that read or write where indices say: gather and scatter, by entries of an axis, by elements, by tuples.

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/kit/inference.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::ops {

/// data, indices -> the entries of `axis` of data that the indices name: the axes of the indices take the place of `axis`. Any entry may be
/// named, so each shard holds the whole axis of data (an `embedding` splits its table).
struct gather {
    static constexpr std::string_view kind = "gather";
    std::int64_t axis = 0;
    /// Inputs: data, indices (i64 or i32) of any number of axes; with none, `axis` falls away.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// data, indices -> y of the shape of the indices: each index names a position of `axis`; those of the other axes are its own.
struct gather_elements {
    static constexpr std::string_view kind = "gather_elements";
    std::int64_t axis = 0;
    /// Inputs: data, indices (i64 or i32) of as many axes, of which none but `axis` is longer.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// data[b..., n..., r...], indices[b..., m..., k] -> y[b..., m..., r...]: the last axis of the indices names a position of the k axes n.
struct gather_nd {
    static constexpr std::string_view kind = "gather_nd";
    std::int64_t batch_axes = 0; ///< how many axes b there are
    /// Inputs: data, indices (i64 or i32).
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

namespace detail {

/// The end of it.
[[nodiscard]] operation scattered(operation op, std::span<tensor const> inputs, std::vector<axis> indices, std::vector<axis> updates);
} // namespace detail

/// data, indices, updates -> data in which the elements that the indices name along `axis` are replaced, or added to.
struct scatter_elements {
    static constexpr std::string_view kind = "scatter_elements";
    std::int64_t axis = 0;
    /// Inputs: data, indices (i64 or i32) of as many axes, updates of their shape. Axes but `axis` are at most as long as those of data.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

/// data[n..., r...], indices[m..., k], updates[m..., r...] -> data in which the parts [r...] at the positions of the k axes n that the indices
/// name are replaced, or added to.
struct scatter_nd {
    static constexpr std::string_view kind = "scatter_nd";
    /// Inputs: data, indices (i64 or i32), updates.
    [[nodiscard]] operation infer(std::span<tensor const> inputs) const;
};

} // namespace parsearch::ops

#ifndef PARSEARCH_COMPILED
#include <parsearch/ops/indexing.ipp>
#endif
