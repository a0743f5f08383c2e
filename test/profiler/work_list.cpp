#include "profiler/work_list.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/models/dlrm.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/problem/problem.hpp>

#include "profiler/launch_cost.hpp"
#include "profiler/lower.hpp"
#include "spied_problem.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using profiler::work_list;

namespace {

template <class Problem> work_list list_of(Problem const& p, sim::simulation_options const& simulation, space::space_options const& space = {}) {
    work_list list;
    list.add_problem(p.graph(), p.topology().size(), space, simulation);
    return list;
}
template <class Problem> std::size_t class_size(Problem const& p, ops::operation const* op) {
    auto const& g = p.graph();
    auto const number = static_cast<std::uint32_t>(op - g.operations.data());
    return static_cast<std::size_t>(std::ranges::count(g.sharing, g.sharing[number]));
}
} // namespace

TEST_CASE("work list: whatever the simulator asks of an oracle is in it") {
    std::size_t questions = 0, shared = 0;
    for (std::uint64_t seed = 0; seed < 900; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const [options, spy, p] = support::random_spied_problem(rng, 2, 6, 8, true);
        auto const list = list_of(p, options);
        auto simulator = p.simulator();
        for (int i = 0; i < 12; ++i) (void)simulator(support::random_strategy(rng, p));
        for (auto const& q : *spy.asked) {
            ++questions;
            bool const bracketed = q.kernel.pass == ops::pass::update && class_size(p, q.op) > 1;
            if (!bracketed) {
                bool const listed = list.contains(q.kernel);
                CAPTURE(cost::to_string(q.kernel));
                REQUIRE(listed);
                continue;
            }
            ++shared;
            bool less = options.synchronisation == sim::synchronisation::parameter_server, more = false;
            for (auto const& item : list.items()) {
                if (item.kernel.pass != ops::pass::update) continue;
                less = less || (item.work.bytes <= q.bytes && item.work.flops <= q.flops);
                more = more || (item.work.bytes >= q.bytes && item.work.flops >= q.flops);
            }
            REQUIRE(less);
            REQUIRE(more);
        }
    }
    MESSAGE(questions << " questions, " << shared << " about shared weights");
    CHECK(questions > 50000);
    CHECK(shared > 500);
}

TEST_CASE("work list: nothing in it is out of reach") {
    std::size_t problems = 0;
    for (std::uint64_t seed = 0; problems < 60; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const [options, spy, p] = support::random_spied_problem(rng, 2, 4, 4, false);
        auto const list = list_of(p, options);
        if (list.bracketed_updates() > 0) continue; // of these all but the largest are in reach, which takes all strategies to show
        ++problems;
        auto simulator = p.simulator();
        auto s = support::random_strategy(rng, p);
        for (std::size_t op = 0; op < p.size(); ++op)
            for (auto const& c : p.space()[op]) {
                s[op] = c;
                (void)simulator(s);
            }
        std::set<cost::kernel> asked;
        for (auto const& q : *spy.asked) asked.insert(q.kernel);
        CHECK(asked.size() == list.size());
        for (auto const& item : list.items()) {
            CAPTURE(cost::to_string(item.kernel));
            REQUIRE(asked.contains(item.kernel));
        }
    }
}

TEST_CASE("work list: limits, sharing, configurations from elsewhere") {
    auto const network = models::mlp({.features = 512, .hidden = {512, 512}, .classes = 512, .batch = 64});
    auto const g = graph::read_graph(network).graph;
    work_list all;
    all.add_problem(g, 8, {}, {});
    // Three equal layers but for the gradient of the first one's input, which nobody wants.
    std::size_t forward = 0;
    for (auto const& item : all.items())
        if (item.kernel.op == "linear" && item.kernel.pass == ops::pass::forward) {
            ++forward;
            CHECK(item.shared == 3);
            CHECK(item.memory == static_cast<byte_count>(item.work.bytes));
        }
    space::operator_space const space(g.operations[1], 8, {}, "fc");
    CHECK(forward == space.splits());
    work_list powers;
    powers.add_problem(g, 8, {}, {}, {.degrees = {2, 4}});
    CHECK(powers.size() < all.size());
    for (auto const& item : powers.items()) {
        CHECK(all.contains(item.kernel));
        for (std::size_t k = 0; k < item.work.op->dims.size(); ++k) CHECK(item.work.degrees[k] <= 4);
    }
    work_list backward;
    backward.add_problem(g, 8, {}, {}, {.degrees = {}, .passes = {false, true, false}, .operators = {"linear"}});
    CHECK(backward.size() > 0);
    for (auto const& item : backward.items()) CHECK((item.kernel.op == "linear" && item.kernel.pass == ops::pass::backward));
    // Degrees beyond the space, as an expert's may be.
    auto c = space::whole(g.operations[1]);
    c.degree[0] = 8;
    c.stride[0] = 1;
    space::space_options const narrow{.sample = false};
    work_list without, with;
    without.add_problem(g, 8, narrow, {});
    std::vector<std::pair<std::uint32_t, space::configuration>> const more{{1, c}};
    with.add_problem(g, 8, narrow, {}, {}, more);
    CHECK(with.size() == without.size() + 2); // forward and backward: the weights are those of the whole
    auto const sharded = ops::work_of(g.operations[1], c.degrees(), ops::pass::forward);
    CHECK(with.contains(cost::kernel_of(sharded)));
    CHECK_FALSE(without.contains(cost::kernel_of(sharded)));
    // Added again, nothing is new.
    auto const before = all.size();
    all.add_problem(g, 8, {}, {});
    CHECK(all.size() == before);
}

