#include <parsearch/sim/delta/symmetry.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/sim/schedule/schedule.hpp>

#include "support/block_tasks.hpp"
#include "support/hand_network.hpp"
#include "support/placed_blocks.hpp"
#include "support/random_problem.hpp"

using namespace parsearch;
using sim::symmetry;

namespace {

using list = std::vector<std::uint32_t>;

topology::dense_topology nodes_of(support::plain_topology t, std::uint32_t per_node) {
    for (std::uint32_t d = 0; d < t.device.size(); ++d) t.node[d] = d / per_node;
    return topology::read_topology(t).topology;
}

/// What a strategy amounts to on one member of each class; nothing where some block does not fold.
struct folded_iteration {
    bool folds = true;
    std::vector<sim::task_list const*> tasks{};
    std::vector<sim::dependence const*> waits{};
    std::vector<list const*> fold{}; ///< of each block: the class of each task
};

folded_iteration fold_all(sim::block_graph const& g, support::placed_blocks const& all) {
    folded_iteration out;
    out.tasks.resize(g.blocks);
    out.waits.resize(g.arcs.size());
    out.fold.resize(g.blocks);
    constexpr auto none = sim::block_graph::none;
    auto const put = [&](std::uint32_t block, sim::task_list const& tasks, list const& fold) {
        if (block != none) out.tasks[block] = &tasks, out.fold[block] = &fold;
    };
    auto const join = [&](std::uint32_t arc, sim::dependence const& d) {
        if (arc != none) out.waits[arc] = &d;
    };
    for (std::uint32_t op = 0; op < all.operators.size(); ++op) {
        auto const& at = g.operators[op];
        auto const& b = *all.operators[op];
        if (at.forward == none) continue;
        if (!b.folded) return {.folds = false};
        put(at.forward, b.folded->forward, b.fold_forward);
        put(at.backward, b.folded->backward, b.fold_backward);
        join(at.inside_forward, b.folded->inside_forward);
        join(at.forward_to_backward, b.folded->backward_waits_forward);
        join(at.to_all_backward, b.folded->all_backward_waits);
    }
    for (std::uint32_t e = 0; e < all.edges.size(); ++e) {
        if (!all.edges[e]) continue;
        auto const& b = *all.edges[e];
        if (!b.folded) return {.folds = false};
        support::lay_out_edge(
            g, e, all.carriers[e], *b.folded,
            [&](std::uint32_t block, sim::task_list const& tasks, bool backward) { put(block, tasks, backward ? b.fold_backward : b.fold_forward); },
            join);
    }
    for (std::uint32_t c = 0; c < all.classes.size(); ++c) {
        auto const& at = g.classes[c];
        auto const& b = *all.classes[c];
        if (!b.folded) return {.folds = false};
        put(at.sync, b.folded->sync, b.fold_sync);
        put(at.update, b.folded->update, b.fold_update);
        for (std::size_t m = 0; m < at.to_sync.size(); ++m) join(at.to_sync[m], b.folded->sync_waits[m]);
        for (std::size_t m = 0; m < at.to_update.size(); ++m) join(at.to_update[m], b.folded->update_waits[m]);
        join(at.from_all_backward, b.folded->sync_waits_all);
        join(at.inside_sync, b.folded->inside_sync);
        join(at.sync_to_update, b.folded->update_waits_sync);
        join(at.inside_update, b.folded->inside_update);
    }
    return out;
}

} // namespace

TEST_CASE("fold: classes of devices and links of nodes that are alike") {
    auto const t = nodes_of(support::mesh(8), 2);
    auto const f = symmetry::of(t);
    REQUIRE(f);
    // The first node apart; of the others, devices by their place.
    CHECK(f->resources().devices == 4);
    std::set<std::uint32_t> classes;
    for (std::uint32_t d = 0; d < 8; ++d) classes.insert(f->class_of(d));
    CHECK(classes == std::set<std::uint32_t>{0, 1, 2, 3});
    CHECK(f->class_of(2) == f->class_of(4));
    CHECK(f->class_of(2) == f->class_of(6));
    CHECK(f->class_of(3) == f->class_of(7));
    CHECK(f->class_of(0) != f->class_of(2));
    auto const alike = [&](std::uint32_t device) {
        int n = 0;
        for (std::uint32_t d = 0; d < 8; ++d) n += f->class_of(d) == f->class_of(device);
        return n;
    };
    CHECK(alike(0) == 1);
    CHECK(alike(2) == 3);
    CHECK(f->devices().size() == 4);
    auto const link = [&](std::uint32_t a, std::uint32_t b) { return f->class_of(8 + support::mesh_link(8, a, b)); };
    CHECK(link(2, 3) == link(4, 5));
    CHECK(link(2, 3) != link(3, 2));
    CHECK(link(2, 3) != link(2, 5)); // inside a node and between nodes
    CHECK(link(2, 5) == link(4, 3));
    CHECK(link(0, 3) != link(2, 5));
    CHECK(f->class_of(8 + 8 * 7) == f->resources().barrier());
}

TEST_CASE("fold: nothing to fold where nodes are few or differ") {
    CHECK_FALSE(symmetry::of(nodes_of(support::mesh(4), 4)));
    CHECK_FALSE(symmetry::of(nodes_of(support::mesh(4), 2)));
    CHECK_FALSE(symmetry::of(nodes_of(support::mesh(8), 3))); // 3, 3, 2
    CHECK(symmetry::of(nodes_of(support::mesh(6), 2)));
    auto t = support::mesh(6);
    t.device[4].kind = "other";
    CHECK_FALSE(symmetry::of(nodes_of(t, 2)));
    t = support::mesh(6);
    t.device[4].memory = 5;
    CHECK_FALSE(symmetry::of(nodes_of(t, 2)));
    t = support::mesh(6);
    for (std::uint32_t d = 0; d < 6; d += 2) t.device[d].kind = "other"; // in every node alike
    CHECK(symmetry::of(nodes_of(t, 2)));
}

