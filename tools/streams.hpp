#pragma once
// Standard streams that may be closed, full or gone: what cannot be written is lost, and nothing else.

#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace tools {

// To be called first: opens those of the standard streams that are closed, so that no file of the program becomes one of them, and ignores SIGPIPE
// and SIGXFSZ.
void secure_streams();

// `text` with a question mark for each control character but the end of a line: names come from files, and a terminal would obey.
[[nodiscard]] std::string harmless(std::string text);

// As fmt::print, but harmless, and it does not throw where the stream cannot be written: std::ferror tells.
template <class... Args> void print(std::FILE* stream, fmt::format_string<Args...> format, Args&&... args) {
    auto const line = harmless(fmt::format(format, std::forward<Args>(args)...));
    std::fwrite(line.data(), 1, line.size(), stream);
}
template <class... Args> void print(fmt::format_string<Args...> format, Args&&... args) { tools::print(stdout, format, std::forward<Args>(args)...); }

} // namespace tools
