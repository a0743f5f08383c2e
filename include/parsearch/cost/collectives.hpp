#pragma once
/// Times of collectives: latency and bandwidth of rings, trees and hierarchies, the cheapest chosen by size.

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/compiled.hpp>
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
    [[nodiscard]] choice cheapest(collective_kind kind, byte_count bytes, collective_group const& group) const;

    /// True where the table has an entry for the group.
    [[nodiscard]] static bool applies(collective_algorithm algorithm, collective_kind kind, collective_group const& group) noexcept {
        if (algorithm == collective_algorithm::in_switch) return kind == collective_kind::all_reduce && group.switch_rate.bytes_per_second > 0;
        bool const layered = group.nodes > 1 && group.per_node > 1;
        return algorithm == collective_algorithm::hierarchical ? layered : !(layered && kind == collective_kind::all_to_all);
    }

    /// Time by a given algorithm. Throws as `collective_time`, and where the algorithm does not apply to the group.
    [[nodiscard]] picoseconds time_by(collective_algorithm algorithm, collective_kind kind, byte_count bytes, collective_group const& group) const;

  private:
    static picoseconds uncongested(collective_algorithm algorithm, collective_kind kind, byte_count bytes, collective_group const& group);
    static void check(byte_count bytes, collective_group const& g);

    static picoseconds tree(collective_kind kind, byte_count bytes, collective_group const& g);

    static picoseconds hierarchical(collective_kind kind, byte_count bytes, collective_group const& g);
};

} // namespace parsearch::cost

#ifndef PARSEARCH_COMPILED
#include <parsearch/cost/collectives.ipp>
#endif
