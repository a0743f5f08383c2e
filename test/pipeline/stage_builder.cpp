#include <parsearch/pipeline/stage_builder.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/random_problem.hpp"

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;

TEST_CASE("stage_builder: what bounds a candidate is no more than it takes") {
    int bounded = 0;
    double closest = 0;
    for (std::uint64_t seed = 0; seed < support::cases(400u); ++seed) {
        std::mt19937_64 rng(seed);
        auto const problem =
            support::random_problem(rng, support::random_options(rng), {.devices = 4, .operators = 10, .kinds = ps::bernoulli(rng, 0.5)});
        pipeline::detail::stage_builder builder(problem);
        if (builder.order().empty()) continue;
        for (std::size_t const stages : {1u, 2u, 4u}) {
            if (stages > builder.order().size()) continue;
            auto const rounds = static_cast<std::uint32_t>(stages == 4 ? 1 + ps::uniform_index(rng, 2) : 1);
            auto c = builder.balanced(stages, rounds, 1, {});
            auto const degrees = builder.degrees(4 / c.groups());
            for (auto& t : c.tensor) t = degrees[ps::uniform_index(rng, degrees.size())];
            for (std::size_t s = 1; s < stages; ++s)
                c.first[s] = c.first[s - 1] + 1 + ps::uniform_index(rng, builder.order().size() - c.first[s - 1] - (stages - s));
            try {
                if (ps::bernoulli(rng, 0.5) || rounds > 1) {
                    (void)builder.simulator().micro_batches(2);
                    c.micro_batches = 2;
                }
            } catch (ps::invalid_input const&) { // samples that are mixed
                if (rounds > 1) continue;
            }
            c.order = pipeline::launch_orders[ps::uniform_index(rng, pipeline::launch_orders.size())];
            auto const plan = builder.plan(c);
            auto const takes = builder.simulator().simulate(plan.how, plan.strategy).count();
            INFO("seed ", seed, ", ", stages, " stages");
            auto const bound = builder.least_time(c);
            REQUIRE(bound <= takes);
            if (takes > 0) closest += static_cast<double>(bound) / static_cast<double>(takes);
            ++bounded;
        }
    }
    MESSAGE("bounds are ", 100 * closest / bounded, "% of what ", bounded, " candidates take");
    CHECK(bounded > support::cases(800));
    CHECK(closest > 0.3 * bounded);
}

TEST_CASE("stage_builder: a degree of tensor parallelism that divides nothing is none") {
    auto const cluster = ps::topology::summit(1); // 6 devices
    auto const degrees = [&](std::int64_t hidden, std::int64_t heads, ps::space::space_options const& space = {}) {
        auto const network = ps::models::gpt({.layers = 1, .hidden = hidden, .heads = heads, .sequence = 16, .vocabulary = 64, .batch = 12});
        auto const problem = ps::make_problem(network, cluster, ps::cost::roofline{cluster}, {.space = space});
        return pipeline::detail::stage_builder(problem).degrees(6);
    };
    CHECK(degrees(64, 4) == std::vector<std::uint32_t>{1, 2}); // 3 and 6 divide neither heads nor features
    CHECK(degrees(96, 6) == std::vector<std::uint32_t>{1, 2, 3, 6});
    CHECK(degrees(96, 6, {.max_shards = 1}) == std::vector<std::uint32_t>{1});
}
