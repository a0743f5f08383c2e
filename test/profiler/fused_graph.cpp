#include "cuda_profiler/fused_graph.hpp"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/models/bert.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/ops/all_operators.hpp>

#include "cuda_profiler/iteration.hpp"
#include "cuda_profiler/lower.hpp"

using namespace parsearch;
using profiler::with_fused_operators;

namespace {
using named_kinds = std::vector<std::pair<std::string, std::string>>;
named_kinds kinds_of(graph::operator_graph const& g) {
    named_kinds out;
    for (auto const op : g.operators()) out.emplace_back(g[op].name, g[op].operation.kind);
    return out;
}
} // namespace

TEST_CASE("fused graph: chains are one operator, what somebody else reads is none's") {
    graph::operator_graph g;
    auto const x = g.input("x", {{8, 32}});
    auto const fc = g.add("fc", ops::linear{.out = 32}, x);
    auto const dropped = g.add("drop", ops::dropout{}, fc);
    auto const sum = g.add("sum", ops::add{}, x, dropped); // a residual
    auto const up = g.add("up", ops::linear{.out = 64}, sum);
    auto const active = g.add("gelu", ops::gelu{}, up);
    auto const rows = g.add("softmax", ops::softmax{}, active); // no function of single elements
    g.add("twice", ops::add{}, rows, rows);                     // reads it twice
    g.add("relu", ops::relu{}, sum);                            // reads what `up` reads too
    auto const fused = with_fused_operators(graph::read_graph(g).graph);
    CHECK(kinds_of(fused) == named_kinds{{"x", "input"},
                                         {"fc+dropout+add", "linear+dropout+add"},
                                         {"up+gelu", "linear+gelu"},
                                         {"softmax", "softmax"},
                                         {"twice", "add"},
                                         {"relu", "relu"}});
    // The residual comes last.
    REQUIRE(fused.inputs(1).size() == 2);
    CHECK(fused.inputs(1)[0].producer == 0);
    CHECK(fused.inputs(1)[1].producer == 0);
    CHECK(fused.inputs(2)[0].producer == 1);
    CHECK(fused.inputs(4)[1].producer == 3);
    // Nothing more is found in it.
    CHECK(kinds_of(with_fused_operators(graph::read_graph(fused).graph)) == kinds_of(fused));
}

TEST_CASE("fused graph: a sum goes to what is made later") {
    graph::operator_graph g;
    auto const x = g.input("x", {{8, 32}});
    auto const first = g.add("first", ops::linear{.out = 16}, x);
    auto const second = g.add("second", ops::linear{.out = 16}, x);
    g.add("sum", ops::add{}, second, first);
    auto const fused = with_fused_operators(graph::read_graph(g).graph);
    CHECK(kinds_of(fused) == named_kinds{{"x", "input"}, {"first", "linear"}, {"second+add", "linear+add"}});
    CHECK(fused.inputs(2)[1].producer == 1);
}

TEST_CASE("fused graph: networks keep their parameters and flops, and every kernel has launches") {
    auto const compare = [](auto const& network, std::size_t fewer) {
        auto const plain = graph::read_graph(network).graph, fused = graph::read_graph(with_fused_operators(plain)).graph;
        CHECK(fused.size() + fewer == plain.size());
        double flops = 0, fused_flops = 0, parameters = 0, fused_parameters = 0;
        for (auto const& op : plain.operations) flops += op.flops, parameters += static_cast<double>(ops::parameters_of(op));
        for (auto const& op : fused.operations) fused_flops += op.flops, fused_parameters += static_cast<double>(ops::parameters_of(op));
        CHECK(fused_flops == doctest::Approx(flops));
        CHECK(fused_parameters == parameters);
        auto const traffic = [](graph::dense_graph const& g) {
            double bytes = 0;
            for (auto const& work : profiler::iteration_of(g, {})) {
                auto const made = profiler::lower(work);
                CAPTURE(made.reason);
                CHECK(made);
                for (auto const& l : made.launches) bytes += profiler::traffic_of(l).all();
            }
            return bytes;
        };
        CHECK(traffic(fused) < 0.97 * traffic(plain));
    };
    compare(models::bert({.layers = 2}), 13);  // in each layer GELU, and dropout and sum twice; at both ends three
    compare(models::resnet({.batch = 8}), 65); // ReLU behind 33 normalizations, sum and ReLU behind 16
}
