#include <parsearch/rewrite/joint/operator_mapping.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/models/candle_uno.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/rewrite/mapping/operator_views.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/has_n.hpp"
#include "support/random_problem.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {

/// `support::mixed_oracle` on links that are faster by a factor.
struct fast_links {
    std::int64_t faster = 1;
    support::mixed_oracle of{};
    [[nodiscard]] picoseconds shard_time(ops::shard_work const& w, std::uint32_t device) const { return of.shard_time(w, device); }
    [[nodiscard]] picoseconds transfer_time(byte_count bytes, link_description const& link) const { return of.transfer_time(bytes, link) / faster; }
    [[nodiscard]] picoseconds collective_time(collective_kind kind, byte_count bytes, collective_group const& group) const {
        return of.collective_time(kind, bytes, group) / faster;
    }
};

/// The same tasks, views and costs, straight from the terms of operators and edges, and nothing said of what is alike.
template <class P> struct plain_mapping {
    struct view {
        space::configuration configuration;
        resource_box box;
    };
    using terms_type = surrogate_terms;
    resource_box all;
    std::vector<std::vector<view>> choices; // by task
    std::vector<std::uint32_t> operators;
    std::vector<graph::task_edge> links;
    std::vector<std::vector<picoseconds>> own;
    std::vector<std::vector<picoseconds>> moves; // by edge, row major

    plain_mapping(P const& p, machine_grid const& grid, std::vector<surrogate_tables::choices> const& lists, counted_synchronisation const& counted)
        : all(grid.machine()) {
        auto const& g = p.graph();
        terms_type terms(p.workload());
        double whole = 0, before = 0;
        for (std::uint32_t op = 0; op < g.size(); ++op) whole += static_cast<double>(terms.of_operator(op, lists[op]->front()).work.count());
        std::vector<std::uint32_t> task(g.size(), 0);
        std::vector<double> share(g.size());
        for (auto const op : g.order) {
            double const volatile end = counted.first * whole;
            share[op] = before < end ? 1 : counted.share;
            before += static_cast<double>(terms.of_operator(op, lists[op]->front()).work.count());
        }
        for (std::uint32_t op = 0; op < g.size(); ++op) {
            if (g.operations[op].work == ops::work_class::source) continue;
            task[op] = static_cast<std::uint32_t>(operators.size());
            operators.push_back(op);
            choices.emplace_back();
            own.emplace_back();
            for (auto const& c : *lists[op]) {
                choices.back().push_back({c, grid.footprint(c)});
                auto const t = terms.of_operator(op, c);
                double const volatile sync = share[op] * static_cast<double>(t.synchronisation.count());
                own.back().push_back(t.work + picoseconds{static_cast<std::int64_t>(sync)});
            }
        }
        for (std::uint32_t n = 0; n < g.edges.size(); ++n) {
            auto const& e = g.edges[n];
            if (g.operations[e.producer].work == ops::work_class::source) continue;
            links.emplace_back(task[e.producer], task[e.consumer]);
            moves.push_back(terms.of_edge(n, *lists[e.producer], *lists[e.consumer]));
        }
    }
    resource_box machine() const { return all; }
    std::size_t tasks() const { return choices.size(); }
    std::vector<graph::task_edge> const& edges() const { return links; }
    std::vector<view> const& views(std::size_t t) const { return choices[t]; }
    bool fits(std::size_t, view const& v, resource_box const& box) const { return box.contains(v.box); }
    picoseconds task_cost(std::size_t t, view const& v) const { return own[t][number(t, v)]; }
    picoseconds edge_cost(std::size_t e, view const& a, view const& b) const {
        return moves[e][number(links[e].first, a) * choices[links[e].second].size() + number(links[e].second, b)];
    }

  private:
    std::size_t number(std::size_t t, view const& v) const {
        return static_cast<std::size_t>(std::ranges::find(choices[t], v.configuration, &view::configuration) - choices[t].begin());
    }
};

