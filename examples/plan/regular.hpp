#pragma once
// Blocks that repeat are planned alike.

#include <chrono>
#include <optional>
#include <stop_token>

#include "planner.hpp"
#include "request.hpp"

namespace plan {

// The time that `regular_strategy` may take; nothing where nothing repeats, or it is not limited.
[[nodiscard]] std::optional<std::chrono::nanoseconds> time_for_ties(request const& asked, planned const& made);

// Where the strategy found differs between blocks that repeat: the best that does not, or the start, where that is better; without figures. Nothing
// where what was found is faster than these and the best pipeline by more than `request::regular`. Notes say what either costs.
[[nodiscard]] std::optional<named_strategy> regular_strategy(request const& asked, planned& made, std::stop_token const& stop);

} // namespace plan
