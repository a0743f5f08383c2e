#pragma once
// Cutting a sequence of operators into stages and segments of equal load.

#include <cmath>

#include <parsearch/core/error.hpp>
#include <parsearch/pipeline/stage_cuts.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE std::vector<std::size_t> balanced_cuts(std::span<std::vector<std::int64_t> const> times, std::span<std::int64_t const> crossing) {
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

PARSEARCH_INLINE std::vector<std::size_t> balanced_cuts(std::span<std::vector<std::int64_t> const> times, std::span<std::int64_t const> crossing,
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

PARSEARCH_INLINE std::vector<std::size_t> narrow_cuts(std::span<std::int64_t const> times, std::span<byte_count const> bytes, std::size_t parts) {
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

} // namespace parsearch::pipeline
