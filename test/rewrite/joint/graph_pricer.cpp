#include <parsearch/rewrite/joint/graph_pricer.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/dlrm.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/space/likely_configurations.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/random_problem.hpp"

namespace ps = parsearch;
using ps::rewrite::graph_price;
using ps::rewrite::graph_pricer;
using ps::rewrite::graph_pricer_options;

namespace {

/// Candidates of each operator, and the cost of any choice of them, straight from the definition.
template <class P> struct naive_prices {
    using terms_type = ps::surrogate_terms;
    P problem;
    terms_type terms;
    std::vector<std::vector<ps::space::configuration>> candidates;
    double share = 1, share_of_node = 1;
    ps::space::flat_strategy placed;

    naive_prices(P const& p, std::size_t limit, std::size_t per_node) : problem(p), terms(p.workload()), placed(ps::table_parallel(p)) {
        auto const& g = p.graph();
        std::vector<double> device(p.topology().size(), 0), node(p.topology().size(), 0);
        double total = 0;
        for (std::size_t op = 0; op < g.size(); ++op) {
            auto const& operation = g.operations[op];
            auto list = ps::space::likely_configurations(operation, p.space().of(op), p.topology().size(), {.limit = limit, .per_node = per_node});
            if (looks_up(operation)) {
                if (list.size() > 1) std::erase(list, ps::space::whole(operation));
                for (auto& c : list) { // parts of the table far apart
                    auto const step = static_cast<std::int64_t>(p.topology().size()) / c.shards();
                    if (c.shards() > 1 && step > 1 && c.device(1) == step && c.device(c.shards() - 1) == step * (c.shards() - 1))
                        c.start = static_cast<std::int32_t>(placed[op].start % step);
                }
                if (std::find(list.begin(), list.end(), placed[op]) == list.end()) list.push_back(placed[op]);
                auto const d = static_cast<std::size_t>(placed[op].start);
                auto const bytes = static_cast<double>(ps::ops::bytes_of(operation.weights[0]));
                device[d] += bytes;
                node[p.topology().node[d]] += bytes;
                total += bytes;
            }
            candidates.push_back(std::move(list));
        }
        if (total > 0) {
            share = *std::max_element(device.begin(), device.end()) / total;
            share_of_node = *std::max_element(node.begin(), node.end()) / total;
        }
    }

    std::int64_t cost(ps::space::flat_strategy const& s, ps::rewrite::counted_synchronisation const& synchronisation) {
        auto const& g = problem.graph();
        auto const part = [](double of, ps::picoseconds t) { return static_cast<std::int64_t>(of * static_cast<double>(t.count())); };
        std::int64_t sum = 0;
        double all = 0, before = 0;
        auto const plain = ps::data_parallel(problem);
        for (std::uint32_t op = 0; op < g.size(); ++op) all += static_cast<double>(terms.of_operator(op, plain[op]).work.count());
        for (auto const op : g.order) {
            double const counted = before < synchronisation.first * all ? 1 : synchronisation.share;
            before += static_cast<double>(terms.of_operator(op, plain[op]).work.count());
            auto const t = terms.of_operator(op, s[op]);
            bool const beside = looks_up(g.operations[op]) && s[op] == placed[op];
            sum += (beside ? part(share, t.work) : t.work.count()) + part(counted, t.synchronisation);
        }
        for (std::uint32_t n = 0; n < g.edges.size(); ++n) {
            auto const& e = g.edges[n];
            auto const t = terms.of_edge(n, s[e.producer], s[e.consumer]);
            sum += looks_up(g.operations[e.producer]) && s[e.producer] == placed[e.producer] ? part(share_of_node, t) : t.count();
        }
        return sum;
    }

    /// The least of all choices; negative where there are too many.
    std::int64_t least(ps::rewrite::counted_synchronisation const& synchronisation) {
        double choices = 1;
        for (auto const& list : candidates) choices *= static_cast<double>(list.size());
        if (choices > 3000) return -1;
        std::int64_t best = std::numeric_limits<std::int64_t>::max();
        std::vector<std::size_t> at(candidates.size(), 0);
        for (bool more = true; more;) {
            ps::space::flat_strategy s;
            for (std::size_t op = 0; op < at.size(); ++op) s.push_back(candidates[op][at[op]]);
            best = std::min(best, cost(s, synchronisation));
            more = false;
            for (std::size_t op = at.size(); op-- > 0 && !more;) {
                more = ++at[op] < candidates[op].size();
                if (!more) at[op] = 0;
            }
        }
        return best;
    }
};

std::size_t devices_of_first_node(ps::topology::dense_topology const& t) {
    return static_cast<std::size_t>(std::count(t.node.begin(), t.node.end(), t.node.front()));
}

/// Six linear layers of one tensor, and the sum of each two: every two layers' choices meet.
ps::graph::operator_graph crossed() {
    ps::graph::operator_graph g;
    auto const x = g.input("x", {{48, 96}});
    std::vector<ps::graph::tensor_ref> layers;
    for (int n = 0; n < 6; ++n) layers.push_back(g.add(ps::text("fc", n), ps::ops::linear{.out = 96, .bias = n % 2 == 0}, x));
    for (std::size_t a = 0; a < layers.size(); ++a)
        for (std::size_t b = a + 1; b < layers.size(); ++b) g.add(ps::text("sum", a, b), ps::ops::add{}, layers[a], layers[b]);
    return g;
}

} // namespace

