#pragma once
// Plans for FlexNet, the simulator of TopoOpt.

#include <string>
#include <vector>

#include "planner.hpp"

namespace plan {

// Throws invalid_input where the program was built without FlatBuffers.
void require_flexnet();

struct flexnet_file {
    std::string content{};
    std::vector<std::string> losses{}; // what it does not say
};
// The task graph of an iteration. Throws invalid_input on plans with micro-batches, stages or shared states, and as `require_flexnet`.
[[nodiscard]] flexnet_file flexnet_task_graph(request const& asked, inputs const& given, planned const& made);

} // namespace plan
