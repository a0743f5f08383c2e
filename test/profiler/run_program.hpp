#pragma once
/// Runs the whole program on a fake device, and reads what it wrote.

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/io/files/profile_file.hpp>

#include "profiler/program/program.hpp"
#include "fake_device.hpp"

namespace support {

struct outcome {
    int code = -1;
    std::string out{}, err{};
};
[[nodiscard]] inline std::string content(std::FILE* f) {
    std::string all;
    std::rewind(f);
    std::array<char, 4096> part{};
    for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), f)) > 0;) all.append(part.data(), n);
    std::fclose(f);
    return all;
}
[[nodiscard]] inline outcome run(std::shared_ptr<fake_script> const& script, std::vector<std::string> const& arguments) {
    std::vector<char const*> argv{"parsearch-profile"};
    for (auto const& a : arguments) argv.push_back(a.c_str());
    profiler::console const to{.out = std::tmpfile(), .err = std::tmpfile()};
    outcome o{.code = profiler::run_program(static_cast<int>(argv.size()), argv.data(), fake_devices(script), to)};
    o.out = content(to.out);
    o.err = content(to.err);
    return o;
}
[[nodiscard]] inline auto new_script() { return std::make_shared<fake_script>(); }
[[nodiscard]] inline parsearch::cost::profile read_table(std::string const& path, parsearch::io::profile_notes* notes = nullptr) {
    std::ifstream in(path);
    return parsearch::io::read_profile_json(in, path, notes);
}
[[nodiscard]] inline std::string text_of(std::string const& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}
[[nodiscard]] inline bool has(std::string const& where, std::string_view what) { return where.find(what) != std::string::npos; }

} // namespace support
