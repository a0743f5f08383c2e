#pragma once
// Laying the shards of a configuration out over devices.

#include <parsearch/space/layout.hpp>

namespace parsearch::space {

PARSEARCH_INLINE std::vector<std::uint32_t> inner_dims_first(ops::operation const& op) {
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

PARSEARCH_INLINE void lay_out(configuration& c, std::span<std::uint32_t const> inner_first, std::int32_t stride) {
    for (auto const k : inner_first) {
        c.stride[k] = c.degree[k] > 1 ? stride : 0;
        stride *= c.degree[k];
    }
}

} // namespace parsearch::space
