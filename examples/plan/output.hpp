#pragma once
// What the program prints and writes.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner.hpp"

namespace plan {

// The folder `asked.out`, made and tried; nothing where no files are wanted. Throws invalid_input where it cannot be written to, where a folder is in
// the place of a file, and where something that was read would be overwritten.
void prepare_folder(request const& asked, inputs const& given);

// Experts, textbook plans, and what was found without them.
[[nodiscard]] std::vector<ps::io::compared> compared_of(planned const& made);
// The same as they are shown: the plan last, and none that is the same again.
[[nodiscard]] std::vector<ps::io::compared> shown_rows(planned const& made);

// Each in a few words.
[[nodiscard]] std::string summary_of_model(ps::graph::dense_graph const& g, bool training);
[[nodiscard]] std::string summary_of_cluster(ps::topology::cluster const& cluster, ps::sim::simulation_options const& options);
// Of a plan that was searched.
[[nodiscard]] std::string summary_of_search(request const& asked, planned const& made);

// "81% measured, 17% interpolated, 2% calibrated roofline".
[[nodiscard]] std::string summary_of_sources(ps::source_times const& computed);
// How far to trust computing time, where most of it is the roofline's: "9%, the largest of 23 published runs with matmul in bf16 on h100_sxm".
[[nodiscard]] std::optional<std::string> summary_of_error(ps::topology::cluster const& cluster, planned const& made);

// Of a fabric: "random regular, degree 4: 1.73 hops between servers, at most 3; bandwidth tax 1.62; busiest link server 3 -> server 8, 41% of the
// time, 1.234 GB; 61,340 $".
[[nodiscard]] std::string summary_of_network(std::string const& cluster, ps::fabric::network const& network, planned const& made);

// "server 3 - switch 1".
[[nodiscard]] std::string ends_of(ps::fabric::network const& network, std::uint32_t link);

// The rounds in which fabric and strategy were made for each other; the first that found the plan is the one chosen.
[[nodiscard]] std::vector<ps::io::report_round> rounds_of(planned const& made);

struct column {
    std::string_view top, bottom;
    bool left = false;
};
// To stdout: columns as wide as their widest cell; one or two lines of heads.
void print_table(std::vector<column> const& columns, std::vector<std::vector<std::string>> const& rows);

// A few lines about model and cluster, to stdout.
void print_inputs(request const& asked, inputs const& given, planned const& made);
// The table of strategies and, unless `asked.quiet`, the configuration of each operator.
void print_plan(request const& asked, inputs const& given, planned const& made);
void print_note(std::string const& note);

// What the user should know of the files.
struct written_files {
    std::vector<std::string> notes{};
    std::vector<std::string> refused{}; // exports that cannot say the plan, and why
};

// Writes all files, see `output_folder`. Throws invalid_input where that fails.
[[nodiscard]] written_files write_files(request const& asked, inputs const& given, planned const& made);

} // namespace plan
