#include <parsearch/rewrite/parallel/parallel_graph.hpp>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/rewrite/parallel/conversion.hpp>

#include "support/cases.hpp"
#include "support/random_network.hpp"
#include "support/random_split.hpp"
#include "support/refusal.hpp"
#include "support/shuffle.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {

template <class Op> ops::operation made(Op const& op, std::vector<ops::tensor> const& in) { return op.infer(in); }
ops::operation const plain_linear = made(ops::linear{.out = 6, .bias = false}, {{{8, 4}}});
ops::operation const rectifier = made(ops::relu{}, {{{8, 6}}});

/// x w, then relu.
struct two_nodes {
    parallel_graph graph;
    tensor_ref x = graph.add_input("x", {{8, 4}}), w = graph.add_weight("w", {{6, 4}});
    std::uint32_t linear = graph.add_operator("fc", plain_linear, {x, w});
    std::uint32_t relu = graph.add_operator("relu", rectifier, {{linear, 0}});
    two_nodes() { graph.set_results({{relu, 0}}); }
};

/// `g` built anew, its nodes in a random order of those that are possible.
parallel_graph shuffled(parallel_graph const& g, std::mt19937_64& rng) {
    parallel_graph out;
    std::vector<std::uint32_t> at(g.bound());
    std::vector<bool> done(g.bound());
    auto left = g.order();
    while (!left.empty()) {
        auto const i = uniform_index(rng, left.size());
        auto const n = left[i];
        if (!std::ranges::all_of(g[n].inputs, [&](auto const& t) { return done[t.producer]; })) continue;
        std::vector<tensor_ref> in;
        for (auto const& t : g[n].inputs) in.push_back({at[t.producer], t.slot});
        switch (g[n]->kind) {
        case node_kind::input: at[n] = out.add_input(g[n]->name, g[n]->outputs[0].whole).producer; break;
        case node_kind::weight: at[n] = out.add_weight(g[n]->name, g[n]->outputs[0].whole, g[n]->parameter).producer; break;
        case node_kind::compute: at[n] = out.add_operator(text("another ", n), g[n]->operation, std::move(in), g[n]->split); break;
        case node_kind::reshard: at[n] = out.reshard(in[0], g[n]->how, g[n]->axis, g[n]->degree).producer; break;
        }
        done[n] = true;
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
    }
    std::vector<tensor_ref> results;
    for (auto const& t : g.results()) results.push_back({at[t.producer], t.slot});
    out.set_results(std::move(results));
    return out;
}

parallel_graph random_graph(std::mt19937_64& rng) {
    for (;;) {
        auto const g = graph::read_graph(support::random_network(rng, 8, 0)).graph;
        auto const micro_batches = static_cast<std::int32_t>(1 + uniform_index(rng, 2));
        std::vector<operator_split> splits;
        for (auto const& op : g.operations) {
            splits.push_back(support::random_split(op, rng));
            if (ops::sample_dim(op)) splits.back().micro_batches = micro_batches;
        }
        try {
            return lift(g, splits).graph;
        } catch (invalid_input const&) {
        } // a split that leaves no equal blocks, samples that can not be divided
    }
}

} // namespace

TEST_CASE("parallel graph: a model of OperatorGraph, without resharding, its weights with their operators") {
    static_assert(OperatorGraph<parallel_graph>);
    two_nodes g;
    auto const reading = graph::read_graph(g.graph);
    CHECK(reading.handles == std::vector<std::uint32_t>{g.x.producer, g.linear, g.relu});
    CHECK(reading.graph.operations[1] == plain_linear);
    CHECK(reading.graph.names[1] == "fc");

    // The same in two parts by samples, four by outputs.
    parallel_graph p;
    auto const x = p.add_input("x", {{8, 4}}), w = p.add_weight("w", {{6, 4}});
    auto const half = p.reshard(p.reshard(x, resharding::partition, 0, 2), resharding::replicate, 0, 3);
    auto const third = p.reshard(p.reshard(w, resharding::partition, 0, 3), resharding::replicate, 0, 2);
    auto const fc = p.add_operator("fc", plain_linear, {half, third});
    CHECK(p[fc]->split.degree == std::vector<std::int32_t>{2, 3, 1});
    CHECK(to_string(p.tensor({fc, 0})) == "f32[8/2,6/3]");
    CHECK(p.source(half) == x);
    auto const read = graph::read_graph(p);
    CHECK(read.graph.operations[1] == plain_linear);
    CHECK(read.graph.in(1)[0].producer == 0);
}

