#include <parsearch/problem/problem.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include <doctest/doctest.h>

#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/boost.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/models/dlrm.hpp>
#include <parsearch/models/lenet.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/moe.hpp>
#include <parsearch/models/ncf.hpp>
#include <parsearch/models/nmt.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/hand_network.hpp"
#include "support/plain_topology.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

using namespace parsearch;

namespace {

auto const ten = [](ops::shard_work const&, std::uint32_t) { return picoseconds{10}; };

graph::operator_graph two_layers() {
    graph::operator_graph g;
    auto const x = g.add("fc1", ops::linear{.out = 8}, g.input("x", {{8, 8}}));
    g.add("fc2", ops::linear{.out = 8}, x);
    return g;
}

} // namespace

namespace problem_test {

/// A graph, and others with one thing wrong each. Concepts say so; nothing of it fails to compile.
template <class Description, class Handle = int> struct graph_of {
    std::vector<Handle> operators() const;
    std::vector<tensor_source<Handle>> inputs(Handle const&) const;
    Description description(Handle const&) const;
};
struct not_hashable {
    friend bool operator==(not_hashable, not_hashable) = default;
};
struct without_inputs {
    std::vector<int> operators() const;
    ops::operation description(int) const;
};
struct without_description {
    std::vector<int> operators() const;
    std::vector<tensor_source<int>> inputs(int) const;
};
struct describes_as_text {
    std::string describe() const;
};
struct describes_for_others_only {
    ops::operation describe();
};
static_assert(DescribesOperations<graph_of<ops::operation>> && DescribesOperations<graph_of<graph::node const&>>);
static_assert(DescribesOperations<graph::operator_graph> && DescribesOperations<graph::dense_graph>);
static_assert(!DescribesOperations<graph_of<char const*>> && !DescribesOperations<graph_of<std::string>> && !DescribesOperations<graph_of<void>>);
static_assert(!DescribesOperations<graph_of<describes_as_text>> && !DescribesOperations<graph_of<describes_for_others_only>>);
static_assert(!DescribesOperations<graph_of<ops::operation, not_hashable>>);
static_assert(!DescribesOperations<without_inputs> && !DescribesOperations<without_description>);
static_assert(!DescribesOperations<int> && !DescribesOperations<void>);
static_assert(ops::Describable<graph::node> && ops::Describable<ops::operation const&>);
static_assert(!ops::Describable<int> && !ops::Describable<void> && !ops::Describable<describes_as_text>);
static_assert(std::invocable<decltype(ops::describe), graph::node> && !std::invocable<decltype(ops::describe), int>);
static_assert(TimesShardsOn<decltype(ten), support::plain_topology> && !TimesShardsOn<int, support::plain_topology> &&
              !TimesShardsOn<decltype(ten), int>);
template <class... Arguments>
concept MakesProblem = requires(Arguments const&... arguments) { make_problem(arguments...); };
static_assert(MakesProblem<graph::operator_graph, support::plain_topology, decltype(ten)>);
static_assert(!MakesProblem<graph_of<char const*>, support::plain_topology, decltype(ten)>);

} // namespace problem_test

TEST_CASE("problem: a search problem, by value") {
    auto const p = make_problem(two_layers(), support::mesh(4), ten);
    using problem = std::remove_const_t<decltype(p)>;
    static_assert(SearchProblem<problem, space::flat_strategy>);
    static_assert(IncrementalEvaluator<evaluator_t<problem>, space::flat_strategy, space::configuration>);
    CHECK(p.size() == 3);
    CHECK(p.space().size() == 3);
    CHECK(p.handle(1) == 1);
    CHECK(p.graph().names[1] == "fc1");
    CHECK(p.topology().size() == 4);
    auto const s = data_parallel(p);
    auto const copy = [&] {
        auto const inner = make_problem(two_layers(), support::mesh(4), ten);
        return inner; // what it was made of is gone
    }();
    CHECK(copy.evaluator()(s) == p.evaluator()(s));
}

