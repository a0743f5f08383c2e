#pragma once
/// A configuration: how one operator is split and where its shards run.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::space {

/// A degree per iteration dim (those that do not divide its extent leave shards of two sizes, see `ops::part_of`), and a placement: shard (i0, i1,
/// ...) runs on device `start + sum of i_k * stride_k`, or, where `listed` is not empty, on `listed[n]` for shard number n (row major, last dim
/// fastest).
struct configuration {
    std::uint32_t rank = 0; ///< number of iteration dims
    std::array<std::int32_t, ops::max_dims> degree{};
    std::array<std::int32_t, ops::max_dims> stride{};
    std::int32_t start = 0;
    std::vector<std::int32_t> listed{};

    friend bool operator==(configuration const&, configuration const&) = default;

    [[nodiscard]] std::span<std::int32_t const> degrees() const noexcept { return {degree.data(), rank}; }
    /// The number of shards.
    [[nodiscard]] std::int64_t shards() const noexcept { return ops::shard_count(degrees()); }
    /// The device (position in `devices(topology)`) of shard number `shard`.
    [[nodiscard]] std::int32_t device(std::int64_t shard) const noexcept { return static_cast<std::int32_t>(place(shard)); }
    /// The same before it is known to be a device: start and strides of a configuration that was not validated may reach past 32 bits.
    [[nodiscard]] std::int64_t place(std::int64_t shard) const noexcept;
};

/// Whether `a` and `b`, which split alike, have their shards on the same devices, whichever way these are said.
[[nodiscard]] inline bool on_same_devices(configuration const& a, configuration const& b) noexcept {
    for (std::int64_t n = 0; n < a.shards(); ++n)
        if (a.place(n) != b.place(n)) return false;
    return true;
}

/// "s4 o2 @0+4,1": degrees above 1 by dim name, then start and the strides of these dims, or the list of devices.
[[nodiscard]] std::string to_string(configuration const& c, ops::operation const& op);

/// The most shards that a configuration may have.
inline constexpr std::int64_t max_shards = 1 << 20;

/// Checks that `c` fits `op` on `devices` devices. Throws `invalid_input` naming `where`, the value and the rule.
void validate(configuration const& c, ops::operation const& op, std::size_t devices, std::string_view where);

/// The whole operator on one device.
[[nodiscard]] inline configuration whole(ops::operation const& op, std::int32_t device = 0) {
    configuration c{.rank = static_cast<std::uint32_t>(op.dims.size()), .start = device};
    for (std::size_t k = 0; k < c.rank; ++k) c.degree[k] = 1;
    return c;
}

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/configuration.ipp>
#endif