TEST_CASE("parallel graph: a weight that several read is a shared parameter; one that is computed is an input") {
    two_nodes g;
    auto const again = g.graph.add_operator("again", plain_linear, {g.x, g.w});
    CHECK(g.graph.description(again).operation.weights[0].parameter == "w");
    CHECK(g.graph.description(g.linear).operation.weights[0].parameter == "w");
    auto const twice = g.graph.add_operator("twice", made(ops::add{}, {{{6, 4}}, {{6, 4}}}), {g.w, g.w});
    auto const last = g.graph.add_operator("last", plain_linear, {g.x, {twice, 0}});
    auto const sum = g.graph.description(twice).operation, product = g.graph.description(last).operation;
    CHECK(sum.inputs.empty());
    CHECK(sum.weights.size() == 2);
    CHECK(product.inputs.size() == 2);
    CHECK(product.weights.empty());
    CHECK(product.inputs[1].saved);
    CHECK(graph::read_graph(g.graph).graph.size() == 6);
}

TEST_CASE("parallel graph: copies share nodes, and changing one leaves the others alone") {
    two_nodes g;
    auto other = g.graph;
    CHECK(&*other[g.linear].content == &*g.graph[g.linear].content);
    auto const twin = other.add_operator("twin", plain_linear, {g.x, g.w});
    other.redirect({g.linear, 0}, {twin, 0});
    CHECK(other[g.relu].inputs[0].producer == twin);
    CHECK(g.graph[g.relu].inputs[0].producer == g.linear);
    other.prune();
    CHECK_FALSE(other.contains(g.linear));
    CHECK(g.graph.contains(g.linear));
    CHECK(other == g.graph); // the numbers and names differ, what is computed does not
    CHECK(other.hash() == g.graph.hash());
}

TEST_CASE("parallel graph: an operator is called otherwise, and stays what it is") {
    two_nodes g;
    auto named = g.graph;
    named.rename(g.relu, "fc"); // taken
    CHECK(named[g.relu]->name == "fc~2");
    named.rename(g.linear, "first");
    named.rename(g.relu, "fc");
    CHECK(named[g.relu]->name == "fc");
    CHECK(g.graph[g.relu]->name == "relu");
    CHECK(named == g.graph);
    CHECK(named.hash() == g.graph.hash());
    CHECK(support::refusal([&] { return named.rename(g.w.producer, "v"), 0; }) == "weight 'w' is renamed: only operators may be");
}

TEST_CASE("parallel graph: results are redirected too, and graph inputs stay") {
    two_nodes g;
    auto const unused = g.graph.add_input("unused", {{2}});
    auto const other = g.graph.add_operator("other", rectifier, {{g.linear, 0}});
    g.graph.redirect({g.relu, 0}, {other, 0});
    CHECK(g.graph.results() == std::vector<tensor_ref>{{other, 0}});
    g.graph.prune();
    CHECK(g.graph.contains(unused.producer));
    CHECK_FALSE(g.graph.contains(g.relu));
    CHECK(g.graph.size() == 5);
}

TEST_CASE("parallel graph: a cycle is told by an empty order") {
    two_nodes g;
    auto const square = made(ops::relu{}, {{{8, 6}}});
    auto const behind = g.graph.add_operator("behind", square, {{g.relu, 0}});
    CHECK(g.graph.order().size() == g.graph.size());
    g.graph.redirect({g.linear, 0}, {behind, 0});
    CHECK(g.graph.order().empty());
}