TEST_CASE("work list: no kernel is said to need more memory than its launches hold") {
    using profiler::detail::product;
    // Bytes of all arrays: those that are moved once each, but for tables, which are whole, and what an update writes where it was.
    auto const held = [](profiler::launch const& l) {
        auto const moved = profiler::traffic_of(l).all();
        if (auto const* const t = std::get_if<profiler::lookup>(&l)) {
            auto const size = static_cast<double>(ops::size_of(t->type));
            return moved - (t->backward ? 2 : 1) * size * product(t->lookups, t->width) + size * product(t->rows, t->width);
        }
        return std::holds_alternative<profiler::optimizer_update>(l) ? moved * 4 / 7 : moved;
    };
    std::size_t compared = 0;
    std::set<std::string> kinds;
    auto const compare = [&](auto const& network) {
        auto const g = graph::read_graph(network).graph;
        work_list list;
        list.add_problem(g, 4, {}, {}, {.degrees = {2, 4}});
        for (auto const& item : list.items()) {
            CAPTURE(cost::to_string(item.kernel));
            auto const made = profiler::lower(item.work);
            REQUIRE(made);
            double all = 0;
            for (auto const& l : made.launches) all += held(l);
            CHECK(static_cast<double>(item.memory) <= all);
            ++compared;
            kinds.insert(item.kernel.op);
        }
    };
    compare(models::mlp({.features = 512, .hidden = {512, 512}, .classes = 512, .batch = 64}));
    compare(models::dlrm({}));
    compare(models::resnet({.batch = 32}));
    compare(models::gpt({.layers = 1}));
    MESSAGE(compared << " kernels of " << kinds.size() << " kinds");
    CHECK(compared > 500);

    // A table is in memory once, in either pass, whatever is looked up: nothing twice as large is asked for.
    auto const g = graph::read_graph(models::dlrm({})).graph;
    work_list list;
    list.add_problem(g, 1, {}, {});
    std::size_t tables = 0;
    for (auto const& item : list.items()) {
        if (!item.kernel.op.starts_with("embedding") || item.kernel.pass == ops::pass::update) continue;
        ++tables;
        CHECK(item.memory == ops::bytes_of(item.work.op->weights[0]));
    }
    CHECK(tables >= 2);
}

TEST_CASE("work list: what is wrong is refused") {
    auto const g = graph::read_graph(models::mlp({})).graph;
    work_list list;
    CHECK(support::refusal([&] {
              list.add_problem(g, 4, {}, {}, {.degrees = {0}});
              return 0;
          }) == "degrees has 0: must be at least 1");
    CHECK(support::refusal([&] {
              list.add_problem(g, 4, {}, {}, {.passes = {false, false, false}});
              return 0;
          }).find("passes is empty") == 0);
    CHECK(support::refusal([&] {
              list.add_problem(g, 0, {}, {});
              return 0;
          }).find("0 devices") != std::string::npos);
    CHECK(list.size() == 0);
}

TEST_CASE("work list: a space of many placements is not walked") {
    auto const g = graph::read_graph(models::resnet({.batch = 2048})).graph;
    work_list list;
    list.add_problem(g, 64, {.all_orders = true}, {}, {.degrees = {2, 4, 8, 16, 32, 64}});
    CHECK(list.size() > 1000);
    MESSAGE(list.size() << " kernels of ResNet-50 on 64 devices");
}
