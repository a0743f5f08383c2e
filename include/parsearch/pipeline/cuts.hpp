#pragma once
/// Cutting a sequence of operators into stages and segments of equal load.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/sim/schedule.hpp>

namespace parsearch::pipeline {

/// Cuts operators 0..n-1 into `stages` runs, none empty, such that the largest load is least: that of a stage is the sum of the times of its operators, or the time of what crosses
/// the cut before it (`crossing[i]`: before operator i), whichever is more, as data move while devices compute. Of two ways to cut the operators before a place that have the same largest load the
/// one with the smaller sum is kept, which is what filling the pipeline takes; then the one with earlier cuts. Returns the first operator of each stage. Throws `invalid_input` where there are fewer operators than stages.
/// Complexity: O(n^2 stages) time, O(n stages) memory.
/// Source: dynamic programming over the first operators and stages, as Narayanan et al., PipeDream, SOSP 2019, section 3.1.
[[nodiscard]] inline std::vector<std::size_t> balanced_cuts(std::span<std::int64_t const> times, std::span<std::int64_t const> crossing, std::size_t stages) {
    auto const n = times.size();
    if (crossing.size() != n) throw invalid_input("balanced_cuts: ", crossing.size(), " times of what crosses: must be one for each of ", n, " operators");
    if (stages < 1 || stages > n) throw invalid_input("balanced_cuts: ", stages, " stages of ", n, " operators: must be from 1 to as many as operators");
    struct load {
        std::int64_t most = std::numeric_limits<std::int64_t>::max(), sum = std::numeric_limits<std::int64_t>::max();
        auto operator<=>(load const&) const = default;
    };
    std::vector<std::int64_t> before(n + 1, 0); // time of the operators before
    for (std::size_t i = 0; i < n; ++i) before[i + 1] = sim::saturating_sum(before[i], times[i]);
    // best[s][i]: the first i operators in s + 1 stages; from[s][i]: where the last of these begins.
    std::vector<std::vector<load>> best(stages, std::vector<load>(n + 1));
    std::vector<std::vector<std::size_t>> from;
    for (std::size_t s = 0; s < stages; ++s) from.emplace_back(n + 1, s); // legal, should all loads be the largest value
    for (std::size_t i = 1; i <= n; ++i) best[0][i] = {before[i], before[i]};
    for (std::size_t s = 1; s < stages; ++s)
        for (std::size_t i = s + 1; i <= n; ++i)
            for (std::size_t j = s; j < i; ++j) {
                auto const own = std::max(before[i] - before[j], crossing[j]);
                load const whole{std::max(best[s - 1][j].most, own), sim::saturating_sum(best[s - 1][j].sum, own)};
                if (whole < best[s][i]) {
                    best[s][i] = whole;
                    from[s][i] = j;
                }
            }
    std::vector<std::size_t> first(stages, 0);
    for (auto s = stages, i = n; s-- > 1;) first[s] = i = from[s][i];
    return first;
}

/// Cuts operators into at most `parts` runs of equal load, only where little crosses: at most a quarter more bytes than where the least do. `bytes[i]` cross before operator i.
/// Returns the first operator of each run. Throws as `balanced_cuts`, and where there is no operator.
[[nodiscard]] inline std::vector<std::size_t> narrow_cuts(std::span<std::int64_t const> times, std::span<byte_count const> bytes, std::size_t parts) {
    if (times.empty() || bytes.size() != times.size()) throw invalid_input("narrow_cuts: ", times.size(), " times and ", bytes.size(), " sizes: must be as many, at least 1");
    auto const least = times.size() > 1 ? *std::min_element(bytes.begin() + 1, bytes.end()) : 0;
    std::vector<std::size_t> place{0};
    for (std::size_t i = 1; i < times.size(); ++i)
        if (bytes[i] - least <= least / 4) place.push_back(i);
    std::vector<std::int64_t> loads(place.size(), 0);
    for (std::size_t b = 0; b < place.size(); ++b)
        for (auto i = place[b]; i < (b + 1 < place.size() ? place[b + 1] : times.size()); ++i) loads[b] = sim::saturating_sum(loads[b], times[i]);
    auto cuts = balanced_cuts(loads, std::vector<std::int64_t>(loads.size(), 0), std::min(parts, loads.size()));
    for (auto& c : cuts) c = place[c];
    return cuts;
}

} // namespace parsearch::pipeline
