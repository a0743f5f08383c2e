#include <parsearch/rewrite/mapping/operator_views.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/ops/embedding.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/cases.hpp"
#include "support/random_network.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {

graph::operator_graph layer() {
    graph::operator_graph g;
    g.add("fc", ops::linear{.out = 64}, g.input("x", {{64, 64}}));
    return g;
}
auto problem_of(graph::operator_graph const& model, std::uint32_t nodes, std::uint32_t each) {
    auto const cluster = topology::nodes({.count = nodes, .gpus_per_node = each, .device = topology::v100_sxm});
    return make_problem(model, cluster, cost::roofline(cluster));
}
/// How many views use each number of cells.
std::map<std::int32_t, int> sizes(machine_grid const& grid, std::vector<space::configuration> const& views) {
    std::map<std::int32_t, int> out;
    for (auto const& v : views) {
        auto const box = grid.footprint(v);
        ++out[box.nodes * box.devices];
    }
    return out;
}

} // namespace

TEST_CASE("operator views: on every box of divisors, the largest first, all starts of one size or none") {
    auto const p = problem_of(layer(), 2, 4);
    machine_grid const grid(p.topology(), 8);
    auto const& op = p.graph().operations[1];
    auto const views = [&](std::size_t limit, std::size_t per_box) { return operator_views(op, p.space().of(1), grid, limit, per_box); };
    // Data parallelism over all 8; 2 nodes; on 2 nodes x 1 device: 4 starts; on 1 x 2: 4 starts; single devices. 2 x 2 is no stride.
    CHECK(sizes(grid, views(100, 1)) == std::map<std::int32_t, int>{{8, 1}, {4, 2}, {2, 8}, {1, 8}});
    CHECK(sizes(grid, views(18, 1)) == std::map<std::int32_t, int>{{8, 1}, {4, 2}, {2, 8}});
    CHECK(sizes(grid, views(6, 1)) == std::map<std::int32_t, int>{{8, 1}, {4, 2}});
    CHECK(sizes(grid, views(2, 1)) == std::map<std::int32_t, int>{{8, 1}});
    auto const more = sizes(grid, views(100, 3));
    CHECK(more.at(8) == 3);
    CHECK(more.at(4) == 6);
    CHECK(more.at(1) == 8); // there is one way to be whole
    CHECK(views(1, 3) == std::vector{space::data_parallel(p.graph(), 8)[1]});
    // Those asked for come behind the first, within the limit.
    auto const odd = space::whole(op, 5);
    std::vector<space::configuration> const also{odd, space::data_parallel(p.graph(), 8)[1], odd};
    auto const with = operator_views(op, p.space().of(1), grid, 3, 1, also);
    CHECK(with.size() == 2); // two halves are one too many
    CHECK(with[1] == odd);
    CHECK(support::refusal([&] { return views(0, 1); }) == "operator views: at most 0 of an operator, 1 on a box: both must be at least 1");
    CHECK_FALSE(support::refusal([&] { return views(1, 0); }).empty());
}

TEST_CASE("operator views: tables that are looked up come on single devices first") {
    graph::operator_graph g;
    g.add("table", ops::embedding{.entries = 64, .features = 64}, g.input("indices", {{64, 2}, ops::dtype::i64}));
    auto const p = problem_of(g, 1, 4);
    machine_grid const grid(p.topology(), 4);
    auto const views = operator_views(p.graph().operations[1], p.space().of(1), grid, 5, 1);
    CHECK(sizes(grid, views) == std::map<std::int32_t, int>{{4, 1}, {1, 4}});
}

TEST_CASE("operator views: legal, different, and within the limit") {
    std::mt19937_64 rng(12);
    std::size_t on_parts = 0;
    for (int n = 0; n < support::cases(150); ++n) {
        std::uint32_t const nodes = 1 + static_cast<std::uint32_t>(uniform_index(rng, 3)),
                            each = 2 * (1 + static_cast<std::uint32_t>(uniform_index(rng, 3)));
        auto const p = problem_of(support::random_network(rng, 5), nodes, each);
        machine_grid const grid(p.topology(), 1 + uniform_index(rng, 18));
        auto const plain = space::data_parallel(p.graph(), p.topology().size());
        for (std::size_t op = 0; op < p.size(); ++op) {
            auto const limit = 1 + uniform_index(rng, 30);
            auto const views = operator_views(p.graph().operations[op], p.space().of(op), grid, limit, 1 + uniform_index(rng, 3));
            CHECK(views.size() <= limit);
            CHECK(views.front() == plain[op]);
            for (std::size_t v = 0; v < views.size(); ++v) {
                CHECK(std::count(views.begin(), views.end(), views[v]) == 1);
                CHECK_NOTHROW(space::validate(views[v], p.graph().operations[op], p.topology().size(), "view"));
                if (v > 0) CHECK(p.space().of(op).contains(views[v]));
                on_parts += grid.footprint(views[v]) != grid.machine();
            }
        }
    }
    CHECK(on_parts > support::cases(500u));
}
