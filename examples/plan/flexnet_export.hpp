#pragma once
// Plans for FlexNet, the simulator of TopoOpt.

#include <string>
#include <vector>

#include "planner.hpp"

namespace plan {

// The task graph of an iteration as a file, and what that does not say. Throws invalid_input on plans with micro-batches, stages or shared states,
// and where the program was built without FlatBuffers.
struct flexnet_file {
    std::string content{};
    std::vector<std::string> losses{};
};
// Throws invalid_input where the program was built without FlatBuffers.
void require_flexnet();

[[nodiscard]] flexnet_file flexnet_task_graph(request const& asked, inputs const& given, planned const& made);

} // namespace plan
