#include <parsearch/io/report/report_blocks.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/nmt.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

using namespace parsearch;

namespace {

graph::dense_graph gpt(std::int64_t layers) {
    return graph::read_graph(models::gpt({.layers = layers, .hidden = 64, .heads = 4, .sequence = 32, .vocabulary = 100, .batch = 8})).graph;
}
std::vector<io::repeated_block> blocks_of(graph::dense_graph const& g, space::flat_strategy const& s) {
    return io::find_blocks(g, io::classes_of(g, s));
}

/// Number of the operator of that name.
std::size_t named(graph::dense_graph const& g, std::string const& name) {
    return static_cast<std::size_t>(std::find(g.names.begin(), g.names.end(), name) - g.names.begin());
}

} // namespace

TEST_CASE("blocks: the layers of a transformer are one block, as often as there are layers") {
    auto const g = gpt(12);
    auto const blocks = blocks_of(g, space::data_parallel(g, 4));
    REQUIRE(blocks.size() == 1);
    CHECK(blocks[0].count == 12);
    CHECK(blocks[0].length * 12 + (g.size() - 12 * blocks[0].length) == g.size());
    auto const per_layer = (gpt(13).size() - g.size());
    CHECK(blocks[0].length == per_layer);
    // Copies are the same but for the number in their names.
    for (std::size_t q = 0; q < blocks[0].length; ++q) {
        auto const& first = g.operations[g.order[blocks[0].first + q]];
        auto const& last = g.operations[g.order[blocks[0].first + 11 * blocks[0].length + q]];
        CHECK(first.kind == last.kind);
        CHECK(first.dims == last.dims);
    }
}

TEST_CASE("blocks: another configuration in one layer parts the block") {
    auto const g = gpt(12);
    auto s = space::data_parallel(g, 4);
    s[named(g, "block7.mlp.1")] = space::whole(g.operations[named(g, "block7.mlp.1")]);
    auto const blocks = blocks_of(g, s);
    REQUIRE(blocks.size() == 2);
    CHECK(blocks[0].count + blocks[1].count >= 10);
    CHECK(blocks[0].count + blocks[1].count <= 11);
    for (auto const& b : blocks)
        for (auto i = b.first; i < b.end(); ++i) CHECK(g.names[g.order[i]] != "block7.mlp.1");
}

TEST_CASE("blocks: equal operators side by side are none, in a row they are") {
    graph::operator_graph side, row;
    auto const x = side.input("x", {{8, 8}});
    for (int i = 0; i < 8; ++i) side.add("branch" + std::to_string(i), ops::linear{.out = 8}, x);
    graph::tensor_ref y = row.input("x", {{8, 8}});
    for (int i = 0; i < 8; ++i) y = row.add("step" + std::to_string(i), ops::linear{.out = 8}, y);
    auto const a = graph::read_graph(side).graph, b = graph::read_graph(row).graph;
    CHECK(blocks_of(a, space::data_parallel(a, 2)).empty());
    CHECK(blocks_of(b, space::data_parallel(b, 2)) == std::vector<io::repeated_block>{{1, 1, 8}});
}

TEST_CASE("blocks: boxes hold every operator that is drawn, once, in order") {
    for (auto const& g :
         {gpt(6), graph::read_graph(models::inception_v3({.batch = 8})).graph, graph::read_graph(models::nmt({.steps = 6, .batch = 8})).graph}) {
        auto const s = space::data_parallel(g, 4);
        auto const classes = io::classes_of(g, s);
        auto const blocks = io::find_blocks(g, classes);
        auto const boxes = io::boxes_of(g, classes, blocks);
        std::set<std::uint32_t> seen;
        std::size_t hidden = 0, members = 0;
        for (auto const& b : blocks) hidden += b.length * (b.count - 1);
        for (auto const& box : boxes) {
            REQUIRE_FALSE(box.empty());
            members += box.size();
            seen.insert(box.begin(), box.end());
            for (std::size_t i = 1; i < box.size(); ++i) {
                REQUIRE(g.in(box[i]).size() == 1);
                REQUIRE(g.in(box[i]).front().producer == box[i - 1]);
                REQUIRE(classes.of_operator[box[i]] == classes.of_operator[box[0]]);
            }
        }
        CHECK(seen.size() == members);
        CHECK(members + hidden == g.size());
    }
}

TEST_CASE("blocks: a convolution, its normalisation and its activation are one box") {
    auto const g = graph::read_graph(models::inception_v3({.batch = 8})).graph;
    auto const classes = io::classes_of(g, space::data_parallel(g, 4));
    for (auto const& box : io::boxes_of(g, classes, {}))
        if (g.names[box[0]] == "stem.1.conv") {
            REQUIRE(box.size() == 3);
            CHECK(g.operations[box[1]].kind == "batch_norm");
            CHECK(g.operations[box[2]].kind == "relu");
        }
}
