#include "units.hpp"

#include <array>
#include <string_view>

#include <fmt/format.h>

#include <parsearch/core/cost.hpp>

namespace tools {
namespace {
// `value` in the largest unit, each a thousand times the one before, of which it holds one; four digits.
template <std::size_t N> std::string scaled(double value, std::array<std::string_view, N> const& units) {
    std::size_t unit = 0;
    for (; value >= 999.95 && unit + 1 < N; ++unit) value /= 1000;
    int const decimals = value >= 999.95 ? 0 : value >= 99.995 ? 1 : value >= 9.9995 ? 2 : 3;
    return fmt::format("{:.{}f}{}{}", value, decimals, units[unit].empty() ? "" : " ", units[unit]);
}
} // namespace

std::string shown_time(ps::picoseconds t) {
    if (t == ps::cost_traits<ps::picoseconds>::infinity()) return "infinite";
    return scaled(static_cast<double>(t.count()), std::array<std::string_view, 5>{"ps", "ns", "us", "ms", "s"});
}

std::string shown_seconds(double s) {
    if (s < 100) return fmt::format("{:.1f} s", s);
    auto const whole = static_cast<long long>(s);
    return whole < 3600 ? fmt::format("{}:{:02} min", whole / 60, whole % 60) : fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

std::string shown_bytes(double bytes) {
    if (bytes < 1) return "0";
    if (bytes < 1000) return fmt::format("{:.0f} B", bytes);
    return scaled(bytes, std::array<std::string_view, 6>{"B", "kB", "MB", "GB", "TB", "PB"});
}

std::string shown_memory(ps::byte_count n) {
    double value = static_cast<double>(n);
    std::array<std::string_view, 5> const units{"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    for (; value >= 1023.95 && unit + 1 < units.size(); ++unit) value /= 1024;
    return fmt::format("{:.{}f} {}", value, unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, units[unit]);
}

std::string shown_count(double n) {
    if (n < 1000) return fmt::format("{:.{}f}", n, n < 10 ? 2 : n < 100 ? 1 : 0);
    return scaled(n, std::array<std::string_view, 6>{"", "k", "M", "G", "T", "P"});
}

} // namespace tools
