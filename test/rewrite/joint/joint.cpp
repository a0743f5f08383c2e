#include <parsearch/rewrite/joint/joint.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/dlrm.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/lenet.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/einsum.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/normalization.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/rewrite/rules/algebraic_rules.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/random_network.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"
#include "support/same_value.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {

joint_options with_rules(joint_options options, std::vector<graph_rule> const& rules) {
    options.rules = rules;
    return options;
}

template <class M> auto problem_of(M const& model, std::uint32_t nodes_used = 1, space::space_options const& space = {}) {
    auto const cluster = topology::nodes({.count = nodes_used, .gpus_per_node = 4, .device = topology::v100_sxm});
    return make_problem(model, cluster, cost::roofline(cluster), {.space = space});
}

/// Branches of convolutions, norms and relus that read one tensor and are joined, `blocks` times.
graph::operator_graph branches(int blocks) {
    graph::operator_graph g;
    graph::tensor_ref x = g.input("image", {{4, 8, 6, 6}});
    for (int b = 0; b < blocks; ++b) {
        std::vector<graph::tensor_ref> parts;
        for (int i = 0; i < 3; ++i) {
            auto const name = text("block", b, '.', i);
            auto const conv = g.add(name + ".conv", ops::conv2d{.out = 4 + 4 * i, .kernel = {1, 1}, .bias = false}, x);
            parts.push_back(g.add(name + ".relu", ops::relu{}, conv));
        }
        x = g.add(text("block", b), ops::concat{.axis = 1}, std::span<graph::tensor_ref const>(parts));
    }
    return g;
}

} // namespace

TEST_CASE("joint: the plan is a graph of the same value and a strategy of the cost that is told") {
    auto const p = problem_of(branches(2));
    std::mt19937_64 rng(1);
    std::uint64_t told = 0;
    auto const found = joint(p, {}, rng, {.rules = algebraic_rules()}, [&](rewritten_graph const&) { ++told; });
    CHECK(found.reason == stop_reason::exhausted);
    CHECK(told > 10);
    CHECK_FALSE(found.best.applied.empty());
    auto const after = with_graph(p, found.best.operators);
    CHECK(after.evaluator()(found.best.strategy) == found.cost);
    std::mt19937_64 values(2);
    CHECK(support::same_value(lift(p.graph()).graph, found.best.graph, values));
    // Merged, fused: fewer operators, and it pays.
    CHECK(found.best.operators.size() < p.size());
    std::mt19937_64 same(1);
    CHECK(found.cost < joint(p, {}, same).cost);
}

TEST_CASE("joint: without rules it is the best parallelization under the additive cost, or data parallelism") {
    auto const p = problem_of(models::lenet());
    std::mt19937_64 rng(1);
    auto const found = joint(p, {}, rng, {.mapping_views = 0});
    CHECK(found.best.graph == lift(p.graph()).graph);
    CHECK_FALSE(found.best.mapped);
    graph_pricer pricer(p, {.memory_limit = topology::v100_sxm.memory});
    auto const q = with_graph(p, found.best.operators);
    auto evaluate = q.evaluator();
    auto least = std::min(evaluate(data_parallel(q)), evaluate(pricer.price(q.graph()).strategy));
    for (auto const& counting : usual_countings) least = std::min(least, evaluate(pricer.price(q.graph(), counting).strategy));
    CHECK(found.cost == least);
    CHECK(found.best.applied.empty());
    CHECK(found.lower_bound == std::min(search::root_bound<space::flat_strategy>(q), std::optional(found.cost)));
    // With mapping, or the least of the mapped strategies.
    std::vector<space::flat_strategy> given{pricer.price(q.graph()).strategy};
    for (auto const& counting : usual_countings) given.push_back(pricer.price(q.graph(), counting).strategy);
    for (auto const& counting : usual_countings)
        least = std::min(least, evaluate(map_operators(pricer, q.graph(), {.synchronisation = counting}, given).strategy));
    std::mt19937_64 same(1);
    CHECK(joint(p, {}, same).cost == least);
}