/// Data parallelism and some of the views of each operator, different; half of the time only those that leave some of the machine free.
template <class P> std::vector<surrogate_tables::choices> few_views(std::mt19937_64& rng, P const& p, machine_grid const& grid, std::size_t most) {
    std::vector<surrogate_tables::choices> out;
    bool const on_parts = bernoulli(rng, 0.5);
    for (std::size_t op = 0; op < p.size(); ++op) {
        auto all = operator_views(p.graph().operations[op], p.space().of(op), grid, 64, 3);
        if (on_parts)
            all.erase(std::remove_if(all.begin() + 1, all.end(), [&](auto const& c) { return grid.footprint(c) == grid.machine(); }), all.end());
        for (auto i = all.size(); i > 2; --i) std::swap(all[i - 1], all[1 + uniform_index(rng, i - 1)]);
        all.resize(std::min(all.size(), 1 + uniform_index(rng, most)));
        out.push_back(std::make_shared<std::vector<space::configuration> const>(std::move(all)));
    }
    return out;
}

template <class M> auto v100s(M const& model, std::uint32_t nodes, std::uint32_t each) {
    auto const cluster = topology::nodes({.count = nodes, .gpus_per_node = each, .device = topology::v100_sxm});
    return make_problem(model, cluster, cost::roofline(cluster), {.simulation = {.memory = sim::memory_policy::ignore}});
}

} // namespace

TEST_CASE("operator mapping: the least time of all views, on random graphs, series-parallel or not") {
    constexpr std::uint64_t seed = 77;
    MESSAGE("seed ", seed);
    int parallel = 0, in_part = 0, not_series_parallel = 0, done = 0;
    for (int n = 0; done < support::cases(1200); ++n) {
        std::mt19937_64 rng(seed + static_cast<std::uint64_t>(n));
        bool const two_nodes = bernoulli(rng, 0.5);
        auto const p = support::random_problem(rng, support::random_options(rng),
                                               {.devices = 4, .operators = 8, .kinds = bernoulli(rng, 0.3), .nodes = two_nodes ? 2u : 1u},
                                               fast_links{bernoulli(rng, 0.3) ? 1 : 100});
        machine_grid const grid(p.topology(), bernoulli(rng, 0.8) ? 4 : 2);
        auto const lists = few_views(rng, p, grid, 2 + uniform_index(rng, 2));
        counted_synchronisation const counted{.share = static_cast<double>(uniform_index(rng, 3)) / 2,
                                              .first = static_cast<double>(uniform_index(rng, 3)) / 2};
        double assignments = 1;
        for (auto const& list : lists) assignments *= static_cast<double>(list->size());
        if (assignments > 256) continue;
        plain_mapping const plain(p, grid, lists, counted);
        bool const has_n = support::has_n(plain.tasks(), plain.links);
        if (!has_n && !bernoulli(rng, 0.15)) continue; // of those that are series-parallel there are many
        ++done;
        CAPTURE(n);
        graph_pricer pricer(p);
        operator_mapping const model(grid, p.graph(), pricer.costs(p.graph(), lists, counted));
        REQUIRE(model.edges() == plain.links);
        auto const tree = decompose(model);
        not_series_parallel += has_n;
        for (auto const& part : tree.parts) parallel += part.kind == graph::composition::parallel;
        auto const found = machine_mapping(model);
        auto least = cost_traits<picoseconds>::infinity();
        std::vector<std::uint32_t> views(model.tasks(), 0);
        for (bool more = true; more;) {
            least = std::min(least, mapping_time(plain, tree, views));
            more = false;
            for (std::size_t t = 0; t < views.size() && !more; ++t) {
                more = ++views[t] < model.views(t).size();
                if (!more) views[t] = 0;
            }
        }
        REQUIRE(found.cost == least);
        REQUIRE(mapping_time(plain, tree, found.views) == least);
        auto const strategy = model.strategy(found.views);
        for (std::size_t t = 0; t < model.tasks(); ++t) {
            REQUIRE(strategy[model.operator_of(t)] == plain.choices[t][found.views[t]].configuration);
            REQUIRE(found.boxes[t].contains(plain.choices[t][found.views[t]].box));
            in_part += found.boxes[t] != grid.machine();
        }
    }
    MESSAGE(parallel, " parallel compositions, ", in_part, " operators on a part of the machine, ", not_series_parallel,
            " graphs that are not series-parallel");
    CHECK(parallel > support::cases(1000));
    CHECK(in_part > support::cases(150));
    CHECK(not_series_parallel > support::cases(300));
}

