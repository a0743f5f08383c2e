#pragma once
// Routes on circulant graphs: fewest jumps whose sum is the distance.

#include <algorithm>
#include <numeric>

#include <parsearch/core/error.hpp>
#include <parsearch/fabric/paths/coin_change.hpp>

namespace parsearch::fabric {

PARSEARCH_INLINE coin_change::coin_change(std::uint32_t n, std::span<std::uint32_t const> steps) : n_(n) {
    if (n == 0) throw invalid_input("coin change modulo 0: must be positive");
    for (auto const p : steps) {
        if (p == 0 || p >= n) throw invalid_input("coin change modulo ", n, ": a step of ", p, ": must be from 1 to ", n - 1);
        add_coin(p);
        add_coin(n - p);
    }
    distance_ = circulant_distances(n, steps);
    for (std::uint32_t v = 0; v < n; ++v)
        if (distance_[v] == unreached) throw invalid_input("coin change modulo ", n, ": the steps do not sum up to ", v);
    choose();
}

PARSEARCH_INLINE std::vector<std::vector<std::uint32_t>> coin_change::all_routes(std::uint32_t from, std::uint32_t to, std::size_t most) const {
    std::vector<std::vector<std::uint32_t>> out;
    std::vector<std::uint32_t> path{from};
    extend(path, to, most, out);
    return out;
}

PARSEARCH_INLINE void coin_change::choose() {
    auto const k = coins_.size();
    std::vector<std::uint32_t> by_hops(n_);
    std::iota(by_hops.begin(), by_hops.end(), 0u);
    std::stable_sort(by_hops.begin(), by_hops.end(), [&](auto a, auto b) { return distance_[a] < distance_[b]; });
    std::vector<std::uint64_t> used(k, 0);                   // jumps of all routes so far
    std::vector<std::uint32_t> paid(std::size_t{n_} * k, 0); // jumps of the route to each vertex
    choice_.assign(n_, 0);
    for (std::size_t i = 1; i < by_hops.size(); ++i) {
        auto const v = by_hops[i];
        auto least = std::numeric_limits<std::uint64_t>::max();
        for (std::size_t c = 0; c < k; ++c) {
            if (!shortens(v, coins_[c])) continue;
            auto const* const rest = &paid[difference(v, coins_[c]) * k];
            std::uint64_t squares = 0;
            for (std::size_t j = 0; j < k; ++j) {
                auto const jumps = used[j] + rest[j] + (j == c);
                squares += jumps * jumps;
            }
            if (squares >= least) continue;
            least = squares;
            choice_[v] = static_cast<std::uint32_t>(c);
        }
        auto const* const rest = &paid[difference(v, coins_[choice_[v]]) * k];
        for (std::size_t j = 0; j < k; ++j) {
            paid[v * k + j] = rest[j] + (j == choice_[v]);
            used[j] += paid[v * k + j];
        }
    }
}

PARSEARCH_INLINE void coin_change::extend(std::vector<std::uint32_t>& path, std::uint32_t to, std::size_t most,
                                          std::vector<std::vector<std::uint32_t>>& out) const {
    if (out.size() == most) return;
    if (path.back() == to) {
        out.push_back(path);
        return;
    }
    auto const at = path.back();
    for (auto const coin : coins_) {
        if (!shortens(difference(to, at), coin)) continue;
        path.push_back(sum(at, coin));
        extend(path, to, most, out);
        path.pop_back();
    }
}

} // namespace parsearch::fabric
