#pragma once
/// A roofline fitted to measured times: the rates of arithmetic and of memory that they show, and what a kernel costs beside.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/portable_math.hpp>
#include <parsearch/core/units.hpp>

namespace parsearch::cost {

/// The amount of work of something measured, and its time.
struct work_point {
    flop_count flops = 0;
    double bytes = 0;
    picoseconds time{};
};

/// time = max(flops * seconds_per_flop, bytes * seconds_per_byte) + overhead: the rates that are reached, not those of a data sheet.
struct roofline_fit {
    double seconds_per_flop = 0, seconds_per_byte = 0, overhead = 0;
    friend bool operator==(roofline_fit const&, roofline_fit const&) = default;

    [[nodiscard]] double seconds(flop_count flops, double bytes) const noexcept {
        return std::max(unfused(flops * seconds_per_flop), unfused(bytes * seconds_per_byte)) + overhead;
    }
};

/// The fewest points that tell the three numbers of a `roofline_fit` with one to spare.
inline constexpr std::size_t roofline_fit_points = 4;

namespace detail {

/// The value at `part` of the way from the least to the greatest, the lower of two. Precondition: there is one.
[[nodiscard]] inline double quantile(std::vector<double> values, double part) {
    auto const at = values.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(values.size() - 1) * part);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}
[[nodiscard]] inline double lower_median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

} // namespace detail

/// The roofline with the least sum of absolute errors of the logarithm of time, which a few wild measurements do not move. Numbers that no
/// point tells (the arithmetic rate where memory bounds all of them) stay at the slowest that agrees. Deterministic, and the same for any order of
/// the points. Of more than 1024 points as many are used, evenly by work. Throws `invalid_input` where there are none, or one has a time that is not
/// positive or amounts that are negative or not finite. Complexity: O(points log points), and some hundreds of evaluations of those used.
[[nodiscard]] roofline_fit fit_roofline(std::span<work_point const> points);

} // namespace parsearch::cost

#ifndef PARSEARCH_COMPILED
#include <parsearch/cost/roofline_fit.ipp>
#endif
