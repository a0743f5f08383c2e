#pragma once
/// Random textbook plans.

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include <parsearch/core/random.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/pipeline/stage_builder.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/space/textbook/neighbour_split.hpp>

namespace support {

/// A textbook plan of all devices, for batches of 16, or nothing where there is none of the numbers drawn.
inline std::optional<parsearch::pipeline::pipeline_plan> random_plan(std::mt19937_64& rng, parsearch::parallelization const& p) {
    using namespace parsearch;
    pipeline::detail::stage_builder builder(p);
    auto const all = builder.devices();
    std::vector<std::uint32_t> stages;
    for (std::uint32_t s = 1; s <= 4; ++s)
        if (all % s == 0) stages.push_back(s);
    auto const s = stages[uniform_index(rng, stages.size())];
    auto const& degrees = builder.degrees(all / s);
    space::neighbour_split const by{.tensor = degrees[uniform_index(rng, degrees.size())]};
    auto const m = std::uint32_t{1} << uniform_index(rng, 3);
    if (16 % m != 0 || !builder.allows(m, all / s, by)) return {};
    auto c = builder.balanced(s, 1, m, by);
    c.share(pipeline::all_sharded_states[uniform_index(rng, 5)]);
    return builder.plan(c);
}

} // namespace support
