#pragma once
// How the shards of an operator hold or read a tensor: where, and which copies and partial sums of it.

#include <parsearch/sim/task/shard_layout.hpp>

namespace parsearch::sim::detail {

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

} // namespace parsearch::sim::detail

namespace parsearch::sim::detail {

PARSEARCH_INLINE shard_regions::shard_regions(ops::operation const& op, ops::operand const& o, std::span<std::int32_t const> degrees)
    : axes_(o.axes.size()), count_(static_cast<std::size_t>(ops::shard_count(degrees))), intervals_(axes_ * count_) {
    for (std::size_t n = 0; n < count_; ++n) {
        auto const box = ops::shard_box(op, degrees, static_cast<std::int64_t>(n));
        for (std::size_t a = 0; a < axes_; ++a) intervals_[n * axes_ + a] = ops::axis_interval(o.axes[a], box);
    }
}

PARSEARCH_INLINE std::int64_t common_elements(std::span<ops::interval const> a, std::span<ops::interval const> b) noexcept {
    std::int64_t n = 1;
    for (std::size_t i = 0; i < a.size(); ++i)
        if ((n *= ops::intersection(a[i], b[i]).size()) == 0) return 0;
    return n;
}

} // namespace parsearch::sim::detail

namespace parsearch::sim {

PARSEARCH_INLINE shard_layout layout_of_output(ops::operation const& op, ops::operand const& made, std::span<std::int32_t const> degrees) {
    shard_layout out{.regions = {op, made, degrees}};
    out.copies = detail::number_shards(
        degrees, [&](std::size_t k) { return op.dims[k].kind == ops::dim_kind::copies; }, out.copy);
    out.partials = detail::number_shards(
        degrees, [&](std::size_t k) { return ops::leaves_partial_sums(op, made, k); }, out.partial);
    return out;
}

PARSEARCH_INLINE shard_layout layout_of_input(ops::operation const& op, ops::operand const& read, std::span<std::int32_t const> degrees) {
    shard_layout out{.regions = {op, read, degrees}};
    if (read.summed)
        out.partials = detail::number_shards(
            degrees, [&](std::size_t k) { return op.dims[k].kind == ops::dim_kind::sums; }, out.partial);
    return out;
}

} // namespace parsearch::sim