TEST_CASE("problem: plans leave a tenth of the memory, or what is asked; what has no limit keeps none") {
    auto topology = support::mesh(2);
    topology.device[0].memory = 1005;
    topology.device[1].memory = std::numeric_limits<byte_count>::max();
    auto const usable = [&](sim::simulation_options const& options) {
        auto const p = make_problem(two_layers(), topology, ten, {.simulation = options});
        CHECK(p.topology().devices[1].memory == std::numeric_limits<byte_count>::max());
        auto const again = with_graph(p, two_layers()); // no second tenth
        CHECK(again.topology().devices[0].memory == p.topology().devices[0].memory);
        return p.topology().devices[0].memory;
    };
    CHECK(usable({}) == 905);
    CHECK(usable({.memory_kept_free = 0}) == 1005);
    CHECK(usable({.memory_kept_free = 0, .context_memory = 5}) == 1000);
    CHECK(usable({.context_memory = 5}) == usable({}) - 5);
    CHECK(usable({.context_memory = 2000}) == 0);
    CHECK(usable({.memory_kept_free = 0.5}) == 503);
    CHECK(support::refusal([&] { return usable({.memory_kept_free = -0.1}); }) ==
          "simulation option memory_kept_free is -0.1: must be a share from 0 to less than 1");
}