TEST_CASE("parallel graph: what is wanted is made from what is there") {
    two_nodes g;
    parallel_tensor wanted{.whole = {{8, 4}}, .degree = {4, 2}, .copies = 3};
    auto const t = g.graph.reshard_to(g.x, wanted);
    CHECK(g.graph.tensor(t) == wanted);
    CHECK(g.graph.size() == 7); // replicate, partition, partition
    CHECK(g.graph.reshard_to(g.x, wanted) == t);
    CHECK(g.graph.size() == 7);
    CHECK(g.graph.reshard_to(t, wanted) == t);
    auto const turned = parallel_tensor{.whole = {{8, 4}}, .degree = {2, 4}, .copies = 6};
    CHECK(g.graph.tensor(g.graph.reshard_to(t, turned)) == turned);
    CHECK(g.graph.size() == 10); // combine, replicate, partition
    CHECK(support::refusal([&] {
              return g.graph.reshard_to(t, in_one_part({{8, 4}}));
          }) == "a tensor held as f32[8/4,4/2] 3 copies is wanted as f32[8,4]: copies are made, not dropped");
}

TEST_CASE("parallel graph: micro-batches are made and joined where they are wanted, and operators run in those of their operands") {
    two_nodes g;
    auto const piped = g.graph.reshard(g.x, resharding::pipeline, 0, 2);
    auto const fc = g.graph.add_operator("fc in micro-batches", plain_linear, {piped, g.w});
    CHECK(g.graph[fc]->split == operator_split{.degree = {1, 1, 1}, .micro_batches = 2});
    CHECK(to_string(g.graph.tensor({fc, 0})) == "f32[8,6] 2 micro-batches of axis 0");
    CHECK(g.graph.source(piped) == g.x);
    CHECK(support::refusal([&] {
              return g.graph.add_operator("bad", plain_linear, {piped, g.w}, {.degree = {1, 1, 1}, .micro_batches = 4});
          }) == "operator 'bad' of a parallel graph: linear: operand 'x' is held as f32[8,4] 2 micro-batches of axis 0: must be f32[8,4] 4 "
                "micro-batches of axis 0");
    CHECK_FALSE(g.graph[fc].content->split == g.graph[g.linear].content->split);
    auto const before = g.graph.size();
    parallel_tensor wanted{.whole = {{8, 6}}, .degree = {4, 1}, .micro_batches = 2};
    auto const cut = g.graph.reshard_to({fc, 0}, wanted);
    CHECK(g.graph.size() == before + 1); // partition
    auto const other = g.graph.reshard_to(cut, {.whole = {{8, 6}}, .degree = {1, 1}, .micro_batches = 3, .sample_axis = 1});
    CHECK(g.graph.size() == before + 4); // combine, batch, pipeline
    CHECK(to_string(g.graph.tensor(other)) == "f32[8,6] 3 micro-batches of axis 1");
    CHECK(g.graph.reshard_to({fc, 0}, in_one_part({{8, 6}})) == g.graph.reshard_to({fc, 0}, in_one_part({{8, 6}})));
    CHECK(support::refusal([&] {
              return g.graph.reshard_to({fc, 0}, {.whole = {{8, 6}}, .degree = {1, 1}, .micro_batches = 0});
          }).find("degrees are at least 1") != std::string::npos);
    auto const samples = g.graph.add_operator("relu in micro-batches", rectifier, {{fc, 0}});
    auto const again = g.graph.add_copy(g.graph[samples], {{fc, 0}});
    CHECK(g.graph[again]->split == g.graph[samples]->split);
    CHECK(g.graph.add_copy(g.graph[piped.producer], {g.x}) > again);
}

