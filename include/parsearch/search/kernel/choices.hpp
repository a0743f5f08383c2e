#pragma once
/// Reading a configuration space: how many configurations an operator has, one of them, and a check before a search.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/core/error.hpp>

namespace parsearch::search {

/// The number of configurations of operator number `op`.
template <ConfigurationSpace X> [[nodiscard]] std::uint64_t choice_count(X const& space, std::size_t op) {
    auto&& range = space[op];
    return static_cast<std::uint64_t>(std::ranges::size(range));
}

/// Configuration number `index` of operator number `op`. Precondition: `index < choice_count(space, op)`.
template <ConfigurationSpace X> [[nodiscard]] configuration_t<X> choice(X const& space, std::size_t op, std::uint64_t index) {
    auto&& range = space[op];
    auto const first = std::ranges::begin(range);
    return first[static_cast<std::iter_difference_t<decltype(first)>>(index)];
}

/// Throws `invalid_input` where an operator has no configuration, or a strategy that is a range has not one per operator.
/// The configurations of `start` need not be in the space.
template <ConfigurationSpace X, class S> void require_choices(X const& space, S const& start, std::string_view algorithm) {
    std::size_t const operators = space.size();
    if constexpr (SizedRandomAccessRange<S const>)
        if (auto const given = static_cast<std::size_t>(std::ranges::size(start)); given != operators)
            throw invalid_input(algorithm, ": the start has ", given, " configurations: the space has ", operators, " operators");
    for (std::size_t op = 0; op < operators; ++op)
        if (choice_count(space, op) == 0) throw invalid_input(algorithm, ": operator number ", op, " has 0 configurations: each needs at least one");
}

/// What every search does with its start: `require_choices`, and then the problem's constraints, if it has any. Answers how many operators of `start`
/// were given another configuration: see `ProjectsStarts`.
template <class P, class S> [[nodiscard]] std::uint64_t project_start(P const& problem, S& start, std::string_view algorithm) {
    require_choices(problem.space(), start, algorithm);
    if constexpr (ProjectsStarts<P, S>) return static_cast<std::uint64_t>(problem.project(start));
    else return 0;
}

} // namespace parsearch::search
