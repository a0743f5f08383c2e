#pragma once
// Ways to tell the time of a kernel from others of its family, beside the library's own: what docs/measured.md compares it with.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/cost/kernel_family.hpp>
#include <parsearch/cost/profile.hpp>
#include <parsearch/cost/roofline_fit.hpp>

namespace bench {

namespace ps = parsearch;

// The members of a family but the one asked for.
struct family_data {
    std::vector<std::vector<double>> at; // log2 of the extents
    std::vector<double> time;            // log2 of the seconds
    std::vector<double> trend;           // log2 of what the roofline of the members says of each
};

inline std::vector<double> coordinates(ps::cost::kernel const& k) {
    std::vector<double> out;
    for (auto const& d : k.dims) out.push_back(std::log2(static_cast<double>(std::max<std::int64_t>(1, d.extent))));
    return out;
}
inline double distance(std::vector<double> const& a, std::vector<double> const& b) {
    double sum = 0;
    for (std::size_t d = 0; d < a.size(); ++d) sum += std::abs(a[d] - b[d]);
    return sum;
}

// The time of the member nearest in the logarithms of the extents.
inline double nearest(family_data const& f, std::vector<double> const& x, double) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < f.at.size(); ++i)
        if (distance(f.at[i], x) < distance(f.at[best], x)) best = i;
    return f.time[best];
}
// The roofline fitted to the members.
inline double trend_alone(family_data const&, std::vector<double> const&, double trend) { return trend; }
// The roofline, times the mean ratio of measured and roofline weighted by distance^-p (D. Shepard, 1968). Not monotone.
template <int Power> double weighted_ratio(family_data const& f, std::vector<double> const& x, double trend) {
    double sum = 0, weights = 0;
    for (std::size_t i = 0; i < f.at.size(); ++i) {
        double const w = std::pow(distance(f.at[i], x) + 1e-9, -Power);
        sum += w * (f.time[i] - f.trend[i]);
        weights += w;
    }
    return trend + sum / weights;
}
inline std::pair<double, double> bounds(family_data const& f, std::vector<double> const& x) {
    double low = -1e9, high = 1e9;
    for (std::size_t i = 0; i < f.at.size(); ++i) {
        double up = 0, down = 0;
        for (std::size_t d = 0; d < x.size(); ++d) (x[d] > f.at[i][d] ? up : down) += x[d] - f.at[i][d];
        low = std::max(low, f.time[i] + down);
        high = std::min(high, f.time[i] + up);
    }
    return {low, high};
}
// The middle of what a steepness from 0 to 1 along each dim allows.
inline double middle_of_bounds(family_data const& f, std::vector<double> const& x, double) {
    auto const [low, high] = bounds(f, x);
    return (low + high) / 2;
}
// The weighted ratio within these bounds. Not monotone.
inline double weighted_within_bounds(family_data const& f, std::vector<double> const& x, double trend) {
    auto const [low, high] = bounds(f, x);
    return std::clamp(weighted_ratio<2>(f, x, trend), std::min(low, high), std::max(low, high));
}
// Log-log linear along the first dim between members alike in the others; beyond the last with its slope, from 0 to 1; nothing where there are
// no two.
inline std::optional<double> along_first_dim(family_data const& f, std::vector<double> const& x) {
    std::vector<std::pair<double, double>> line;
    for (std::size_t i = 0; i < f.at.size(); ++i)
        if (std::equal(x.begin() + 1, x.end(), f.at[i].begin() + 1)) line.push_back({f.at[i][0], f.time[i]});
    if (line.size() < 2) return std::nullopt;
    std::sort(line.begin(), line.end());
    auto above = std::lower_bound(line.begin(), line.end(), std::pair(x[0], -1e9));
    bool const inside = above != line.begin() && above != line.end();
    if (above == line.begin()) ++above;
    if (above == line.end()) --above;
    auto const &a = *(above - 1), &b = *above;
    double slope = (b.second - a.second) / (b.first - a.first);
    if (!inside) slope = std::clamp(slope, 0.0, 1.0);
    auto const& from = x[0] > b.first ? b : a;
    return from.second + slope * (x[0] - from.first);
}

struct candidate {
    std::string_view name;
    double (*estimate)(family_data const&, std::vector<double> const&, double);
};
inline constexpr std::array<candidate, 6> candidates{{{"nearest member", nearest},
                                                      {"fitted roofline alone", trend_alone},
                                                      {"roofline, ratios weighted by distance^-2", weighted_ratio<2>},
                                                      {"roofline, ratios weighted by distance^-4", weighted_ratio<4>},
                                                      {"middle of the bounds", middle_of_bounds},
                                                      {"weighted ratios within the bounds", weighted_within_bounds}}};

} // namespace bench
