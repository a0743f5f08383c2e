#pragma once
// Times of collectives: latency and bandwidth of rings, trees and hierarchies, the cheapest chosen by size.

#include <algorithm>

#include <parsearch/cost/collectives.hpp>

namespace parsearch::cost::detail {

/// `steps` messages one after the other, and `parts / of` of the bytes at `rate`.
[[nodiscard]] inline picoseconds steps_and_bytes(std::uint64_t steps, picoseconds latency, double parts, double of, byte_count bytes,
                                                 bandwidth rate) {
    if (!(rate.bytes_per_second > 0)) throw invalid_input("collective over a group of rate ", rate.bytes_per_second, " B/s: must be positive");
    return static_cast<std::int64_t>(steps) * latency + from_seconds(static_cast<double>(bytes) * parts / of / rate.bytes_per_second);
}

[[nodiscard]] constexpr std::uint64_t ceil_log2(std::uint64_t n) noexcept { return static_cast<std::uint64_t>(std::bit_width(n - 1)); }

[[noreturn]] inline void refuse_kind(collective_kind kind) {
    if (kind == collective_kind::all_to_all_v)
        throw invalid_input("collective all_to_all_v: its cost follows from its messages, not from its bytes alone");
    throw invalid_input("collective kind ", static_cast<int>(kind), ": unknown");
}

} // namespace parsearch::cost::detail

namespace parsearch::cost::detail {

/// A ring of p devices (all-to-all: each device sends to every other in turn, messages of bytes / p^2).
PARSEARCH_INLINE picoseconds ring_time(collective_kind kind, byte_count bytes, std::uint64_t p, bandwidth rate, picoseconds latency) {
    double const q = static_cast<double>(p);
    switch (kind) {
    case collective_kind::all_reduce: return steps_and_bytes(2 * (p - 1), latency, 2 * (q - 1), q, bytes, rate);
    case collective_kind::all_gather:
    case collective_kind::reduce_scatter: return steps_and_bytes(p - 1, latency, q - 1, q, bytes, rate);
    case collective_kind::all_to_all: return steps_and_bytes(p - 1, latency, q - 1, q * q, bytes, rate);
    case collective_kind::broadcast:
    case collective_kind::reduce: return steps_and_bytes(p - 1, latency, 1, 1, bytes, rate);
    case collective_kind::all_to_all_v: break;
    }
    refuse_kind(kind);
}

} // namespace parsearch::cost::detail

namespace parsearch::cost {

PARSEARCH_INLINE alpha_beta::choice alpha_beta::cheapest(collective_kind kind, byte_count bytes, collective_group const& group) const {
    choice best{.time = picoseconds::max()};
    for (auto const algorithm : collective_algorithms)
        if (applies(algorithm, kind, group))
            if (auto const time = time_by(algorithm, kind, bytes, group); time < best.time) best = {algorithm, time};
    return best;
}

PARSEARCH_INLINE picoseconds alpha_beta::time_by(collective_algorithm algorithm, collective_kind kind, byte_count bytes,
                                                 collective_group const& group) const {
    check(bytes, group);
    if (!applies(algorithm, kind, group))
        throw invalid_input(name_of(algorithm), ' ', parsearch::name_of(kind), " over ", group.nodes, " nodes of up to ", group.per_node,
                            " devices: hierarchies need several of both, such an all-to-all needs a hierarchy, and a reduction in a switch is an "
                            "all-reduce whose group has a switch_rate");
    if (group.size == 1 || bytes == 0) return picoseconds{0};
    auto const time = uncongested(algorithm, kind, bytes, group);
    if (kind != collective_kind::all_to_all || !(group.exchange_rate.bytes_per_second > 0)) return time;
    double const p = group.size;
    return std::max(time, detail::steps_and_bytes(1, group.exchange_latency, p - 1, p * p, bytes, group.exchange_rate));
}

PARSEARCH_INLINE picoseconds alpha_beta::uncongested(collective_algorithm algorithm, collective_kind kind, byte_count bytes,
                                                     collective_group const& group) {
    switch (algorithm) {
    case collective_algorithm::ring: return detail::ring_time(kind, bytes, group.size, group.ring_rate, group.ring_latency);
    case collective_algorithm::tree: return tree(kind, bytes, group);
    case collective_algorithm::hierarchical: return hierarchical(kind, bytes, group);
    case collective_algorithm::in_switch: {
        double const p = group.size;
        return detail::steps_and_bytes(2 * detail::ceil_log2(group.size), group.ring_latency, p + 1, p, bytes, group.switch_rate);
    }
    }
    throw invalid_input("collective algorithm ", static_cast<int>(algorithm), ": unknown");
}

PARSEARCH_INLINE void alpha_beta::check(byte_count bytes, collective_group const& g) {
    if (bytes < 0) throw invalid_input("collective of ", bytes, " bytes: must not be negative");
    if (g.size < 1 || g.nodes < 1 || g.per_node < 1 || std::uint64_t{g.nodes} * g.per_node < g.size ||
        std::uint64_t{g.nodes} + g.per_node > std::uint64_t{g.size} + 1)
        throw invalid_input("collective over ", g.size, " devices on ", g.nodes, " nodes of up to ", g.per_node, ": no such group exists");
}

PARSEARCH_INLINE picoseconds alpha_beta::tree(collective_kind kind, byte_count bytes, collective_group const& g) {
    std::uint64_t const depth = detail::ceil_log2(g.size);
    double const p = g.size;
    auto const time = [&](std::uint64_t steps, double parts, double of) {
        return detail::steps_and_bytes(steps, g.ring_latency, parts, of, bytes, g.ring_rate);
    };
    switch (kind) {
    case collective_kind::all_reduce: return time(2 * depth, 2, 1);
    case collective_kind::all_gather:
    case collective_kind::reduce_scatter: return time(2 * depth, 2 * p - 1, p);
    case collective_kind::all_to_all: return time(depth, static_cast<double>(depth), 2 * p);
    case collective_kind::broadcast:
    case collective_kind::reduce: return time(depth, 1, 1);
    case collective_kind::all_to_all_v: break;
    }
    detail::refuse_kind(kind);
}

PARSEARCH_INLINE picoseconds alpha_beta::hierarchical(collective_kind kind, byte_count bytes, collective_group const& g) {
    using enum collective_kind;
    std::uint64_t const p = g.size, n = g.nodes, k = g.per_node;
    if (kind == all_to_all) {
        double const messages = static_cast<double>(p) * static_cast<double>(p);
        return detail::steps_and_bytes(k - 1, g.inside_latency, static_cast<double>(k - 1), messages, bytes, g.inside_rate) +
               detail::steps_and_bytes(p - k, g.between_latency, static_cast<double>(p - k), messages, bytes, g.between_rate);
    }
    // The largest of k equal parts, in whole bytes.
    byte_count const part = bytes / g.per_node + (bytes % g.per_node != 0);
    bool const both_ways = kind == all_reduce || kind == broadcast || kind == reduce;
    return (both_ways ? 2 : 1) * detail::ring_time(all_gather, bytes, k, g.inside_rate, g.inside_latency) +
           detail::ring_time(kind, part, n, g.between_rate, g.between_latency);
}

} // namespace parsearch::cost