TEST_CASE("joint: two heavy products that can not be split run side by side, which neither elimination nor an expert finds") {
    // Extents without divisors: each product is whole, on some device. Experts place layers with weights, which these have not.
    graph::operator_graph g;
    auto const x = g.input("x", {{4099, 4099}});
    auto const left = g.add("left", ops::einsum{.equation = "ij,jk->ik"}, x, x), right = g.add("right", ops::einsum{.equation = "ij,kj->ik"}, x, x);
    g.add("sum", ops::add{}, left, right);
    auto const p = problem_of(g);
    std::mt19937_64 a(1), b(1), c(1);
    auto const alone = joint(p, {}, a, {.mapping_views = 0});
    std::vector<picoseconds> told;
    auto const found = joint(p, {}, b, {}, [&](search::improved<picoseconds> const& e) { told.push_back(e.cost); });
    CHECK_FALSE(alone.best.mapped);
    CHECK(found.best.mapped);
    CHECK(found.best.not_mapped.empty());
    CHECK(found.cost.count() < alone.cost.count() * 6 / 10);
    CHECK(with_graph(p, found.best.operators).evaluator()(found.best.strategy) == found.cost);
    REQUIRE(!told.empty());
    CHECK(told.back() == found.cost);
    CHECK(found.stats.evaluations == alone.stats.evaluations + std::size(usual_countings));
    auto const refused = joint(p, {}, c, {.mapping_effort = 1});
    CHECK(refused.cost == alone.cost);
    CHECK(refused.best.not_mapped.find("more steps than the 1 that option 'effort' allows") != std::string::npos);
}

