#pragma once
/// Collective operations and the shape of a group of devices that runs one.

#include <array>
#include <cstdint>
#include <string_view>

#include <parsearch/core/units.hpp>

namespace parsearch {

/// The collectives that data movement is made of. Bytes are those of the whole tensor: the result of an all-reduce,
/// all-gather or broadcast, the input of a reduce-scatter or reduce, what is held in all at one side of an all-to-all. An `all_to_all_v` sends any
/// amount from any device to any other; its bytes are those that are sent. Its cost follows from its messages, no oracle is asked.
enum class collective_kind : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, all_to_all_v };

/// The name of a collective, as in MPI.
[[nodiscard]] constexpr std::string_view name_of(collective_kind kind) noexcept {
    constexpr std::array<std::string_view, 7> names{"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                                    "broadcast",  "reduce",     "all_to_all_v"};
    return names[static_cast<std::size_t>(kind)];
}

/// What a collective's cost depends on, read off the links that the group's rings use.
/// A ring's rate is that of its slowest link, shared by the ring's hops that pass it. Where a group has several rings, each with a part of
/// the bytes, "the ring" stands for all of them together.
struct collective_group {
    std::uint32_t size = 1;         ///< devices in the group
    std::uint32_t nodes = 1;        ///< nodes they are on
    std::uint32_t per_node = 1;     ///< devices on the fullest node
    bandwidth ring_rate{};          ///< rate of the ring through all devices, node by node, or of all such rings together
    picoseconds ring_latency{};     ///< largest latency of one hop of that ring
    bandwidth inside_rate{};        ///< rate of the slowest ring inside a node; unused where per_node is 1
    picoseconds inside_latency{};   ///< largest latency of one hop inside a node
    bandwidth between_rate{};       ///< rate of a ring of one device per node; unused where nodes is 1
    picoseconds between_latency{};  ///< largest latency of one hop between nodes
    bandwidth exchange_rate{};      ///< of an all-to-all: what each device sends while all send to all at once; zero: not known, or another kind
    picoseconds exchange_latency{}; ///< largest latency between two devices, where `exchange_rate` is known
    bandwidth switch_rate{}; ///< of each device's links while the one switch that joins all adds up in flight; zero: it does not, or there is none
    friend bool operator==(collective_group const&, collective_group const&) = default;
};

} // namespace parsearch
