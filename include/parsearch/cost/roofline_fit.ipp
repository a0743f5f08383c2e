#pragma once
// A roofline fitted to measured times: the rates of arithmetic and of memory that they show, and what a kernel costs beside.

#include <parsearch/core/error.hpp>
#include <parsearch/cost/roofline_fit.hpp>

namespace parsearch::cost::detail {

/// Minimises the sum of |log2(predicted / measured)| over the logarithms of the three numbers by a pattern search (R. Hooke, T. Jeeves, Direct
/// search solution of numerical and statistical problems, JACM 8(2), 1961) with steps of four down to 2^(1/64), from rates that half or nine
/// tenths of the points do not reach: the sum has several minima.
class roofline_search {
  public:
    explicit roofline_search(std::span<work_point const> points);

    [[nodiscard]] roofline_fit run() const;

  private:
    static constexpr std::size_t most_points = 1024;
    using parameters = std::array<double, 3>;

    [[nodiscard]] std::pair<parameters, double> descend(parameters at) const;
    [[nodiscard]] roofline_fit fit_of(parameters const& p) const {
        return {used_[0] ? binary_exp(p[0]) : 0, used_[1] ? binary_exp(p[1]) : 0, binary_exp(p[2])};
    }
    [[nodiscard]] double loss(parameters const& p) const;

    std::vector<work_point> points_;
    std::vector<double> logs_; ///< of the times in seconds
    std::array<bool, 3> used_{};
    std::vector<parameters> starts_;
};

} // namespace parsearch::cost::detail

namespace parsearch::cost::detail {

PARSEARCH_INLINE roofline_search::roofline_search(std::span<work_point const> points) : points_(points.begin(), points.end()) {
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

PARSEARCH_INLINE roofline_fit roofline_search::run() const {
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

PARSEARCH_INLINE std::pair<roofline_search::parameters, double> roofline_search::descend(parameters at) const {
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

PARSEARCH_INLINE double roofline_search::loss(parameters const& p) const {
    auto const fit = fit_of(p);
    double sum = 0;
    for (std::size_t i = 0; i < points_.size(); ++i) {
        double const error = binary_log(fit.seconds(points_[i].flops, points_[i].bytes)) - logs_[i];
        sum += error < 0 ? -error : error;
    }
    return sum;
}

} // namespace parsearch::cost::detail

namespace parsearch::cost {

PARSEARCH_INLINE roofline_fit fit_roofline(std::span<work_point const> points) {
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
