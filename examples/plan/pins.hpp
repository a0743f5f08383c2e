#pragma once
// Operators whose splits the user has settled, or ruled out.

#include <parsearch/graph/dense_graph.hpp>

#include "request.hpp"

namespace plan {

// Sets `asked.space.allows` from `asked.pin` and `asked.forbid`, of operators of `graph`. Throws invalid_input naming option, operator and rule.
void pin_operators(request& asked, ps::graph::dense_graph const& graph);

} // namespace plan
