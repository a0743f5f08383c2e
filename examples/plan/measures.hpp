#pragma once
// Times of the model's operators for FlexNet, the simulator of TopoOpt.

#include <string>
#include <vector>

#include "planner.hpp"

namespace plan {

// Throws invalid_input where the file of --measures cannot be written, is a folder or one that is read, or has the name of another file of the plan.
void prepare_measures(request const& asked, inputs const& given);

// The file of --measures, and what it does not say.
struct measures_file {
    std::string content{};
    std::vector<std::string> losses{};
};
// Of the operators of the model on all devices, whatever is planned. Throws invalid_input where FlexNet's format cannot say any of it.
[[nodiscard]] measures_file measures_of(planned const& made);

// Throws invalid_input where that fails; a file that is there is then as it was.
void write_measures(std::string const& path, measures_file const& file);

} // namespace plan
