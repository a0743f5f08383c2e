#pragma once
// Why operators have the configurations that they have in the plan.

#include <stop_token>
#include <string>
#include <vector>

#include "planner.hpp"

namespace plan {

// Throws invalid_input where an operator of `asked.explain` is none of `graph`, with the nearest names.
void require_operators(request const& asked, ps::graph::dense_graph const& graph);

// Explains the operators of `asked.explain` in `made.plan`, as `made.explained`. Answers what the user should know of those that are left out.
[[nodiscard]] std::vector<std::string> explain_plan(request const& asked, planned& made, std::stop_token const& stop);

// What `e`, of `made.explained`, says beside its table: what the operator is, and why it has the configuration that it has.
[[nodiscard]] std::string title_of(ps::io::explanation const& e, planned const& made);
[[nodiscard]] std::vector<std::string> reasons_of(ps::io::explanation const& e, planned const& made);

} // namespace plan
