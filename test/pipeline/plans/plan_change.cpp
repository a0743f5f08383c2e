#include <parsearch/pipeline/plans/plan_change.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <type_traits>
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
#include <parsearch/pipeline/part_of_devices.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/pipeline/pipeline_simulator.hpp>
#include <parsearch/pipeline/plans/plan_problem.hpp>
#include <parsearch/pipeline/stage_builder.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/naive_iteration.hpp"
#include "support/plain_topology.hpp"
#include "support/random_plan.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;
namespace sim = parsearch::sim;
using pipeline::placed_plan;
using pipeline::sharded_states;
using ps::picoseconds;

namespace {

constexpr auto adam = sim::optimizer::adam;

auto on_cluster(auto const& model, std::uint32_t nodes, std::uint32_t per_node, std::vector<std::uint32_t> lost = {}) {
    auto const cluster = ps::topology::nodes({.count = nodes, .gpus_per_node = per_node, .device = ps::topology::h100_sxm});
    ps::constraints_of<std::remove_cvref_t<decltype(model)>, std::remove_cvref_t<decltype(cluster)>> wanted;
    for (auto const d : lost) wanted.leave_out(d);
    return ps::make_problem(model, cluster, ps::cost::roofline{cluster}, {.simulation = {.optimizer = adam}}, wanted);
}
auto small_gpt(std::int64_t batch = 16) {
    return ps::models::gpt({.layers = 3, .hidden = 24, .heads = 4, .sequence = 6, .vocabulary = 30, .batch = batch});
}

std::optional<placed_plan> random_plan(std::mt19937_64& rng, ps::parallelization const& p) {
    if (auto plan = support::random_plan(rng, p)) return placed_plan{std::move(*plan)};
    return {};
}

/// Which devices, by their handles, keep each element of each weight: its value, and what the optimizer has of it. Told by where each part of the
/// tensor begins and ends. Nothing where operators that share a tensor split it differently.
struct keepers {
    using by_element = std::vector<std::vector<std::uint32_t>>;
    std::map<std::string, by_element> parameters, optimizer;
};
template <class P> std::optional<keepers> keepers_of(P const& p, placed_plan const& placed) {
    struct tensor {
        std::vector<std::int64_t> extents;
        std::map<support::detail::element_set, std::set<std::size_t>> parts; // the devices that have them
    };
    std::map<std::string, tensor> tensors;
    auto const& plan = placed.plan;
    auto const numbers = placed.numbers(p.topology().size());
    for (std::size_t op = 0; op < p.size(); ++op) {
        auto const& operation = p.graph().operations[op];
        auto const& c = plan.strategy[op];
        std::vector<std::int32_t> const degrees(c.degrees().begin(), c.degrees().end());
        for (std::size_t w = 0; w < operation.weights.size(); ++w) {
            auto const& operand = operation.weights[w];
            auto& t = tensors[operand.parameter.empty() ? ps::text("of ", p.handle(op), ", ", w) : "named " + operand.parameter];
            t.extents = ps::ops::tensor_of(operand).extents;
            for (std::int64_t n = 0; n < c.shards(); ++n)
                t.parts[support::detail::elements(operation, operand, degrees, n)].insert(numbers[static_cast<std::size_t>(c.device(n))]);
        }
    }
    keepers out;
    auto const sharded = plan.how.sharded;
    for (auto const& [name, t] : tensors) {
        std::size_t axis = 0;
        for (std::size_t a = 0; a < t.extents.size(); ++a)
            if (t.extents[a] > t.extents[axis]) axis = a;
        std::int64_t inner = 1; // elements from one position on the axis to the next
        for (std::size_t a = axis + 1; a < t.extents.size(); ++a) inner *= t.extents[a];
        auto const position = [&, extent = t.extents[axis]](std::size_t e) { return static_cast<std::int64_t>(e) / inner % extent; };
        for (auto const& [elements, on] : t.parts) {
            for (auto const& [others, unused] : t.parts)
                for (std::size_t e = 0; elements != others && e < elements.size(); ++e)
                    if (elements[e] && others[e]) return {};
            std::vector<std::int64_t> positions;
            for (std::size_t e = 0; e < elements.size(); ++e)
                if (elements[e]) positions.push_back(position(e));
            auto const [least, most] = std::minmax_element(positions.begin(), positions.end());
            auto const first = *least, extent = *most + 1 - first;
            std::map<std::uint32_t, std::vector<std::size_t>> copies; // devices by node, or all
            for (auto const d : on) copies[sharded == sharded_states::parameters_within_nodes ? p.topology().node[d] : 0].push_back(d);
            auto const parts = copies.begin()->second.size();
            if (std::any_of(copies.begin(), copies.end(), [&](auto const& copy) { return copy.second.size() != parts; }))
                copies = {{0, {on.begin(), on.end()}}};
            auto const keep = [&](keepers::by_element& all, bool shared) {
                all.resize(elements.size());
                for (auto const& [node, devices] : copies) {
                    std::int64_t begin = 0;
                    auto const n = static_cast<std::int64_t>(devices.size());
                    for (std::int64_t number = 0; number < n; ++number) {
                        auto const end = begin + extent / n + (number < extent % n);
                        for (std::size_t e = 0; e < elements.size(); ++e)
                            if (elements[e] && (!shared || (begin <= position(e) - first && position(e) - first < end)))
                                all[e].push_back(p.device(devices[static_cast<std::size_t>(number)]));
                        begin = end;
                    }
                }
            };
            keep(out.parameters[name], sharded >= sharded_states::parameters);
            keep(out.optimizer[name], sharded >= sharded_states::optimizer);
        }
    }
    return out;
}

/// Elements that are sent, and that nobody has any more.
std::pair<std::int64_t, std::int64_t> missing(std::map<std::string, keepers::by_element> const& before,
                                              std::map<std::string, keepers::by_element> const& now, std::vector<std::uint32_t> const& lost) {
    std::int64_t sent = 0, none = 0;
    for (auto const& [name, elements] : now)
        for (std::size_t e = 0; e < elements.size(); ++e) {
            auto left = before.at(name)[e];
            std::erase_if(left, [&](auto d) { return std::find(lost.begin(), lost.end(), d) != lost.end(); });
            none += left.empty();
            for (auto const d : elements[e]) sent += !left.empty() && std::find(left.begin(), left.end(), d) == left.end();
        }
    return {sent, none};
}
} // namespace

