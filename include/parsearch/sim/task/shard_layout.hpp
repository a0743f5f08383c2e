#pragma once
/// How the shards of an operator hold or read a tensor: where, and which copies and partial sums of it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/ops/shard.hpp>

namespace parsearch::sim {

namespace detail {

/// Positions of each shard in a tensor: shards x axes.
class shard_regions {
  public:
    shard_regions(ops::operation const& op, ops::operand const& o, std::span<std::int32_t const> degrees)
        : axes_(o.axes.size()), count_(static_cast<std::size_t>(ops::shard_count(degrees))), intervals_(axes_ * count_) {
        for (std::size_t n = 0; n < count_; ++n) {
            auto const box = ops::shard_box(op, degrees, static_cast<std::int64_t>(n));
            for (std::size_t a = 0; a < axes_; ++a) intervals_[n * axes_ + a] = ops::axis_interval(o.axes[a], box);
        }
    }
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

[[nodiscard]] inline std::int64_t common_elements(std::span<ops::interval const> a, std::span<ops::interval const> b) noexcept {
    std::int64_t n = 1;
    for (std::size_t i = 0; i < a.size(); ++i)
        if ((n *= ops::intersection(a[i], b[i]).size()) == 0) return 0;
    return n;
}

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

namespace detail {

/// Counts through the dims `counted(k)` of a configuration's degrees, the last fastest: of each shard its number, and how many there are.
template <class Counted>
[[nodiscard]] std::int64_t number_shards(std::span<std::int32_t const> degrees, Counted const& counted, std::vector<std::uint32_t>& numbers) {
    std::int64_t count = 1;
    for (std::size_t k = 0; k < degrees.size(); ++k)
        if (counted(k)) count *= degrees[k];
    if (count == 1) return count;
    numbers.reserve(static_cast<std::size_t>(ops::shard_count(degrees)));
    for (std::int64_t shard = 0; shard < ops::shard_count(degrees); ++shard) {
        std::int64_t number = 0, place = 1, rest = shard;
        for (std::size_t k = degrees.size(); k-- > 0; rest /= degrees[k])
            if (counted(k)) {
                number += rest % degrees[k] * place;
                place *= degrees[k];
            }
        numbers.push_back(static_cast<std::uint32_t>(number));
    }
    return count;
}
} // namespace detail

/// How shards of `op` make its output `made`. Complexity: O(shards * dims).
[[nodiscard]] inline shard_layout layout_of_output(ops::operation const& op, ops::operand const& made, std::span<std::int32_t const> degrees) {
    shard_layout out{.regions = {op, made, degrees}};
    out.copies = detail::number_shards(
        degrees, [&](std::size_t k) { return op.dims[k].kind == ops::dim_kind::copies; }, out.copy);
    out.partials = detail::number_shards(
        degrees, [&](std::size_t k) { return ops::leaves_partial_sums(op, made, k); }, out.partial);
    return out;
}

/// How shards of `op` read its input `read`. Complexity: O(shards * dims).
[[nodiscard]] inline shard_layout layout_of_input(ops::operation const& op, ops::operand const& read, std::span<std::int32_t const> degrees) {
    shard_layout out{.regions = {op, read, degrees}};
    if (read.summed)
        out.partials = detail::number_shards(
            degrees, [&](std::size_t k) { return op.dims[k].kind == ops::dim_kind::sums; }, out.partial);
    return out;
}

} // namespace parsearch::sim
