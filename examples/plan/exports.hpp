#pragma once
// Plans for runtimes.

#include <string>
#include <vector>

#include <parsearch/io/exports/exported_file.hpp>
#include <parsearch/io/files/configuration_list.hpp>

#include "output.hpp"

namespace plan {

// "jax, megatron, ..."
[[nodiscard]] std::string names_of_runtimes();

// The runtime and file of each "NAME" or "NAME=FILE" of --export, to be written to the folder `out`. Throws invalid_input on names that are not
// known, on files that are no names in the folder, or those of other files, and where there is no folder.
[[nodiscard]] std::vector<wanted_export> read_exports(std::vector<std::string> const& given, std::string const& out);

// The files, names and texts; `losses` becomes longer by what they do not say. Throws invalid_input where the runtime cannot say the plan.
[[nodiscard]] std::vector<ps::io::exported_file> export_plan(wanted_export const& wanted, request const& asked, inputs const& given,
                                                             planned const& made, ps::io::plan_notes const& notes, std::vector<std::string>& losses);

} // namespace plan
