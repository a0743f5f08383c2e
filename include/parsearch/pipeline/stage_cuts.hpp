#pragma once
/// Cutting a sequence of operators into stages and segments of equal load.

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/sim/schedule/schedule.hpp>

namespace parsearch::pipeline {

/// Cuts operators 0..n-1 into as many runs as `times` has entries, none empty, such that the largest load is least: `times[s][i]` is the time of
/// operator i in stage s, and the load of a stage the sum over its operators, or the time of what crosses the cut before it (`crossing[i]`: before
/// operator i) if that is more, as data move while devices compute. Of two ways to cut the operators before a place that have the same largest load
/// the one with the smaller sum is kept, which is what filling the pipeline takes; then the one with earlier cuts. Returns the first operator of each
/// stage. Throws `invalid_input` where there are fewer operators than stages. Complexity: O(n^2 stages) time, O(n stages) memory. Source: dynamic
/// programming over the first operators and stages, as Narayanan et al., PipeDream, SOSP 2019, section 3.1.
[[nodiscard]] inline std::vector<std::size_t> balanced_cuts(std::span<std::vector<std::int64_t> const> times,
                                                            std::span<std::int64_t const> crossing) {
    auto const n = crossing.size(), stages = times.size();
    if (stages < 1 || stages > n)
        throw invalid_input("balanced_cuts: ", stages, " stages of ", n, " operators: must be from 1 to as many as operators");
    for (auto const& t : times)
        if (t.size() != n) throw invalid_input("balanced_cuts: ", t.size(), " times of a stage: must be one for each of ", n, " operators");
    struct load {
        std::int64_t most = std::numeric_limits<std::int64_t>::max(), sum = std::numeric_limits<std::int64_t>::max();
        auto operator<=>(load const&) const = default;
    };
    std::vector<load> best(n + 1), next(n + 1); // the first i operators in the stages so far
    std::vector<std::vector<std::size_t>> from; // by stage: where the last of these begins
    std::vector<std::int64_t> before(n + 1);    // time of the operators before, in the stage
    for (std::size_t s = 0; s < stages; ++s) {
        for (std::size_t i = 0; i < n; ++i) before[i + 1] = saturating_sum(before[i], times[s][i]);
        auto& begins = from.emplace_back(n + 1, s); // legal, should all loads be the largest value
        if (s == 0)
            for (std::size_t i = 1; i <= n; ++i) next[i] = {before[i], before[i]};
        else
            for (std::size_t i = s + 1; i <= n; ++i)
                for (std::size_t j = s; j < i; ++j) {
                    auto const own = std::max(before[i] - before[j], crossing[j]);
                    load const whole{std::max(best[j].most, own), saturating_sum(best[j].sum, own)};
                    if (whole < next[i]) {
                        next[i] = whole;
                        begins[i] = j;
                    }
                }
        best = std::exchange(next, std::vector<load>(n + 1));
    }
    std::vector<std::size_t> first(stages, 0);
    for (auto s = stages, i = n; s-- > 1;) first[s] = i = from[s][i];
    return first;
}

/// The same with cuts at `places` alone, which are ascending numbers of operators, without 0. Throws where these are fewer than the cuts.
[[nodiscard]] inline std::vector<std::size_t> balanced_cuts(std::span<std::vector<std::int64_t> const> times, std::span<std::int64_t const> crossing,
                                                            std::span<std::size_t const> places) {
    std::vector<std::size_t> begin{0};
    begin.insert(begin.end(), places.begin(), places.end());
    std::vector<std::int64_t> before;
    for (auto const b : begin) before.push_back(crossing[b]);
    std::vector<std::vector<std::int64_t>> parts;
    for (auto const& of_stage : times) {
        auto& loads = parts.emplace_back(begin.size(), 0);
        for (std::size_t i = 0, part = 0; i < of_stage.size(); ++i) {
            if (part + 1 < begin.size() && begin[part + 1] == i) ++part;
            loads[part] = saturating_sum(loads[part], of_stage[i]);
        }
    }
    auto first = balanced_cuts(parts, before);
    for (auto& part : first) part = begin[part];
    return first;
}

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
[[nodiscard]] inline std::vector<std::size_t> narrow_cuts(std::span<std::int64_t const> times, std::span<byte_count const> bytes, std::size_t parts) {
    auto const n = times.size();
    if (n == 0 || bytes.size() != n) throw invalid_input("narrow_cuts: ", n, " times and ", bytes.size(), " sizes: must be as many, at least 1");
    std::vector<double> before(n, 0); // load before an operator, each a picosecond at least
    double all = 0;
    for (std::size_t i = 0; i < n; ++i) {
        before[i] = all;
        all += static_cast<double>(std::max<std::int64_t>(times[i], 1));
    }
    std::vector<std::size_t> first{0};
    auto const count = static_cast<double>(parts);
    std::size_t at = 1;
    for (double part = 1; part < count; ++part) {
        auto const from = (part - 0.5) / count * all, to = (part + 0.5) / count * all, aim = part / count * all;
        while (at < n && before[at] < from) ++at;
        std::size_t narrowest = n;
        for (; at < n && before[at] < to; ++at)
            if (narrowest == n || bytes[at] < bytes[narrowest] ||
                (bytes[at] == bytes[narrowest] && std::abs(before[at] - aim) < std::abs(before[narrowest] - aim)))
                narrowest = at;
        if (narrowest < n) first.push_back(narrowest);
    }
    return first;
}

/// Whether part `i` is one of `n`, of `parts`, that lie evenly among them.
[[nodiscard]] constexpr bool is_among(std::size_t i, std::size_t n, std::size_t parts) noexcept { return (i + 1) * n / parts > i * n / parts; }

} // namespace parsearch::pipeline
