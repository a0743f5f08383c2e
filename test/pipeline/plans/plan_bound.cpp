#include <parsearch/pipeline/plans/plan_bound.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stop_token>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/interruption.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/search/kernel/starts.hpp>

#include "support/cases.hpp"
#include "support/plain_topology.hpp"
#include "support/random_problem.hpp"

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;
namespace sim = parsearch::sim;
using ps::picoseconds;

namespace {
// A shard takes 100 ps beside one for each flop, so that much at once pays; where it `gains`, the square of its flops, so that little does. Devices
// but the first are slower by `others`.
struct counting_oracle {
    bool gains = false;
    std::int64_t others = 1000;
    [[nodiscard]] picoseconds shard_time(ps::ops::shard_work const& w, std::uint32_t device) const {
        auto const share = static_cast<std::int64_t>(w.flops);
        auto const time = gains ? share * share : 100 + share;
        return picoseconds{device == 0 ? time : others * time};
    }
    [[nodiscard]] picoseconds transfer_time(ps::byte_count, ps::link_description const&) const { return {}; }
};
} // namespace

TEST_CASE("plan_bound: no plan of any kind costs less") {
    int plans = 0, staged = 0, recomputed = 0, cut = 0, sharded = 0, offloaded = 0;
    double closest = 0;
    for (std::uint64_t seed = 0; seed < support::cases(150u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto options = support::random_options(rng);
        options.transfers = sim::transfer_model::streaming;
        auto const problem = support::random_problem(rng, options, {.devices = 4, .operators = 10, .kinds = ps::bernoulli(rng, 0.5)});
        auto const& g = problem.graph();
        pipeline::pipeline_simulator simulator(problem);
        auto const bound = pipeline::plan_bound(problem).count();
        auto const samples = static_cast<std::uint64_t>(pipeline::divisible_samples(g));
        for (int n = 0; n < 25; ++n) {
            pipeline::pipelining how = pipeline::unpipelined(g);
            do how.micro_batches = static_cast<std::uint32_t>(1 + ps::uniform_index(rng, samples));
            while (samples % how.micro_batches != 0);
            how.stages = static_cast<std::uint32_t>(1 + ps::uniform_index(rng, std::min<std::uint64_t>(3, g.size())));
            std::uint32_t stage = 0;
            how.segment.resize(g.size());
            for (auto const op : g.order) {
                stage += stage + 1 < how.stages && ps::bernoulli(rng, 0.3);
                how.stage[op] = stage;
                how.segment[op] = static_cast<std::uint32_t>(&op - g.order.data()) / 3;
                how.kept.push_back(ps::bernoulli(rng, 0.2));
            }
            for (std::uint32_t s = 0; s < how.stages; ++s) how.recompute.push_back(ps::bernoulli(rng, 0.5));
            how.order = pipeline::launch_orders[ps::uniform_index(rng, pipeline::launch_orders.size())];
            how.sharded = pipeline::all_sharded_states[ps::uniform_index(rng, pipeline::all_sharded_states.size())];
            bool const offloads = !cuts_backward(how.order) && ps::bernoulli(rng, 0.5);
            for (std::size_t op = 0; op < g.size() && offloads; ++op) how.offloaded.push_back(ps::bernoulli(rng, 0.5));
            auto const& part = simulator.micro_batches(how.micro_batches);
            auto const strategy = ps::search::random_strategy(part.space(), ps::data_parallel(part), rng);
            try {
                auto const takes = simulator.simulate(how, strategy).count();
                REQUIRE(bound <= takes);
                if (takes > 0) closest = std::max(closest, static_cast<double>(bound) / static_cast<double>(takes));
            } catch (ps::invalid_input const&) { // orders and shared states that do not go together
                continue;
            }
            ++plans;
            staged += how.stages > 1;
            recomputed += std::ranges::find(how.recompute, true) != how.recompute.end();
            cut += cuts_backward(how.order);
            sharded += how.sharded != pipeline::sharded_states::none;
            offloaded += how.offloads();
        }
    }
    MESSAGE(plans, " plans, ", staged, " with stages, ", recomputed, " that compute again, ", cut, " that cut backward, ", sharded,
            " with shared states, ", offloaded, " that offload; the closest bound is ", closest, " of what one takes");
    CHECK(plans > static_cast<int>(support::cases(1500u)));
    CHECK(std::min({staged, recomputed, cut, sharded, offloaded}) > static_cast<int>(support::cases(300u)));
    CHECK(closest > (support::nightly() ? 0.8 : support::sanitized ? 0.3 : 0.6)); // few cases come less close
}

TEST_CASE("plan_bound: the least over all numbers of micro-batches, on the fastest kind of device") {
    auto topology = support::mesh(2, 1e9);
    topology.device[1].kind = "slow";
    auto const network = ps::models::mlp({.features = 2, .hidden = {}, .classes = 2, .batch = 8});
    auto const of = [&](counting_oracle oracle, pipeline::partition_options const& options) {
        auto const problem = ps::make_problem(network, topology, oracle);
        std::int64_t least = picoseconds::max().count(); // over the ways to split, of the kind of device 0
        for (std::int64_t const n : {1, 2, 4, 8}) {
            if (static_cast<std::uint64_t>(n) > options.max_micro_batches) continue;
            auto const part = pipeline::micro_batch_problem(problem, n);
            sim::planner planner(part.workload());
            std::int64_t sum = 0;
            for (std::uint32_t op = 0; op < part.size(); ++op) {
                if (part.graph().operations[op].work == ps::ops::work_class::source) continue;
                auto work = picoseconds::max().count();
                for (auto const& c : part.space()[op]) {
                    std::vector<std::int64_t> forward, backward;
                    planner.time_operator(op, c, forward, backward);
                    work = std::min(work, c.shards() * (forward[0] + backward[0]));
                }
                sum += work;
            }
            least = std::min(least, n * (sum / 2));
        }
        auto const bound = pipeline::plan_bound(problem, options).count();
        CHECK(bound == least);
        return bound;
    };
    // Where small kernels take longer, the bound is that of one micro-batch; else of as many as there may be.
    CHECK(of({}, {}) == of({}, {.max_micro_batches = 1}));
    CHECK(of({.gains = true}, {}) < of({.gains = true}, {.max_micro_batches = 4}));
    CHECK(of({.others = 5}, {}) == of({.others = 7}, {}));
    auto const problem = ps::make_problem(network, topology, counting_oracle{});
    std::stop_source stop;
    stop.request_stop();
    CHECK_THROWS_AS((void)pipeline::plan_bound(problem, {}, stop.get_token()), ps::interrupted);
}