TEST_CASE("operator mapping: what is alike changes nothing but the time that it takes") {
    // Equal nodes: boxes are alike. A slower link: they are not.
    auto const p = v100s(models::candle_uno({.batch = 64}), 2, 4);
    machine_grid const grid(p.topology(), 8);
    graph_pricer pricer(p);
    std::vector<surrogate_tables::choices> lists;
    for (std::size_t op = 0; op < p.size(); ++op)
        lists.push_back(
            std::make_shared<std::vector<space::configuration> const>(operator_views(p.graph().operations[op], p.space().of(op), grid, 24, 2)));
    operator_mapping const model(grid, p.graph(), pricer.costs(p.graph(), lists, {}));
    auto const classes = [](operator_mapping const& m) {
        std::set<std::uint32_t> seen;
        for (std::int32_t n = 0; n < 2; ++n)
            for (std::int32_t d = 0; d < 4; ++d) seen.insert(m.box_class({.first_node = n, .nodes = 1, .first_device = d, .devices = 1}));
        return seen.size();
    };
    CHECK(classes(model) == 1);
    std::set<std::uint32_t> tasks, edges;
    for (std::size_t t = 0; t < model.tasks(); ++t) tasks.insert(model.task_class(t));
    for (std::size_t e = 0; e < model.edges().size(); ++e) edges.insert(model.edge_class(e));
    CHECK(tasks.size() < model.tasks() / 2);
    CHECK(edges.size() < model.edges().size() / 2);

    struct unclassed { // without classes
        operator_mapping const& m;
        resource_box machine() const { return m.machine(); }
        std::size_t tasks() const { return m.tasks(); }
        std::vector<graph::task_edge> const& edges() const { return m.edges(); }
        std::vector<operator_mapping::view> const& views(std::size_t t) const { return m.views(t); }
        bool fits(std::size_t t, operator_mapping::view const& v, resource_box const& box) const { return m.fits(t, v, box); }
        picoseconds task_cost(std::size_t t, operator_mapping::view const& v) const { return m.task_cost(t, v); }
        picoseconds edge_cost(std::size_t e, operator_mapping::view const& a, operator_mapping::view const& b) const { return m.edge_cost(e, a, b); }
    };
    auto const with = machine_mapping(model), without = machine_mapping(unclassed{model});
    CHECK(with.cost == without.cost);
    CHECK(with.cost == mapping_time(unclassed{model}, decompose(model), with.views));

    std::mt19937_64 rng(5);
    int different = 0;
    for (int n = 0; n < support::cases(120); ++n) { // devices of two kinds, links of a line
        auto const q =
            support::random_problem(rng, support::random_options(rng), {.devices = 6, .operators = 9, .kinds = bernoulli(rng, 0.5), .nodes = 1});
        machine_grid const line(q.topology(), 6);
        graph_pricer prices(q);
        operator_mapping const m(line, q.graph(), prices.costs(q.graph(), few_views(rng, q, line, 30), {}));
        auto const a = machine_mapping(m), b = machine_mapping(unclassed{m});
        CHECK(a.cost == b.cost);
        CHECK(mapping_time(unclassed{m}, decompose(m), a.views) == a.cost);
        different += m.box_class({.devices = 2}) != m.box_class({.first_device = 1, .devices = 2});
    }
    CHECK(different > 0);
}

TEST_CASE("map_operators: two heavy branches that can not be split run side by side") {
    // Extents without divisors: each layer is whole, on some device.
    graph::operator_graph g;
    auto const x = g.input("x", {{1, 4099}});
    auto const left = g.add("left", ops::linear{.out = 4099}, x), right = g.add("right", ops::linear{.out = 4099}, x);
    g.add("sum", ops::add{}, left, right);
    auto const p = v100s(g, 1, 2);
    graph_pricer pricer(p);
    auto const found = map_operators(pricer, p.graph());
    CHECK(found.refused.empty());
    CHECK(found.strategy[1].start != found.strategy[2].start);
    auto const price = pricer.price(p.graph());
    CHECK(price.strategy[1].start == price.strategy[2].start); // the sum over operators can not tell
    CHECK(found.cost < price.cost);
    auto evaluate = p.evaluator();
    CHECK(evaluate(found.strategy).count() < evaluate(price.strategy).count() * 6 / 10);
}

