#include <parsearch/graph/blocks.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/models/llama.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/resnet.hpp>

namespace ps = parsearch;
namespace graph = parsearch::graph;

namespace {
std::vector<std::size_t> borders(std::vector<std::uint32_t> const& kinds) {
    std::vector<std::size_t> out;
    graph::borders_of_periods(kinds, 0, out);
    return out;
}

// By the first of a group, how many operators are in it; those that are alone left out.
std::map<std::string, int> groups(graph::dense_graph const& g) {
    std::map<std::string, int> out;
    auto const first = graph::first_repeats(g);
    for (std::size_t op = 0; op < g.size(); ++op) {
        REQUIRE(first[op] <= op);
        REQUIRE(first[first[op]] == first[op]);
        REQUIRE(g.operations[op].kind == g.operations[first[op]].kind);
        REQUIRE(g.operations[op].dims == g.operations[first[op]].dims);
        ++out[g.names[first[op]]];
    }
    std::erase_if(out, [](auto const& group) { return group.second == 1; });
    return out;
}

// A graph that numbers its operators from the last to the first.
struct backwards {
    graph::dense_graph const& forwards;

    [[nodiscard]] std::vector<std::uint32_t> operators() const { return {forwards.order.rbegin(), forwards.order.rend()}; }
    [[nodiscard]] auto inputs(std::uint32_t op) const { return ps::inputs(forwards, op); }
    [[nodiscard]] auto description(std::uint32_t op) const { return ps::description(forwards, op); }
};

using list = std::vector<std::size_t>;
} // namespace

TEST_CASE("blocks: narrow places and periods by hand") {
    using graph::narrow_places;
    CHECK(narrow_places(std::vector<std::int64_t>{0, 1, 1, 1}) == list{1, 2, 3});
    CHECK(narrow_places(std::vector<std::int64_t>{0, 1, 2, 3, 2, 1, 2, 1}) == list{1, 5, 7});
    CHECK(narrow_places(std::vector<std::int64_t>{0, 2, 2, 1, 3}) == list{3});
    CHECK(narrow_places(std::vector<std::int64_t>{0}).empty());
    CHECK(narrow_places(std::vector<std::int64_t>{}).empty());
    CHECK(borders({}) == list{});
    CHECK(borders({1, 2, 3}) == list{0, 1, 2});
    CHECK(borders({7, 1, 2, 1, 2, 1, 2, 8, 9}) == list{0, 1, 3, 5, 7, 8});
    CHECK(borders({1, 1, 1}) == list{0, 1, 2});
    CHECK(borders({1, 2, 1, 2, 1}) == list{0, 2, 4}); // the last part is none of a whole period
    CHECK(borders({1, 2, 1, 2, 5, 1, 2, 1, 2, 6, 3, 4, 3, 4, 3, 4}) == list{0, 2, 4, 5, 7, 9, 10, 12, 14});
}

TEST_CASE("blocks: operators at the same place of blocks that repeat") {
    auto const llama =
        graph::read_graph(ps::models::llama({.layers = 5, .hidden = 64, .heads = 8, .feed_forward = 96, .sequence = 16, .batch = 4})).graph;
    auto const of_llama = groups(llama);
    CHECK(of_llama.size() > 10);
    for (auto const& [name, count] : of_llama) {
        INFO(name);
        CHECK(name.starts_with("block1."));
        CHECK(count == 5);
    }
    auto const of_reversed = groups(graph::read_graph(backwards{llama}).graph);
    CHECK(of_reversed.size() == of_llama.size());
    for (auto const& [name, count] : of_reversed) {
        INFO(name);
        CHECK(name.starts_with("block5."));
        CHECK(count == 5);
    }
    // The bottlenecks of a stage that keep the shape; nothing of the first layers.
    auto const of_resnet = groups(graph::read_graph(ps::models::resnet({.batch = 8})).graph);
    CHECK(of_resnet.size() > 10);
    for (auto const& [name, count] : of_resnet) CHECK(count >= 2);
    // Layers of different sizes.
    CHECK(groups(graph::read_graph(ps::models::mlp({.features = 8, .hidden = {16, 32}, .classes = 4, .batch = 4})).graph).empty());
    // Of the same size.
    CHECK(groups(graph::read_graph(ps::models::mlp({.features = 8, .hidden = {16, 16, 16}, .classes = 4, .batch = 4})).graph)["fc2"] == 2);
}
