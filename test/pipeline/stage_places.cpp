#include <parsearch/pipeline/stage_places.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/llama.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/models/t5.hpp>

#include "support/cases.hpp"
#include "support/random_problem.hpp"

namespace ps = parsearch;
namespace pipeline = parsearch::pipeline;
namespace ops = parsearch::ops;

namespace {

std::vector<std::uint32_t> working(ps::graph::dense_graph const& g) {
    std::vector<std::uint32_t> out;
    for (auto const op : g.order)
        if (g.operations[op].work != ops::work_class::source) out.push_back(op);
    return out;
}

// The names of the operators at which stages may begin.
template <class G> std::vector<std::string> beginnings(G const& model, std::size_t stages) {
    auto const g = ps::graph::read_graph(model).graph;
    auto const order = working(g);
    std::vector<std::string> out;
    pipeline::stage_places const places(g, order, false);
    for (auto const i : places.of(stages)) out.push_back(g.names[order[i]]);
    return out;
}

using list = std::vector<std::size_t>;
using names = std::vector<std::string>;
} // namespace

TEST_CASE("stage_places: blocks of networks") {
    CHECK(beginnings(ps::models::gpt({.layers = 3}), 2) == names{"positions", "embedding.dropout", "block1.attention.norm", "block2.attention.norm",
                                                                 "block3.attention.norm", "norm", "logits", "loss"});
    auto const llama = beginnings(ps::models::llama({.layers = 80}), 4);
    CHECK(std::ranges::count_if(llama, [](auto const& n) { return n.starts_with("block") && n.ends_with(".attention.norm"); }) == 80);
    CHECK(std::ranges::count_if(llama, [](auto const& n) { return n.starts_with("block"); }) == 80);
    // More stages than blocks: attention and perceptron apart; more than these: any operator.
    auto const parts = beginnings(ps::models::llama({.layers = 4}), 11);
    CHECK(std::ranges::find(parts, "block2.mlp.norm") != parts.end());
    CHECK(std::ranges::find(parts, "block2.mlp.up") == parts.end());
    auto const g = ps::graph::read_graph(ps::models::llama({.layers = 4})).graph;
    CHECK(beginnings(ps::models::llama({.layers = 4}), 30).size() + 1 == working(g).size());
    CHECK(pipeline::stage_places(g, working(g), true).of(2).size() + 1 == working(g).size());
    // Bottlenecks with their sums.
    for (auto const& n : beginnings(ps::models::resnet({}), 4)) CHECK_MESSAGE(n.find("conv2") == std::string::npos, n);
    CHECK(beginnings(ps::models::t5({}), 4).size() > 20);
}

TEST_CASE("stage_places: blocks whose weights are gathered together, and joined at the ends") {
    auto const g = ps::graph::read_graph(ps::models::gpt({.layers = 3})).graph;
    auto const order = working(g);
    pipeline::stage_places const places(g, order, false);
    auto const at = [&](std::string_view name) {
        return static_cast<std::size_t>(std::ranges::find(order, name, [&](auto op) { return g.names[op]; }) - order.begin());
    };
    auto const block1 = at("block1.attention.norm"), block2 = at("block2.attention.norm"), block3 = at("block3.attention.norm"), norm = at("norm");
    auto const apart = places.blocks(0, order.size());
    CHECK(apart[block1 - 1] + 1 == apart[block1]);
    CHECK(apart[norm - 1] + 1 == apart[norm]);
    auto const joined = places.blocks(0, order.size(), 1);
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(joined[i] == (i < block2 ? 0 : i < block3 ? 1 : 2));
    CHECK(std::ranges::max(places.blocks(0, order.size(), 2)) == 0); // nothing is left between
    // Of a stage that is blocks alone, one is joined with nothing.
    CHECK(places.blocks(block1, norm, 1) == places.blocks(block1, norm));
    std::vector<std::size_t> const first{0, block2};
    auto const of_stages = places.blocks_of_stages(first, order.size(), 1);
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(of_stages[i] == (i < block2 ? 0 : i < block3 ? 1 : 2));
}

TEST_CASE("stage_places: legal and as many as are wanted") {
    for (std::uint64_t seed = 0; seed < support::cases(300u); ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        auto const problem = support::random_problem(rng, support::random_options(rng), {.devices = 2, .operators = 14});
        auto const order = working(problem.graph());
        pipeline::stage_places const places(problem.graph(), order, ps::bernoulli(rng, 0.2));
        for (std::size_t stages = 1; stages <= order.size(); ++stages) {
            auto const& of = places.of(stages);
            REQUIRE(of.size() + 1 >= stages);
            REQUIRE(std::ranges::adjacent_find(of, std::greater_equal{}) == of.end());
            if (!of.empty()) {
                REQUIRE(of.front() >= 1);
                REQUIRE(of.back() < order.size());
            }
            auto const begin = stages - 1;
            auto const blocks = places.blocks(begin, order.size(), static_cast<std::uint32_t>(ps::uniform_index(rng, 4)));
            REQUIRE(blocks.size() == order.size() - begin);
            REQUIRE(blocks.front() == 0);
            for (std::size_t i = 1; i < blocks.size(); ++i) REQUIRE((blocks[i] == blocks[i - 1] || blocks[i] == blocks[i - 1] + 1));
        }
    }
}
