#pragma once
// Rings through a group of servers, and what an all-reduce over them puts on each link.

#include <numeric>

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/network/rings.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE std::vector<std::uint32_t> ring_steps(std::uint32_t g, step_set which) {
    auto const prime = [](std::uint32_t p) {
        for (std::uint32_t k = 2; std::uint64_t{k} * k <= p; ++k)
            if (p % k == 0) return false;
        return true;
    };
    std::vector<std::uint32_t> out;
    for (std::uint32_t p = 1; p < g; ++p)
        if (std::gcd(p, g) == 1 && (which == step_set::coprime || prime(p))) out.push_back(p);
    return out;
}

PARSEARCH_INLINE std::vector<std::uint32_t> ring_order(std::span<std::uint32_t const> members, std::uint32_t step) {
    auto const g = members.size();
    if (g == 0 || std::gcd(std::size_t{step}, g) != 1)
        throw invalid_input("ring of step ", step, " through ", g, " members: step and size must have no common factor");
    std::vector<std::uint32_t> out;
    out.reserve(g);
    for (std::size_t i = 0, at = 0; i < g; ++i, at = (at + step) % g) out.push_back(members[at]);
    return out;
}

PARSEARCH_INLINE std::vector<byte_count> split_evenly(byte_count bytes, std::size_t parts) {
    auto const n = static_cast<byte_count>(parts);
    std::vector<byte_count> out(parts, bytes / n);
    for (std::size_t i = 0; i < static_cast<std::size_t>(bytes % n); ++i) ++out[i];
    return out;
}

PARSEARCH_INLINE std::vector<byte_count> ring_traffic(byte_count bytes, std::size_t g) {
    if (g < 2) return std::vector<byte_count>(g, 0);
    auto const chunk = split_evenly(bytes, g);
    std::vector<byte_count> out(g);
    for (std::size_t i = 0; i < g; ++i) out[i] = 2 * bytes - chunk[(i + 1) % g] - chunk[(i + 2) % g];
    return out;
}

PARSEARCH_INLINE std::vector<byte_count> ring_sends(collective_kind kind, std::span<byte_count const> part, std::size_t root) {
    auto const g = part.size();
    auto const bytes = std::accumulate(part.begin(), part.end(), byte_count{0});
    if (kind == collective_kind::all_reduce) return ring_traffic(bytes, g);
    std::vector<byte_count> out(g, g < 2 ? 0 : bytes);
    for (std::size_t i = 0; i < g && g > 1; ++i) {
        auto const next = (i + 1) % g;
        if (kind == collective_kind::all_gather) out[i] -= part[next];  // all but what the next one made
        if (kind == collective_kind::reduce_scatter) out[i] -= part[i]; // all but what stays here
        if (kind == collective_kind::broadcast && next == root) out[i] = 0;
        if (kind == collective_kind::reduce && i == root) out[i] = 0;
    }
    return out;
}

} // namespace parsearch::fabric
