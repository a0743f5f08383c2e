#include <parsearch/space/coarsening.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/models/all_models.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/space/propagate.hpp>

using namespace parsearch;

namespace {
using members = std::vector<std::uint32_t>;

std::vector<members> groups_of(space::coarsening const& c, std::size_t level) {
    std::vector<members> out;
    for (auto const group : c.level(level)) out.emplace_back(c.members(group).begin(), c.members(group).end());
    return out;
}
} // namespace

TEST_CASE("coarsening: what shares parameters, then what computes the same, then neighbours between which most bytes go") {
    graph::operator_graph net;
    auto x = net.add("a", ops::linear{.out = 8, .parameter = "w"}, net.input("x", {{8, 8}}));
    x = net.add("b", ops::linear{.out = 8, .parameter = "w"}, x);
    x = net.add("c", ops::linear{.out = 8}, x);
    x = net.add("relu", ops::relu{}, x);
    x = net.add("last", ops::linear{.out = 4}, x);
    net.add("end", ops::relu{}, x);
    auto const g = graph::read_graph(net).graph;
    space::strategy_space const all(g, 4);
    space::coarsening groups(g, all);
    REQUIRE(groups.levels() == 4);
    CHECK(groups_of(groups, 3) == std::vector<members>{{1, 2}});
    CHECK(groups_of(groups, 2) == std::vector<members>{{1, 2, 3}});
    CHECK(groups_of(groups, 1) == std::vector<members>{{1, 2, 3, 4}, {5, 6}}); // 8 x 8 from c to relu, and to last; then 8 x 4
    CHECK(groups_of(groups, 0) == std::vector<members>{{1, 2, 3, 4, 5, 6}});
    CHECK(groups.size() == 5);
    auto const all_of_them = groups.level(0)[0];
    CHECK(groups.leader(all_of_them) == 1);
    CHECK(groups.choices(all_of_them) == all.of(1).size());

    // Data parallelism of the leader is that of all.
    auto split = space::whole(g.operations[1], 2);
    split.degree[0] = 2;
    split.stride[0] = 1;
    std::uint64_t index = 0;
    while (!(all.of(1)[index] == split)) ++index;
    std::vector<change<space::configuration>> changes;
    groups.changes(all_of_them, index, changes);
    REQUIRE(changes.size() == 6);
    CHECK(changes[0].op == 1);
    for (auto const& c : changes) {
        CHECK(c.configuration.degree[0] == 2);
        CHECK(c.configuration.shards() == 2);
        CHECK(c.configuration.start == 2);
    }
}

TEST_CASE("coarsening: levels are nested, and changes are of members, in their spaces, once each") {
    std::vector<graph::operator_graph> const networks{models::nmt({.steps = 3, .batch = 8}), models::inception_v3({.batch = 8}),
                                                      models::bert({.layers = 2, .batch = 8}), models::dlrm({.batch = 16}),
                                                      models::mlp({.batch = 8})};
    std::mt19937_64 rng(7);
    for (auto const& net : networks) {
        auto const g = graph::read_graph(net).graph;
        space::strategy_space const all(g, 8);
        space::coarsening groups(g, all);
        REQUIRE(groups.levels() > 0);
        for (std::size_t level = 0; level < groups.levels(); ++level) {
            std::set<std::uint32_t> met;
            for (auto const& one : groups_of(groups, level)) {
                CHECK(one.size() > 1);
                CHECK(std::ranges::is_sorted(one));
                for (auto const op : one) CHECK(met.insert(op).second);
            }
            if (level == 0) continue;
            auto const coarser = groups_of(groups, level - 1);
            for (auto const& one : groups_of(groups, level))
                CHECK(std::ranges::any_of(coarser, [&](members const& m) { return std::ranges::includes(m, one); }));
        }
        for (int draw = 0; draw < 300; ++draw) {
            auto const group = static_cast<std::size_t>(uniform_index(rng, groups.size()));
            auto const index = uniform_index(rng, groups.choices(group));
            std::vector<change<space::configuration>> changes;
            groups.changes(group, index, changes);
            REQUIRE(!changes.empty());
            auto const leader = groups.leader(group);
            CHECK(changes[0].op == leader);
            CHECK(changes[0].configuration == all.of(leader)[static_cast<std::size_t>(index)]);
            std::set<std::size_t> changed;
            for (auto const& c : changes) {
                CHECK(changed.insert(c.op).second);
                CHECK(std::ranges::binary_search(groups.members(group), static_cast<std::uint32_t>(c.op)));
                CHECK(all.of(c.op).contains(c.configuration));
                // It came along an edge from what was changed before, or is what an operator like it has.
                CHECK(std::ranges::any_of(changes, [&](auto const& from) {
                    if (&from == &c) return &c == &changes[0];
                    if (from.configuration == c.configuration && g.operations[from.op].kind == g.operations[c.op].kind) return true;
                    auto const carried = [&](graph::edge const& e, bool forward) {
                        return (forward ? e.producer : e.consumer) == from.op && (forward ? e.consumer : e.producer) == c.op &&
                               space::carried_over(g, e, from.configuration, forward) == c.configuration;
                    };
                    return std::ranges::any_of(g.edges, [&](auto const& e) { return carried(e, true) || carried(e, false); });
                }));
            }
        }
    }
}
