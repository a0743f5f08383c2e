#pragma once
// Chooses the rings of a group so that together they give short paths.

#include <algorithm>

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/network/hops.hpp>
#include <parsearch/fabric/paths/ring_selection.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE std::vector<std::uint32_t> circulant_distances(std::uint32_t n, std::span<std::uint32_t const> steps) {
    if (n == 0) return {};
    return hops_from(0, n, [&](std::uint32_t v, auto const& visit) {
        for (auto const step : steps) {
            std::uint32_t const p = step % n;
            for (std::uint64_t const w : {std::uint64_t{v} + p, std::uint64_t{v} + n - p}) visit(static_cast<std::uint32_t>(w % n));
        }
    });
}

PARSEARCH_INLINE path_lengths circulant_paths(std::uint32_t n, std::span<std::uint32_t const> steps) {
    path_lengths out{0, 0, n};
    for (auto const d : circulant_distances(n, steps)) {
        if (d == unreached) throw invalid_input("circulant graph of ", n, " vertices and ", steps.size(), " steps: is not connected");
        out.diameter = std::max(out.diameter, d);
        out.total_hops += d;
    }
    return out;
}

} // namespace parsearch::fabric

namespace parsearch::fabric::detail {

PARSEARCH_INLINE bool power_below(std::uint32_t p, std::uint32_t m, std::uint32_t n, std::uint32_t i) {
    auto const power = [](std::uint32_t base, std::uint32_t exponent) {
        std::vector<std::uint32_t> digits{1}; // base 2^32, least first
        for (; exponent > 0; --exponent) {
            std::uint64_t carry = 0;
            for (auto& digit : digits) {
                carry += std::uint64_t{digit} * base;
                digit = static_cast<std::uint32_t>(carry);
                carry >>= 32;
            }
            if (carry > 0) digits.push_back(static_cast<std::uint32_t>(carry));
        }
        return digits;
    };
    auto const a = power(p, m), b = power(n, i);
    if (a.size() != b.size()) return a.size() < b.size();
    return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

} // namespace parsearch::fabric::detail

namespace parsearch::fabric {

PARSEARCH_INLINE std::vector<std::uint32_t> select_steps(std::uint32_t g, std::uint32_t count, step_set which) {
    auto const steps = ring_steps(g, which);
    std::vector<bool> taken(steps.size(), false);
    std::vector<std::uint32_t> out;
    for (std::uint32_t i = 0; i < count; ++i) {
        // The steps ascend, and so do their powers: where x^i lies among them.
        auto const first = std::partition_point(steps.begin(), steps.end(), [&](auto p) { return detail::power_below(p, count, g, i); });
        auto at = static_cast<std::size_t>(first - steps.begin());
        while (at < steps.size() && taken[at]) ++at;
        if (at == steps.size()) {
            at = static_cast<std::size_t>(first - steps.begin());
            while (at > 0 && taken[at - 1]) --at;
            if (at-- == 0) break; // all are taken
        }
        out.push_back(steps[at]);
        for (std::size_t k = 0; k < steps.size(); ++k)
            if (same_ring(steps[k], steps[at], g)) taken[k] = true;
    }
    return out;
}

PARSEARCH_INLINE std::vector<std::uint32_t> best_steps(std::uint32_t g, std::uint32_t count, path_objective objective, std::uint64_t max_sets) {
    std::vector<std::uint32_t> half;
    for (auto const p : ring_steps(g))
        if (p <= g - p) half.push_back(p);
    auto const k = std::min<std::size_t>(count, half.size());
    if (k == 0) return {};
    double sets = 1;
    for (std::size_t i = 1; i < k; ++i) sets = sets * static_cast<double>(half.size() - i) / static_cast<double>(i);
    if (sets > static_cast<double>(max_sets))
        throw invalid_input("best of ", count, " steps for ", g, " servers: about ", sets, " sets to try, allowed are ", max_sets);
    std::vector<std::size_t> pick(k);
    for (std::size_t i = 0; i < k; ++i) pick[i] = i;
    std::vector<std::uint32_t> steps(k), best;
    std::tuple<std::uint64_t, std::uint64_t> least{~std::uint64_t{0}, ~std::uint64_t{0}};
    for (;;) {
        for (std::size_t i = 0; i < k; ++i) steps[i] = half[pick[i]];
        auto const paths = circulant_paths(g, steps);
        auto const value = objective == path_objective::diameter ? std::tuple<std::uint64_t, std::uint64_t>{paths.diameter, paths.total_hops}
                                                                 : std::tuple<std::uint64_t, std::uint64_t>{paths.total_hops, paths.diameter};
        if (value < least) {
            least = value;
            best = steps;
        }
        // The next set, the first step staying where it is.
        auto i = k;
        while (i > 1 && pick[i - 1] == half.size() - k + i - 1) --i;
        if (i <= 1) return best;
        ++pick[i - 1];
        for (; i < k; ++i) pick[i] = pick[i - 1] + 1;
    }
}

} // namespace parsearch::fabric
