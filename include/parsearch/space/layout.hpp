#pragma once
/// Laying the shards of a configuration out over devices.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::space {

/// The dims of `op`, those whose shards talk most first: reduction and partial sums, parameter and copies, attribute, then sample. Neighbours are to
/// share them.
[[nodiscard]] std::vector<std::uint32_t> inner_dims_first(ops::operation const& op);

/// Sets the strides of `c`: the split dims take devices `stride` apart, dims named first the nearest.
void lay_out(configuration& c, std::span<std::uint32_t const> inner_first, std::int32_t stride = 1);

/// The largest divisor of `extent` that is at most `limit` (1 where `limit` is below 1).
[[nodiscard]] constexpr std::int32_t largest_divisor(std::int64_t extent, std::int64_t limit) noexcept {
    for (std::int64_t n = std::min(extent, limit); n > 1; --n)
        if (extent % n == 0) return static_cast<std::int32_t>(n);
    return 1;
}

/// Into how many parts samples of `extent` are split over `limit` devices: the largest divisor, or where `uneven` as many as there are devices if
/// the largest part is smaller then.
[[nodiscard]] constexpr std::int32_t sample_parts(std::int64_t extent, std::int64_t limit, bool uneven) noexcept {
    auto const even = largest_divisor(extent, limit);
    auto const all = std::max<std::int64_t>(1, std::min(extent, limit));
    return uneven && ops::largest_part(extent, all) < extent / even ? static_cast<std::int32_t>(all) : even;
}

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/layout.ipp>
#endif
