#pragma once
// Latency and bandwidth of copies and collectives, fitted to measured times.

#include <parsearch/core/portable_math.hpp>
#include <parsearch/cost/link_fit.hpp>

namespace parsearch::cost::detail {

PARSEARCH_INLINE void check_points(std::span<link_point const> points, std::string_view place) {
    for (std::size_t i = 0; i < points.size(); ++i) {
        auto const [bytes, time] = points[i];
        if (bytes < 0) throw invalid_input(place, "points[", i, "] has ", bytes, " bytes: must not be negative");
        if (time < picoseconds::zero() || time > longest_measurement)
            throw invalid_input(place, "points[", i, "] takes ", time.count(), " ps: must be from 0 to ", longest_measurement.count(), " (13 days)");
    }
}

} // namespace parsearch::cost::detail

namespace parsearch::cost {

PARSEARCH_INLINE latency_bandwidth fit_latency_bandwidth(std::span<link_point const> points) {
    detail::check_points(points, "fit of latency and bandwidth: ");
    bool several = false;
    for (std::size_t i = 0; i < points.size(); ++i) {
        several = several || points[i].bytes != points[0].bytes;
        if (points[i].time == picoseconds::zero())
            throw invalid_input("fit of latency and bandwidth: points[", i, "] (", points[i].bytes, " bytes) takes 0 ps: must take longer");
    }
    if (!several) throw invalid_input("fit of latency and bandwidth to ", points.size(), " points: must be of at least two sizes");
    // Weighted linear regression of time on bytes about the weighted means; the weight 1 / time^2 makes errors relative.
    double weights = 0, bytes = 0, times = 0;
    auto const each = [&](auto const& f) {
        for (auto const& p : points) {
            double const x = static_cast<double>(p.bytes), t = to_seconds(p.time);
            f(x, t, 1 / unfused(t * t));
        }
    };
    each([&](double x, double t, double w) {
        weights += w;
        bytes += unfused(w * x);
        times += unfused(w * t);
    });
    bytes /= weights;
    times /= weights;
    double spread = 0, joint = 0, through_zero = 0, squares = 0;
    each([&](double x, double t, double w) {
        spread += unfused(unfused(w * (x - bytes)) * (x - bytes));
        joint += unfused(unfused(w * (x - bytes)) * (t - times));
        through_zero += unfused(unfused(w * x) * t);
        squares += unfused(unfused(w * x) * x);
    });
    double slope = joint / spread, latency = times - unfused(slope * bytes);
    // Of two variables that may not be negative: where one would be, it is 0 at the best point.
    if (latency < 0) {
        latency = 0;
        slope = through_zero / squares;
    }
    if (!(slope > 0) || !(1 / slope < 1e300))
        throw invalid_input("fit of latency and bandwidth to ", points.size(),
                            " points: their times do not grow with bytes, and so tell no bandwidth");
    latency_bandwidth fitted{.latency = from_seconds(latency), .rate = {1 / slope}, .largest_error = 0};
    for (auto const& p : points) {
        double const error = to_seconds(fitted.time(p.bytes)) / to_seconds(p.time) - 1;
        fitted.largest_error = std::max(*fitted.largest_error, error < 0 ? -error : error);
    }
    return fitted;
}

} // namespace parsearch::cost

namespace parsearch::cost::detail {

PARSEARCH_INLINE void check_fitted(std::string const& device, latency_bandwidth const& fitted, std::span<link_point const> points,
                                   std::string_view place) {
    if (device.empty()) throw invalid_input(place, "device is empty: must be a kind of device");
    if (fitted.latency < picoseconds::zero() || fitted.latency > longest_measurement)
        throw invalid_input(place, "latency is ", fitted.latency.count(), " ps: must be from 0 to ", longest_measurement.count(), " (13 days)");
    if (!(fitted.rate.bytes_per_second > 0) || fitted.rate.bytes_per_second > 1e300)
        throw invalid_input(place, "rate is ", fitted.rate.bytes_per_second, " B/s: must be positive and finite");
    if (fitted.largest_error && (!(*fitted.largest_error >= 0) || *fitted.largest_error > 1e300))
        throw invalid_input(place, "largest error is ", *fitted.largest_error, ": must be finite and not negative");
    check_points(points, place);
}

} // namespace parsearch::cost::detail

namespace parsearch::cost {

PARSEARCH_INLINE void validate(collective_model const& m, std::string_view place) {
    std::string const first = place.empty() ? std::string() : text(place, ": ");
    if (m.kind > collective_kind::reduce) throw invalid_input(first, "kind of collective is number ", static_cast<int>(m.kind), ": unknown");
    auto const where = text(first, to_string(m), ": ");
    if (m.size < 2) throw invalid_input(where, "size is ", m.size, ": must be at least 2");
    detail::check_fitted(m.device, m.fitted, m.points, where);
}

} // namespace parsearch::cost
