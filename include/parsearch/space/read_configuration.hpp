#pragma once
/// Reads configurations, and splits alone, as `to_string` prints them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::space {

/// A degree for each dim of an operator.
using dim_degrees = std::array<std::int32_t, ops::max_dims>;

/// Reads how `op` is split as `to_string` of a configuration has it, without devices: "s8 heads4", or "whole". Throws `invalid_input` naming text,
/// dims and rule where a dim is unknown, fixed or named twice, or has not that many parts.
[[nodiscard]] dim_degrees read_split(std::string_view text_of_split, ops::operation const& op);

/// What was read: a configuration, whose devices mean something where the text says some.
struct configuration_reading {
    space::configuration configuration;
    bool placed = false;
};

/// Reads "s4 heads2", a split alone; with its devices "s4 heads2 @0+2,1", "whole @3", or "s2 @{0,5}". Throws `invalid_input` as `read_split`, and
/// where devices are not of that form, or not one stride per split dim, or one device per shard.
[[nodiscard]] configuration_reading read_configuration(std::string_view from, ops::operation const& op);

} // namespace parsearch::space

#ifndef PARSEARCH_COMPILED
#include <parsearch/space/read_configuration.ipp>
#endif
