#pragma once
// parsearch-profile but for its devices, which tests replace.

#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "profiler/device.hpp"

namespace parsearch::profiler {

// What the program ends with.
enum exit_code { ok = 0, failed = 1, bad_input = 2, device_missing = 3, out_of_time = 4, interrupted = 130 };

// Where devices come from. Each may throw `no_device`.
struct device_source {
    std::string_view kind = "gpu"; // or "cpu": what --device calls them
    std::function<int()> count;
    std::function<std::unique_ptr<device>(int)> open;
    std::function<std::unique_ptr<device_group>(std::span<int const>)> open_group;
};

// Where the program prints.
struct console {
    std::FILE* out = stdout;
    std::FILE* err = stderr;
};

// The whole program: never throws, answers an `exit_code`.
[[nodiscard]] int run_program(int argc, char const* const* argv, device_source const& devices, console const& to = {});

} // namespace parsearch::profiler
