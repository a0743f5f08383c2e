#include <parsearch/pipeline/plans/placement.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/llama.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/sim/memory/memory_penalty.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/naive_schedule.hpp"
#include "support/plain_topology.hpp"
#include "support/random_plan.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"
#include "support/shuffle.hpp"

using namespace parsearch;
using namespace parsearch::pipeline;
using namespace parsearch::literals;
using support::refusal;

namespace {

auto layers(int n, std::int64_t batch = 16) {
    graph::operator_graph g;
    graph::tensor_ref x = g.input("in", {{batch, 32}});
    for (int i = 0; i < n; ++i) x = g.add(text("fc", i), ops::linear{.out = 32}, x);
    return g;
}
/// The same on every device.
struct equal_devices {
    [[nodiscard]] picoseconds shard_time(ops::shard_work const& w, std::uint32_t) const {
        return picoseconds{static_cast<std::int64_t>(w.flops / 8 + w.bytes / 4)};
    }
    [[nodiscard]] picoseconds transfer_time(byte_count bytes, link_description const& link) const { return time_of(bytes, link.rate); }
};
space::flat_strategy search_greedily(parallelization const& p, space::flat_strategy const& start) {
    std::mt19937_64 rng{1};
    return search::greedy(p, start, rng, {.evaluations = 300}).best;
}
space::flat_strategy keep(parallelization const&, space::flat_strategy const& start) { return start; }

/// Devices in nodes of two, a link of its own between any two.
support::plain_topology nodes_of_two(std::uint32_t devices, double rate = 0.01) {
    auto t = support::mesh(devices, rate);
    for (std::uint32_t d = 0; d < devices; ++d) t.node[d] = d / 2;
    return t;
}
std::vector<std::size_t> const powers{1, 2, 4};
} // namespace