TEST_CASE("map_operators: strategies of models are legal, simulated, the same each time, and no worse than those given") {
    auto const check = [](auto const& p, std::size_t parts) {
        graph_pricer pricer(p);
        std::vector<space::flat_strategy> const also{pricer.price(p.graph()).strategy};
        auto const found = map_operators(pricer, p.graph(), {}, also);
        REQUIRE(found.strategy.size() == p.size());
        for (std::size_t op = 0; op < p.size(); ++op) {
            CHECK_NOTHROW(space::validate(found.strategy[op], p.graph().operations[op], p.topology().size(), "mapped"));
            bool const legal =
                p.space().of(op).contains(found.strategy[op]) || found.strategy[op] == space::data_parallel(p.graph(), p.topology().size())[op];
            CHECK(legal);
        }
        CHECK(found.cost <= pricer.price(p.graph()).cost); // all on all devices, one after the other
        CHECK(p.evaluator()(found.strategy) < cost_traits<picoseconds>::infinity());
        auto const made = pricer.tables_made();
        auto const again = map_operators(pricer, p.graph(), {}, also);
        CHECK(pricer.tables_made() == made); // prices are remembered
        CHECK(again.strategy == found.strategy);
        CHECK(again.cost == found.cost);
        CHECK(again.steps == found.steps);
        machine_grid const grid(p.topology(), operator_mapping_options{}.cells);
        auto const in_part =
            static_cast<std::size_t>(std::ranges::count_if(found.strategy, [&](auto const& c) { return grid.footprint(c) != grid.machine(); }));
        CHECK(in_part >= parts);
    };
    check(v100s(models::candle_uno({.batch = 64}), 2, 4), 10); // towers side by side
    check(v100s(models::mlp(), 3, 2), 0);
    check(v100s(models::inception_v3({.batch = 8}), 1, 2), 0);
}

TEST_CASE("map_operators: fewer views where limits are passed, a reason where none are few enough, and bad options are refused") {
    auto const p = v100s(models::candle_uno({.batch = 64}), 2, 4);
    graph_pricer pricer(p);
    auto const map = [&](operator_mapping_options const& o, std::vector<space::flat_strategy> const& also = {}) {
        return map_operators(pricer, p.graph(), o, also);
    };
    auto const all = map({.limits = {}});
    CHECK(all.refused.empty());
    CHECK(all.views == 32);
    auto const fewer = map({.limits = {.effort = all.steps / 2}});
    REQUIRE_FALSE(fewer.strategy.empty());
    CHECK(fewer.views < 32);
    CHECK(fewer.refused.find("more steps than the ") != std::string::npos);
    CHECK(fewer.cost >= all.cost);
    auto const none = map({.limits = {.table_limit = 2}});
    CHECK(none.strategy.empty());
    CHECK(none.views == 4);
    CHECK(none.refused.find("'table_limit' allows 2") != std::string::npos);
    auto const stopped = map({.limits = {.stopped = [] { return true; }}});
    CHECK(stopped.strategy.empty());
    CHECK(stopped.views == 32); // not tried again
    CHECK(stopped.refused == "machine mapping: stopped before it was done");
    auto const refusal = [&](operator_mapping_options const& o) { return support::refusal([&] { return map(o); }); };
    CHECK(refusal({.views = 0}) == "operator mapping: option 'views' is 0: must be at least 1");
    CHECK(refusal({.per_box = 0}) == "operator mapping: option 'per_box' is 0: must be at least 1");
    CHECK(refusal({.cells = 0}) == "operator mapping: option 'cells' is 0: must be at least 1");
    CHECK(refusal({.synchronisation = {.share = 2}}).find("synchronisation.share is 2") != std::string::npos);
    CHECK(refusal({.limits = {.free_branches = 1}}).find("free_branches") != std::string::npos);
    CHECK(support::refusal([&] { return map({}, {space::flat_strategy{}}); }).find("operator mapping: a strategy of 0 configurations for ") == 0);
    CHECK(support::refusal([&] { return pricer.costs(p.graph(), {}, {}); }).find("graph_pricer: 0 lists of configurations for ") == 0);
    std::vector<surrogate_tables::choices> const empty(p.size());
    CHECK(support::refusal([&] { return pricer.costs(p.graph(), empty, {}); }).find("has no configuration: must have at least one") !=
          std::string::npos);
}
