#include <parsearch/pipeline/replica_times.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/topology/nodes.hpp>

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;

namespace {
template <class T> T sum(std::vector<T> const& of) { return std::accumulate(of.begin(), of.end(), T{0}); }
} // namespace

TEST_CASE("replica_times: what the simulation of one micro-batch says, operator by operator") {
    auto const cluster = ps::topology::dgx_a100(1);
    auto const network = ps::models::gpt({.layers = 3, .hidden = 256, .heads = 8, .sequence = 64, .vocabulary = 1024, .batch = 16});
    auto const problem = ps::make_problem(network, cluster, ps::cost::roofline{cluster}, {.simulation = {.optimizer = ps::sim::optimizer::adam}});
    auto const& g = problem.graph();
    std::vector<std::uint32_t> order;
    for (auto const op : g.order)
        if (g.operations[op].work != ps::ops::work_class::source) order.push_back(op);
    std::vector<std::uint32_t> const blocks = pipeline::stage_places(g, order, false).blocks(0, order.size());
    auto const at = [&](std::string_view name) {
        return static_cast<std::size_t>(std::ranges::find(order, name, [&](auto op) { return g.names[op]; }) - order.begin());
    };
    for (std::uint32_t const tensor : {1u, 2u, 4u}) {
        INFO("tensor ", tensor);
        auto const times = pipeline::detail::replica_times_of(problem, order, blocks, {.n = 4}, {.tensor = tensor});
        auto const part = pipeline::micro_batch_problem(problem, 4);
        auto simulator = part.simulator();
        auto const makespan = simulator(ps::space::tensor_parallel(part.graph(), tensor, tensor)).count();
        auto const& memory = simulator.memory().front();
        // All but the updates.
        CHECK(times.forward.back() + times.backward.front() <= makespan);
        CHECK(times.forward.back() + times.backward.front() + sum(times.update) >= makespan);
        CHECK(std::ranges::is_sorted(times.forward));
        CHECK(std::ranges::is_sorted(times.backward, std::ranges::greater{}));
        CHECK(sum(times.busy) <= times.forward.back() + times.backward.front());
        CHECK(sum(times.weights) == memory.weights);
        CHECK(sum(times.optimizer) == memory.optimizer);
        CHECK(static_cast<double>(sum(times.activations)) == doctest::Approx(static_cast<double>(memory.activations)).epsilon(1e-4));
        CHECK(std::ranges::max(times.buffers) == memory.buffers);
        CHECK(sum(times.update) > 0);
        // The logits read the weights of the embedding, which are counted there.
        auto const logits = at("logits"), tokens = at("tokens");
        CHECK(times.home[logits] == tokens);
        CHECK(times.weights[logits] == 0);
        CHECK(times.borrowed[logits] == times.weights[tokens]);
        CHECK(sum(times.borrowed) == times.weights[tokens]);
        CHECK(std::ranges::count(times.experts, true) == 0);
    }
}
