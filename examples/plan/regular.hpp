#pragma once
// Blocks that repeat are planned alike.

#include <chrono>
#include <optional>
#include <stop_token>

#include "planner.hpp"
#include "request.hpp"

namespace plan {

// The time that `make_regular` may take; nothing where nothing repeats, or it is not limited.
[[nodiscard]] std::optional<std::chrono::nanoseconds> time_for_ties(request const& asked, planned const& made);

// Where the strategy found differs between blocks that repeat, looks for one that does not. Takes it, or the start where that is better, and answers
// true, unless the one found is faster by more than `request::regular` than this and than the best pipeline; notes say so.
[[nodiscard]] bool make_regular(request const& asked, planned& made, std::stop_token const& stop);

} // namespace plan
