#pragma once
// What the user asked for.

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/core/units.hpp>
#include <parsearch/io/described/described_kernels.hpp>
#include <parsearch/io/described/described_search.hpp>
#include <parsearch/io/files/run_manifest.hpp>
#include <parsearch/pipeline/partition_options.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/space/operator_space.hpp>

namespace plan {

namespace ps = parsearch;

// The files of a plan beside its exports.
inline constexpr std::string_view operators_file = "operators.json"; // where rules made the operators of the plan
inline constexpr std::array<std::string_view, 8> plan_files{"plan.json",     operators_file, "strategy.flexflow", "topology.json",
                                                            "timeline.json", "graph.dot",    "report.html",       "run.json"};

// What the program ends with.
enum exit_code { ok = 0, failed = 1, bad_input = 2, nothing_fits = 3, another_result = 4, interrupted = 130 };

// A runtime that the plan is written for, and the file in the folder of the plan.
struct wanted_export {
    std::string runtime, file;
};

struct request {
    std::string model, cluster;
    std::string profile{};          // of measured kernels: a file or the name of one; empty: none
    std::string rules{};            // a file of substitution rules, for the joint search; empty: none
    std::string start = "cheapest"; // or the name of an expert strategy, or a file
    std::optional<ps::io::search_options> search{};
    std::optional<ps::pipeline::partition_options> pipelines{ps::pipeline::partition_options{}}; // that may be chosen; nothing: none
    std::uint64_t seed = 42;
    ps::sim::simulation_options simulation{};
    std::optional<std::uint32_t> replicas{}; // of a part of the cluster, of which one is planned; nothing: as many as make it quick
    ps::io::kernel_options kernels{};
    ps::space::space_options space{};
    std::vector<std::string> pin{}, forbid{}; // OPERATOR=SPLIT: see `pin_operators`
    std::optional<double> regular = 0.05;     // how much less a plan must take that differs between blocks that repeat; nothing: it may differ
    std::optional<double> rewriting = 0.05;   // how much longer the model's operators may take than others that compute the same; nothing: they stay
    std::string runtime{};                    // plans that it cannot say are no answer; empty: all are
    bool failures = false;                    // the plan is simulated after the failure of each wire of its fabric
    std::optional<ps::picoseconds> reconfiguration{}; // that a rewiring of the fabric takes, which is then rewired within the iteration
    std::optional<ps::picoseconds> latency{};         // of inference: the batch is to be the one that serves most within it; nothing: the model's
    std::vector<std::string> compare{"all"};
    std::string diff{};                 // a file of a plan, or the name of an expert, from which the plan's differences are shown; empty: none
    std::vector<std::string> explain{}; // operators of which the plan says why they have their configurations
    std::optional<std::chrono::nanoseconds> explain_time{std::chrono::seconds{10}}; // that this may take; nothing: not limited
    std::vector<std::string> notes{};                                               // what was left out of the space though the user did not say so
    std::string out{};                                                              // a folder; empty: no files
    std::vector<wanted_export> exports{};                                           // beside the other files
    std::string measures{};                                                         // a file of times for FlexNet; empty: none
    bool quiet = false;
    std::optional<std::uint64_t> memory{};       // bytes that the program may take; nothing: not limited
    std::optional<ps::io::run_manifest> rerun{}; // what this run repeats
};

} // namespace plan
