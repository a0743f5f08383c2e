#pragma once
/// Data parallelism, and what differs from it in single operators.

#include <cstddef>
#include <cstdint>
#include <optional>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::space {

namespace detail {

[[nodiscard]] inline std::optional<std::uint32_t> first_dim(ops::operation const& op, ops::dim_kind kind, std::int64_t divisible_by = 1) {
    for (std::uint32_t k = 0; k < op.dims.size(); ++k)
        if (op.dims[k].kind == kind && op.dims[k].extent % divisible_by == 0) return k;
    return std::nullopt;
}
} // namespace detail

/// Splits the sample dim as far as `degree` allows, on devices `stride` apart from `start`; see `sample_parts`.
[[nodiscard]] configuration split_samples(ops::operation const& op, std::int64_t degree, std::int32_t stride = 1, std::int32_t start = 0,
                                          bool uneven = false);

/// Every operator splits its samples over `devices` devices from number `first` on (over the largest divisor of the batch that is not more, but where
/// `uneven`).
[[nodiscard]] inline flat_strategy data_parallel(graph::dense_graph const& g, std::size_t devices, bool uneven = false, std::size_t first = 0) {
    flat_strategy s;
    for (auto const& op : g.operations)
        s.push_back(split_samples(op, static_cast<std::int64_t>(devices), 1, static_cast<std::int32_t>(first), uneven));
    return s;
}

/// Everything on the first device.
[[nodiscard]] inline flat_strategy one_device(graph::dense_graph const& g) {
    flat_strategy s;
    for (auto const& op : g.operations) s.push_back(whole(op));
    return s;
}

/// Data parallelism, but linear layers split their output features over all devices.
/// Source: Krizhevsky, One weird trick for parallelizing convolutional neural networks, 2014.
[[nodiscard]] flat_strategy one_weird_trick(graph::dense_graph const& g, std::size_t devices, bool uneven = false);

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/textbook/data_parallel.ipp>
#endif
