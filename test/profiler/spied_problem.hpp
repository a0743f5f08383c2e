#pragma once
/// Random problems whose oracle remembers what the simulator asks of it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <parsearch/cost/profile.hpp>

#include "support/random_problem.hpp"

namespace support {

/// Remembers what it is asked, for all copies, and answers times that add up to a sum that tells works apart.
struct spy_oracle {
    struct question {
        parsearch::cost::kernel kernel;
        parsearch::ops::operation const* op;
        double flops, bytes;
    };
    std::shared_ptr<std::vector<question>> asked = std::make_shared<std::vector<question>>();
    [[nodiscard]] static parsearch::picoseconds time_of(parsearch::ops::shard_work const& w) {
        if (w.flops == 0 && w.bytes == 0) return parsearch::picoseconds{0};
        return parsearch::picoseconds{1 + static_cast<std::int64_t>(w.flops + 3 * w.bytes) + (w.pass == parsearch::ops::pass::backward ? 7 : 0)};
    }
    [[nodiscard]] parsearch::picoseconds shard_time(parsearch::ops::shard_work const& w, std::uint32_t) const {
        using parsearch::ops::work_class;
        bool const free = w.op->work == work_class::view || w.op->work == work_class::source || (w.flops == 0 && w.bytes == 0);
        if (!free) asked->push_back({parsearch::cost::kernel_of(w), w.op, w.flops, w.bytes});
        return time_of(w);
    }
};

/// A random problem of random options, and what its oracle is asked.
template <class Problem> struct spied_problem {
    parsearch::sim::simulation_options options;
    spy_oracle spy;
    Problem problem;
};

/// One of `least` to `most` devices and up to `operators` operators; where `kinds`, some have devices of two kinds.
inline auto random_spied_problem(std::mt19937_64& rng, std::uint64_t least, std::uint64_t most, std::size_t operators, bool kinds) {
    using namespace parsearch;
    auto const options = random_options(rng);
    spy_oracle const spy;
    problem_shape const shape{.devices = static_cast<std::uint32_t>(least + uniform_index(rng, most - least + 1)),
                              .operators = operators,
                              .kinds = kinds && bernoulli(rng, 0.3)};
    auto problem = random_problem(rng, options, shape, spy);
    return spied_problem<decltype(problem)>{options, spy, std::move(problem)};
}

} // namespace support
