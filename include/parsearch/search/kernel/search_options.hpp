#pragma once
/// What the options of all searches share: the budget, and the checks made once before a search starts.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>

#include <parsearch/core/compiled.hpp>
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
void require_budget(budget const& b, std::string_view algorithm);
inline void require_fraction(double value, std::string_view algorithm, std::string_view option) {
    if (!(value >= 0 && value <= 1)) throw invalid_input(algorithm, ": option '", option, "' is ", value, ": must be between 0 and 1");
}
inline void require_amount(double value, std::string_view algorithm, std::string_view option) {
    if (!(value >= 0 && value <= std::numeric_limits<double>::max()))
        throw invalid_input(algorithm, ": option '", option, "' is ", value, ": must be finite and not negative");
}

/// The most threads that a search may be asked to use.
inline constexpr std::uint64_t most_threads = 1024;

/// Throws `invalid_input` on more than `most_threads`.
inline void require_threads(std::uint64_t option, std::string_view algorithm) {
    if (option > most_threads)
        throw invalid_input(algorithm, ": option 'threads' is ", option, ": must be at most ", most_threads, ", or 0 for as many as the machine has");
}

/// The threads that an option asks for: at least 1; 0 asks for as many as the machine has.
[[nodiscard]] inline std::size_t threads_of(std::uint64_t option) {
    if (option > 0) return static_cast<std::size_t>(option);
    auto const all = std::thread::hardware_concurrency(); // 0 where that is not known
    return all > 0 ? all : 1;
}

} // namespace parsearch::search

#ifndef PARSEARCH_COMPILED
#include <parsearch/search/kernel/search_options.ipp>
#endif
