#pragma once
/// Laying the shards of a configuration out over devices.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/space/configuration.hpp>

namespace parsearch::space {

/// The dims of `op`, those whose shards talk most first: reduction and partial sums, parameter and copies, attribute, then sample. Neighbours are to
/// share them.
[[nodiscard]] inline std::vector<std::uint32_t> inner_dims_first(ops::operation const& op) {
    auto const distance = [&](std::uint32_t k) {
        switch (op.dims[k].kind) {
        case ops::dim_kind::reduction:
        case ops::dim_kind::sums: return 0;
        case ops::dim_kind::parameter:
        case ops::dim_kind::copies: return 1;
        case ops::dim_kind::attribute: return 2;
        default: return 3;
        }
    };
    std::vector<std::uint32_t> dims;
    for (std::uint32_t k = 0; k < op.dims.size(); ++k) dims.push_back(k);
    std::stable_sort(dims.begin(), dims.end(), [&](auto a, auto b) { return distance(a) < distance(b); });
    return dims;
}

/// Sets the strides of `c`: the split dims take devices `stride` apart, dims named first the nearest.
inline void lay_out(configuration& c, std::span<std::uint32_t const> inner_first, std::int32_t stride = 1) {
    for (auto const k : inner_first) {
        c.stride[k] = c.degree[k] > 1 ? stride : 0;
        stride *= c.degree[k];
    }
}

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