TEST_CASE("plan_change: what devices lack, element by element, with states that are shared") {
    int compared = 0, stages = 0, shared = 0, moved = 0, gone = 0;
    auto const model = small_gpt();
    for (std::uint64_t seed = 1; seed <= support::cases(150u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        std::vector<std::uint32_t> lost;
        if (ps::bernoulli(rng, 0.5))
            for (std::uint32_t d = 0; d < 8; ++d)
                if (ps::bernoulli(rng, 0.25) && lost.size() < 6) lost.push_back(d);
        auto const from = on_cluster(model, 2, 4), to = on_cluster(model, 2, 4, lost);
        auto const before = random_plan(rng, from), now = random_plan(rng, to);
        if (!before || !now) continue;
        pipeline::plan_change const change(from, *before, to, 1);
        auto const got = change.to(*now);
        auto const had = keepers_of(from, *before), has = keepers_of(to, *now);
        if (!had || !has) continue;
        auto const [values, no_values] = missing(had->parameters, has->parameters, lost);
        auto const [states, no_states] = missing(had->optimizer, has->optimizer, lost);
        REQUIRE(got.bytes == 4 * values + 8 * states); // f32, two states of Adam
        REQUIRE(got.lost == 4 * no_values + 8 * no_states);
        REQUIRE((got.time.count() > 0) == (got.bytes > 0));
        REQUIRE(pipeline::plan_change(from, *before, from, 1).to(*before) == ps::moved_states{});
        ++compared;
        stages += now->plan.how.stages > 1;
        shared += now->plan.how.sharded > sharded_states::none || before->plan.how.sharded > sharded_states::none;
        moved += got.bytes > 0;
        gone += got.lost > 0;
    }
    CHECK(compared > support::cases(100u));
    CHECK(stages > support::cases(30u));
    CHECK(shared > support::cases(60u));
    CHECK(moved > support::cases(60u));
    CHECK(gone > support::cases(10u));
}

TEST_CASE("plan_change: a plan without stages costs what its strategy does") {
    for (std::uint64_t seed = 1; seed <= support::cases(60u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const topology = support::random_topology(rng, {.devices = 5});
        auto const network = support::random_network(rng, 5);
        auto const p = ps::make_problem(network, topology, support::mixed_oracle{}, {.simulation = {.optimizer = adam}});
        auto const plan_of = [&] {
            return placed_plan{{.how = pipeline::unpipelined(p.graph()), .strategy = support::random_strategy(rng, p, 0.5)}};
        };
        auto const before = plan_of(), now = plan_of();
        CHECK(pipeline::plan_change(p, before, p, 1).to(now) == ps::state_moves(p, before.plan.strategy, p)(now.plan.strategy));
        CHECK(pipeline::plan_change(p, before, p, 1).start().plan.strategy == ps::adapted(p, before.plan.strategy, p).strategy);
    }
}

TEST_CASE("plan_change: stages send at once, the operators of each one after the other") {
    ps::graph::operator_graph g;
    auto x = g.input("in", {{4, 16}});
    for (auto const* const name : {"a", "b", "c"}) x = g.add(name, ps::ops::linear{.out = 16, .bias = false}, x);
    auto const p = ps::make_problem(g, support::mesh(4, 1.0, 10), support::mixed_oracle{});
    auto const plan_on = [&](std::vector<std::uint32_t> stage, std::vector<std::int32_t> device) {
        placed_plan out{{.how = pipeline::unpipelined(p.graph()), .strategy = ps::space::one_device(p.graph())}};
        out.plan.how.stage = std::move(stage);
        out.plan.how.stages = out.plan.how.stage.back() + 1;
        for (std::size_t op = 0; op < p.size(); ++op) out.plan.strategy[op].start = device[op];
        return out;
    };
    pipeline::plan_change const change(p, plan_on({0, 0, 0, 0}, {0, 0, 0, 0}), p, 100);
    // 1,024 bytes each on a link that takes 10 ps, and 1 ps a byte.
    auto const one = picoseconds(1034);
    CHECK(change.to(plan_on({0, 0, 0, 0}, {1, 1, 1, 1})).time == 3 * one);
    CHECK(change.to(plan_on({0, 0, 1, 1}, {0, 1, 2, 2})).time == 2 * one); // a and b together, then c
    CHECK(change.to(plan_on({0, 0, 1, 2}, {0, 1, 2, 3})).time == one);
    CHECK(change.to(plan_on({0, 0, 1, 2}, {0, 1, 1, 3})).time == one + picoseconds(1024));      // a and b on one link
    CHECK(change.surcharge()(plan_on({0, 0, 0, 0}, {1, 1, 1, 1}).plan, {}) == picoseconds(32)); // 31.02
}

TEST_CASE("adapted: plans with stages, on what is left") {
    auto const model = small_gpt(64);
    auto const p = on_cluster(model, 2, 8);
    pipeline::detail::stage_builder builder(p);
    auto c = builder.balanced(2, 1, 4, {.tensor = 2});
    c.share(sharded_states::optimizer);
    placed_plan const plan{builder.plan(c)};
    CHECK(adapted(p, plan, p) == plan);

    // Device 5 is gone, and its replica with device 4: both stages keep three; 16 samples of a micro-batch divide by two.
    auto const left = on_cluster(model, 2, 8, {5});
    auto const smaller = adapted(p, plan, left);
    REQUIRE(smaller);
    CHECK(smaller->devices == std::vector<std::size_t>{0, 1, 2, 3, 7, 8, 9, 10});
    CHECK(smaller->plan.how.micro_batches == 8); // with as many samples on a device as before
    auto same = smaller->plan.how;
    same.micro_batches = 4;
    CHECK(same == plan.plan.how);
    CHECK(smaller->plan.tensor_parallel == plan.plan.tensor_parallel);
    auto const part = ps::on_devices(left, smaller->devices);
    CHECK(pipeline::pipeline_simulator(part)(smaller->plan.how, smaller->plan.strategy) < ps::cost_traits<picoseconds>::infinity());
    // What is left of the first stage is where it was; but for halves of the optimizer's state nothing moves.
    auto const moved = pipeline::plan_change(p, plan, left, 1).to(*smaller);
    CHECK(moved.bytes > 0);
    auto bare = plan;
    bare.plan.how.sharded = sharded_states::none;
    CHECK(pipeline::plan_change(p, bare, left, 1).to(*adapted(p, bare, left)) == ps::moved_states{});

    // A second failure, of a plan on a part. Nothing is left of a stage where one of each of its replicas is gone.
    auto const fewer = on_cluster(model, 2, 8, {5, 15});
    CHECK(adapted(left, *smaller, fewer)->plan == smaller->plan);
    CHECK(adapted(p, plan, on_cluster(model, 2, 8, {0, 2, 4, 6})) == std::nullopt);
    // 48 samples divide by three replicas.
    auto const other = small_gpt(48);
    auto const three = adapted(on_cluster(other, 2, 8), plan, on_cluster(other, 2, 8, {5}));
    REQUIRE(three);
    CHECK(three->devices == std::vector<std::size_t>{0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12});
}

TEST_CASE("adapted: a device that is replaced, and one that comes") {
    auto const model = small_gpt(64);
    auto const p = on_cluster(model, 2, 4);
    std::mt19937_64 rng{1};
    auto const plan = placed_plan{pipeline::partition(p, {}, rng, {.evaluations = 20}).best};
    // Device 3 is called otherwise now.
    auto const renamed = [](std::uint32_t d) { return d == 3 ? 100 : d; };
    CHECK(adapted(p, plan, p, renamed) == plan);
    auto const bigger = on_cluster(model, 3, 4);
    auto const same = adapted(p, plan, bigger);
    REQUIRE(same);
    CHECK(same->plan == plan.plan);
    CHECK(same->devices == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7});
    CHECK(pipeline::plan_change(p, plan, bigger, 1).to(*same) == ps::moved_states{});
}

TEST_CASE("adapted: random plans and failures make plans that can be simulated") {
    auto const model = small_gpt();
    int made = 0, fewer_samples = 0;
    for (std::uint64_t seed = 1; seed <= support::cases(80u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const p = on_cluster(model, 2, 4);
        auto const plan = random_plan(rng, p);
        if (!plan) continue;
        std::vector<std::uint32_t> lost{static_cast<std::uint32_t>(ps::uniform_index(rng, 8))};
        if (auto const d = static_cast<std::uint32_t>(ps::uniform_index(rng, 8)); d != lost.front()) lost.push_back(d);
        auto const to = on_cluster(model, 2, 4, lost);
        auto const got = adapted(p, *plan, to);
        if (!got) continue;
        auto const part = got->devices.empty() ? ps::parallelization(to) : ps::on_devices(static_cast<ps::parallelization const&>(to), got->devices);
        REQUIRE(pipeline::pipeline_simulator(part)(got->plan.how, got->plan.strategy) < ps::cost_traits<picoseconds>::infinity());
        REQUIRE(got->plan.how.stage == plan->plan.how.stage);
        REQUIRE(got->plan.tensor_parallel == plan->plan.tensor_parallel);
        REQUIRE(got->numbers(to.topology().size()).size() <= 8 - lost.size());
        // All devices are busy, with as many samples each.
        auto const groups = got->plan.how.launching().groups();
        auto const group = got->numbers(to.topology().size()).size() / groups;
        for (std::size_t s = 0; s < got->plan.how.stages; ++s)
            REQUIRE(16 % (got->plan.how.micro_batches * (group / got->plan.tensor_parallel[s])) == 0);
        ++made;
        fewer_samples += got->plan.how.micro_batches > plan->plan.how.micro_batches;
    }
    CHECK(made > support::cases(20u));
    CHECK(fewer_samples > 0);
}

TEST_CASE("adapted: a device that is gone is replaced by a new one between its neighbours, and by no other") {
    std::vector<std::size_t> const four{0, 1, 2, 3};
    auto const now = [&](std::vector<std::int32_t> numbers, std::size_t devices) {
        return pipeline::detail::with_new_devices(four, numbers, devices);
    };
    using numbers = std::vector<std::int32_t>;
    CHECK(now({0, -1, 2, 3}, 4) == numbers{0, 1, 2, 3});
    CHECK(now({-1, -1, 2, 3}, 4) == numbers{0, 1, 2, 3});
    CHECK(now({0, 1, -1, -1}, 4) == numbers{0, 1, 2, 3});
    CHECK(now({1, -1, -1, 2}, 3) == numbers{1, -1, -1, 2}); // device 0 is new, and between no neighbours of these
    CHECK(now({0, -1, 1, 2}, 4) == numbers{0, -1, 1, 2});   // and device 3
    CHECK(now({0, -1, -1, 2}, 3) == numbers{0, 1, -1, 2});
    // As in a cluster where device 3 has another name.
    auto const model = small_gpt(64);
    auto const p = on_cluster(model, 2, 4);
    std::mt19937_64 rng{1};
    auto const plan = placed_plan{pipeline::partition(p, {}, rng, {.evaluations = 20}).best};
    auto const renamed = [](std::uint32_t d) { return d == 3 ? 100 : d; };
    auto const change = pipeline::plan_change(p, plan, p, 1, renamed);
    CHECK(change.start() == plan);
    CHECK(change.to(plan).bytes + change.to(plan).lost > 0); // of device 3
}

TEST_CASE("adapted: stages of other degrees, in turn on groups, and with other dims split") {
    auto const fits = [](ps::parallelization const& to, std::optional<placed_plan> const& got) {
        if (!got) return false;
        auto const part = got->devices.empty() ? to : ps::on_devices(to, got->devices);
        return pipeline::pipeline_simulator(part)(got->plan.how, got->plan.strategy) < ps::cost_traits<picoseconds>::infinity();
    };
    auto const check = [&](auto const& model, auto const& change) {
        auto const p = on_cluster(model, 4, 8), left = on_cluster(model, 4, 8, {5});
        pipeline::detail::stage_builder builder(p);
        auto c = builder.balanced(2, 1, 4, {});
        change(builder, c);
        placed_plan const plan{builder.plan(c)};
        auto const got = adapted(p, plan, left);
        REQUIRE(fits(left, got));
        CHECK(got->plan.how.stage == plan.plan.how.stage);
        CHECK(got->plan.how.order == plan.plan.how.order);
        CHECK(got->plan.tensor_parallel == plan.plan.tensor_parallel);
        // As many samples on each device of a stage.
        std::int64_t most = 1;
        for (auto const& op : got->plan.strategy) most = std::max(most, op.shards());
        CHECK(static_cast<std::size_t>(most) == got->numbers(left.topology().size()).size() / got->plan.how.launching().groups());
        return *got;
    };
    // 720 samples divide by 3 replicas of the first stage, and by the 12 of the second.
    auto const uneven = check(small_gpt(720), [](auto&, auto& c) { c.tensor = {4, 1}; });
    CHECK(uneven.numbers(31).size() == 24);
    auto const in_turn = check(small_gpt(96), [](auto& builder, auto& c) { c = builder.balanced(4, 2, 4, {.tensor = 2}); });
    CHECK(in_turn.plan.how.micro_batches % 2 == 0);
    auto const model = ps::models::llama({.layers = 2, .hidden = 64, .heads = 8, .kv_heads = 8, .sequence = 64, .vocabulary = 96, .batch = 8});
    auto const positions = check(model, [](auto& builder, auto& c) { c = builder.balanced(1, 1, 1, {.context = 4}); });
    CHECK(positions.plan.context_parallel == 4);
    // What the other problem does not allow is not answered.
    auto const p = on_cluster(small_gpt(64), 1, 8);
    placed_plan const whole{{.how = pipeline::unpipelined(p.graph()), .strategy = ps::data_parallel(p), .tensor_parallel = {1}}};
    auto const cluster = ps::topology::nodes({.count = 1, .gpus_per_node = 8, .device = ps::topology::h100_sxm});
    auto const strict = ps::make_problem(small_gpt(64), cluster, ps::cost::roofline{cluster},
                                         {.space = {.allows = [](auto, auto const&, auto degrees) { return ps::ops::shard_count(degrees) == 1; }}});
    CHECK(adapted(p, whole, strict) == std::nullopt);
    CHECK(adapted(p, whole, p) == whole);
}

TEST_CASE("plan_change: a weight without axes is not divided") {
    ps::graph::operator_graph g;
    auto op = ps::ops::linear{.out = 16, .bias = false}.infer(std::vector<ps::ops::tensor>{{{16, 16}}});
    op.weights.push_back({.name = "temperature"});
    (void)g.add("fc", op, g.input("in", {{16, 16}}));
    auto const p = ps::make_problem(g, support::mesh(4), support::mixed_oracle{}, {.simulation = {.optimizer = adam}});
    placed_plan before{{.how = pipeline::unpipelined(p.graph()), .strategy = ps::data_parallel(p, 1)}}, after = before;
    after.plan.strategy = ps::data_parallel(p);
    after.plan.how.sharded = sharded_states::optimizer;
    // 256 weights go to three devices, and a quarter of two states; what has no axes to all.
    CHECK(pipeline::plan_change(p, before, p, 1).to(after).bytes == 3 * 4 * 256 + 3 * 2 * 4 * 64 + 3 * 3 * 4);
}

TEST_CASE("plan_change: searches weigh the change") {
    auto const model = ps::models::mlp({.features = 256, .hidden = {512, 512, 512}, .classes = 64, .batch = 64});
    auto const p = on_cluster(model, 1, 4);
    std::mt19937_64 rng{1};
    placed_plan const plan{{.how = pipeline::unpipelined(p.graph()), .strategy = ps::data_parallel(p, 1)}}; // all on device 0
    auto const free = pipeline::partition(p, plan.plan, rng);
    pipeline::plan_change const now(p, plan, p, 1), later(p, plan, p, std::uint64_t{1} << 40);
    auto const cost_of = [&](pipeline::pipeline_plan const& x) { return pipeline::pipeline_simulator(p)(x.how, x.strategy); };

    auto const kept = pipeline::partition(p, now.start().plan, rng, {.surcharge = now.surcharge()});
    auto const changed = pipeline::partition(p, later.start().plan, rng, {.surcharge = later.surcharge()});
    CHECK(kept.cost == cost_of(kept.best) + now.surcharge()(kept.best, {}));
    CHECK(kept.cost <= cost_of(plan.plan));
    CHECK(kept.cost <= cost_of(free.best) + now.surcharge()(free.best, {}));
    CHECK(changed.cost <= free.cost + picoseconds(1));
    CHECK(later.to({changed.best}).bytes >= now.to({kept.best}).bytes);
    CHECK(later.to({changed.best}).bytes > 0);

    // So do searches of decisions, and of parts.
    pipeline::partition_options options;
    options.surcharge = now.surcharge();
    pipeline::plan_problem const plans(p, options), without(p);
    auto const walked = ps::search::mcmc(plans, plans.decisions(kept.best), rng, {.evaluations = 200});
    CHECK(walked.cost <= kept.cost);
    CHECK(walked.cost == cost_of(plans.plan(walked.best)) + now.surcharge()(plans.plan(walked.best), {}));
    auto const of_part = pipeline::partition_part(p, now.start(), rng, {.surcharge = now.surcharge()});
    CHECK(of_part.found.cost == kept.cost);
    CHECK(pipeline::partition_part(p, now.start(), rng, {.evaluations = 1}).found.best == plan.plan);
    CHECK(pipeline::partition_part(p, now.start(), rng, {.time = std::chrono::nanoseconds(1)}).found.ended == ps::stop_reason::time_budget);
}

TEST_CASE("partition_part: the plan on fewer devices that is known before is simulated first") {
    auto const model = ps::models::llama({.layers = 4, .hidden = 512, .heads = 8, .kv_heads = 8, .sequence = 64, .vocabulary = 100, .batch = 64});
    auto const p = on_cluster(model, 2, 8), left = on_cluster(model, 2, 8, {5});
    std::mt19937_64 rng{1};
    placed_plan const plan{pipeline::partition(p, {}, rng, {.evaluations = 30}).best};
    pipeline::plan_change const change(p, plan, left, 10'000);
    REQUIRE(!change.start().plan.strategy.empty());
    std::optional<picoseconds> first;
    auto const found = pipeline::partition_part(left, change.start(), rng, {.evaluations = 40, .surcharge = change.surcharge()},
                                                [&](pipeline::simulated_pipeline const& s) {
                                                    if (!first) first = s.cost;
                                                });
    REQUIRE(first);
    auto const part = ps::on_devices(left, change.start().devices);
    auto const start_costs = pipeline::pipeline_simulator(part)(change.start().plan.how, change.start().plan.strategy);
    CHECK(*first == start_costs + change.surcharge()(change.start().plan, change.start().devices));
    CHECK(found.found.cost <= *first);
    auto const on_found = ps::on_devices(left, found.devices);
    CHECK(found.found.cost == pipeline::pipeline_simulator(on_found)(found.found.best.how, found.found.best.strategy) +
                                  change.surcharge()(found.found.best, found.devices));
}

TEST_CASE("plan_change: what is wrong is refused") {
    auto const p = on_cluster(small_gpt(), 1, 4);
    auto const other = on_cluster(ps::models::gpt({.layers = 2, .hidden = 24, .heads = 4, .sequence = 6, .vocabulary = 30, .batch = 16}), 1, 4);
    placed_plan const plan{{.how = pipeline::unpipelined(p.graph()), .strategy = ps::data_parallel(p)}};
    CHECK(support::refusal([&] { return pipeline::plan_change(p, plan, p, 0).start().devices.size(); }) ==
          "plan_change: the change is to be paid for by 0 iterations: must be at least 1");
    CHECK(support::refusal([&] { return adapted(p, plan, other).has_value(); }) ==
          ps::text("adapted: a plan with stages of a problem of ", p.size(), " operators, for one with others: must be the same"));
    auto bad = plan;
    bad.devices = {0, 1, 2, 4};
    CHECK(support::refusal([&] { return adapted(p, bad, p).has_value(); }) == "adapted: the plan before: is on device number 4: the problem has 4");
    bad.devices = {0, 2, 1};
    CHECK(support::refusal([&] { return adapted(p, bad, p).has_value(); }) ==
          "adapted: the plan before: is on device number 1 behind 2: must be ascending");
    pipeline::plan_change const change(p, plan, p, 1);
    bad.devices = {};
    bad.plan.strategy.pop_back();
    CHECK(support::refusal([&] { return change.to(bad).bytes; }) == ps::text("plan_change: the plan to change to: has a strategy of ", p.size() - 1,
                                                                             " configurations: the graph has ", p.size(), " operators"));
    auto const two_nodes = ps::topology::nodes({.count = 2, .gpus_per_node = 4, .device = ps::topology::h100_sxm});
    auto const one_of_two = ps::make_problem(small_gpt(), two_nodes, ps::cost::roofline{two_nodes}, {.simulation = {.replicas = 2}});
    CHECK(support::refusal([&] { return pipeline::plan_change(p, plan, one_of_two, 1).start().devices.size(); }) ==
          "plan_change: one of 2 replicas, among which states may be shared: must be a problem of all devices");
    std::mt19937_64 rng{1};
    CHECK(support::refusal([&] {
              return pipeline::partition(p, plan.plan, rng, {.surcharge = [](auto const&, auto) { return picoseconds(-3); }}).cost.count();
          }) == "partition: option 'surcharge' answers -3 ps: must not be negative");
}
