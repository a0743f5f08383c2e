#pragma once
/// Files of the project that tests read: its pages, schemas and models.

#include <filesystem>
#include <stdexcept>

namespace support {

/// A file or folder by its path within the project, looked for from the working directory upwards: ctest runs tests in the project's root.
inline std::filesystem::path project_file(std::filesystem::path const& within) {
    namespace fs = std::filesystem;
    for (auto folder = fs::current_path();; folder = folder.parent_path()) {
        if (fs::exists(folder / "include" / "parsearch") && fs::exists(folder / within)) return folder / within;
        if (folder == folder.parent_path()) throw std::runtime_error(within.string() + " is not found: tests must run within the project");
    }
}

} // namespace support