TEST_CASE("parallel graph: any tensor is resharded to any holding that it can have, whatever lies between, on random ones") {
    constexpr std::uint64_t seed = 8;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    int both = 0;
    for (int n = 0; n < support::cases(3000); ++n) {
        parallel_graph g;
        std::array<std::int64_t, 2> const extents{12 << uniform_index(rng, 3), 6 << uniform_index(rng, 3)};
        auto t = g.add_input("x", {{extents[0], extents[1]}});
        auto const divisor = [&](std::int64_t of) {
            for (;;)
                if (auto const d = static_cast<std::int32_t>(1 + uniform_index(rng, 8)); of % d == 0) return d;
        };
        std::int32_t copies = 1;
        for (int step = 0; step < 4; ++step) {
            parallel_tensor wanted{
                .whole = {{extents[0], extents[1]}}, .degree = {1, 1}, .copies = copies *= static_cast<std::int32_t>(1 + uniform_index(rng, 2))};
            auto const axis = static_cast<std::uint32_t>(uniform_index(rng, 2));
            wanted.micro_batches = divisor(extents[axis]);
            if (wanted.micro_batches > 1) wanted.sample_axis = axis;
            for (std::size_t a = 0; a < 2; ++a) wanted.degree[a] = divisor(extents[a] / micro_batches_along(wanted, a));
            both += wanted.micro_batches > 1 && wanted.degree[axis] > 1;
            auto const made = g.reshard_to(t, wanted);
            REQUIRE(g.tensor(made) == wanted);
            CHECK(g.reshard_to(t, wanted) == made);
            t = made;
        }
    }
    CHECK(both > support::cases(2000));
}

TEST_CASE("parallel graph: what does not fit is refused") {
    two_nodes g;
    CHECK(support::refusal([&] {
              return g.graph.add_operator("bad", plain_linear, {g.w, g.w});
          }).find("operator 'bad' of a parallel graph: linear: operand 'x'") == 0);
    CHECK(support::refusal([&] {
              return g.graph.add_operator("bad", plain_linear, {g.x, g.w}, {.degree = {2, 1, 1}});
          }) == "operator 'bad' of a parallel graph: linear: operand 'x' is held as f32[8,4]: must be f32[8/2,4]");
    CHECK(support::refusal([&] { return g.graph.add_input("x", {{1}}); }) == "input 'x': the graph has one of this name already");
    CHECK(support::refusal([&] { return g.graph.add_weight("v", {{0}}); }) == "weight 'v' of shape f32[0]: extents must be at least 1");
    CHECK(support::refusal([&] { return g.graph.tensor({99, 0}); }) == "node 99 is not in the graph, which counts to 4");
    CHECK(support::refusal([&] { return g.graph.tensor({g.relu, 1}); }) == "node 3 ('relu') has no output 1: it has 1");
    CHECK(support::refusal([&] {
              g.graph.redirect(g.x, g.w);
              return 0;
          }).find("must be alike") != std::string::npos);
}

TEST_CASE("parallel graph: equal whatever the order of nodes, different after any change, on random graphs") {
    constexpr std::uint64_t seed = 2;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    int changed = 0;
    for (int n = 0; n < support::cases(1000); ++n) {
        auto const g = random_graph(rng);
        auto const same = shuffled(g, rng);
        CHECK(g == same);
        CHECK(g.hash() == same.hash());
        auto const other = random_graph(rng);
        if (!(g == other)) CHECK(g.hash() != other.hash()); // of so few, none by chance
        // One more reader of some result.
        if (g.results().empty()) continue;
        auto more = g;
        auto const t = g.results()[uniform_index(rng, g.results().size())];
        if (g.tensor(t).sums > 1 || g.tensor(t).whole.type != ops::dtype::f32) continue;
        if (g.tensor(t).degree[0] == 1 && g.tensor(t).whole.extents[0] % 2 == 0) {
            auto piped = g;
            piped.set_results({piped.reshard(t, resharding::pipeline, 0, 2)});
            auto joined = g;
            joined.set_results({joined.reshard(t, resharding::partition, 0, 2)});
            CHECK_FALSE(piped == joined);
            CHECK(piped.hash() != joined.hash());
        }
        more.set_results({{more.add_operator("more", made(ops::relu{}, {g.tensor(t).whole}), {t}), 0}});
        CHECK_FALSE(more == g);
        CHECK(more.hash() != g.hash());
        // Twice the same operator is not the same as read twice.
        auto twice = more;
        auto const results = more.results();
        twice.set_results({results[0], {twice.add_operator("twice", made(ops::relu{}, {g.tensor(t).whole}), {t}), 0}});
        more.set_results({results[0], results[0]});
        CHECK_FALSE(more == twice);
        ++changed;
    }
    CHECK(changed > support::cases(500));
}
