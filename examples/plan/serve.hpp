#pragma once
// The batch that serves most within a limit of the latency.

#include <cstdint>
#include <stop_token>

#include "request.hpp"

namespace plan {

// Plans batches of the model, beginning with `first` samples, each for a tenth of what is left of the search's budget, and prints what they take;
// `asked` goes on with the one that serves most within `asked.latency`, and with what is left of the budget. Throws invalid_input where no batch is
// within the limit.
void choose_batch(request& asked, std::int64_t first, std::stop_token const& stop);

} // namespace plan
