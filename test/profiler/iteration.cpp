#include "profiler/iteration.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <ranges>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/models/bert.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/problem/problem.hpp>

#include "spied_problem.hpp"

using namespace parsearch;
using profiler::iteration_of;

namespace {

space::flat_strategy all_on_first(graph::dense_graph const& g) {
    space::flat_strategy s;
    for (auto const& op : g.operations) {
        space::configuration c{.rank = static_cast<std::uint32_t>(op.dims.size())};
        std::fill_n(c.degree.begin(), c.rank, 1);
        s.push_back(c);
    }
    return s;
}
} // namespace

TEST_CASE("iteration: it is what the simulator asks of an oracle for one device, and adds up to its makespan") {
    std::size_t works = 0;
    for (std::uint64_t seed = 0; seed < 600; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const [options, spy, p] = support::random_spied_problem(rng, 1, 3, 8, true);
        auto const iteration = iteration_of(p.graph(), options);
        std::vector<cost::kernel> kernels;
        picoseconds sum{};
        for (auto const& w : iteration) {
            kernels.push_back(cost::kernel_of(w));
            sum += spy.time_of(w);
        }
        works += kernels.size();
        // Forward, then backward, then updates.
        CHECK(std::ranges::is_sorted(iteration, {}, [](ops::shard_work const& w) { return w.pass; }));
        auto simulator = p.simulator();
        spy.asked->clear();
        auto const makespan = simulator.simulate(all_on_first(p.graph()));
        CHECK(makespan == sum);
        // It asks for each kind of device, of which there may be several.
        std::ranges::sort(kernels);
        std::vector<cost::kernel> asked;
        for (auto const& q : *spy.asked) asked.push_back(q.kernel);
        std::ranges::sort(asked);
        auto const distinct = [](std::vector<cost::kernel> v) {
            v.erase(std::ranges::unique(v).begin(), v.end());
            return v;
        };
        CHECK(distinct(kernels) == distinct(asked));
        if (p.topology().size() == 1) CHECK(kernels == asked);
    }
    CHECK(works > 3000);
}

TEST_CASE("iteration: backward runs in the opposite order, and a table for one device has each kernel once") {
    auto const g = graph::read_graph(models::mlp({})).graph;
    auto const works = iteration_of(g, {});
    std::vector<ops::operation const*> forward, backward;
    for (auto const& w : works) {
        if (w.pass == ops::pass::forward) forward.push_back(w.op);
        if (w.pass == ops::pass::backward) backward.push_back(w.op);
    }
    REQUIRE(forward.size() == backward.size());
    CHECK(std::ranges::equal(forward, backward | std::views::reverse));
    sim::simulation_options inference;
    inference.training = false;
    CHECK(iteration_of(g, inference).size() == forward.size());

    profiler::work_list list;
    {
        auto const bert = graph::read_graph(models::bert({})).graph;
        list.add_works(iteration_of(bert, {}));
    }
    std::int64_t shared = 0;
    for (auto const& item : list.items()) shared += item.shared;
    auto const again = graph::read_graph(models::bert({})).graph;
    auto const all = iteration_of(again, {});
    CHECK(shared == static_cast<std::int64_t>(all.size()));
    CHECK(list.size() < all.size() / 10); // the layers are equal
    for (auto const& w : all) CHECK(list.contains(cost::kernel_of(w)));
    for (auto const& item : list.items()) CHECK(cost::kernel_of(item.work) == item.kernel); // the graph is gone, its operations are not
}

TEST_CASE("iteration: under data parallelism each device has its part of the samples, all weights, and their all-reduces") {
    auto const g = graph::read_graph(models::mlp({.features = 32, .hidden = {64, 64}, .classes = 8, .batch = 24})).graph;
    auto const whole = profiler::data_parallel_iteration(g, 1, {}), half = profiler::data_parallel_iteration(g, 2, {});
    CHECK(whole.all_reduces.empty());
    REQUIRE(half.works.size() == whole.works.size());
    for (std::size_t i = 0; i < half.works.size(); ++i) CHECK(half.works[i].flops == whole.works[i].flops / 2);
    CHECK(half.all_reduces == std::vector<byte_count>{4 * (32 * 64 + 64), 4 * (64 * 64 + 64), 4 * (64 * 8 + 8)});
    REQUIRE(half.updates.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK(half.updates[i].bytes == whole.updates[i].bytes);
    try {
        (void)profiler::data_parallel_iteration(g, 5, {});
        FAIL("24 samples are not five equal parts");
    } catch (invalid_input const& e) {
        CAPTURE(e.what());
        CHECK(std::string(e.what()).find("shards by its samples: must have 5, one for each device") != std::string::npos);
    }
}
