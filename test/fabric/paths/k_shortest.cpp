#include <parsearch/fabric/paths/k_shortest.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>
#include <parsearch/core/random.hpp>
#include <parsearch/fabric/paths/routing.hpp>

using namespace parsearch;
using namespace parsearch::fabric;

using path_t = std::vector<std::uint32_t>;

namespace {
void all_loopless(std::vector<path_t> const& near, std::uint32_t to, path_t& path, std::vector<path_t>& out) {
    if (path.back() == to) return out.push_back(path);
    for (auto const v : near[path.back()]) {
        if (std::find(path.begin(), path.end(), v) != path.end()) continue;
        path.push_back(v);
        all_loopless(near, to, path, out);
        path.pop_back();
    }
}
} // namespace

TEST_CASE("k shortest paths: the first of all loopless ones, on random graphs") {
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        CAPTURE(seed);
        split_mix rng(seed);
        auto const n = static_cast<std::uint32_t>(2 + uniform_index(rng, 7));
        std::vector<path_t> near(n);
        for (std::uint32_t a = 0; a < n; ++a)
            for (auto b = a + 1; b < n; ++b)
                if (bernoulli(rng, 0.45)) {
                    near[a].push_back(b);
                    near[b].push_back(a);
                }
        auto const from = static_cast<std::uint32_t>(uniform_index(rng, n)), to = static_cast<std::uint32_t>(uniform_index(rng, n));
        auto const rank = [&](std::uint32_t v) { return flow_hash(seed, 0, v); };
        std::vector<path_t> expected;
        path_t start{from};
        all_loopless(near, to, start, expected);
        std::sort(expected.begin(), expected.end(), [&](auto const& x, auto const& y) {
            if (x.size() != y.size()) return x.size() < y.size();
            return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end(), [&](auto a, auto b) { return rank(a) < rank(b); });
        });
        k_shortest_paths find(near);
        REQUIRE(find(from, to, 1000, rank) == expected);
        auto const k = static_cast<std::size_t>(uniform_index(rng, 6));
        if (expected.size() > k) expected.resize(k);
        REQUIRE(find(from, to, k, rank) == expected); // with the buffers of another search
    }
}
