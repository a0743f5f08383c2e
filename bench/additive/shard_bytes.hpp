#pragma once
/// What a shard of an operator keeps in memory.

#include <cstdint>
#include <span>

#include <parsearch/core/units.hpp>
#include <parsearch/ops/operation.hpp>

namespace bench {

namespace ps = parsearch;

/// Elements of an operand's part where each dim is split into so many.
[[nodiscard]] inline std::int64_t part_of(ps::ops::operand const& o, std::span<std::int32_t const> degrees) {
    std::int64_t elements = 1;
    for (auto const& a : o.axes) {
        std::int64_t parts = 1;
        for (auto const& t : a.terms) parts *= degrees[t.dim];
        elements *= (a.extent + parts - 1) / parts;
    }
    return elements;
}

/// Bytes of a shard under these degrees: its parts of weights with their gradients and Adam's states, and of outputs.
[[nodiscard]] inline ps::byte_count shard_bytes(ps::ops::operation const& op, std::span<std::int32_t const> degrees) {
    ps::byte_count bytes = 0;
    for (auto const& w : op.weights) bytes += part_of(w, degrees) * (ps::ops::size_of(w.type) + 4 + 8);
    for (auto const& o : op.outputs) bytes += part_of(o, degrees) * ps::ops::size_of(o.type);
    return bytes;
}

} // namespace bench
