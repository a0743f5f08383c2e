#pragma once
/// Documents with a mistake put in.

#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace support {

/// `text` with the first `part`, which must be there, replaced by `by`.
inline std::string replaced(std::string text, std::string_view part, std::string_view by) {
    auto const at = text.find(part);
    INFO(part);
    REQUIRE(at != std::string::npos);
    return text.replace(at, part.size(), by);
}

} // namespace support
