#pragma once
/// Data of others that tests read and the project does not hold, in the folder that the environment variable PARSEARCH_EXTERNAL_DATA names. A test
/// case that needs them has a name that begins with "data: ".

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace support {

/// A file or folder by its path within the data; none where the variable is not set. Where it is set, the test fails if the data lack it.
[[nodiscard]] inline std::optional<std::filesystem::path> external_data(std::string_view within) {
    char const* const folder = std::getenv("PARSEARCH_EXTERNAL_DATA");
    if (folder == nullptr) {
        MESSAGE("skipped: PARSEARCH_EXTERNAL_DATA is not set");
        return std::nullopt;
    }
    auto path = std::filesystem::path(folder) / within;
    if (!std::filesystem::exists(path)) FAIL("PARSEARCH_EXTERNAL_DATA is '", std::string(folder), "', which has no ", std::string(within));
    return path;
}

} // namespace support