TEST_CASE("joint: of a restricted space is the strategy of the operators found, and no less than its bound") {
    for (std::uint64_t seed = 1; seed <= support::cases(60u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng(seed);
        auto const p = problem_of(support::random_network(rng, 8), 1, support::random_restrictions(rng));
        auto const found = joint(p, {}, rng, {.rules = algebraic_rules(), .segment_graphs = 8, .refinement = 20});
        auto const q = with_graph(p, found.best.operators);
        REQUIRE(!q.space().first_outside(found.best.strategy));
        if (found.best.bound) REQUIRE(*found.best.bound <= found.cost);
    }
}

TEST_CASE("joint: the same for the same seed, and never worse than the original, on random networks") {
    constexpr std::uint64_t seed = 10;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    int better = 0, side_by_side = 0, bounded = 0;
    for (int n = 0; n < support::cases(100); ++n) {
        auto const p = problem_of(support::random_network(rng, 8));
        joint_options const options{.segment_operators = 1 + uniform_index(rng, 12),
                                    .segment_graphs = 8,
                                    .beam = 1 + uniform_index(rng, 4),
                                    .refinement = 20 * uniform_index(rng, 2)};
        auto const draw = static_cast<std::uint64_t>(n);
        std::mt19937_64 a(draw), b(draw), c(draw);
        auto const first = joint(p, {}, a, with_rules(options, algebraic_rules())), second = joint(p, {}, b, with_rules(options, algebraic_rules()));
        CHECK(first.cost == second.cost);
        CHECK(first.best.graph == second.best.graph);
        CHECK(first.best.strategy == second.best.strategy);
        CHECK(first.stats.evaluations == second.stats.evaluations);
        auto plain = options;
        plain.refinement = 0;
        auto const original = joint(p, {}, c, plain);
        CHECK(first.cost <= original.cost);
        plain.mapping_views = 0;
        std::mt19937_64 d(draw), e(draw);
        auto const unmapped = joint(p, {}, d, with_rules(plain, algebraic_rules()));
        plain.bound = false;
        std::mt19937_64 f(draw);
        auto const unbounded = joint(p, {}, f, with_rules(plain, algebraic_rules()));
        plain.bound = true;
        plain.mapping_views = 8;
        auto const mapped = joint(p, {}, e, with_rules(plain, algebraic_rules()));
        CHECK(mapped.cost <= unmapped.cost);
        CHECK(mapped.stats.evaluations >= unmapped.stats.evaluations);
        side_by_side += mapped.best.mapped;
        better += first.cost < original.cost;
        // Bounds hold for all strategies of the graph found; over all graphs there is one where there are no rules.
        REQUIRE(first.best.bound);
        CHECK(*first.best.bound <= first.cost);
        bounded += *first.best.bound > picoseconds::zero();
        CHECK(!first.lower_bound);
        CHECK(original.lower_bound == original.best.bound);
        auto const found = with_graph(p, first.best.operators);
        auto evaluate = found.evaluator();
        for (int k = 0; k < 5; ++k) {
            space::flat_strategy s;
            for (std::size_t op = 0; op < found.size(); ++op)
                s.push_back(search::choice(found.space(), op, uniform_index(rng, found.space()[op].size())));
            CHECK(*first.best.bound <= evaluate(s));
        }
        CHECK(mapped.best.bound.has_value());
        CHECK(!unbounded.best.bound);
        CHECK(unbounded.cost == unmapped.cost);
        CHECK(support::same_value(lift(p.graph()).graph, first.best.graph, rng));
    }
    CHECK(better > 0);
    CHECK(bounded > 0);
    CHECK(side_by_side > 0);
}

TEST_CASE("joint: rules of convolutions make no network slower, and inference faster") {
    auto const cluster = topology::nodes({.count = 1, .gpus_per_node = 4, .device = topology::v100_sxm});
    for (auto const use : {purpose::training, purpose::inference}) {
        if (!support::nightly() && use == purpose::training) continue; // for the time that it takes
        auto const all = algebraic_rules(use);
        auto before = all;
        std::erase_if(before, [](auto const& r) { return r.name() == "enlarge" || r.name() == "fold_batch_norm"; });
        auto const p = make_problem(models::inception_v3({.batch = 4}), cluster, cost::roofline(cluster),
                                    {.simulation = {.training = use == purpose::training}});
        joint_options const options{.segment_graphs = 5, .beam = 2, .mapping_views = 0};
        std::mt19937_64 a(1), b(1);
        auto const with = joint(p, {}, a, with_rules(options, all)), without = joint(p, {}, b, with_rules(options, before));
        CHECK(with.cost <= without.cost);
        if (use == purpose::training) continue;
        CHECK(with.cost < without.cost);
        auto const norms = [](joint_result const& r) {
            return std::ranges::count_if(r.best.operators.operations, [](auto const& op) { return op.kind.starts_with("batch_norm"); });
        };
        CHECK(norms(with) < norms(without));
        CHECK(std::ranges::none_of(with.best.operators.operations,
                                   [](auto const& op) { return op.inputs.empty() && op.work != ops::work_class::source; })); // weights are held
    }
    // Two small kernels cost more to start than to compute: one that is larger than needed is worth it.
    graph::operator_graph g;
    auto const x = g.input("image", {{1, 8, 6, 6}});
    auto const small = g.add("small", ops::conv2d{.out = 4}, x),
               large = g.add("large", ops::conv2d{.out = 4, .kernel = {3, 3}, .padding = {1, 1}}, x);
    g.add("both", ops::concat{.axis = 1}, small, large);
    auto const p = make_problem(g, cluster, cost::roofline(cluster), {.simulation = {.training = false}});
    std::mt19937_64 rng(1), values(2);
    auto const found = joint(p, {}, rng, {.rules = algebraic_rules(purpose::inference)});
    CHECK(std::ranges::any_of(found.best.applied, [](auto const& step) { return step == "enlarge: small to 3x3"; }));
    CHECK(found.best.operators.size() == 2); // the image and one convolution
    CHECK(found.cost < joint(p, {}, rng).cost);
    CHECK(support::same_value(lift(p.graph()).graph, found.best.graph, values, purpose::inference));
}

TEST_CASE("joint: it ends by budget, time and token with what it has") {
    auto const p = problem_of(branches(3));
    std::mt19937_64 rng(1);
    auto const few = joint(p, {}, rng, {.rules = algebraic_rules(), .evaluations = 10});
    CHECK(few.reason == stop_reason::evaluation_budget);
    CHECK(few.stats.evaluations == 10);
    CHECK(with_graph(p, few.best.operators).evaluator()(few.best.strategy) == few.cost);
    for (std::uint64_t budget = 1; budget <= 4; ++budget) CHECK(joint(p, {}, rng, {.evaluations = budget}).stats.evaluations == budget);
    auto const none = joint(p, {}, rng, {.rules = algebraic_rules(), .time = std::chrono::nanoseconds{0}});
    CHECK(none.reason == stop_reason::time_budget);
    CHECK(with_graph(p, none.best.operators).evaluator()(none.best.strategy) == none.cost);
    std::stop_source stop;
    stop.request_stop();
    CHECK(joint(p, {}, rng, {.rules = algebraic_rules(), .stop = stop.get_token()}).reason == stop_reason::stop_requested);
}

TEST_CASE("joint: a rule of one's own, as a pattern and as a function") {
    auto const p = problem_of(models::mlp());
    rule const fused_relu{.name = "relu of a relu is a relu",
                          .source = {{{"OP_RELU", {{-1, 0}}}, {"OP_RELU", {{0, 0}}}}},
                          .target = {{{"OP_RELU", {{-1, 0}}}}},
                          .outputs = {{{1, 0}, {0, 0}}}};
    auto doubled = graph::operator_graph();
    auto const x = doubled.add("fc", ops::linear{.out = 64}, doubled.input("x", {{64, 64}}));
    doubled.add("again", ops::relu{}, doubled.add("relu", ops::relu{}, x));
    auto const q = problem_of(doubled);
    std::mt19937_64 rng(1);
    auto const found = joint(q, {}, rng, {.rules = {substitution_rule(fused_relu)}});
    CHECK(found.best.operators.size() == 3);
    REQUIRE(found.best.applied.size() == 1);
    CHECK(found.best.applied[0] == "relu of a relu is a relu: relu, again");
    // One that undoes itself ends.
    rule const turned{.name = "turned",
                      .source = {{{"OP_EW_ADD", {{-1, 0}, {-2, 0}}}}},
                      .target = {{{"OP_EW_ADD", {{-2, 0}, {-1, 0}}}}},
                      .outputs = {{{0, 0}, {0, 0}}}};
    auto sums = graph::operator_graph();
    auto const a = sums.input("a", {{8, 8}}), b = sums.input("b", {{8, 8}});
    sums.add("second", ops::add{}, sums.add("first", ops::add{}, a, b), b);
    CHECK(joint(problem_of(sums), {}, rng, {.rules = {substitution_rule(turned)}}).reason == stop_reason::exhausted);
    std::vector<graph_rule> nothing{{"nothing", [](parallel_graph const&) { return std::vector<rewritten>{}; }}};
    CHECK(joint(p, {}, rng, {.rules = nothing}).best.graph == lift(p.graph()).graph);
}

TEST_CASE("joint: options out of range are refused") {
    auto const p = problem_of(models::mlp());
    std::mt19937_64 rng(1);
    auto const refusal = [&](joint_options const& o) { return support::refusal([&] { return joint(p, {}, rng, o); }); };
    CHECK(refusal({.alpha = 0.5}) == "joint: option 'alpha' is 0.5: must be from 1 to 1e6");
    CHECK(refusal({.segment_operators = 0}) == "joint: option 'segment_operators' is 0: must be at least 1");
    CHECK(refusal({.beam = 0}) == "joint: option 'beam' is 0: must be at least 1");
    CHECK(refusal({.evaluations = 0}).find("joint: option 'evaluations' is 0") == 0);
    CHECK(refusal({.pricing = {.candidates = 0}}).find("graph_pricer option candidates is 0") == 0);
    CHECK(support::refusal([] { return graph_rule("", [](parallel_graph const&) { return std::vector<rewritten>{}; }); }).find("must have a name") !=
          std::string::npos);
}

TEST_CASE("joint: the plan keeps to the devices' memory where one does") {
    // A layer whose weights are too large for a device as a whole.
    graph::operator_graph g;
    auto const x = g.add("narrow", ops::linear{.out = 61440}, g.input("x", {{64, 61440}}));
    g.add("relu", ops::relu{}, x);
    auto const cluster = topology::nodes({.count = 1, .gpus_per_node = 4, .device = topology::v100_sxm});
    auto const p = make_problem(g, cluster, cost::roofline(cluster), {.simulation = {.memory = sim::memory_policy::reject}});
    std::mt19937_64 rng(1);
    auto const found = joint(p, {}, rng, {.rules = algebraic_rules()});
    CHECK(found.cost < cost_traits<picoseconds>::infinity());
    CHECK(p.evaluator()(data_parallel(p)) == cost_traits<picoseconds>::infinity());
}

TEST_CASE("joint: a search that was stopped anywhere is repeated by as many evaluations") {
    auto const p = problem_of(branches(2));
    joint_options const options{.segment_graphs = 6, .refinement = 40, .pricing = {.candidates = 6}};
    auto const run = [&](joint_options const& o, auto&... observers) {
        std::mt19937_64 rng(5);
        return joint(p, {}, rng, with_rules(o, algebraic_rules()), observers...);
    };
    auto const most = run(options).stats.evaluations;
    REQUIRE(most > 60);
    for (std::uint64_t at = 1; at < most; at += 3) {
        CAPTURE(at);
        std::stop_source stop;
        auto stopped = options;
        stopped.stop = stop.get_token();
        auto const watch = [&]<class E>(E const& e) {
            if constexpr (requires { e.evaluation; })
                if (e.evaluation >= at) stop.request_stop();
        };
        auto const first = run(stopped, watch);
        auto budgeted = options;
        budgeted.evaluations = first.stats.evaluations;
        auto const second = run(budgeted);
        CHECK(second.stats.evaluations == first.stats.evaluations);
        CHECK(second.cost == first.cost);
        CHECK(second.best.graph == first.best.graph);
        CHECK(second.best.applied == first.best.applied);
        CHECK(second.best.strategy == first.best.strategy);
        CHECK(second.stats.trajectory == first.stats.trajectory);
    }
}

TEST_CASE("joint: operators that no rule changed keep their names") {
    auto const p = problem_of(models::mlp({.features = 256, .hidden = {256, 256}, .classes = 256, .batch = 64}));
    std::mt19937_64 rng(5);
    auto names = joint(p, {}, rng, {.rules = algebraic_rules()}).best.operators.names;
    std::ranges::sort(names);
    CHECK(names == std::vector<std::string>{"fc1+relu", "fc2+relu", "fc3", "labels", "loss", "samples"});
}

TEST_CASE("rewritten_first: what is best on one device, with the model's names and the rules that made it") {
    auto const p = problem_of(models::mlp({.features = 256, .hidden = {256, 256}, .classes = 256, .batch = 64}));
    auto const found = rewritten_first(p, {.rules = algebraic_rules()});
    auto names = found.problem.graph().names;
    std::ranges::sort(names);
    CHECK(names == std::vector<std::string>{"fc1+relu", "fc2+relu", "fc3", "labels", "loss", "samples"});
    REQUIRE(!found.applied.empty());
    CHECK(found.applied.front().starts_with("fuse"));
    CHECK(found.graphs > 1);
    CHECK(found.problem.evaluator()(data_parallel(found.problem)) < p.evaluator()(data_parallel(p)));
    // A budget leaves the best so far, and as many graphs are a budget that finds the same.
    auto const again = rewritten_first(p, {.rules = algebraic_rules(), .evaluations = found.graphs});
    CHECK(again.applied == found.applied);
    CHECK(found.complete);
    auto const cut = rewritten_first(p, {.rules = algebraic_rules(), .evaluations = 1});
    CHECK(cut.applied.empty());
    CHECK(!cut.complete);
    CHECK(rewritten_first(p, {}).applied.empty());
    // Blocks that are alike are changed alike, with names that are alike, on random networks the cost on one device never grows.
    std::mt19937_64 rng(11);
    for (int n = 0; n < support::cases(60); ++n) {
        auto const random = problem_of(support::random_network(rng, 10));
        auto const other = rewritten_first(random, {.rules = algebraic_rules(), .segment_graphs = 8});
        joint_cache cache(random);
        CHECK(cache.one().price(other.problem.graph()).cost <= cache.one().price(random.graph()).cost);
    }
}

TEST_CASE("joint: a start is priced first and never left for worse, whatever ends the search; observers end it and grant more") {
    auto const p = problem_of(branches(2));
    std::mt19937_64 rng(1);
    auto const best = joint(p, {}, rng, {.rules = algebraic_rules()});
    std::stop_source stop;
    stop.request_stop();
    for (auto const& o :
         {joint_options{.evaluations = 1}, joint_options{.time = std::chrono::nanoseconds{0}}, joint_options{.stop = stop.get_token()}}) {
        std::uint64_t told = 0;
        auto const from = joint(p, best.best, rng, o, [&](simulated_graph const& e) { told += e.rank == 0; });
        CHECK(from.cost == best.cost);
        CHECK(from.best.graph == best.best.graph);
        CHECK(told == 1);
        CHECK(!from.lower_bound); // of the graph without rules, which may cost less than this one's bound
        CHECK(!from.best.bound);
    }
    auto const ended = joint(p, {}, rng, {.rules = algebraic_rules()}, [](simulated_graph const&) { return search::verdict::end; });
    CHECK(ended.reason == stop_reason::observer);
    CHECK(!ended.best.bound);
    int asked = 0;
    auto const longer = joint(p, {}, rng, {.rules = algebraic_rules(), .evaluations = 10}, search::on<search::budget_spent>([&](auto const& e) {
                                  if (++asked == 1) CHECK(e.best == cost_traits<picoseconds>::infinity());
                                  return std::optional(search::extension{.evaluations = 1'000'000});
                              }));
    CHECK(asked == 1);
    CHECK(longer.cost == best.cost);
    CHECK(longer.stats.evaluations == best.stats.evaluations);
}
