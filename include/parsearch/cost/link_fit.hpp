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
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
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

} // namespace detail

/// The latency and the rate, neither negative, that make the sum of the squared relative errors of `points` least: a point of a microsecond
/// counts as much as one of a second. Throws `invalid_input` where there are fewer than two sizes, a time is not positive, or times do not grow
/// with bytes, so that no bandwidth can be told. The order of the points does not matter beyond rounding. Complexity: O(points).
[[nodiscard]] latency_bandwidth fit_latency_bandwidth(std::span<link_point const> points);

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
void check_fitted(std::string const& device, latency_bandwidth const& fitted, std::span<link_point const> points, std::string_view place);
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
void validate(collective_model const& m, std::string_view place);

} // namespace parsearch::cost

#ifndef PARSEARCH_COMPILED
#include <parsearch/cost/link_fit.ipp>
#endif
