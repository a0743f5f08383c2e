#pragma once
/// A folder for files of one test.

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace support {

/// A folder of its own that is gone in the end.
struct scratch {
    std::filesystem::path folder;
    scratch() {
        std::string pattern = (std::filesystem::temp_directory_path() / "profilerXXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder could be made: " + pattern);
        folder = pattern;
    }
    ~scratch() {
        std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
        std::filesystem::remove_all(folder);
    }
    scratch(scratch const&) = delete;
    scratch& operator=(scratch const&) = delete;
    [[nodiscard]] std::string operator/(std::string const& name) const { return (folder / name).string(); }
};

} // namespace support
