#include <parsearch/fabric/paths/ring_selection.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;
using namespace parsearch::fabric;

using steps_t = std::vector<std::uint32_t>;

namespace {
/// The number of different rings (direction aside) that `select_steps` can choose from.
std::size_t distinct_rings(std::uint32_t g, step_set which) {
    std::size_t out = 0;
    auto const steps = ring_steps(g, which);
    for (auto const p : steps) out += p <= g - p || !std::binary_search(steps.begin(), steps.end(), g - p);
    return out;
}
} // namespace

TEST_CASE("the golden jumps of TopoOpt") {
    struct row {
        std::uint32_t n, degree;
        steps_t jumps;
        std::uint32_t diameter;
        double mean_hops;
    };
    row const rows[] = {{12, 4, {1, 5}, 3, 1.818}, {16, 4, {1, 5}, 4, 2.133},    {16, 8, {1, 3, 5, 9}, 2, 1.467}, {32, 4, {1, 7}, 4, 2.710},
                        {64, 4, {1, 9}, 8, 4.063}, {128, 4, {1, 13}, 10, 5.622}, {128, 6, {1, 7, 27}, 6, 3.669},  {128, 8, {1, 5, 13, 39}, 5, 2.961}};
    for (auto const& r : rows) {
        CAPTURE(r.n);
        CAPTURE(r.degree);
        auto const steps = select_steps(r.n, r.degree / 2);
        CHECK(steps == r.jumps);
        auto const paths = circulant_paths(r.n, steps);
        CHECK(paths.diameter == r.diameter);
        CHECK(std::abs(paths.mean_hops() - r.mean_hops) < 0.0005);
        // The exhaustive choice is never worse.
        auto const best = circulant_paths(r.n, best_steps(r.n, r.degree / 2));
        CHECK(best.diameter <= r.diameter);
        CHECK(circulant_paths(r.n, best_steps(r.n, r.degree / 2, path_objective::mean_hops)).total_hops <= paths.total_hops);
    }
}

TEST_CASE("chosen steps: as many as asked, all rings, no two the same") {
    for (auto const which : {step_set::coprime, step_set::prime})
        for (std::uint32_t g = 1; g <= 130; ++g)
            for (std::uint32_t count = 0; count <= 8; ++count) {
                auto const steps = select_steps(g, count, which);
                REQUIRE(steps.size() == std::min<std::size_t>(count, distinct_rings(g, which)));
                for (std::size_t i = 0; i < steps.size(); ++i) {
                    REQUIRE(std::gcd(steps[i], g) == 1);
                    for (std::size_t k = 0; k < i; ++k) REQUIRE_FALSE(same_ring(steps[i], steps[k], g));
                }
                if (count > 0 && g > 1) REQUIRE(steps[0] == 1);
            }
}

TEST_CASE("best steps: as all pairs have it") {
    for (std::uint32_t g = 3; g <= 40; ++g) {
        path_lengths least{g, ~std::uint64_t{0}, g};
        for (auto const p : ring_steps(g))
            for (auto const q : ring_steps(g)) {
                auto const paths = circulant_paths(g, steps_t{p, q});
                if (paths.diameter < least.diameter || (paths.diameter == least.diameter && paths.total_hops < least.total_hops)) least = paths;
            }
        CHECK(circulant_paths(g, best_steps(g, 2)) == least);
    }
    CHECK(best_steps(1, 3).empty());
    CHECK(best_steps(2, 3) == steps_t{1});
    CHECK_THROWS_WITH_AS((void)best_steps(1024, 6), doctest::Contains("sets to try, allowed are 1000000"), invalid_input);
}

TEST_CASE("paths of circulants") {
    CHECK(circulant_distances(6, steps_t{1}) == steps_t{0, 1, 2, 3, 2, 1});
    CHECK(circulant_paths(1, steps_t{}) == path_lengths{0, 0, 1});
    CHECK(circulant_paths(1, steps_t{}).mean_hops() == 0);
    CHECK_THROWS_WITH_AS((void)circulant_paths(6, steps_t{2}), doctest::Contains("is not connected"), invalid_input);
    CHECK(fabric::detail::power_below(3, 4, 9, 2) == false); // 81 and 81
    CHECK(fabric::detail::power_below(3, 4, 9, 3));
    CHECK(fabric::detail::power_below(4095, 40, 4096, 40));
    CHECK_FALSE(fabric::detail::power_below(4096, 41, 4096, 40));
}
