#pragma once
// The command line of `plan`.

#include <optional>

#include "request.hpp"

namespace plan {

// Either a request, or the code with which to end: after --help, --list and --version, and where the command line is wrong, which has then been said.
struct command {
    std::optional<request> asked;
    int code = ok;
};

// Throws invalid_input where a value is wrong.
[[nodiscard]] command read_command_line(int argc, char const* const* argv);

} // namespace plan
