#pragma once
// What the user asked for.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/space/operator_space.hpp>

#include "profiler/lower.hpp"
#include "profiler/program/program.hpp"
#include "profiler/timing.hpp"
#include "profiler/work_list.hpp"

namespace parsearch::profiler {

struct request {
    std::vector<std::string> models{};
    std::string cluster{};
    std::vector<std::string> types{}; // with which the models are built; empty: as they are named
    bool fused = false;               // also with elementwise operators fused to what makes their inputs; to validate, only so
    std::string kind{};               // of device, under which the entries are written; empty: the cluster's only one
    bool list = false, list_kernels = false;
    bool name_device = false; // and nothing else
    std::string out{}, resume{};
    bool retry = false;                // what failed before
    bool kernels = true, links = true; // what is measured
    std::string device_kind{};         // "gpu" or "cpu"; empty: what the program measures
    std::vector<int> devices{};        // ordinals; empty: all that there are, kernels on the first
    std::string machine{};             // said in the table
    sim::simulation_options simulation{};
    space::space_options space{};
    work_limits limits{};
    unknown_kinds unknown = unknown_kinds::refuse;
    timing_options timing{};
    std::chrono::nanoseconds from_idle = std::chrono::milliseconds{500}; // that the device works before anything is timed
    std::optional<std::chrono::nanoseconds> time_limit{};                // of the whole run
    bool validate = false;                                               // whole iterations, with the table `profile`, of which `out` is the report
    bool data_parallel = false;                                          // and on all devices, each with its part of the samples
    std::string profile{};
    bool measure = true; // what the table lacks for that
    double within = 0.1;
    std::int64_t iterations = 20;
    bool quiet = false;
};

// Either a request, or the code with which to end: after --help and --version, and where the command line is wrong, which has then been said.
struct command {
    std::optional<request> asked{};
    int code = ok;
};

// Throws `invalid_input` where a value is wrong.
[[nodiscard]] command read_command_line(int argc, char const* const* argv, console const& to);

} // namespace parsearch::profiler
