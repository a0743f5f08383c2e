#pragma once
/// The device presets by name.

#include <array>
#include <string>
#include <string_view>

#include <parsearch/core/error.hpp>
#include <parsearch/topology/device.hpp>

namespace parsearch::io {

/// A device by the short name of its preset.
struct device_name {
    std::string_view name;
    topology::device_spec const* spec;
};
inline constexpr std::array<device_name, 6> device_names{{{"k80", &topology::k80},
                                                          {"p100", &topology::p100_sxm},
                                                          {"v100", &topology::v100_sxm},
                                                          {"a100", &topology::a100_sxm},
                                                          {"h100", &topology::h100_sxm},
                                                          {"h200", &topology::h200_sxm}}};

/// "k80, p100, v100, a100, h100, h200".
[[nodiscard]] inline std::string known_devices() {
    std::string out;
    for (auto const& d : device_names) out += text(out.empty() ? "" : ", ", d.name);
    return out;
}

/// The preset of that name ("h100"; "h100_sxm", the kind, is known too), or null.
[[nodiscard]] inline topology::device_spec const* find_device(std::string_view name) {
    for (auto const& d : device_names)
        if (name == d.name || name == d.spec->kind) return d.spec;
    return nullptr;
}

} // namespace parsearch::io
