#pragma once
/// How flows choose their paths through a network: policies, and the hash that spreads flows.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <parsearch/core/random.hpp>

namespace parsearch::fabric {

/// Which paths flows take. Lengths are counted in links.
enum class routing : std::uint8_t {
    shortest,   ///< one shortest path per ordered pair of servers (`forwarding_table`)
    ecmp,       ///< all shortest paths: at every vertex a flow hashes onto one of the links that lead nearer, as switches have it
    k_shortest, ///< the k shortest loopless paths of the pair, flows spread over them by hash
    coin_change ///< on circulants alone: fewest jumps whose sum is the distance (`coin_change`)
};
[[nodiscard]] constexpr std::string_view name_of(routing r) noexcept {
    constexpr std::array<std::string_view, 4> names{"shortest", "ecmp", "k_shortest", "coin_change"};
    return names[static_cast<std::size_t>(r)];
}

/// Options of `path_table`.
struct routing_options {
    routing policy = routing::shortest;
    std::uint32_t k = 4;    ///< paths of each pair; `routing::k_shortest` alone
    std::uint64_t seed = 0; ///< of the hash of flows
};

/// The flow between two devices (or servers): what all packets between them share. Both directions are flows of their own.
[[nodiscard]] constexpr std::uint64_t flow_between(std::uint32_t from, std::uint32_t to) noexcept { return (std::uint64_t{from} << 32) | to; }

/// 64 bits that depend on all of `seed`, `flow` and `place`, the same on every platform. For a seed and flow no two places give the same.
[[nodiscard]] inline std::uint64_t flow_hash(std::uint64_t seed, std::uint64_t flow, std::uint64_t place) {
    return split_mix(split_mix(split_mix(seed)() ^ flow)() ^ place)();
}

} // namespace parsearch::fabric