TEST_CASE("fold: a block folds where the members of each class do the same") {
    auto const f = *symmetry::of(nodes_of(support::mesh(6), 2)); // devices 2, 4 are alike, and 3, 5
    list fold;
    auto const folded = [&](std::initializer_list<std::pair<std::uint32_t, std::int64_t>> all) {
        sim::task_list tasks;
        for (auto const& [on, t] : all) tasks.add(on, t);
        return f.tasks(tasks, {}, fold);
    };
    auto const one = folded({{2, 7}, {4, 7}});
    REQUIRE(one);
    CHECK(one->resource == list{f.class_of(2)});
    CHECK(one->duration == std::vector<std::int64_t>{7});
    CHECK(fold == list{0, 0});
    CHECK_FALSE(folded({{2, 7}}));         // not on all of them
    CHECK_FALSE(folded({{2, 7}, {4, 8}})); // not equally long
    auto const two = folded({{2, 7}, {2, 9}, {0, 5}, {4, 7}, {4, 9}});
    REQUIRE(two);
    CHECK(two->size() == 3);
    CHECK(fold == list{0, 1, 2, 0, 1});
    CHECK_FALSE(folded({{2, 7}, {2, 9}, {4, 9}, {4, 7}})); // not in the same order
    CHECK(folded({}));
    // Each waits for a task of another block: of one class, or of two.
    sim::task_list tasks;
    tasks.add(2, 7);
    tasks.add(4, 7);
    sim::dependence const waits{.aligned = 2};
    list const alike{0, 0}, different{0, 1};
    symmetry::input input{&waits, &alike};
    CHECK(f.tasks(tasks, {&input, 1}, fold));
    input.of = &different;
    CHECK_FALSE(f.tasks(tasks, {&input, 1}, fold));
}

TEST_CASE("fold: tasks of one class wait for the same classes") {
    sim::dependence_builder b;
    sim::dependence out;
    // Tasks 0, 1 of class 0 wait for predecessors 0, 1 of class 0: one for one.
    b.add(0, 0);
    b.add(1, 1);
    CHECK(symmetry::waits(b.make(2, 2), {0, 0}, 1, {0, 0}, 1, out));
    CHECK(support::predecessors_of(out, 0) == list{0});
    // The second waits for another class.
    b.add(0, 0);
    b.add(1, 1);
    CHECK_FALSE(symmetry::waits(b.make(2, 2), {0, 0}, 1, {0, 1}, 2, out));
    // Not all of a class wait.
    b.add(1, 0);
    CHECK_FALSE(symmetry::waits(b.make(2, 2), {0, 0}, 1, {0, 0}, 1, out));
    CHECK(symmetry::waits({}, {0, 1}, 2, {0}, 1, out));
    CHECK(out.empty());
}

TEST_CASE("fold: one member of each class runs as all of them do") {
    std::size_t folded = 0, smaller = 0;
    for (std::uint64_t seed = 0; seed < 1200; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const options = support::random_options(rng);
        auto const nodes = static_cast<std::uint32_t>(3 + uniform_index(rng, 2)), per_node = static_cast<std::uint32_t>(1 + uniform_index(rng, 2));
        auto const p =
            support::random_workload(rng, options, {.devices = nodes * per_node, .operators = 5, .kinds = bernoulli(rng, 0.2), .nodes = nodes},
                                     support::mixed_oracle{seed % 2 ? 1 : 100});
        auto s = space::data_parallel(p.graph(), p.topology().size());
        for (std::size_t op = 0; op < s.size(); ++op)
            if (bernoulli(rng, 0.3)) s[op] = support::random_configuration(rng, p.graph().operations[op], p.space()[op], p.topology().size(), false);
        auto const g = support::block_graph_of(*p.work);
        sim::block_cache cache(p.work, true);
        if (!cache.folds()) continue;
        auto const placed = support::place_blocks(cache, g, s);
        auto one = fold_all(g, placed);
        if (!one.folds) continue;
        ++folded;
        sim::task_list barrier;
        list const zero(1, 0);
        if (g.all_backward != sim::block_graph::none) {
            barrier.add(cache.folds()->resources().barrier(), 0);
            one.tasks[g.all_backward] = &barrier;
            one.fold[g.all_backward] = &zero;
        }
        auto const whole = support::flatten(g, placed.tasks, placed.waits, cache.resources());
        auto const few = support::flatten(g, one.tasks, one.waits, cache.folds()->resources());
        sim::schedule expected, found;
        sim::scheduler{}.run(whole, options.discipline, expected);
        sim::scheduler{}.run(few, options.discipline, found);
        auto const first = support::first_tasks(placed.tasks), first_few = support::first_tasks(one.tasks);
        REQUIRE(found.makespan == expected.makespan);
        for (std::uint32_t b = 0; b < g.blocks; ++b)
            for (std::uint32_t i = 0; i < first[b + 1] - first[b]; ++i) {
                auto const t = first[b] + i, u = first_few[b] + (*one.fold[b])[i];
                REQUIRE(found.ready[u] == expected.ready[t]);
                REQUIRE(found.end[u] == expected.end[t]);
            }
        smaller += few.size() < whole.size();
    }
    CHECK(folded > 100);
    CHECK(smaller > 50);
}
