#pragma once
/// What the options of all searches share: the budget, and the checks made once before a search starts.

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <stop_token>
#include <string_view>

#include <parsearch/core/error.hpp>

namespace parsearch::search {

/// When a search must end. Every options struct has these three members; what is not set does not limit.
struct budget {
    std::optional<std::chrono::nanoseconds> time; ///< wall time from the call, at least 0; looked at between evaluations
    std::optional<std::uint64_t> evaluations;     ///< strategies priced, the start included; at least 1
    std::stop_token stop;                         ///< ends the search before its next proposal
};

/// The budget in the options of any search.
template <class Options> [[nodiscard]] budget budget_of(Options const& options) {
    return {.time = options.time, .evaluations = options.evaluations, .stop = options.stop};
}

/// Throws `invalid_input` naming the algorithm, the option, its value and the rule.
inline void require_budget(budget const& b, std::string_view algorithm) {
    if (b.time && *b.time < std::chrono::nanoseconds::zero())
        throw invalid_input(algorithm, ": option 'time' is ", b.time->count(), " ns: must not be negative");
    if (b.evaluations && *b.evaluations == 0)
        throw invalid_input(algorithm, ": option 'evaluations' is 0: must be at least 1, the start is priced too");
}
inline void require_fraction(double value, std::string_view algorithm, std::string_view option) {
    if (!(value >= 0 && value <= 1))
        throw invalid_input(algorithm, ": option '", option, "' is ", value, ": must be between 0 and 1");
}
inline void require_amount(double value, std::string_view algorithm, std::string_view option) {
    if (!(value >= 0 && value <= std::numeric_limits<double>::max()))
        throw invalid_input(algorithm, ": option '", option, "' is ", value, ": must be finite and not negative");
}

} // namespace parsearch::search
