#pragma once
/// How the shards of an operator hold or read a tensor: where, and which copies and partial sums of it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/shard.hpp>

namespace parsearch::sim {

namespace detail {

/// Positions of each shard in a tensor: shards x axes.
class shard_regions {
  public:
    shard_regions(ops::operation const& op, ops::operand const& o, std::span<std::int32_t const> degrees);
    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    [[nodiscard]] std::span<ops::interval const> operator[](std::size_t shard) const noexcept {
        return std::span(intervals_).subspan(shard * axes_, axes_);
    }
    [[nodiscard]] std::size_t axes() const noexcept { return axes_; }
    /// Shard by shard, axis by axis.
    [[nodiscard]] std::span<ops::interval const> intervals() const noexcept { return intervals_; }
    friend bool operator==(shard_regions const&, shard_regions const&) = default;

  private:
    std::size_t axes_, count_;
    std::vector<ops::interval> intervals_;
};

[[nodiscard]] std::int64_t common_elements(std::span<ops::interval const> a, std::span<ops::interval const> b) noexcept;

[[nodiscard]] inline bool same_region(std::span<ops::interval const> a, std::span<ops::interval const> b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}
} // namespace detail

/// Positions of shards in a tensor, and where they are not all there is to say: which of `copies` copies, and which of `partials` partial sums, a
/// shard makes; of what is read, which of `partials` shares of the partial sums.
struct shard_layout {
    detail::shard_regions regions;
    std::int64_t copies = 1, partials = 1;
    std::vector<std::uint32_t> copy{}, partial{}; ///< by shard; empty where there is one
    friend bool operator==(shard_layout const&, shard_layout const&) = default;
};

/// How shards of `op` make its output `made`. Complexity: O(shards * dims).
[[nodiscard]] shard_layout layout_of_output(ops::operation const& op, ops::operand const& made, std::span<std::int32_t const> degrees);

/// How shards of `op` read its input `read`. Complexity: O(shards * dims).
[[nodiscard]] shard_layout layout_of_input(ops::operation const& op, ops::operand const& read, std::span<std::int32_t const> degrees);

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/task/shard_layout.ipp>
#endif