TEST_CASE("problem: with another graph it is what make_problem makes of it") {
    for (std::uint64_t seed = 1; seed <= support::cases(20u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const cluster = support::random_topology(rng, {.devices = 4});
        problem_options const options{.space = {.min_shard = static_cast<std::int64_t>(1 + seed % 2)}, .simulation = support::random_options(rng)};
        auto const base = make_problem(support::random_network(rng), cluster, support::mixed_oracle{}, options);
        auto const net = support::random_network(rng);
        auto const made = make_problem(net, cluster, support::mixed_oracle{}, options);
        auto const other = with_graph(base, net);
        auto const dense = with_graph(other, made.graph());
        auto const check = [&](auto const& p) {
            REQUIRE(p.size() == made.size());
            CHECK(p.graph().names == made.graph().names);
            CHECK(p.graph().operations == made.graph().operations);
            CHECK(p.graph().edges == made.graph().edges);
            CHECK(p.graph().order == made.graph().order);
            CHECK(p.graph().trains == made.graph().trains);
            CHECK(p.graph().sharing == made.graph().sharing);
            CHECK(p.options().optimizer == made.options().optimizer);
            for (std::size_t op = 0; op < p.size(); ++op) {
                CHECK(std::size_t{p.handle(op)} == op);
                REQUIRE(p.space()[op].size() == made.space()[op].size());
                for (std::uint32_t n = 0; n < p.space()[op].size(); n += 7) CHECK(p.space()[op][n] == made.space()[op][n]);
            }
            for (int n = 0; n < 4; ++n) {
                auto const s = support::random_strategy(rng, made, 0.2);
                CHECK(p.evaluator()(s) == made.evaluator()(s));
                CHECK(p.simulator()(s) == made.simulator()(s));
            }
        };
        check(other);
        check(dense);
    }
}

TEST_CASE("problem: with another graph it refuses what make_problem refuses, in the same words") {
    auto const base = make_problem(two_layers(), support::mesh(4), ten);
    auto const refused = [&](graph::dense_graph const& g, std::string const& why) {
        CAPTURE(why);
        CHECK_THROWS_WITH_AS((void)with_graph(base, g), why.c_str(), invalid_input);
        CHECK_THROWS_WITH_AS((void)make_problem(g, support::mesh(4), ten), why.c_str(), invalid_input);
    };
    auto g = base.graph();
    g.edges[1].producer = 2;
    refused(g, "cycle in the operator graph: 'fc2' -> 'fc2': an operator graph is acyclic");
    g = base.graph();
    g.edges[1].slot = 3;
    refused(g, "operator 'fc2' (linear): input 0 is output 3 of 'fc1', which has only 1 outputs");
    g = base.graph();
    g.edges[1].producer = 9;
    refused(g, "operator 'fc2' (linear): input 0 comes from an operator that operators(graph) does not name (its handle is 9)");
    g = base.graph();
    g.names.pop_back();
    std::string const rule = "'names' must have one entry per operation, 'first_in' one more, which rise from 0 to the number of edges";
    refused(g, "dense_graph of 3 operations, 2 names, 2 edges: " + rule);
    refused({}, "dense_graph of 0 operations, 0 names, 0 edges: " + rule);
}

TEST_CASE("problem: handles are those of the caller's graph") {
    boost::adjacency_list<boost::vecS, boost::listS, boost::bidirectionalS, graph::node> g;
    auto const model = two_layers();
    auto const x = add_vertex(g), fc1 = add_vertex(g);
    g[x] = model[0];
    g[fc1] = model[1];
    add_edge(x, fc1, g);
    auto const p = make_problem(g, support::mesh(2), ten);
    CHECK(p.handle(1) == fc1);
    CHECK(g[p.handle(1)].name == "fc1");
}

TEST_CASE("problem: options reach space and simulation") {
    auto const p =
        make_problem(two_layers(), support::mesh(4), ten, {.space = {.sample = false, .max_shards = 2}, .simulation = {.training = false}});
    for (std::size_t op = 1; op < 3; ++op)
        for (auto const& c : p.space()[op]) {
            CHECK(c.degree[0] == 1);
            CHECK(c.shards() <= 2);
        }
    CHECK_FALSE(p.options().training);
    CHECK(p.evaluator()(support::all_on_first(p.graph())).count() == 20);
    CHECK(support::refusal([] { return make_problem(two_layers(), support::mesh(4), ten, {.space = {.min_shard = 0}}); }) != "");
    CHECK(support::refusal([] { return make_problem(two_layers(), support::mesh(4), ten, {.simulation = {.memory_penalty = -1}}); }) != "");
    CHECK(support::refusal([] { return make_problem(two_layers(), support::mesh(0), ten); }) != "");
    CHECK(support::refusal([] { return make_problem(graph::operator_graph{}, support::mesh(2), ten); }) != "");
}

TEST_CASE("problem: its moves propose what its evaluator accepts") {
    auto const p = make_problem(two_layers(), support::mesh(4), ten);
    search::move_mix mix(p.moves());
    std::mt19937_64 rng(3);
    auto const s = data_parallel(p);
    auto evaluator = p.evaluator();
    (void)evaluator.reset(s);
    std::map<std::size_t, int> drawn;
    for (int i = 0; i < 500; ++i) {
        std::vector<change<space::configuration>> out;
        auto const move = mix(p.space(), s, rng, out);
        if (!move) continue;
        ++drawn[move->move];
        CHECK(evaluator.propose(out, picoseconds::max()));
        evaluator.roll_back();
    }
    CHECK(drawn.size() >= 2); // all kinds of moves come up
}

TEST_CASE("problem: experts of space/textbook/textbook_strategies.hpp, for the problem's devices") {
    auto t = support::mesh(4);
    t.node = {5, 5, 9, 9};
    auto const p = make_problem(two_layers(), t, ten);
    CHECK(data_parallel(p) == space::data_parallel(p.graph(), 4));
    CHECK(one_weird_trick(p) == space::one_weird_trick(p.graph(), 4));
    CHECK(operation_parallel(p) == space::operation_parallel(p.graph(), 4, 2));
    CHECK(tensor_parallel(p, 2) == space::tensor_parallel(p.graph(), 4, 2));
    CHECK(support::refusal([&] { return tensor_parallel(p, 3); }) != "");
    CHECK(data_parallel(p, 2) == space::data_parallel(p.graph(), 2));
    CHECK(data_parallel(p, 2, 1) == space::data_parallel(p.graph(), 2, false, 1));
    CHECK(data_parallel(p, 4) == data_parallel(p));
    CHECK(support::refusal([&] { return data_parallel(p, 2, 3); }) ==
          "data_parallel: 2 devices from number 3: must be at least one, and all of the 4 that there are");
    CHECK(support::refusal([&] { return data_parallel(p, 0); }) != "");
    CHECK(support::refusal([&] { return data_parallel(p, 1, 4); }) != "");
    auto const uneven = make_problem(two_layers(), t, ten, {.space = {.uneven = true}});
    CHECK(data_parallel(uneven, 3, 1) == space::data_parallel(p.graph(), 3, true, 1));
}

namespace {
std::vector<std::string> names_of(std::vector<space::named_strategy> const& list) {
    std::vector<std::string> out;
    for (auto const& s : list) out.push_back(s.name);
    return out;
}
using names = std::vector<std::string>;
} // namespace

TEST_CASE("problem: starts are the experts that apply, each once") {
    auto t = support::mesh(4);
    t.node = {5, 5, 9, 9};
    auto const p = make_problem(two_layers(), t, ten);
    CHECK(names_of(p.named_starts()) ==
          names{"data_parallel", "one_weird_trick", "operation_parallel", "tensor_parallel_2", "data_parallel_on_1", "data_parallel_on_2"});
    auto const named = p.named_starts();
    auto const starts = p.starts();
    REQUIRE(starts.size() == named.size());
    for (std::size_t n = 0; n < starts.size(); ++n) CHECK(starts[n] == named[n].strategy);
    CHECK(starts[0] == data_parallel(p));
    CHECK(starts[2] == operation_parallel(p));
    CHECK(starts[3] == tensor_parallel(p, 2));
    CHECK(starts[4] == space::one_device(p.graph()));
    CHECK(starts[5] == data_parallel(p, 2));

    // Nodes of several sizes, or of devices that are not neighbours: no layers over nodes, no tensors over them.
    names const general{"data_parallel", "one_weird_trick", "data_parallel_on_1", "data_parallel_on_2"};
    t.node = {0, 0, 0, 1};
    CHECK(names_of(make_problem(two_layers(), t, ten).named_starts()) == general);
    t.node = {0, 1, 0, 1};
    CHECK(names_of(make_problem(two_layers(), t, ten).named_starts()) == general);
    // Several kinds: of each the most neighbours from a multiple of their number.
    auto const of_kinds = [](std::string_view kinds) {
        auto several = support::mesh(static_cast<std::uint32_t>(kinds.size()));
        for (std::size_t d = 0; d < kinds.size(); ++d) several.device[d].kind = kinds[d];
        auto const mixed = make_problem(two_layers(), several, ten);
        std::vector<std::string> found;
        for (auto const& start : mixed.named_starts())
            if (auto const from = start.name.find("_from_"); from != std::string::npos) {
                auto const first = std::stoul(start.name.substr(from + 6)), count = std::stoul(start.name.substr(17));
                CHECK(start.strategy == data_parallel(mixed, count, first));
                found.push_back(start.name.substr(17));
            }
        return found;
    };
    CHECK(of_kinds("aaaa") == names{});
    CHECK(of_kinds("aabb") == names{"2_from_2"}); // the first two are there already
    CHECK(of_kinds("abba") == names{"1_from_1"});
    CHECK(of_kinds("aaaabbbbbbbbcccc") == names{"4_from_4", "4_from_12"});
    CHECK(of_kinds("aabbaaaab") == names{"4_from_4", "2_from_2"});
    // A single device: all are the same.
    CHECK(names_of(make_problem(two_layers(), support::mesh(1), ten).named_starts()) == names{"data_parallel"});
}

TEST_CASE("problem: starts of networks with tables or experts, legal on any number of devices") {
    auto const has = [](auto const& p, std::string const& name) {
        auto const all = names_of(p.named_starts());
        return std::find(all.begin(), all.end(), name) != all.end();
    };
    for (std::uint32_t const count : {2U, 3U, 6U, 8U}) {
        CAPTURE(count);
        auto const tables = make_problem(models::dlrm({.batch = 32}), support::mesh(count), ten);
        CHECK(has(tables, "table_parallel"));
        CHECK(has(tables, "column_wise_tables_2") == (count % 2 == 0));
        CHECK(has(tables, text("column_wise_tables_", count, "_everywhere")) == (count == 2 || count == 8)); // of 64 columns
        CHECK(has(tables, "branch_parallel_1"));
        CHECK_FALSE(has(tables, "expert_parallel"));
        auto const mixture = make_problem(
            models::moe({.layers = 2, .hidden = 64, .heads = 4, .kv_heads = 4, .feed_forward = 128, .sequence = 32, .vocabulary = 128, .batch = 32}),
            support::mesh(count), ten);
        CHECK(has(mixture, "expert_parallel") == (count != 3)); // eight experts: three devices share none out evenly
        for (auto const& s : mixture.named_starts()) {
            REQUIRE(s.strategy.size() == mixture.size());
            for (std::size_t op = 0; op < mixture.size(); ++op) space::validate(s.strategy[op], mixture.graph().operations[op], count, s.name);
            for (auto const& other : mixture.named_starts()) REQUIRE((other.name == s.name || !(other.strategy == s.strategy)));
        }
    }
}

TEST_CASE("problem: on slow links between nodes tables are better on one node, and searches may begin so") {
    auto const servers =
        topology::nodes({.count = 4, .gpus_per_node = 4, .device = topology::a100_sxm, .nic = link_description{{1e9}, std::chrono::microseconds(1)}});
    auto const p = make_problem(models::ncf({.users = 100'000, .items = 100'000, .tables = 8, .hidden = {1024, 1024}, .batch = 4096}), servers,
                                cost::roofline{servers});
    auto price = p.evaluator();
    auto best = cost_traits<picoseconds>::infinity(), on_one_node = best;
    for (auto const& s : p.named_starts()) {
        auto& least = s.name.starts_with("column_wise_tables_") && s.name.ends_with("_on_4") ? on_one_node : best;
        least = std::min(least, price(s.strategy));
    }
    CHECK(on_one_node < best);
}

TEST_CASE("problem: its order is topological") {
    graph::operator_graph net;
    auto const x = net.input("x", {{8, 8}});
    auto const y = net.add("fc1", ops::linear{.out = 8}, x);
    net.add("fc2", ops::linear{.out = 8}, y);
    auto const p = make_problem(net, support::mesh(2), ten);
    CHECK(p.order() == p.graph().order);
    CHECK(p.order().size() == p.size());
}

TEST_CASE("problem: operation parallelism wants nodes of one size and consecutive devices") {
    auto const refused = [](std::vector<std::uint32_t> const& nodes) {
        auto t = support::mesh(static_cast<std::uint32_t>(nodes.size()));
        t.node = nodes;
        auto const p = make_problem(two_layers(), t, ten);
        return support::refusal([&] { return operation_parallel(p); });
    };
    CHECK(refused({0, 0, 1, 1}) == "");
    CHECK(refused({0, 1, 2}) == "");
    CHECK(refused({3, 3, 3}) == "");
    auto const rule = std::string("nodes must be of one size, each of consecutive devices");
    CHECK(refused({0, 0, 0, 1}).find(rule) != std::string::npos); // 3 and 1: two nodes, but not of two
    CHECK(refused({0, 1, 1, 1}).find(rule) != std::string::npos);
    CHECK(refused({0, 1, 0, 1}).find(rule) != std::string::npos);
    CHECK(refused({0, 0, 1}).find(rule) != std::string::npos);
}

namespace {

/// A problem with another evaluator in the place of its own.
template <class P, class E> struct evaluated_by {
    P const* problem;
    E make;
    [[nodiscard]] auto const& space() const { return problem->space(); }
    [[nodiscard]] auto evaluator() const { return make(*problem); }
    [[nodiscard]] auto moves() const { return problem->moves(); }
    [[nodiscard]] auto const& order() const { return problem->order(); }
    [[nodiscard]] auto coarsening() const { return problem->coarsening(); }
    [[nodiscard]] auto starts() const { return problem->starts(); }
};
template <class P, class E> evaluated_by(P const*, E) -> evaluated_by<P, E>;

/// An incremental evaluator that finishes whatever it is told of bounds.
template <class E> struct unbounded {
    E evaluator;
    template <class S> picoseconds operator()(S const& s) { return evaluator(s); }
    template <class S> picoseconds reset(S const& s) { return evaluator.reset(s); }
    std::optional<picoseconds> propose(std::span<change<space::configuration> const> changes, picoseconds) {
        return evaluator.propose(changes, cost_traits<picoseconds>::infinity());
    }
    void commit() { evaluator.commit(); }
    void roll_back() { evaluator.roll_back(); }
};

/// The full simulator, and nothing but a call.
template <class E> struct whole {
    E simulator;
    template <class S> picoseconds operator()(S const& s) { return simulator(s); }
};

/// Searches with the problem's evaluator, the same without bounds, and the full simulation, which must take the same course.
template <class P> void take_the_same_course(P const& p, std::uint64_t seed, std::uint64_t evaluations) {
    evaluated_by const patient{&p, [](P const& q) { return unbounded<evaluator_t<P>>{q.evaluator()}; }};
    evaluated_by const plain{&p, [](P const& q) { return whole<decltype(q.simulator())>{q.simulator()}; }};
    static_assert(IncrementalEvaluator<evaluator_t<decltype(patient)>, space::flat_strategy, space::configuration>);
    static_assert(!IncrementalEvaluator<evaluator_t<decltype(plain)>, space::flat_strategy, space::configuration>);
    auto const same = [](auto const& a, auto const& b) {
        CHECK(a.cost == b.cost);
        CHECK(a.best == b.best);
        CHECK(a.stats.trajectory == b.stats.trajectory);
        CHECK(a.stats.accepted == b.stats.accepted);
        CHECK(a.stats.evaluations == b.stats.evaluations);
    };
    auto const chain = [&](auto const& problem) {
        std::mt19937_64 rng(seed);
        return search::mcmc(problem, data_parallel(p), rng, {.evaluations = evaluations});
    };
    auto const found = chain(p);
    CHECK(found.stats.accepted > 0);
    CHECK(p.simulator()(found.best) == found.cost);
    same(found, chain(patient));
    same(found, chain(plain));
    auto const sweep = [&](auto const& problem) {
        std::mt19937_64 rng(seed);
        return search::greedy(problem, data_parallel(p), rng, {.evaluations = evaluations, .candidates = 8});
    };
    auto const swept = sweep(p);
    same(swept, sweep(patient));
    same(swept, sweep(plain));
}

} // namespace

TEST_CASE("problem: searches take the same course with bounds, without, and with the full simulation") {
    auto const nodes = topology::p100_cluster(4); // of four devices
    for (std::uint64_t seed = 0; seed < support::cases(2u); ++seed)
        for (auto const order : {sim::discipline::fifo, sim::discipline::in_order}) {
            INFO("seed ", seed, " ", name_of(order));
            auto const options = [&](auto alter) {
                problem_options o{.simulation = {.discipline = order}};
                alter(o.simulation);
                return o;
            };
            auto const as_it_is = options([](auto&) {});
            take_the_same_course(make_problem(models::lenet({.batch = 64}), nodes, cost::roofline{nodes}, as_it_is), seed, support::cases(800u));
            take_the_same_course(make_problem(models::nmt({.steps = 3, .batch = 64}), nodes, cost::roofline{nodes}, as_it_is), seed,
                                 support::cases(300u));
            auto const served = options([](auto& o) {
                o.movement = sim::movement::pairwise;
                o.synchronisation = sim::synchronisation::parameter_server;
                o.overlap = false;
            });
            take_the_same_course(make_problem(models::mlp({.batch = 64}), nodes, cost::roofline{nodes}, served), seed, support::cases(500u));
            auto const scarce = options([](auto& o) { o.memory = sim::memory_policy::penalise, o.memory_penalty = 20; });
            auto tight = support::mesh(4, 0.01);
            for (auto& d : tight.device) d.memory = 1'000'000;
            take_the_same_course(make_problem(models::mlp({.batch = 64}), tight, ten, scarce), seed, support::cases(500u));
        }
}

TEST_CASE("problem: what it prices with ends within an evaluation") {
    std::stop_source source;
    auto const p = make_problem(two_layers(), support::mesh(4), ten);
    auto const ending = p.until(source.get_token());
    auto const s = data_parallel(p);
    auto evaluator = ending.evaluator();
    auto simulator = ending.simulator();
    CHECK(evaluator(s) == p.evaluator()(s));
    CHECK(simulator(s) == p.evaluator()(s));
    source.request_stop();
    auto const other = one_weird_trick(p);
    CHECK_THROWS_AS(evaluator(other), interrupted);
    CHECK_THROWS_AS(simulator(other), interrupted);
    CHECK_THROWS_AS(static_cast<void>(ending.evaluator().bounds(ending.space())), interrupted);
    CHECK_THROWS_AS(static_cast<void>(ending.surrogate()), interrupted);
    CHECK(with_graph(ending, two_layers()).size() == p.size());
    CHECK_THROWS_AS(with_graph(ending, two_layers()).evaluator()(s), interrupted);
    CHECK(ending.handle(0) == p.handle(0));
    CHECK(ending.anywhere().device(3) == p.device(3));
    CHECK(with_topology(p, support::mesh(4), ten).evaluator()(s) == p.evaluator()(s));
    CHECK_THROWS_AS(with_topology(ending, support::mesh(4), ten).evaluator()(s), interrupted);
    std::mt19937_64 rng{1};
    CHECK_THROWS_AS(search::mcmc(ending, s, rng, {.evaluations = 10}), interrupted); // its start has no price
}
