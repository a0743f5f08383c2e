#pragma once
/// Writing what a benchmark found.

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <parsearch/core/error.hpp>

namespace bench {

/// Writes by `write(stream)` to `path`; its folder is made. Throws `parsearch::invalid_input` where that fails.
template <class F> void write_file(std::string const& path, F const& write) {
    std::error_code failed; // what can not be made can not be written either
    if (auto const folder = std::filesystem::path(path).parent_path(); !folder.empty()) std::filesystem::create_directories(folder, failed);
    std::ofstream out(path, std::ios::binary);
    if (!out) throw parsearch::invalid_input(path, ": cannot be written");
    write(out);
    out.close();
    if (!out) throw parsearch::invalid_input(path, ": was not written whole");
}

/// Writes JSON so.
template <class Json> void write_rows(std::string const& path, Json const& rows) {
    write_file(path, [&](std::ofstream& out) { out << rows.dump(1) << '\n'; });
}

} // namespace bench
