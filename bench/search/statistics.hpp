#pragma once
/// Curves and figures of several runs: medians and quartiles.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "rows.hpp"

namespace bench {

inline constexpr double never = std::numeric_limits<double>::infinity();

struct quartiles {
    double low = 0, median = 0, high = 0;
};

/// Quantile `q` of sorted values, between two of them by their distance (type 7 of Hyndman and Fan, 1996); infinite where it touches an infinite one.
[[nodiscard]] inline double quantile(std::vector<double> const& sorted, double q) {
    double const at = q * static_cast<double>(sorted.size() - 1);
    auto const below = static_cast<std::size_t>(at);
    double const part = at - static_cast<double>(below);
    if (part <= 0) return sorted[below];
    if (sorted[below + 1] == never) return never;
    return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}
[[nodiscard]] inline quartiles quartiles_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return {quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75)};
}

/// All runs of one algorithm on one case.
struct series {
    std::string algorithm;
    std::vector<run_row const*> runs;
};
/// A model on a cluster. `best` is the least cost that any run found.
struct case_rows {
    std::string model, cluster;
    std::vector<series> of_algorithm;
    std::int64_t best = std::numeric_limits<std::int64_t>::max();

    [[nodiscard]] double gap(std::int64_t cost) const {
        return cost == std::numeric_limits<std::int64_t>::max() ? never : static_cast<double>(cost) / static_cast<double>(best) - 1;
    }
};

/// Cases and algorithms in the order in which the rows name them. Refers to `c`.
[[nodiscard]] inline std::vector<case_rows> cases_of(comparison const& c) {
    std::vector<case_rows> out;
    for (auto const& r : c.runs) {
        auto at = std::find_if(out.begin(), out.end(), [&](auto const& k) { return k.model == r.model && k.cluster == r.cluster; });
        if (at == out.end()) at = out.insert(out.end(), {.model = r.model, .cluster = r.cluster, .of_algorithm = {}});
        auto& list = at->of_algorithm;
        auto s = std::find_if(list.begin(), list.end(), [&](auto const& a) { return a.algorithm == r.algorithm; });
        if (s == list.end()) s = list.insert(list.end(), {.algorithm = r.algorithm, .runs = {}});
        s->runs.push_back(&r);
        at->best = std::min(at->best, r.cost());
    }
    return out;
}

/// The figures of an algorithm on a case.
struct figures {
    quartiles gap;                ///< of the final cost above the best known
    double evaluations_per_s = 0; ///< median
    double to_one_percent = 0;    ///< median of the seconds until within 1 % of the best known; `never` where half of the runs do not come there
    std::size_t reached = 0, runs = 0;
    double seconds = 0; ///< median of the whole search
    std::int64_t best = 0;
};
[[nodiscard]] inline figures figures_of(case_rows const& k, series const& s) {
    std::vector<double> gaps, rates, times, lengths;
    figures out;
    out.best = std::numeric_limits<std::int64_t>::max();
    for (auto const* const r : s.runs) {
        gaps.push_back(k.gap(r->cost()));
        rates.push_back(r->seconds > 0 ? static_cast<double>(r->evaluations) / r->seconds : 0);
        lengths.push_back(r->seconds);
        auto const at = std::find_if(r->curve.begin(), r->curve.end(), [&](auto const& p) { return p.cost - k.best <= k.best / 100; }); // exact
        times.push_back(at == r->curve.end() ? never : at->seconds);
        out.reached += at != r->curve.end();
        out.best = std::min(out.best, r->cost());
    }
    out.runs = s.runs.size();
    out.gap = quartiles_of(gaps);
    out.evaluations_per_s = quartiles_of(rates).median;
    out.to_one_percent = quartiles_of(times).median;
    out.seconds = quartiles_of(lengths).median;
    return out;
}

/// The gap of the least cost found until `x` (seconds or evaluations), over the runs of `s`.
template <class X> [[nodiscard]] quartiles gap_at(case_rows const& k, series const& s, double x, X const& x_of) {
    std::vector<double> values;
    for (auto const* const r : s.runs) {
        auto const after = std::upper_bound(r->curve.begin(), r->curve.end(), x, [&](double value, point const& p) { return value < x_of(p); });
        values.push_back(k.gap(after == r->curve.begin() ? r->curve.front().cost : (after - 1)->cost));
    }
    return quartiles_of(values);
}

} // namespace bench
