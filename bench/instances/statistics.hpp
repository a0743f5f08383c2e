#pragma once
/// Curves and figures of several runs: medians and quartiles.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
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

/// All runs of one search on one instance.
struct series {
    std::string search;
    std::vector<run_row const*> runs;
};
/// An instance, and the runs on it.
struct case_rows {
    instance_row const* of = nullptr;
    std::vector<series> of_search;

    /// How much a cost is above the least that is known.
    [[nodiscard]] double gap(std::int64_t cost) const {
        if (cost == infinite || of->best == infinite) return never;
        return cost == of->best ? 0 : of->best == 0 ? never : static_cast<double>(cost) / static_cast<double>(of->best) - 1;
    }
};

/// Instances and searches in the order in which the rows name them. Refers to `c`.
[[nodiscard]] inline std::vector<case_rows> cases_of(comparison const& c) {
    std::vector<case_rows> out;
    for (auto const& i : c.instances) out.push_back({.of = &i, .of_search = {}});
    for (auto const& r : c.runs) {
        auto& list = std::find_if(out.begin(), out.end(), [&](auto const& k) { return k.of->name == r.instance; })->of_search;
        auto s = std::find_if(list.begin(), list.end(), [&](auto const& a) { return a.search == r.search; });
        if (s == list.end()) s = list.insert(list.end(), {.search = r.search, .runs = {}});
        s->runs.push_back(&r);
    }
    std::erase_if(out, [](auto const& k) { return k.of_search.empty(); });
    return out;
}

/// The figures of a search on an instance.
struct figures {
    quartiles gap;                ///< of the final cost above the best known
    double evaluations_per_s = 0; ///< median
    double to_one_percent = 0;    ///< median of the seconds until within 1 % of the best known; `never` where half of the runs do not come there
    std::size_t reached = 0, runs = 0;
    double seconds = 0; ///< median of the whole search
    std::int64_t best = infinite;
};
[[nodiscard]] inline figures figures_of(case_rows const& k, series const& s) {
    std::vector<double> gaps, rates, times, lengths;
    figures out;
    for (auto const* const r : s.runs) {
        gaps.push_back(k.gap(r->cost()));
        rates.push_back(r->seconds > 0 ? static_cast<double>(r->evaluations) / r->seconds : 0);
        lengths.push_back(r->seconds);
        auto const at = std::find_if(r->curve.begin(), r->curve.end(), [&](auto const& p) {
            return p.cost != infinite && p.cost - k.of->best <= k.of->best / 100; // exact
        });
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
        values.push_back(after == r->curve.begin() ? never : k.gap((after - 1)->cost));
    }
    return quartiles_of(values);
}

/// Mean of the median gap over the logarithm of evaluations from 1 to `last`, a gap counting as 1 at most: 0 where the best known is there at once.
/// Nothing where evaluations are not counted.
[[nodiscard]] inline std::optional<double> area_under(case_rows const& k, series const& s, double last) {
    if (std::ranges::all_of(s.runs, [](auto const* r) { return r->evaluations == 0; })) return {};
    constexpr int steps = 60;
    double sum = 0;
    for (int n = 0; n < steps; ++n) {
        auto const x = std::pow(last, (n + 0.5) / steps);
        sum += std::min(1.0, gap_at(k, s, x, [](point const& p) { return static_cast<double>(p.evaluations); }).median);
    }
    return sum / steps;
}

/// Two searches, run by run of the same instance and seed.
struct duel {
    std::size_t better = 0, worse = 0;
    /// Two-sided sign test: how probable so unequal counts are where either is as likely to be better. Exact; 1 where there is no difference.
    [[nodiscard]] double p() const {
        auto const n = better + worse, few = std::min(better, worse);
        double sum = 0;
        for (std::size_t k = 0; k <= few; ++k)
            sum += std::exp(std::lgamma(static_cast<double>(n) + 1) - std::lgamma(static_cast<double>(k) + 1) -
                            std::lgamma(static_cast<double>(n - k) + 1) - static_cast<double>(n) * std::log(2.0));
        return std::min(1.0, 2 * sum);
    }
};
[[nodiscard]] inline duel duel_of(std::vector<case_rows> const& cases, std::string const& search, std::string const& against) {
    duel out;
    for (auto const& k : cases)
        for (auto const& s : k.of_search)
            for (auto const& o : k.of_search)
                if (s.search == search && o.search == against)
                    for (auto const* const r : s.runs)
                        for (auto const* const other : o.runs)
                            if (r->seed == other->seed) {
                                out.better += r->cost() < other->cost();
                                out.worse += r->cost() > other->cost();
                            }
    return out;
}

} // namespace bench
