#pragma once
/// Where a search starts from: the given strategy, those that the problem offers, and random ones.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/core/random.hpp>
#include <parsearch/search/kernel/choices.hpp>

namespace parsearch::search {

/// A problem may offer `starts()`: a range of strategies worth starting from, such as those of experts.
template <class P>
concept OffersStarts = requires(P const& p) { p.starts(); };

/// A uniform configuration of `space` for each operator, in the form of `like`. Linear in the number of operators.
template <ConfigurationSpace X, class S, RandomBits R> [[nodiscard]] S random_strategy(X const& space, S const& like, R& rng) {
    S out = like;
    for (std::size_t op = 0, operators = space.size(); op < operators; ++op)
        set_configuration(out, op, choice(space, op, uniform_index(rng, choice_count(space, op))));
    return out;
}

/// What to start from beside `given`: what the problem offers where `offered`, then `random` random strategies; without repetitions.
template <class P, class S, RandomBits R>
[[nodiscard]] std::vector<S> other_starts(P const& problem, S const& given, bool offered, std::uint64_t random, R& rng) {
    auto const& space = problem.space();
    std::vector<S> out;
    auto const add = [&](S one) {
        bool known = one == given;
        for (auto const& s : out) known = known || one == s;
        if (!known) out.push_back(std::move(one));
    };
    if constexpr (OffersStarts<P>) {
        if (offered)
            for (auto&& one : problem.starts()) {
                if constexpr (std::convertible_to<decltype(one), S>) {
                    add(one);
                } else { // a strategy of another type
                    S copy = given;
                    for (std::size_t op = 0, operators = space.size(); op < operators; ++op)
                        set_configuration(copy, op, static_cast<problem_configuration_t<P>>(configuration_of(std::as_const(one), op)));
                    add(std::move(copy));
                }
            }
    }
    for (std::uint64_t n = 0; n < random; ++n) add(random_strategy(space, given, rng));
    return out;
}

} // namespace parsearch::search
