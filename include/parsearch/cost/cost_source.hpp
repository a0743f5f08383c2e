#pragma once
/// What the time of a kernel rests on.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <parsearch/core/units.hpp>

namespace parsearch::cost {

enum class cost_source : std::uint8_t {
    exact,        ///< the kernel was measured
    interpolated, ///< others of its family were, near enough to bound it: see `measured_options::octaves`
    roofline,     ///< a roofline calibrated on measured kernels, within the bounds of the family where there is one
    published,    ///< a roofline, at a part of the data sheet's rate that published runs on such a device tell: see `topology::reached_parts`
    data_sheet,   ///< a roofline, at another part of the data sheet's rate
    fallback      ///< another oracle
};
inline constexpr std::size_t cost_sources = 6;
[[nodiscard]] constexpr std::string_view name_of(cost_source s) noexcept {
    constexpr std::array<std::string_view, cost_sources> names{"exact", "interpolated", "roofline", "published", "data_sheet", "fallback"};
    return names[static_cast<std::size_t>(s)];
}

/// The answer of an oracle that tells what it rests on.
struct cost_answer {
    picoseconds time{};
    cost_source source = cost_source::exact;
    friend bool operator==(cost_answer const&, cost_answer const&) = default;
};

} // namespace parsearch::cost
