#pragma once
/// Latency and bandwidth of copies and collectives, fitted to measured times.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/portable_math.hpp>
#include <parsearch/core/units.hpp>

namespace parsearch::cost {

/// The measured time of a message.
struct link_point {
    byte_count bytes = 0;
    picoseconds time{};
    friend bool operator==(link_point const&, link_point const&) = default;
};

/// time = latency + bytes / rate.
struct latency_bandwidth {
    picoseconds latency{};
    bandwidth rate{};
    /// The largest |fitted / measured - 1| of the points it was fitted to, where known.
    std::optional<double> largest_error{};
    friend bool operator==(latency_bandwidth const&, latency_bandwidth const&) = default;

    /// Of that many bytes. Throws `invalid_input` where the rate is not positive.
    [[nodiscard]] picoseconds time(byte_count bytes) const { return latency + time_of(bytes, rate); }
};

namespace detail {

inline constexpr picoseconds longest_measurement{std::int64_t{1} << 60};
/// Seconds as a time of the table, at most the longest.
[[nodiscard]] inline picoseconds measured_time(double seconds) { return from_seconds(std::min(seconds, to_seconds(longest_measurement))); }

inline void check_points(std::span<link_point const> points, std::string_view place) {
    for (std::size_t i = 0; i < points.size(); ++i) {
        auto const [bytes, time] = points[i];
        if (bytes < 0) throw invalid_input(place, "points[", i, "] has ", bytes, " bytes: must not be negative");
        if (time < picoseconds::zero() || time > longest_measurement)
            throw invalid_input(place, "points[", i, "] takes ", time.count(), " ps: must be from 0 to ", longest_measurement.count(), " (13 days)");
    }
}
} // namespace detail

/// The latency and the rate, neither negative, that make the sum of the squared relative errors of `points` least: a point of a microsecond
/// counts as much as one of a second. Throws `invalid_input` where there are fewer than two sizes, a time is not positive, or times do not grow
/// with bytes, so that no bandwidth can be told. The order of the points does not matter beyond rounding. Complexity: O(points).
[[nodiscard]] inline latency_bandwidth fit_latency_bandwidth(std::span<link_point const> points) {
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

/// What a copy runs between. The memory of the host is pinned; a peer is another device of the same host.
enum class link_kind : std::uint8_t { host_to_device, device_to_host, peer, local };
inline constexpr std::array<link_kind, 4> link_kinds{link_kind::host_to_device, link_kind::device_to_host, link_kind::peer, link_kind::local};
[[nodiscard]] constexpr std::string_view name_of(link_kind k) noexcept {
    constexpr std::array<std::string_view, 4> names{"host_to_device", "device_to_host", "peer", "local"};
    return names[static_cast<std::size_t>(k)];
}

/// Copies of one kind on a kind of device: what was measured, and the model that was fitted to it. A local copy of n bytes reads n and writes n.
struct link_model {
    std::string device; ///< kind, as `device_description::kind`
    link_kind kind = link_kind::local;
    latency_bandwidth fitted{};
    std::vector<link_point> points{};
    std::string implementation{}; ///< how they were run, for people: "replayed up to 1048576 bytes"; empty where not known
    friend bool operator==(link_model const&, link_model const&) = default;
};

/// The same of a collective in a group of `size` devices; bytes as in `collective_kind`.
struct collective_model {
    std::string device;
    collective_kind kind = collective_kind::all_reduce;
    std::uint32_t size = 2;
    latency_bandwidth fitted{};
    std::vector<link_point> points{};
    std::string implementation{}; ///< as that of a link
    friend bool operator==(collective_model const&, collective_model const&) = default;
};

namespace detail {
inline void check_fitted(std::string const& device, latency_bandwidth const& fitted, std::span<link_point const> points, std::string_view place) {
    if (device.empty()) throw invalid_input(place, "device is empty: must be a kind of device");
    if (fitted.latency < picoseconds::zero() || fitted.latency > longest_measurement)
        throw invalid_input(place, "latency is ", fitted.latency.count(), " ps: must be from 0 to ", longest_measurement.count(), " (13 days)");
    if (!(fitted.rate.bytes_per_second > 0) || fitted.rate.bytes_per_second > 1e300)
        throw invalid_input(place, "rate is ", fitted.rate.bytes_per_second, " B/s: must be positive and finite");
    if (fitted.largest_error && (!(*fitted.largest_error >= 0) || *fitted.largest_error > 1e300))
        throw invalid_input(place, "largest error is ", *fitted.largest_error, ": must be finite and not negative");
    check_points(points, place);
}
} // namespace detail

/// "peer copies on 'h100_sxm'", "all_reduce of 8 on 'h100_sxm'".
[[nodiscard]] inline std::string to_string(link_model const& m) { return text(name_of(m.kind), " copies on '", m.device, '\''); }
[[nodiscard]] inline std::string to_string(collective_model const& m) {
    return text(parsearch::name_of(m.kind), " of ", m.size, " on '", m.device, '\'');
}

/// Throws `invalid_input` on a model that breaks a rule; `place` comes first in the message.
inline void validate(link_model const& m, std::string_view place) {
    std::string const first = place.empty() ? std::string() : text(place, ": ");
    if (m.kind > link_kind::local) throw invalid_input(first, "kind of link is number ", static_cast<int>(m.kind), ": unknown");
    detail::check_fitted(m.device, m.fitted, m.points, text(first, to_string(m), ": "));
}
inline void validate(collective_model const& m, std::string_view place) {
    std::string const first = place.empty() ? std::string() : text(place, ": ");
    if (m.kind > collective_kind::reduce) throw invalid_input(first, "kind of collective is number ", static_cast<int>(m.kind), ": unknown");
    auto const where = text(first, to_string(m), ": ");
    if (m.size < 2) throw invalid_input(where, "size is ", m.size, ": must be at least 2");
    detail::check_fitted(m.device, m.fitted, m.points, where);
}

} // namespace parsearch::cost
