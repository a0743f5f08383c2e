#pragma once
/// A roofline fitted to measured times: the rates of arithmetic and of memory that they show, and what a kernel costs beside.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
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

/// Minimises the sum of |log2(predicted / measured)| over the logarithms of the three numbers by a pattern search (R. Hooke, T. Jeeves, Direct
/// search solution of numerical and statistical problems, JACM 8(2), 1961) with steps of four down to 2^(1/64), from rates that half or nine
/// tenths of the points do not reach: the sum has several minima.
class roofline_search {
  public:
    explicit roofline_search(std::span<work_point const> points) : points_(points.begin(), points.end()) {
        // The sum is then the same for any order of the points.
        std::sort(points_.begin(), points_.end(),
                  [](auto const& a, auto const& b) { return std::tie(a.flops, a.bytes, a.time) < std::tie(b.flops, b.bytes, b.time); });
        // Three numbers need no more: every so many-th, from the least work to the most.
        if (std::size_t const all = points_.size(); all > most_points) {
            for (std::size_t i = 0; i < most_points; ++i) points_[i] = points_[i * all / most_points];
            points_.resize(most_points);
        }
        std::vector<double> by_flops, by_bytes;
        for (auto const& p : points_) {
            logs_.push_back(binary_log(to_seconds(p.time)));
            if (p.flops > 0) by_flops.push_back(logs_.back() - binary_log(p.flops));
            if (p.bytes > 0) by_bytes.push_back(logs_.back() - binary_log(p.bytes));
        }
        used_ = {!by_flops.empty(), !by_bytes.empty(), true};
        double const overhead = *std::min_element(logs_.begin(), logs_.end()) - 1;
        for (double const flops : {0.5, 0.1})
            for (double const bytes : {0.5, 0.1})
                starts_.push_back({used_[0] ? quantile(by_flops, flops) : 0, used_[1] ? quantile(by_bytes, bytes) : 0, overhead});
    }

    [[nodiscard]] roofline_fit run() const {
        parameters best{};
        double least = 0;
        for (std::size_t i = 0; i < starts_.size(); ++i) {
            auto const [found, sum] = descend(starts_[i]);
            if (i > 0 && sum >= least) continue; // ties go to the slower start
            best = found;
            least = sum;
        }
        return fit_of(best);
    }

  private:
    static constexpr std::size_t most_points = 1024;
    using parameters = std::array<double, 3>;

    [[nodiscard]] std::pair<parameters, double> descend(parameters at) const {
        constexpr std::array<std::array<int, 3>, 6> directions{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 0}, {1, 0, -1}, {0, 1, -1}}};
        constexpr int rounds = 400; // in practice it ends by itself after some tens
        double best = loss(at), step = 2;
        for (int round = 0; round < rounds && step > 1.0 / 128; ++round) {
            bool better = false;
            for (auto const& d : directions)
                for (double const sign : {step, -step}) {
                    auto next = at;
                    for (std::size_t k = 0; k < 3; ++k)
                        if (used_[k]) next[k] += d[k] * sign;
                    if (double const l = loss(next); l < best - 1e-9 * static_cast<double>(points_.size())) {
                        best = l;
                        at = next;
                        better = true;
                    }
                }
            if (!better) step /= 2;
        }
        return {at, best};
    }
    [[nodiscard]] roofline_fit fit_of(parameters const& p) const {
        return {used_[0] ? binary_exp(p[0]) : 0, used_[1] ? binary_exp(p[1]) : 0, binary_exp(p[2])};
    }
    [[nodiscard]] double loss(parameters const& p) const {
        auto const fit = fit_of(p);
        double sum = 0;
        for (std::size_t i = 0; i < points_.size(); ++i) {
            double const error = binary_log(fit.seconds(points_[i].flops, points_[i].bytes)) - logs_[i];
            sum += error < 0 ? -error : error;
        }
        return sum;
    }

    std::vector<work_point> points_;
    std::vector<double> logs_; ///< of the times in seconds
    std::array<bool, 3> used_{};
    std::vector<parameters> starts_;
};
} // namespace detail

/// The roofline with the least sum of absolute errors of the logarithm of time, which a few wild measurements do not move. Numbers that no
/// point tells (the arithmetic rate where memory bounds all of them) stay at the slowest that agrees. Deterministic, and the same for any order of
/// the points. Of more than 1024 points as many are used, evenly by work. Throws `invalid_input` where there are none, or one has a time that is not
/// positive or amounts that are negative or not finite. Complexity: O(points log points), and some hundreds of evaluations of those used.
[[nodiscard]] inline roofline_fit fit_roofline(std::span<work_point const> points) {
    if (points.empty()) throw invalid_input("fit of a roofline to 0 points: must be at least one");
    for (std::size_t i = 0; i < points.size(); ++i) {
        auto const& p = points[i];
        if (p.time <= picoseconds::zero() || !(p.flops >= 0) || !(p.bytes >= 0) || p.flops > 1e300 || p.bytes > 1e300)
            throw invalid_input("fit of a roofline: points[", i, "] has ", p.flops, " flops and ", p.bytes, " bytes in ", p.time.count(),
                                " ps: amounts must be finite and not negative, times positive");
    }
    return detail::roofline_search(points).run();
}

} // namespace parsearch::cost