TEST_CASE("device_front: each point is what its strategy takes, no start is better, and more devices never cost more") {
    for (std::uint64_t seed = 1; seed <= support::cases(30u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        bool const alike = bernoulli(rng, 0.5);
        auto const topology = alike ? support::mesh(4, 0.01) : support::random_topology(rng, {.devices = 4});
        auto const network = support::random_network(rng, 5);
        auto const p = alike ? make_problem(network, topology, equal_devices{}) : make_problem(network, topology, support::mixed_oracle{});
        auto const front = device_front(p, powers, search_greedily);
        REQUIRE(front.size() == 3);
        for (std::size_t i = 0; i < front.size(); ++i) {
            REQUIRE(front[i].devices.size() == powers[i]);
            auto const part = on_devices(p, front[i].devices);
            auto simulate = part.simulator();
            REQUIRE(simulate(front[i].plan.strategy) == front[i].cost);
            for (auto const& start : part.starts()) REQUIRE(front[i].cost <= simulate(start));
            if (i > 0 && alike) REQUIRE(front[i].cost <= front[i - 1].cost);
        }
    }
    auto const p = make_problem(layers(1), support::mesh(3), support::mixed_oracle{});
    auto const with = [&](std::vector<std::size_t> counts) { return refusal([&] { return device_front(p, counts, keep).size(); }); };
    CHECK(with({}) == "device_front: no numbers of devices: there must be one at least");
    CHECK(with({0}) == "device_front: 0 devices: must be from 1 to the 3 of the problem");
    CHECK(with({1, 4}) == "device_front: 4 devices: must be from 1 to the 3 of the problem");
    CHECK(with({2, 2}) == "device_front: 2 devices behind 2: must be ascending");
}

TEST_CASE("place: devices are divided as well as any division of them") {
    for (std::uint64_t seed = 1; seed <= support::cases(30u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const topology = nodes_of_two(8, 0.001 * static_cast<double>(1 + uniform_index(rng, 100)));
        std::vector<job> jobs;
        for (int n = 0; n < 3; ++n)
            jobs.push_back({text("job", n), make_problem(layers(1 + static_cast<int>(uniform_index(rng, 3))), topology, equal_devices{}),
                            static_cast<double>(1 + uniform_index(rng, 5)), powers});
        auto const goal = bernoulli(rng, 0.5) ? placement_goal::longest : placement_goal::weighted_sum;
        auto const placed = place(jobs, keep, goal);
        REQUIRE(placed.size() == 3);
        std::set<std::size_t> used;
        std::size_t count = 0;
        double got = 0, best = std::numeric_limits<double>::infinity();
        auto const add = [&](double sum, std::size_t n, picoseconds t) {
            auto const own = jobs[n].weight * static_cast<double>(t.count());
            return goal == placement_goal::longest ? std::max(sum, own) : sum + own;
        };
        for (std::size_t n = 0; n < 3; ++n) {
            used.insert(placed[n].devices.begin(), placed[n].devices.end());
            count += placed[n].devices.size();
            REQUIRE(std::ranges::is_sorted(placed[n].devices));
            REQUIRE(on_devices(jobs[n].problem, placed[n].devices).simulator()(placed[n].plan.strategy) == placed[n].alone);
            REQUIRE(placed[n].together == placed[n].alone); // they share no link
            got = add(got, n, placed[n].alone);
        }
        REQUIRE(used.size() == count);
        std::vector<std::vector<front_point>> fronts;
        for (auto const& j : jobs) fronts.push_back(device_front(j.problem, powers, keep));
        for (auto const& a : fronts[0])
            for (auto const& b : fronts[1])
                for (auto const& c : fronts[2])
                    if (a.devices.size() + b.devices.size() + c.devices.size() <= 8)
                        best = std::min(best, add(add(add(0, 0, a.cost), 1, b.cost), 2, c.cost));
        REQUIRE(got == doctest::Approx(best));
    }
}

TEST_CASE("place: jobs that share a link slow each other, neighbours stay together") {
    auto const shared = support::shared_medium(4, 0.5);
    std::vector<job> jobs{{"a", make_problem(layers(2, 512), shared, equal_devices{}), 1, {2}},
                          {"b", make_problem(layers(2, 512), shared, equal_devices{}), 1, {2}}};
    auto const placed = place(jobs, keep);
    for (auto const& j : placed) CHECK(j.plan.strategy[1].shards() == 2); // and exchange gradients over the one link
    for (auto const& j : placed) CHECK(j.together >= j.alone);
    CAPTURE(placed[0].alone);
    CAPTURE(placed[0].together);
    CHECK((placed[0].together > placed[0].alone || placed[1].together > placed[1].alone));
    CHECK(std::max(placed[0].together, placed[1].together) <= placed[0].alone + placed[1].alone);
    for (std::size_t n = 0; n < 2; ++n) jobs[n].now = placed[n].devices;
    auto const again = time_together(jobs, std::vector{placed[0].plan, placed[1].plan});
    for (std::size_t n = 0; n < 2; ++n) {
        CHECK(again[n].alone == placed[n].alone);
        CHECK(again[n].together == placed[n].together);
    }
    CHECK(placed[0].devices == std::vector<std::size_t>{0, 1});
    CHECK(placed[1].devices == std::vector<std::size_t>{2, 3});

    auto const fast = nodes_of_two(6, 1000);
    std::vector<job> three{{"one", make_problem(layers(1), fast, equal_devices{}), 1, {1}},
                           {"four", make_problem(layers(1), fast, equal_devices{}), 1, {4}},
                           {"last", make_problem(layers(1), fast, equal_devices{}), 1, {1}}};
    auto const apart = place(three, keep);
    CHECK(apart[1].devices == std::vector<std::size_t>{0, 1, 2, 3});
    CHECK(apart[0].devices == std::vector<std::size_t>{4});
    CHECK(apart[2].devices == std::vector<std::size_t>{5});
}

TEST_CASE("place: plans at once are all their tasks on the links of the cluster, each job with its own oracle and options") {
    int slower = 0, staged = 0, offloading = 0;
    for (std::uint64_t seed = 1; seed <= support::cases(80u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const cluster = support::random_topology(rng, {.devices = 8});
        // Two jobs share nodes, and one is on what is left of these.
        std::vector<std::size_t> order(8);
        std::iota(order.begin(), order.end(), std::size_t{0});
        support::shuffle(order, rng);
        std::vector<pipeline::detail::job_there> jobs;
        for (auto const& [first, count] : {std::pair{0, 4}, {4, 2}, {6, 1}}) {
            std::vector<std::size_t> on(order.begin() + first, order.begin() + first + count);
            std::ranges::sort(on);
            auto const model = models::gpt({.layers = 1, .hidden = 24, .heads = 4, .sequence = 6, .vocabulary = 30, .batch = 16});
            sim::simulation_options const options{.training = bernoulli(rng, 0.8), .overlap = bernoulli(rng, 0.8)};
            auto const part = on_devices(bernoulli(rng, 0.5) ? make_problem(model, cluster, support::mixed_oracle{}, {.simulation = options})
                                                             : make_problem(model, cluster, equal_devices{}, {.simulation = options}),
                                         on);
            auto plan = support::random_plan(rng, part);
            if (!plan || (!options.overlap && plan->how.sharded >= sharded_states::gradients)) continue;
            if (options.training && plan->how.sharded == sharded_states::none && bernoulli(rng, 0.3)) plan->how.offloaded.assign(part.size(), true);
            staged += plan->how.stages > 1;
            offloading += plan->how.offloads();
            auto const alone = simulate(part, *plan).makespan;
            jobs.push_back({{.devices = on, .plan = std::move(*plan), .alone = alone}, part});
        }
        if (jobs.empty()) continue;
        auto const& t = jobs.front().part.topology();
        auto const all_links = static_cast<std::uint32_t>(t.links.size());
        // The same by the definition of the schedule: resources by what they are.
        sim::task_graph all;
        std::map<std::tuple<std::string, std::size_t, std::size_t>, std::uint32_t> resources;
        all.clear(1000);
        std::vector<std::size_t> job_of;
        for (std::size_t n = 0; n < jobs.size(); ++n) {
            auto const& on = jobs[n].placed.devices;
            auto const r = simulate(jobs[n].part, jobs[n].placed.plan);
            auto const mine = static_cast<std::uint32_t>(on.size()), first = all.size();
            for (std::uint32_t task = 0; task < r.tasks.size(); ++task) {
                auto const at = r.tasks.resource[task];
                auto const what = at < mine               ? std::tuple(std::string("device"), on[at], std::size_t{0})
                                  : at < mine + all_links ? std::tuple(std::string("link"), std::size_t{at - mine}, std::size_t{0})
                                  : at + 1 == r.tasks.resources
                                      ? std::tuple(std::string("none"), std::size_t{0}, std::size_t{0})
                                      : std::tuple(std::string("host"), on[(at - mine - all_links) / 2], std::size_t{(at - mine - all_links) % 2});
                auto const number = resources.try_emplace(what, static_cast<std::uint32_t>(resources.size())).first->second;
                for (auto const p : r.tasks.before(task)) all.after(first + p);
                (void)all.add(number, r.tasks.duration[task], r.tasks.kind[task], r.tasks.label[task]);
                job_of.push_back(n);
            }
        }
        if (all.size() > 1000) continue; // the definition takes its time
        auto const when = support::naive_schedule(all, sim::discipline::fifo);
        pipeline::detail::share_links(jobs, make_problem(models::mlp({}), cluster, equal_devices{}).topology());
        std::vector<std::int64_t> last(jobs.size(), 0);
        for (std::uint32_t task = 0; task < all.size(); ++task) last[job_of[task]] = std::max(last[job_of[task]], when.end[task]);
        for (std::size_t n = 0; n < jobs.size(); ++n) {
            REQUIRE(jobs[n].placed.together.count() == last[n]);
            slower += jobs[n].placed.together > jobs[n].placed.alone;
        }
    }
    if (support::sanitized) return; // few cases do not have all kinds
    CHECK(slower > (support::nightly() ? 20 : 4));
    CHECK(staged > support::cases(20));
    CHECK(offloading > support::cases(5));
}

TEST_CASE("place: plans with stages and shared states, where nothing else fits the memory") {
    auto device = topology::h100_sxm;
    device.memory = 24_GiB;
    auto const cluster = topology::nodes({.count = 2, .gpus_per_node = 8, .device = device});
    auto const problem = [&](auto const& model) {
        return make_problem(model, cluster, cost::roofline{cluster}, {.simulation = {.optimizer = sim::optimizer::adam}});
    };
    auto const llama = problem(models::llama({.layers = 16, .hidden = 2048, .kv_heads = 8, .sequence = 2048, .vocabulary = 32000, .batch = 32}));
    auto const mlp = problem(models::mlp({.features = 4096, .hidden = {8192, 8192}, .classes = 1000, .batch = 4096}));
    std::vector<double> efforts;
    job_search const search = [&](parallelization const& p, pipeline_plan const& start, double effort) {
        efforts.push_back(effort);
        std::mt19937_64 rng{1};
        return partition(p, start, rng, {.evaluations = 12}).best;
    };
    std::vector<std::size_t> const counts{8, 16};
    auto const front = device_front(llama, counts, search);
    CHECK(efforts == std::vector<double>{0.5, 1});
    CHECK(front[0].cost < cost_traits<picoseconds>::infinity());
    CHECK(front[1].cost < front[0].cost);
    CHECK(!front[0].plan.how.plain());
    std::vector<job> const jobs{{"llama", llama, 1, {8}}, {"mlp", mlp, 1, {4, 8}}};
    auto const placed = place(jobs, search, placement_goal::longest);
    REQUIRE(placed.size() == 2);
    for (std::size_t n = 0; n < 2; ++n) {
        auto const part = on_devices(jobs[n].problem, placed[n].devices);
        auto const r = simulate(part, placed[n].plan);
        CHECK(r.makespan == placed[n].alone);
        CHECK(sim::bytes_over_capacity(r.memory, part.topology().devices) == 0);
        CHECK(placed[n].together >= placed[n].alone);
    }
    CHECK(placed[0].devices.size() == 8);
    CHECK(!placed[0].plan.how.plain());
    // Strategies alone do not fit.
    CHECK(refusal([&] { return place(jobs, keep).size(); }) ==
          "place: job 'llama' has no plan that fits the memory and keeps the constraints, by number of devices: 8");
}

TEST_CASE("place: jobs whose constraints want several devices have no fewer, and parameters of alike names stay apart") {
    graph::operator_graph g;
    (void)g.add("fc", ops::linear{.out = 32, .parameter = "w"}, g.input("in", {{16, 32}}));
    auto const topology = nodes_of_two(4);
    auto const wide = make_problem(g, topology, equal_devices{}, {.space = {.max_shards = 2}});
    std::vector<job> const jobs{{"a", wide}, {"a/0", wide}};
    auto const placed = place(jobs, keep);
    for (auto const& j : placed) CHECK(j.together == j.alone);
    auto const strict = make_problem(layers(1), topology, equal_devices{},
                                     {.space = {.allows = [](std::string_view, ops::operation const& op, std::span<std::int32_t const> degrees) {
                                          return op.kind != "linear" || ops::shard_count(degrees) >= 2;
                                      }}});
    std::vector<job> const one{{"a", strict}};
    CHECK(place(one, keep)[0].devices.size() >= 2);
    // Nor is there a plan on one device, of which the front says so.
    auto const front = device_front(strict, powers, keep);
    CHECK(front[0].plan.strategy.empty());
    CHECK(front[0].cost == cost_traits<picoseconds>::infinity());
    CHECK(front[1].cost < cost_traits<picoseconds>::infinity());
    // So where constraints want devices that are not there.
    auto const placed_pin =
        make_problem(layers(1), topology, equal_devices{}, {}, constraints_of<graph::operator_graph, support::plain_topology>{}.pin(1, "s2 @0+1"));
    auto const pinned = device_front(placed_pin, powers, keep);
    CHECK(pinned[0].plan.strategy.empty());
    CHECK(pinned[1].plan.strategy[1].shards() == 2);
    CHECK(pinned[2].plan.strategy[1].device(1) == 1);
}

TEST_CASE("place: links that jobs share are in what is least") {
    int others = 0;
    for (std::uint64_t seed = 1; seed <= support::cases(40u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const shared = support::shared_medium(6, 0.02 * static_cast<double>(1 + uniform_index(rng, 10)));
        std::vector<job> jobs;
        for (int n = 0; n < 3; ++n)
            jobs.push_back({text("job", n), make_problem(layers(1 + static_cast<int>(uniform_index(rng, 3)), 256), shared, equal_devices{}),
                            static_cast<double>(1 + uniform_index(rng, 5)), powers});
        auto const goal = bernoulli(rng, 0.5) ? placement_goal::longest : placement_goal::weighted_sum;
        auto const value = [&](std::vector<placed_job> const& placed, auto time) {
            double out = 0;
            for (std::size_t n = 0; n < 3; ++n) {
                auto const own = jobs[n].weight * static_cast<double>((placed[n].*time).count());
                out = goal == placement_goal::longest ? std::max(out, own) : out + own;
            }
            return out;
        };
        auto const got = place(jobs, keep, goal);
        double best = std::numeric_limits<double>::infinity(), alone = best;
        double together_there = 0; // of what is best without shared links
        for (auto const a : powers)
            for (auto const b : powers)
                for (auto const c : powers) {
                    if (a + b + c > 6) continue;
                    auto one = jobs;
                    one[0].counts = {a};
                    one[1].counts = {b};
                    one[2].counts = {c};
                    auto const placed = place(one, keep, goal);
                    best = std::min(best, value(placed, &placed_job::together));
                    if (auto const v = value(placed, &placed_job::alone); v < alone) {
                        alone = v;
                        together_there = value(placed, &placed_job::together);
                    }
                }
        REQUIRE(value(got, &placed_job::together) == doctest::Approx(best));
        others += best < together_there * (1 - 1e-9);
    }
    if (!support::sanitized) CHECK(others > support::cases(5)); // few of the cases
}

TEST_CASE("place: jobs keep what they have") {
    auto const topology = nodes_of_two(8, 1000);
    auto const p = make_problem(layers(1), topology, equal_devices{});
    std::vector<job> jobs{{"a", p, 1, {4}}, {"b", p, 1, {2}, {2, 3}}, {"c", p, 1, {1}, {0, 7}}};
    auto const placed = place(jobs, keep);
    CHECK(placed[1].devices == std::vector<std::size_t>{2, 3});
    CHECK(placed[0].devices == std::vector<std::size_t>{4, 5, 6, 7}); // whole nodes, of what is left
    CHECK(placed[2].devices.size() == 1);                             // fewer than it had
    jobs[2].now = {3, 7};
    CHECK(refusal([&] { return place(jobs, keep).size(); }) == "place: jobs 'b' and 'c' both have device number 3");
    jobs[1].now = {2, 8};
    CHECK(refusal([&] { return place(jobs, keep).size(); }) == "place: job 'b' has device number 8: must be less than 8, and above that before it");
    jobs[1].now = {3, 2};
    CHECK(refusal([&] { return place(jobs, keep).size(); }) == "place: job 'b' has device number 2: must be less than 8, and above that before it");
}

TEST_CASE("place: of equal longest steps the least sum, then most devices left") {
    auto const topology = nodes_of_two(8, 1000);
    auto const big = make_problem(layers(8, 512), topology, equal_devices{}), small = make_problem(layers(1), topology, equal_devices{});
    std::vector<job> jobs{{"big", big, 1, {4}}, {"small", small, 1, {1, 2}}};
    auto const placed = place(jobs, keep, placement_goal::longest);
    auto const alone = [&](std::size_t n) { return device_front(small, std::vector{n}, keep)[0].cost; };
    CHECK(placed[0].together > placed[1].together);
    CHECK(placed[1].devices.size() == (alone(2) < alone(1) ? 2 : 1));
    // Where two devices take as long as one, as nothing may be split, one is left.
    auto const whole = make_problem(layers(1), topology, equal_devices{}, {.space = {.max_shards = 1}});
    std::vector<job> const one{{"big", big, 1, {4}}, {"whole", whole, 1, {1, 2}}};
    CHECK(place(one, keep, placement_goal::longest)[1].devices.size() == 1);
    CHECK(place(one, keep)[1].devices.size() == 1);
}

TEST_CASE("device_front: all searches together are worth two of the largest at most") {
    auto const p = make_problem(layers(1), support::mesh(8), equal_devices{});
    for (auto const& counts : {std::vector<std::size_t>{1, 2, 4, 8}, {5, 6, 7, 8}, {3}, {2, 7}}) {
        std::vector<double> efforts;
        auto const front = device_front(p, counts, [&](parallelization const&, space::flat_strategy const& start, double effort) {
            efforts.push_back(effort);
            return start;
        });
        CHECK(front.size() == counts.size());
        CHECK(std::accumulate(efforts.begin(), efforts.end(), 0.0) <= 2 + 1e-12);
        CHECK(std::ranges::is_sorted(efforts));
        CHECK(efforts.front() > 0);
        CHECK(efforts.back() == 1);
    }
}

TEST_CASE("place: without a device of a node jobs take whole nodes") {
    auto topology = nodes_of_two(6, 1);
    for (std::uint32_t a = 0; a < 6; ++a)
        for (std::uint32_t b = 0; b < 6; ++b)
            if (a != b && topology.node[a] != topology.node[b]) topology.link[support::mesh_link(6, a, b)].rate = {1e9};
    std::vector<std::size_t> const well{0, 2, 3, 4, 5}, two{2};
    auto const p = on_devices(make_problem(layers(2, 512), topology, equal_devices{}), well);
    auto const front = device_front(p, two, keep);
    CHECK(front[0].devices == std::vector<std::size_t>{1, 2}); // devices 2 and 3, not 0 and 2
    std::vector<job> jobs{{"a", p, 1, two}, {"b", p, 1, two}};
    auto const placed = place(jobs, keep);
    CHECK(placed[0].devices == std::vector<std::size_t>{1, 2});
    CHECK(placed[1].devices == std::vector<std::size_t>{3, 4});
}

TEST_CASE("place: what is wrong is refused") {
    auto const made = [](std::uint32_t size, sim::simulation_options const& o = {}) {
        return make_problem(layers(1), support::mesh(size), equal_devices{}, {.simulation = o});
    };
    auto const wrong = [](std::vector<job> const& jobs) { return refusal([&] { return place(jobs, keep).size(); }); };
    CHECK(wrong({}) == "place: no jobs: there must be one at least");
    CHECK(wrong({{"", made(2)}}) == "place: job number 0 has no name: must have one of its own");
    CHECK(wrong({{"a", made(2)}, {"a", made(2)}}) == "place: jobs number 0 and 1 are both named 'a'");
    CHECK(wrong({{"a", made(2), 0}}) == "place: job 'a' has weight 0: must be positive and at most 1e100");
    CHECK(wrong({{"a", made(2)}, {"b", made(3)}}) == "place: job 'b' and job 'a' are on different clusters: 3 devices and 2; must be the same "
                                                     "devices and links, with the same memory and the same "
                                                     "devices left out");
    auto const two = support::mesh(2);
    constraints_of<graph::operator_graph, support::plain_topology> less;
    less.memory(1, 1000);
    CHECK(wrong({{"a", made(2)}, {"b", make_problem(layers(1), two, equal_devices{}, {}, less)}}).find("device number 1 may hold 900 bytes and ") !=
          std::string::npos);
    CHECK(wrong({{"a", made(2)}, {"b", made(2, {.transfers = sim::transfer_model::fair_sharing})}}) ==
          "place: job 'b' has simulation option transfers fair_sharing, job 'a' streaming: jobs on one cluster must have the same");
    auto const of_two = [](std::uint32_t replicas) {
        return make_problem(layers(1), topology::nodes({.count = 2, .gpus_per_node = 1, .device = topology::h100_sxm}), equal_devices{},
                            {.simulation = {.replicas = replicas}});
    };
    CHECK(wrong({{"a", of_two(2)}, {"b", of_two(1)}}) ==
          "place: job 'b' has simulation option replicas 1, job 'a' 2: jobs on one cluster must have the same");
    CHECK(wrong({{"a", made(2)}, {"b", made(2)}, {"c", made(2)}}) ==
          "place: 3 jobs need 3 devices by the fewest of their counts on which they fit: there are 2");
    CHECK(wrong({{"a", made(2, {.discipline = sim::discipline::in_order})}}) == "place: job 'a' has discipline in_order: must be fifo");
    auto small = support::mesh(2);
    for (auto& d : small.device) d.memory = 100;
    CHECK(wrong({{"a", make_problem(layers(1), small, equal_devices{})}}) ==
          "place: job 'a' has no plan that fits the memory and keeps the constraints, by number of devices: 1, 2");
    auto const together = [](std::vector<job> const& jobs, std::size_t plans) {
        std::vector<pipeline_plan> const all(plans, pipeline_plan{unpipelined(jobs.front().problem.graph()), data_parallel(jobs.front().problem, 1)});
        return refusal([&] { return time_together(jobs, all).size(); });
    };
    CHECK(together({{"a", made(2)}}, 1) == "time_together: job 'a' has no devices: 'now' must name one at least");
    CHECK(together({{"a", made(2), 1, {}, {1}}}, 2) == "time_together: 2 plans of 1 jobs: must be one each");
    CHECK(together({{"a", made(2), 1, {}, {1}}, {"a", made(2)}}, 2) == "time_together: jobs number 0 and 1 are both named 'a'");
    CHECK(wrong({{"a", made(2), 1, {3}}}) == "place: job 'a': device_front: 3 devices: must be from 1 to the 2 of the problem");
    // What a search answers wrong is said with the job.
    std::vector<job> const one{{"a", made(2)}};
    CHECK(refusal([&] { return place(one, [](parallelization const&, space::flat_strategy const&) { return space::flat_strategy{}; }).size(); }) ==
          "place: job 'a': device_front: the search on 1 device: a strategy of 0 configurations: the graph has 2 operators, must be one each");
    std::vector<job> const there{{"a", made(2), 1, {}, {1}}};
    std::vector<pipeline_plan> const none(1);
    CHECK(refusal([&] { return time_together(there, none).size(); }).starts_with("time_together: job 'a': "));
}

TEST_CASE("place: a job that has some number of devices may keep as many") {
    auto const topology = nodes_of_two(8, 1000);
    auto const big = make_problem(layers(8, 630), topology, equal_devices{}, {.space = {.uneven = true}});
    std::vector<job> const jobs{{"big", big, 100, {}, {0, 1, 2, 3, 4, 5, 6}}, {"small", make_problem(layers(1), topology, equal_devices{}), 1, {1}}};
    auto const placed = place(jobs, keep);
    CHECK(placed[0].devices.size() == 7);
    CHECK(placed[1].devices == std::vector<std::size_t>{7});
}
