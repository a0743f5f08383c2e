#include <parsearch/sim/schedule/schedule.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <simgrid/s4u.hpp>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/lenet.hpp>
#include <parsearch/models/nmt.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/cluster_builder.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/random_network.hpp"

using namespace parsearch;
using sim::discipline, sim::movement;

namespace {

constexpr auto none = ~std::uint32_t{0};

/// What the discipline says that each task has to wait for on its resource: the task before it, `none` for the first. Barriers are
/// on no resource. The order is made of the schedule's ready times, never of its starts, so that a schedule that ran tasks in
/// another order is found out.
std::vector<std::uint32_t> previous_on_resource(sim::task_graph const& g, sim::schedule const& s, discipline order) {
    std::vector<std::uint32_t> tasks(g.size()), last(g.resources, none), previous(g.size(), none);
    std::iota(tasks.begin(), tasks.end(), 0u);
    if (order == discipline::fifo) std::stable_sort(tasks.begin(), tasks.end(), [&](auto a, auto b) { return s.ready[a] < s.ready[b]; });
    for (auto const t : tasks)
        if (g.kind[t] != sim::task_kind::barrier) previous[t] = std::exchange(last[g.resource[t]], t);
    return previous;
}

/// When SimGrid runs each task, in picoseconds; an end of -1 where it never does.
struct simgrid_times {
    std::vector<double> start, end;
};

/// SimGrid, which has one engine in a process: task graphs run one after another, each from the time at which the last one ended.
/// Its second is our picosecond and a host computes one flop in it. Times are thus whole numbers, exact in a double, and further apart
/// than the precision (1e-9) within which SimGrid takes two times for one. Every resource is a host with one core, so that tasks that
/// SimGrid ran on it at once would slow each other down.
class simgrid_engine {
  public:
    static simgrid_engine& only() {
        static simgrid_engine e;
        return e;
    }

    /// Runs the tasks of `g`, each after its predecessors and `previous`. Tasks of no duration are executions of 0 flops, which SimGrid
    /// ends when they start. A cycle is never run.
    simgrid_times run(sim::task_graph const& g, std::span<std::uint32_t const> previous) {
        REQUIRE(g.resources <= hosts_.size());
        auto const from = simgrid::s4u::Engine::get_clock();
        std::vector<simgrid::s4u::ExecPtr> tasks;
        for (std::uint32_t t = 0; t < g.size(); ++t)
            tasks.push_back(simgrid::s4u::Exec::init()->set_flops_amount(static_cast<double>(g.duration[t]))->set_host(hosts_[g.resource[t]]));
        std::vector<std::uint32_t> before;
        for (std::uint32_t t = 0; t < g.size(); ++t) {
            before.assign(g.before(t).begin(), g.before(t).end());
            if (previous[t] != none) before.push_back(previous[t]);
            // SimGrid refuses a dependency that comes twice.
            std::sort(before.begin(), before.end());
            before.erase(std::unique(before.begin(), before.end()), before.end());
            for (auto const p : before) tasks[p]->add_successor(tasks[t]);
        }
        for (auto const& t : tasks) t->vetoable_start();
        engine_.run();
        REQUIRE(simgrid::s4u::Engine::get_clock() < 0x1p53);
        simgrid_times out;
        for (auto const& t : tasks) {
            bool const ended = t->get_state() == simgrid::s4u::Activity::State::FINISHED;
            out.start.push_back(ended ? t->get_start_time() - from : -1);
            out.end.push_back(ended ? t->get_finish_time() - from : -1);
        }
        return out;
    }

  private:
    simgrid_engine() {
        auto* const zone = simgrid::s4u::create_empty_zone("resources");
        for (int r = 0; r < 256; ++r) hosts_.push_back(zone->create_host(text("resource ", r), 1.0));
        zone->seal();
    }

