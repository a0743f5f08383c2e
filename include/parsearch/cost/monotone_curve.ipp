#pragma once
// A curve that never falls, through points that may.

#include <algorithm>

#include <parsearch/core/error.hpp>
#include <parsearch/cost/monotone_curve.hpp>

namespace parsearch::cost {

PARSEARCH_INLINE monotone_curve::monotone_curve(std::span<std::pair<double, double> const> points) {
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

PARSEARCH_INLINE double monotone_curve::operator()(double x) const noexcept {
    auto const above = std::lower_bound(pools_.begin(), pools_.end(), x, [](pool const& p, double value) { return p.x() < value; });
    if (above == pools_.begin()) return above->y() + (x - above->x());
    if (above == pools_.end()) return pools_.back().y() + (x - pools_.back().x());
    auto const& below = *(above - 1);
    double const part = (x - below.x()) / (above->x() - below.x());
    return std::min(below.y() + unfused(part * (above->y() - below.y())), above->y());
}

} // namespace parsearch::cost