TEST_CASE("a price is the least over the candidates: compared with all of them") {
    int compared = 0;
    for (std::uint64_t seed = 1; seed <= support::cases(60u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const options = support::random_options(rng);
        auto const problem = support::random_problem(rng, options, {.devices = seed % 2 ? 4u : 2u, .operators = 4});
        std::size_t const limit = 2 + seed % 3;
        ps::rewrite::counted_synchronisation const shares[] = {{}, {.share = 0.5}, {.share = 0, .first = 0.5}};
        auto const share = shares[seed % 3];
        naive_prices<std::remove_const_t<decltype(problem)>> naive(problem, limit, devices_of_first_node(problem.topology()));
        graph_pricer pricer(problem, {.candidates = limit, .synchronisation = share});
        auto const found = pricer.price(problem.graph());
        REQUIRE(found.strategy.size() == problem.size());
        CHECK(found.cost.count() == naive.cost(found.strategy, share));
        CHECK(found.optimal);
        CHECK(found.lower_bound == found.cost);
        for (std::size_t op = 0; op < problem.size(); ++op)
            CHECK(std::find(naive.candidates[op].begin(), naive.candidates[op].end(), found.strategy[op]) != naive.candidates[op].end());
        auto const least = naive.least(share);
        if (least < 0) continue;
        CHECK(found.cost.count() == least);
        ++compared;
    }
    CHECK(compared >= support::cases(20));
}

TEST_CASE("a price does not depend on what was priced before, nor on what is remembered") {
    for (std::uint64_t seed = 1; seed <= support::cases(8u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const options = support::random_options(rng);
        auto const base = support::random_problem(rng, options, {.devices = 6, .operators = 3, .nodes = 2});
        std::vector<ps::graph::dense_graph> graphs;
        for (int n = 0; n < 12; ++n) graphs.push_back(ps::graph::read_graph(support::random_network(rng, 8)).graph);
        std::vector<graph_price> alone;
        for (auto const& g : graphs) alone.push_back(graph_pricer(base).price(g));
        graph_pricer large(base), small(base, {.remembered_bytes = 20'000}), none(base, {.remembered_bytes = 0});
        for (int n = 0; n < 60; ++n) {
            auto const at = static_cast<std::size_t>(ps::uniform_index(rng, graphs.size()));
            CHECK(large.price(graphs[at]) == alone[at]);
            CHECK(small.price(graphs[at]) == alone[at]);
            CHECK(none.price(graphs[at]) == alone[at]);
            CHECK(small.remembered() <= 20'000);
            CHECK(none.remembered() == 0);
        }
        CHECK(large.tables_made() < small.tables_made());
        CHECK(small.tables_made() < none.tables_made());
        for (auto const& g : graphs) (void)large.price(g); // some may not have been drawn
        auto const made = large.tables_made();
        for (auto const& g : graphs) (void)large.price(g);
        CHECK(large.tables_made() == made);
    }
}

TEST_CASE("a graph that differs in one operator takes the tables of that operator and its edges") {
    auto const cluster = ps::topology::nodes({.count = 2, .gpus_per_node = 4, .device = ps::topology::v100_sxm});
    std::vector<std::int64_t> hidden(8, 512);
    auto const net = [&] { return ps::graph::read_graph(ps::models::mlp({.features = 512, .hidden = hidden, .batch = 64})).graph; };
    auto const problem = ps::make_problem(ps::models::mlp({.features = 512, .hidden = hidden, .batch = 64}), cluster, ps::cost::roofline{cluster});
    graph_pricer pricer(problem);
    (void)pricer.price(net());
    auto const before = pricer.tables_made();
    hidden[4] = 1024;
    auto const changed = pricer.price(net());
    CHECK(pricer.tables_made() - before <= 3 + 4); // two layers and a relu, and the edges at their ends
    CHECK(changed == graph_pricer(problem).price(net()));
}

TEST_CASE("where elimination does not fit, a bound and a strategy no worse than data parallelism") {
    auto const cluster = ps::topology::nodes({.count = 2, .gpus_per_node = 12, .device = ps::topology::v100_sxm});
    auto const problem = ps::make_problem(crossed(), cluster, ps::cost::roofline{cluster});
    auto const exact = graph_pricer(problem, {.synchronisation = {.share = 0.5}}).price(problem.graph());
    CHECK(exact.optimal);
    for (std::uint64_t const effort : {0u, 40u, 4000u}) {
        CAPTURE(effort);
        graph_pricer_options const options{.synchronisation = {.share = 0.5}, .table_bytes = 1 << 20, .effort = effort};
        auto const found = graph_pricer(problem, options).price(problem.graph());
        CHECK(found.lower_bound <= exact.cost);
        CHECK(found.cost >= exact.cost);
        CHECK(found.optimal == (found.cost == found.lower_bound));
        CHECK(found == graph_pricer(problem, options).price(problem.graph()));
        if (effort == 0) {
            CHECK(!found.optimal);
            CHECK(found.strategy == ps::data_parallel(problem));
        } else {
            CHECK(found.lower_bound > ps::picoseconds::zero());
        }
    }
}

TEST_CASE("with a memory limit the answer fits it, by the simulator's account") {
    auto const cluster = ps::topology::nodes({.count = 2, .gpus_per_node = 4, .device = ps::topology::v100_sxm});
    // Weights are most of the memory, and synchronising them costs nothing: data parallelism is wanted unless they must be split.
    auto const problem = ps::make_problem(ps::models::mlp({.features = 4096, .hidden = {4096, 4096, 4096}, .batch = 1 << 12}), cluster,
                                          ps::cost::roofline{cluster}, {.simulation = {.memory = ps::sim::memory_policy::ignore}});
    auto simulator = problem.simulator();
    auto const needed = [&](ps::space::flat_strategy const& s) {
        (void)simulator(s);
        return ps::sim::most_memory(simulator.memory());
    };
    auto const free = graph_pricer(problem, {.synchronisation = {.share = 0}}).price(problem.graph());
    auto const plenty = needed(free.strategy);
    auto const roomy = graph_pricer(problem, {.synchronisation = {.share = 0}, .memory_limit = plenty}).price(problem.graph());
    CHECK(roomy.strategy == free.strategy);
    CHECK(roomy.memory == plenty);
    CHECK(roomy.fits);
    CHECK(roomy.optimal);
    int tighter = 0;
    for (int percent : {99, 80, 60, 40}) {
        CAPTURE(percent);
        auto const limit = plenty / 100 * percent;
        auto const found = graph_pricer(problem, {.synchronisation = {.share = 0}, .memory_limit = limit}).price(problem.graph());
        CHECK(found.memory == needed(found.strategy));
        CHECK(found.fits == (found.memory <= limit));
        CHECK(found.lower_bound == free.cost);
        if (!found.fits) continue;
        CHECK(found.cost > free.cost);
        ++tighter;
    }
    CHECK(tighter >= 3);
    auto const never = graph_pricer(problem, {.synchronisation = {.share = 0}, .memory_limit = 1}).price(problem.graph());
    CHECK(!never.fits);
    CHECK(never.memory == needed(never.strategy));
    CHECK(never.memory <= plenty);
}

TEST_CASE("tables of a recommendation model are spread") {
    auto const cluster = ps::topology::summit(1);
    ps::models::dlrm_options const options{
        .dense = 64, .bottom = {64}, .tables = std::vector<std::int64_t>(6, 1'000'000), .features = 64, .bag = 10, .top = {64}, .batch = 6 * 256};
    auto const problem = ps::make_problem(ps::models::dlrm(options), cluster, ps::cost::roofline{cluster});
    auto const found = graph_pricer(problem).price(problem.graph());
    auto evaluate = problem.evaluator();
    std::vector<bool> used(problem.topology().size(), false);
    for (std::size_t op = 0; op < problem.size(); ++op)
        if (looks_up(problem.graph().operations[op])) {
            CHECK(found.strategy[op].shards() == 1);
            used[static_cast<std::size_t>(found.strategy[op].start)] = true;
        }
    CHECK(std::find(used.begin(), used.end(), false) == used.end());
    CHECK(evaluate(found.strategy) < evaluate(ps::data_parallel(problem)));
}

TEST_CASE("a pricer refuses options out of range") {
    std::mt19937_64 rng{1};
    auto const problem = support::random_problem(rng, {}, {});
    auto const make = [&](graph_pricer_options const& o) { (void)graph_pricer(problem, o); };
    CHECK_THROWS_WITH_AS(make({.candidates = 0}), "graph_pricer option candidates is 0: must be at least 1", ps::invalid_input);
    CHECK_THROWS_WITH_AS(make({.synchronisation = {.share = 1.5}}), "graph_pricer option synchronisation.share is 1.5: must be from 0 to 1",
                         ps::invalid_input);
    CHECK_THROWS_AS(make({.synchronisation = {.share = std::numeric_limits<double>::quiet_NaN()}}), ps::invalid_input);
    CHECK_THROWS_WITH_AS(make({.synchronisation = {.first = -1}}), "graph_pricer option synchronisation.first is -1: must be from 0 to 1",
                         ps::invalid_input);
    CHECK_THROWS_WITH_AS(make({.memory_limit = 0}), "graph_pricer option memory_limit is 0 bytes: must be at least 1", ps::invalid_input);
    CHECK_THROWS_WITH_AS(make({.table_bytes = 1000}), "graph_pricer option table_bytes is 1000: must be at least 1048576 (1 MiB)", ps::invalid_input);
    CHECK_THROWS_AS((void)graph_pricer(problem).price(problem.graph(), {.share = -1}), ps::invalid_input);
}
