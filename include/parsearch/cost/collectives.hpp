#pragma once
/// Times of collectives: latency and bandwidth of rings, trees and hierarchies, the cheapest chosen by size.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>

namespace parsearch::cost {

/// How a collective is carried out.
enum class collective_algorithm : std::uint8_t { ring, tree, hierarchical, in_switch };
inline constexpr std::array<collective_algorithm, 4> collective_algorithms{collective_algorithm::ring, collective_algorithm::tree,
                                                                           collective_algorithm::hierarchical, collective_algorithm::in_switch};
[[nodiscard]] constexpr std::string_view name_of(collective_algorithm a) noexcept {
    constexpr std::array<std::string_view, 4> names{"ring", "tree", "hierarchical", "in_switch"};
    return names[static_cast<std::size_t>(a)];
}

namespace detail {

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

/// A ring of p devices (all-to-all: each device sends to every other in turn, messages of bytes / p^2).
[[nodiscard]] inline picoseconds ring_time(collective_kind kind, byte_count bytes, std::uint64_t p, bandwidth rate, picoseconds latency) {
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
} // namespace detail

/// The alpha-beta model: a step costs a latency (alpha) plus its bytes over a rate (beta). With p devices, B bytes as in
/// `collective_kind`, r and a the rate and latency of the group's ring, k devices on the fullest of n nodes:
///
/// | | ring | tree (L = ceil(log2 p)) | hierarchical |
/// |---|---|---|---|
/// | all_reduce | 2(p-1)a + 2(p-1)/p B/r | 2La + 2B/r | reduce-scatter of B inside, all-reduce of B/k between, all-gather of B inside |
/// | all_gather | (p-1)a + (p-1)/p B/r | 2La + (2p-1)/p B/r (gather, broadcast) | all-gather of B/k between, of B inside |
/// | reduce_scatter | (p-1)a + (p-1)/p B/r | as all_gather (reduce, scatter) | as all_gather, reversed |
/// | broadcast, reduce | (p-1)a + B/r (pipelined) | La + B/r | scatter inside, broadcast of B/k between, all-gather inside |
/// | all_to_all | (p-1)a + (p-1)/p B/p/r (pairwise exchange) | La + L/2 B/p/r (Bruck) | pairwise exchange: k-1 messages inside, p-k between |
///
/// The steps of the hierarchical column are rings at the inside and between rates. `between_rate` is that of one of k rings
/// which run at once, so a network interface that the devices of a node share is shared here too.
/// An all-to-all takes no less than (p-1)/p B/p over the exchange rate, and the exchange latency: what its most loaded link is held, where that is
/// known. A group that is on one node, or has one device per node, has no hierarchy. Ties go to the column further left.
///
/// Trees are double binary trees: every device is an inner node of one of two trees and a leaf of the other, each tree carries half
/// of the bytes (NCCL splits trees over channels as it does rings, so `r` is the rate of all together), and so a broadcast reaches the full rate; a
/// single binary tree, whose inner nodes send twice, has half of it. An all-to-all on several nodes has no Bruck variant, nor a flat one, which would
/// overrate the links between nodes.
///
/// A group whose one switch adds up in flight (`switch_rate` s) may also all-reduce in the switch: 2La + (p+1)/p B/s. Each device asks for the sum of
/// its part, so that all B pass out of each device, and sends it to all, B/p more. Other collectives gain nothing by it: what a device has to receive
/// (all-gather) or to give (reduce-scatter) passes its link anyway. No latency is claimed beside that of a tree.
///
/// Sources: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19(1),
/// 2005, sections 3 and 4 (ring, recursive and pairwise algorithms, Bruck); P. Sanders, J. Speck, J. L. Traeff, Two-tree algorithms for
/// full bandwidth broadcast, reduction and scan, Parallel Computing 35, 2009 (double trees, which NCCL uses since 2.4); bytes per rank
/// as in the file PERFORMANCE.md of nccl-tests; B. Klenk et al., An in-network architecture for accelerating shared-memory multiprocessor
/// collectives, ISCA 2020 (reductions in switches between GPUs).
struct alpha_beta {
    /// Time of a collective by the cheapest algorithm; zero for a group of one or no bytes. Throws `invalid_input` on negative bytes,
    /// a rate that is read and not positive, counts that contradict each other. Complexity: O(1).
    [[nodiscard]] picoseconds collective_time(collective_kind kind, byte_count bytes, collective_group const& group) const {
        return cheapest(kind, bytes, group).time;
    }

    /// An algorithm and its time.
    struct choice {
        collective_algorithm algorithm = collective_algorithm::ring;
        picoseconds time{};
    };
    /// The algorithm that `collective_time` prices.
    [[nodiscard]] choice cheapest(collective_kind kind, byte_count bytes, collective_group const& group) const {
        choice best{.time = picoseconds::max()};
        for (auto const algorithm : collective_algorithms)
            if (applies(algorithm, kind, group))
                if (auto const time = time_by(algorithm, kind, bytes, group); time < best.time) best = {algorithm, time};
        return best;
    }

    /// True where the table has an entry for the group.
    [[nodiscard]] static bool applies(collective_algorithm algorithm, collective_kind kind, collective_group const& group) noexcept {
        if (algorithm == collective_algorithm::in_switch) return kind == collective_kind::all_reduce && group.switch_rate.bytes_per_second > 0;
        bool const layered = group.nodes > 1 && group.per_node > 1;
        return algorithm == collective_algorithm::hierarchical ? layered : !(layered && kind == collective_kind::all_to_all);
    }

    /// Time by a given algorithm. Throws as `collective_time`, and where the algorithm does not apply to the group.
    [[nodiscard]] picoseconds time_by(collective_algorithm algorithm, collective_kind kind, byte_count bytes, collective_group const& group) const {
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

  private:
    static picoseconds uncongested(collective_algorithm algorithm, collective_kind kind, byte_count bytes, collective_group const& group) {
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
    static void check(byte_count bytes, collective_group const& g) {
        if (bytes < 0) throw invalid_input("collective of ", bytes, " bytes: must not be negative");
        if (g.size < 1 || g.nodes < 1 || g.per_node < 1 || std::uint64_t{g.nodes} * g.per_node < g.size ||
            std::uint64_t{g.nodes} + g.per_node > std::uint64_t{g.size} + 1)
            throw invalid_input("collective over ", g.size, " devices on ", g.nodes, " nodes of up to ", g.per_node, ": no such group exists");
    }

    static picoseconds tree(collective_kind kind, byte_count bytes, collective_group const& g) {
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

    static picoseconds hierarchical(collective_kind kind, byte_count bytes, collective_group const& g) {
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
};

} // namespace parsearch::cost
