#pragma once
// Operators whose splits the user has settled, or ruled out.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/space/strategy_space.hpp>

#include "request.hpp"

namespace plan {

// Sets `allows` and `admits` of `asked.space` from `asked.pin` and `asked.forbid`, of operators of `graph`, which has the dims of copies and partial
// sums that `asked.space` allows, on `devices` devices. Answers a note for each: how many operators it is of. Throws invalid_input naming option,
// operator and rule.
[[nodiscard]] std::vector<std::string> pin_operators(request& asked, ps::graph::dense_graph const& graph, std::size_t devices);

// The first operator that is split in `s` as `asked` does not allow: "operator fc1 is s4 @0+1, which --pin or --forbid rules out". Nothing where
// there is none.
[[nodiscard]] std::optional<std::string> broken_pin(request const& asked, ps::graph::dense_graph const& graph, ps::space::flat_strategy const& s);

} // namespace plan
