#pragma once
/// Cutting a sequence of operators into stages and segments of equal load.

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/sim/schedule/schedule.hpp>

namespace parsearch::pipeline {

/// Cuts operators 0..n-1 into as many runs as `times` has entries, none empty, such that the largest load is least: `times[s][i]` is the time of
/// operator i in stage s, and the load of a stage the sum over its operators, or the time of what crosses the cut before it (`crossing[i]`: before
/// operator i) if that is more, as data move while devices compute. Of two ways to cut the operators before a place that have the same largest load
/// the one with the smaller sum is kept, which is what filling the pipeline takes; then the one with earlier cuts. Returns the first operator of each
/// stage. Throws `invalid_input` where there are fewer operators than stages. Complexity: O(n^2 stages) time, O(n stages) memory. Source: dynamic
/// programming over the first operators and stages, as Narayanan et al., PipeDream, SOSP 2019, section 3.1.
[[nodiscard]] std::vector<std::size_t> balanced_cuts(std::span<std::vector<std::int64_t> const> times, std::span<std::int64_t const> crossing);

/// The same with cuts at `places` alone, which are ascending numbers of operators, without 0. Throws where these are fewer than the cuts.
[[nodiscard]] std::vector<std::size_t> balanced_cuts(std::span<std::vector<std::int64_t> const> times, std::span<std::int64_t const> crossing,
                                                     std::span<std::size_t const> places);

/// Cuts parts 0..n-1 into `stages` runs, none empty, such that the largest `load(stage, begin, end)` is least: picoseconds, and
/// `std::numeric_limits<std::int64_t>::max()` where the run cannot be. No load may be less where the run is longer, or more in a later stage: where
/// one is, other cuts may be better. Earlier runs are as long as that allows. Returns the first part of each run; nothing where some run cannot be.
/// Complexity: O(stages log n) loads for each of at most 64 bounds on the largest. Source: probes of bounds, as in Pinar and Aykanat, Fast optimal
/// load balancing algorithms for 1D partitioning, JPDC 2004, section 4.
template <class Load> [[nodiscard]] std::vector<std::size_t> least_load_cuts(std::size_t n, std::size_t stages, Load const& load) {
    std::vector<std::size_t> first, best;
    if (stages < 1 || stages > n) return best;
    // The largest load where none is above `bound`, or nothing.
    auto const fill = [&](std::int64_t bound) -> std::optional<std::int64_t> {
        first.assign(1, 0);
        for (std::size_t s = 0; s < stages; ++s) {
            auto const begin = first.back();
            auto end = begin, behind = n + 1; // a run up to `end` will do, one up to `behind` will not
            while (end + 1 < behind) {
                auto const middle = std::midpoint(end, behind);
                (load(s, begin, middle) <= bound ? end : behind) = middle;
            }
            first.push_back(end);
        }
        if (first.back() < n) return std::nullopt;
        for (auto s = stages; s-- > 0;) { // an empty run takes a part of the one before
            if (first[s + 1] <= s) return std::nullopt;
            first[s] = std::min(first[s], first[s + 1] - 1);
        }
        std::int64_t most = 0;
        for (std::size_t s = 0; s < stages; ++s) most = std::max(most, load(s, first[s], first[s + 1]));
        first.pop_back();
        return most <= bound ? std::optional(most) : std::nullopt;
    };
    std::int64_t least = 0, bound = std::numeric_limits<std::int64_t>::max() - 1;
    for (auto next = bound; least <= bound; next = std::midpoint(least, bound))
        if (auto const most = fill(next)) {
            best = first;
            bound = *most - 1;
        } else if (best.empty()) break;
        else least = next + 1;
    return best;
}

/// Cuts operators into at most `parts` runs of about equal load, each cut where the fewest bytes cross within half a run of the place that equal
/// loads would have (`bytes[i]`: before operator i). Returns the first operator of each run. Throws `invalid_input` where there is no operator.
/// Complexity: O(n + parts).
[[nodiscard]] std::vector<std::size_t> narrow_cuts(std::span<std::int64_t const> times, std::span<byte_count const> bytes, std::size_t parts);

/// Whether part `i` is one of `n`, of `parts`, that lie evenly among them.
[[nodiscard]] constexpr bool is_among(std::size_t i, std::size_t n, std::size_t parts) noexcept { return (i + 1) * n / parts > i * n / parts; }

} // namespace parsearch::pipeline

#ifndef PARSEARCH_COMPILED
#include <parsearch/pipeline/stage_cuts.ipp>
#endif
