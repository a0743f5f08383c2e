#pragma once
/// Tables of measurements as JSON. See docs/formats.md.

#include <cstddef>
#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/cost/link_fit.hpp>
#include <parsearch/cost/profile.hpp>
#include <parsearch/io/json/json_reader.hpp>
#include <parsearch/io/json/json_writer.hpp>

namespace parsearch::io {

inline constexpr std::string_view profile_format = "parsearch.profile";
inline constexpr std::uint64_t profile_version = 1;

/// What a device was found to do at one moment, as far as known.
struct device_state {
    std::optional<std::int64_t> sm_mhz{}, memory_mhz{}; ///< clocks
    std::optional<std::int64_t> temperature_c{};        ///< degrees Celsius
    friend bool operator==(device_state const&, device_state const&) = default;
};

/// What a profile's document may say of how it was measured. Empty: not said.
struct profile_notes {
    std::string machine{};                           ///< where: "DGX H100, GPU 0"
    std::string device{};                            ///< as its driver calls it: "NVIDIA H100 80GB HBM3"
    std::optional<byte_count> memory{};              ///< of the device
    std::string compute_capability{};                ///< "9.0"
    std::string driver{};                            ///< version
    std::map<std::string, std::string> libraries{};  ///< versions by name: {"cuBLAS", "12.4.5"}
    std::string date{};                              ///< "2025-03-01"
    std::optional<device_state> begin{}, end{};      ///< of the device, before and after
    std::map<std::string, std::int64_t> throttled{}; ///< kernels behind which a clock was held down, by what: {"power cap", 12}
    friend bool operator==(profile_notes const&, profile_notes const&) = default;
};

namespace detail {
/// The document of a profile, and the profile of a document, which may stand in another one.
[[nodiscard]] ordered_json profile_to_json(cost::profile const& p, profile_notes const& notes = {});
[[nodiscard]] cost::profile profile_from_json(json_value const& document, profile_notes* notes = nullptr);
} // namespace detail

/// Writes a profile such that reading it gives an equal one, all in their order. Throws `invalid_input` where a text is not UTF-8 or the
/// date is none.
void write_profile_json(std::ostream& out, cost::profile const& p, profile_notes const& notes = {});

/// Reads a profile; `name` stands for the input in messages, what the document says of the measurement goes to `notes`. Throws `invalid_input`
/// with place, value and rule on anything that is not as docs/formats.md says.
[[nodiscard]] cost::profile read_profile_json(std::istream& in, std::string name = "profile JSON", profile_notes* notes = nullptr,
                                              json_limits const& limits = {});

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/files/profile_file.ipp>
#endif
