#include <parsearch/sim/memory/strategy_memory.hpp>

#include <cstdint>
#include <random>

#include <doctest/doctest.h>

#include "support/cases.hpp"
#include "support/random_problem.hpp"

namespace ps = parsearch;

TEST_CASE("strategy_memory: that of the simulator") {
    for (std::uint64_t seed = 1; seed <= support::cases(60u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const options = support::random_options(rng);
        auto const problem = support::random_problem(rng, options, {.devices = 4, .operators = 10});
        auto simulator = problem.simulator();
        for (int n = 0; n < 5; ++n) {
            auto const s = support::random_strategy(rng, problem, 0.3);
            (void)simulator(s);
            auto const by_device = ps::sim::memory_by_device(problem.graph(), ps::sim::find_classes(problem.graph()), 4, options, s);
            REQUIRE(by_device.size() == simulator.memory().size());
            ps::byte_count most = 0;
            for (std::size_t d = 0; d < by_device.size(); ++d) {
                auto const &a = by_device[d], &b = simulator.memory()[d];
                CHECK(a.weights == b.weights);
                CHECK(a.gradients == b.gradients);
                CHECK(a.optimizer == b.optimizer);
                CHECK(a.activations == b.activations);
                CHECK(a.buffers == b.buffers);
                most = std::max(most, b.total());
            }
            CHECK(ps::sim::most_memory(by_device) == most);
        }
    }
}

TEST_CASE("strategy_memory: no strategy needs less on all devices together than whole operators on one") {
    int close = 0;
    for (std::uint64_t seed = 1; seed <= support::cases(400u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const options = support::random_options(rng);
        auto const problem = support::random_problem(rng, options, {.devices = 4, .operators = 10});
        auto const classes = ps::sim::find_classes(problem.graph());
        auto const least = ps::sim::least_memory(problem.graph(), classes, options);
        for (int n = 0; n < 5; ++n) {
            ps::byte_count sum = 0;
            for (auto const& use : ps::sim::memory_by_device(problem.graph(), classes, 4, options, support::random_strategy(rng, problem, 0.3)))
                sum += use.total() - use.buffers;
            REQUIRE(sum >= least);
            close += sum < 2 * least;
        }
    }
    CHECK(close > 0);
}
