#include <parsearch/rewrite/rules/algebraic_rules.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/ops/conv.hpp>
#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/kit/weighted.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/ops/shape.hpp>
#include <parsearch/rewrite/parallel/conversion.hpp>

#include "support/cases.hpp"
#include "support/grown_graph.hpp"
#include "support/same_value.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {

/// Layers, convolutions, functions, sums, moves; many that rules apply to.
parallel_graph random_graph(std::mt19937_64& rng) {
    support::grown_graph b;
    bool const images = bernoulli(rng, 0.4);
    auto const shape = images ? ops::tensor{{1, 2, 4, 3}} : ops::tensor{{3, 4}};
    b.tensors = {b.g.add_input("x", shape), b.g.add_input("y", shape)};
    auto const any = [&] { return b.tensors[uniform_index(rng, b.tensors.size())]; };
    auto const layer = [&](tensor_ref x) {
        bool const bias = bernoulli(rng, 0.5);
        auto const out = bernoulli(rng, 0.5) ? 2 : 4;
        auto const border = std::int64_t{bernoulli(rng, 0.8)};
        if (images) b.add(ops::conv2d{.out = out, .kernel = {1 + 2 * border, 1 + 2 * border}, .padding = {border, border}, .bias = bias}, {x});
        else b.add(ops::linear{.out = out, .bias = bias}, {x});
    };
    for (int n = 0; n < 10; ++n) {
        auto const x = any();
        auto const& e = b.g.tensor(x).whole.extents;
        bool const usual = e[0] == shape.extents[0] && e.size() == shape.extents.size() && (!images || (e[2] == 4 && e[3] == 3));
        switch (uniform_index(rng, 11)) {
        case 0:
            if (usual) layer(x);
            break;
        case 1:
            if (!usual) break;
            for (int copy = 0; copy < 3; ++copy) layer(x);
            break;
        case 2: b.add(ops::unary{bernoulli(rng, 0.5) ? ops::function::relu : ops::function::gelu}, {x}); break;
        case 3: {
            auto const y = any();
            if (b.g.tensor(y).whole == b.g.tensor(x).whole) bernoulli(rng, 0.7) ? b.add(ops::add{}, {x, y}) : b.add(ops::multiply{}, {x, y});
            break;
        }
        case 4: {
            auto const y = any();
            auto same = b.g.tensor(y).whole;
            if (same.extents.size() == e.size() && same.extents[1] + e[1] <= 12) {
                same.extents[1] = e[1];
                if (same == b.g.tensor(x).whole) b.add(ops::concat{.axis = 1}, {x, y});
            }
            break;
        }
        case 5:
            if (e[1] % 2 == 0 && e[1] > 2) {
                auto const parts = b.add(ops::split{.axis = 1, .sizes = {e[1] / 2, e[1] / 2}}, {x});
                if (bernoulli(rng, 0.5)) b.add(ops::concat{.axis = 1}, parts);
                else
                    for (auto const& t : parts) b.add(ops::relu{}, {t});
            }
            break;
        case 6:
            if (!images && e.size() == 2) {
                auto const turned = b.add(ops::transpose{.permutation = {1, 0}}, {x})[0];
                if (bernoulli(rng, 0.7)) b.add(ops::transpose{.permutation = {1, 0}}, b.add(ops::relu{}, {turned}));
            }
            break;
        case 7: // a sum of products, of the same weights now and then
            if (usual && !images) {
                auto const y = any();
                if (!(b.g.tensor(y).whole == b.g.tensor(x).whole)) break;
                auto const p = b.add(ops::linear{.out = 4, .bias = false}, {x});
                auto const weight = b.g[p[0].producer].inputs[1];
                b.add(ops::add{}, {p[0], b.add(ops::linear{.out = 4, .bias = false}, {y}, bernoulli(rng, 0.5) ? &weight : nullptr)[0]});
            }
            break;
        case 8: { // an addend that is trained
            std::vector<tensor_ref> in{x};
            if (auto const y = any(); b.g.tensor(y).whole == b.g.tensor(x).whole) in.push_back(y);
            b.add(ops::weighted<ops::add>{.weight = {.input = in.size()}, .as = b.g.tensor(x).whole}, in);
            break;
        }
        case 9: // a part that is trained, in front
            if (e[1] <= 6) b.add(ops::weighted<ops::concat>{.op = {.axis = 1}, .weight = {.input = 0}, .as = b.g.tensor(x).whole}, {x});
            break;
        default: { // functions in front of a concat
            auto const y = any();
            if (b.g.tensor(y).whole == b.g.tensor(x).whole && e[1] <= 6)
                b.add(ops::concat{.axis = 1}, {b.add(ops::relu{}, {x})[0], b.add(ops::relu{}, {y})[0]});
        }
        }
    }
    b.finish();
    return b.g;
}

} // namespace

TEST_CASE("algebraic rules: every application computes the same, forward and backward, on random graphs") {
    constexpr std::uint64_t seed = 7;
    CAPTURE(seed);
    std::mt19937_64 rng(seed);
    auto const rules = algebraic_rules();
    std::map<std::string, int> applied;
    int all = 0;
    for (int n = 0; n < support::cases(1500); ++n) {
        auto g = random_graph(rng);
        if (g.results().empty()) continue;
        auto const original = g;
        for (int step = 0; step < 8; ++step) {
            std::vector<std::pair<std::string, rewritten>> next;
            for (auto const& r : rules)
                for (auto& made_of : r(g)) next.emplace_back(r.name(), std::move(made_of));
            if (next.empty()) break;
            for (auto const& [name, one] : next) {
                INFO(name, ": ", one.what);
                if (step < 2) CHECK(support::same_value(g, one.graph, rng)); // of all, and later of those that are taken
                static_cast<void>(lower(one.graph));
                applied[name] += step < 2;
                all += step < 2;
            }
            auto& taken = next[uniform_index(rng, next.size())];
            CHECK(support::same_value(g, taken.second.graph, rng));
            g = std::move(taken.second.graph);
        }
        CHECK(support::same_value(original, g, rng));
    }
    for (auto const& r : rules) {
        INFO(r.name());
        CHECK(applied[r.name()] > support::cases(40));
    }
    CHECK(all >= support::cases(10'000));
}

TEST_CASE("algebraic rules: the branches of Inception-v3 that read one tensor merge") {
    auto const g = lift(graph::read_graph(models::inception_v3()).graph).graph;
    auto const rules = algebraic_rules();
    auto const merge = std::ranges::find(rules, std::string("merge"), &graph_rule::name);
    auto const all = (*merge)(g);
    auto const three = std::ranges::find_if(all, [](auto const& r) { return r.what == "a1.1x1.1.conv|a1.5x5.1.conv|a1.3x3.1.conv"; });
    REQUIRE(three != all.end());
    CHECK(three->graph.size() == g.size()); // three layers have become a join of weights, a layer and a split
    CHECK(three->graph.hash() != g.hash());
}