    simgrid::s4u::Engine engine_{"parsearch"};
    std::vector<simgrid::s4u::Host*> hosts_;
};

struct verdict {
    std::vector<std::uint32_t> wrong; ///< tasks whose ready time, start or end is not SimGrid's, to the picosecond
    double largest = 0;               ///< difference, in picoseconds
    double makespan = 0;              ///< SimGrid's
};

/// Compares a schedule with the times at which SimGrid runs the same tasks in the order of the discipline. Where all are equal, the
/// schedule is what the discipline defines: the ready times that made the order are those that the order brings about.
verdict judge(sim::task_graph const& g, sim::schedule const& s, discipline order) {
    auto const theirs = simgrid_engine::only().run(g, previous_on_resource(g, s, order));
    verdict out;
    for (std::uint32_t t = 0; t < g.size(); ++t) {
        double ready = 0;
        for (auto const p : g.before(t)) ready = std::max(ready, theirs.end[p]);
        double worst = 0;
        for (auto const& [ours, their] : {std::pair{s.ready[t], ready}, {s.start[t], theirs.start[t]}, {s.end[t], theirs.end[t]}})
            worst = std::max(worst, std::abs(static_cast<double>(ours) - their));
        if (worst > 0) out.wrong.push_back(t);
        out.largest = std::max(out.largest, worst);
        out.makespan = std::max(out.makespan, theirs.end[t]);
    }
    return out;
}

/// Two P100 and two V100 around a switch, no two links alike.
topology::cluster mixed_devices() {
    topology::cluster_builder b;
    auto const hub = b.add_switch("switch");
    for (std::uint32_t d = 0; d < 4; ++d)
        b.add_duplex_link(b.add_device(d % 2 ? topology::v100_sxm : topology::p100_sxm, d), hub, {(d + 1) * 3e9}, std::chrono::microseconds{1 + d});
    return b.build();
}

/// Times of a roofline reduced to four, one of them 0: tasks that are ready at once everywhere.
struct coarse_oracle {
    cost::roofline exact;
    [[nodiscard]] picoseconds shard_time(ops::shard_work const& w, std::uint32_t d) const { return coarse(parsearch::shard_time(exact, w, d)); }
    [[nodiscard]] picoseconds transfer_time(byte_count bytes, link_description const& l) const { return coarse(l.latency + time_of(bytes, l.rate)); }
    [[nodiscard]] picoseconds collective_time(collective_kind kind, byte_count bytes, collective_group const& group) const {
        return coarse(exact.collective_time(kind, bytes, group));
    }
    static picoseconds coarse(picoseconds t) { return picoseconds{20'000'000 * (t.count() / 20'000'000 % 4)}; }
};

struct totals {
    std::size_t cases = 0, tasks = 0;
    double largest = 0, share = 0; ///< of the makespan
};

/// Judges strategies of experts and random ones in both disciplines and both movements.
template <class Oracle>
void judge_all(std::string const& name, graph::operator_graph const& g, topology::cluster const& t, Oracle const& oracle, totals& sum) {
    for (auto const order : {discipline::fifo, discipline::in_order})
        for (auto const how : {movement::pairwise, movement::collective}) {
            problem_options options{.simulation = {.movement = how, .discipline = order, .memory = sim::memory_policy::ignore}};
            auto const p = make_problem(g, t, oracle, options);
            options.simulation.training = false;
            auto const forward = make_problem(g, t, oracle, options);
            std::mt19937_64 rng{2019};
            std::vector<std::pair<std::string, space::flat_strategy>> strategies{{"data parallel", data_parallel(p)}};
            if (t.size() > 1) {
                strategies.emplace_back("tensor parallel", tensor_parallel(p, 4));
                for (auto const free : {0.0, 0.5}) strategies.emplace_back(text("random ", free), support::random_strategy(rng, p, free));
            }
            for (auto const& [strategy, s] : strategies) {
                auto r = simulate(p, s);
                // SimGrid's time grows with the square of the tasks.
                if (r.tasks.size() > 20'000) r = simulate(forward, s);
                INFO(name, " on ", t.size(), ", ", name_of(order), ", ", name_of(how), ", ", strategy);
                auto const v = judge(r.tasks, r.schedule, order);
                INFO(v.wrong.size(), " of ", r.tasks.size(), " tasks are wrong, by up to ", v.largest, " ps");
                CHECK(v.wrong.empty());
                CHECK(v.makespan == static_cast<double>(r.makespan.count()));
                ++sum.cases;
                sum.tasks += r.tasks.size();
                sum.largest = std::max(sum.largest, v.largest);
                sum.share = std::max(sum.share, v.largest / static_cast<double>(r.makespan.count()));
            }
        }
}

} // namespace

TEST_CASE("SimGrid runs the tasks of real problems when we do") {
    std::vector<std::pair<std::string, graph::operator_graph>> const models{
        {"lenet", models::lenet()},
        {"inception_v3", models::inception_v3()},
        {"nmt", models::nmt({.steps = 2})},
        {"gpt", models::gpt({.layers = 2})},
    };
    totals sum;
    for (auto const& [name, g] : models)
        for (auto const& t :
             {topology::nodes({.count = 1, .gpus_per_node = 1, .device = topology::p100_sxm}), mixed_devices(), topology::p100_cluster(4)}) {
            cost::roofline const oracle{t};
            judge_all(name, g, t, oracle, sum);
            judge_all(name + " (coarse)", g, t, coarse_oracle{oracle}, sum);
        }
    std::printf("judged by SimGrid: %zu cases, %zu tasks; largest difference %g ps, %g of the makespan\n", sum.cases, sum.tasks, sum.largest,
                sum.share);
}

TEST_CASE("SimGrid finds a schedule that is wrong") {
    auto const t = mixed_devices();
    for (auto const order : {discipline::fifo, discipline::in_order}) {
        auto const p = make_problem(models::nmt({.steps = 2}), t, cost::roofline{t}, {.simulation = {.discipline = order}});
        std::mt19937_64 rng{7};
        auto const r = simulate(p, support::random_strategy(rng, p));
        auto const other = order == discipline::fifo ? discipline::in_order : discipline::fifo;
        auto const some = r.tasks.size() / 2, last = r.critical_path.back();
        REQUIRE(judge(r.tasks, r.schedule, order).wrong.empty());

        auto altered = r.schedule;
        ++altered.end[some];
        auto const v = judge(r.tasks, altered, order);
        CHECK(v.wrong == std::vector{some});
        CHECK(v.largest == 1);

        altered = r.schedule;
        ++altered.start[some];
        CHECK(judge(r.tasks, altered, order).wrong == std::vector{some});

        altered = r.schedule;
        ++altered.ready[last];
        CHECK(judge(r.tasks, altered, order).wrong == std::vector{last});

        auto longer = r.tasks;
        ++longer.duration[last];
        CHECK_FALSE(judge(longer, r.schedule, order).wrong.empty());

        CHECK_FALSE(judge(r.tasks, r.schedule, other).wrong.empty());
    }
}
