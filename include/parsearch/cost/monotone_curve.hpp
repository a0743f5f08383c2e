#pragma once
/// A curve that never falls, through points that may.

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/portable_math.hpp>

namespace parsearch::cost {

/// y as a function of x that never falls: isotonic regression by pooling adjacent violators (M. Ayer, H. Brunk, G. Ewing, W. Reid, E. Silverman, An
/// empirical distribution function for sampling with incomplete information, Annals of Mathematical Statistics 26, 1955), that is, of all such
/// functions the one with the least squares at the points; linear between the means of the pools, of steepness 1 before the first and behind
/// the last. It meets points that rise with x. The order of the points does not matter.
class monotone_curve {
  public:
    /// Throws `invalid_input` where there is no point. Complexity: O(points log points).
    explicit monotone_curve(std::span<std::pair<double, double> const> points);

    /// Complexity: O(log points).
    [[nodiscard]] double operator()(double x) const noexcept;

  private:
    struct pool {
        double sum_x = 0, sum_y = 0, points = 1;
        [[nodiscard]] double x() const noexcept { return sum_x / points; }
        [[nodiscard]] double y() const noexcept { return sum_y / points; }
    };
    std::vector<pool> pools_; ///< rising in x, never falling in y
};

} // namespace parsearch::cost

#ifndef PARSEARCH_COMPILED
#include <parsearch/cost/monotone_curve.ipp>
#endif
