#pragma once
/// A curve that never falls, through points that may.

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/portable_math.hpp>

namespace parsearch::cost {

/// y as a function of x that never falls: isotonic regression by pooling adjacent violators (M. Ayer, H. Brunk, G. Ewing, W. Reid, E. Silverman, An
/// empirical distribution function for sampling with incomplete information, Annals of Mathematical Statistics 26, 1955), that is, of all such
/// functions the one with the least squares at the points; linear between the means of the pools, of steepness 1 before the first and behind
/// the last. It meets points that rise with x. The order of the points does not matter.
class monotone_curve {
  public:
    /// Throws `invalid_input` where there is no point. Complexity: O(points log points).
    explicit monotone_curve(std::span<std::pair<double, double> const> points) {
        if (points.empty()) throw invalid_input("monotone curve through 0 points: must be at least one");
        std::vector<std::pair<double, double>> sorted(points.begin(), points.end());
        std::sort(sorted.begin(), sorted.end());
        for (auto const& [x, y] : sorted) {
            pools_.push_back({x, y, 1});
            while (pools_.size() > 1) {
                auto &a = pools_[pools_.size() - 2], &b = pools_.back();
                if (a.y() <= b.y() && a.x() < b.x()) break;
                a = {a.sum_x + b.sum_x, a.sum_y + b.sum_y, a.points + b.points};
                pools_.pop_back();
            }
        }
    }

    /// Complexity: O(log points).
    [[nodiscard]] double operator()(double x) const noexcept {
        auto const above = std::lower_bound(pools_.begin(), pools_.end(), x, [](pool const& p, double value) { return p.x() < value; });
        if (above == pools_.begin()) return above->y() + (x - above->x());
        if (above == pools_.end()) return pools_.back().y() + (x - pools_.back().x());
        auto const& below = *(above - 1);
        double const part = (x - below.x()) / (above->x() - below.x());
        return std::min(below.y() + unfused(part * (above->y() - below.y())), above->y());
    }

  private:
    struct pool {
        double sum_x = 0, sum_y = 0, points = 1;
        [[nodiscard]] double x() const noexcept { return sum_x / points; }
        [[nodiscard]] double y() const noexcept { return sum_y / points; }
    };
    std::vector<pool> pools_; ///< rising in x, never falling in y
};

} // namespace parsearch::cost
