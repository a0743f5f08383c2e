#include "profiler/fused_graph.hpp"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/models/bert.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/models/resnet.hpp>
#include <parsearch/ops/all_operators.hpp>

#include "profiler/iteration.hpp"
#include "profiler/lower.hpp"

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

TEST_CASE("fused graph: a residual sum is one operator with the normalization behind it, and both are its outputs where both are read") {
    graph::operator_graph g;
    auto const x = g.input("x", {{8, 16, 32}});
    auto const fc = g.add("fc", ops::linear{.out = 32}, x);
    auto const dropped = g.add("drop", ops::dropout{}, fc);
    auto const sum = g.add("sum", ops::add{}, x, dropped);
    auto const norm = g.add("norm", ops::layer_norm{}, sum);
    auto const up = g.add("up", ops::linear{.out = 32}, norm);
    auto const next = g.add("next", ops::add{}, up, sum); // reads the first sum too
    auto const last = g.add("last", ops::rms_norm{}, next);
    g.add("again", ops::layer_norm{}, sum); // a sum has one normalization
    g.add("gelu", ops::gelu{}, last);
    auto const plain = graph::read_graph(g).graph;
    auto const summed = profiler::with_normalized_sums(plain);
    CHECK(kinds_of(summed) == named_kinds{{"x", "input"},
                                          {"fc", "linear"},
                                          {"sum+layer_norm", "dropout_add_layer_norm"},
                                          {"up", "linear"},
                                          {"next+rms_norm", "add_rms_norm"},
                                          {"again", "layer_norm"},
                                          {"gelu", "gelu"}});
    auto const inputs = [&](std::size_t op) {
        std::vector<std::pair<std::size_t, std::size_t>> out;
        for (auto const& from : summed.inputs(op)) out.emplace_back(from.producer, from.slot);
        return out;
    };
    using places = std::vector<std::pair<std::size_t, std::size_t>>;
    CHECK(inputs(2) == places{{1, 0}, {0, 0}}); // what goes through dropout comes first
    CHECK(inputs(3) == places{{2, 0}});
    CHECK(inputs(4) == places{{3, 0}, {2, 1}});
    CHECK(inputs(5) == places{{2, 1}});
    CHECK(inputs(6) == places{{4, 0}});
    auto const read = graph::read_graph(summed).graph;
    auto const &passed = read.operations[2], &alone = read.operations[4];
    double const elements = 8 * 16 * 32;
    CHECK(passed.inputs.size() == 2);
    REQUIRE(passed.outputs.size() == 2);
    CHECK(passed.outputs[1].saved);
    CHECK(passed.saved_bytes == elements + 2 * 128 * 4); // mask and statistics
    CHECK(passed.flops == (2 + 1 + 8) * elements);
    CHECK(passed.backward_flops == (11 + 1) * elements);
    CHECK(passed.inputs[0].gradient_flops == 2 * elements);
    REQUIRE(alone.outputs.size() == 1);
    CHECK(alone.saved_bytes == 4 * elements + 128 * 4);
    CHECK(alone.flops == (1 + 5) * elements);
    CHECK(alone.backward_flops == 8 * elements);
    // Functions behind it are fused to it, where the sum is read there alone.
    CHECK(kinds_of(with_fused_operators(read)).back().second == "add_rms_norm+gelu");

    std::vector<profiler::launch> const forward =
        profiler::lower(ops::work_of(passed, std::vector<std::int32_t>{2, 1, 1}, ops::pass::forward)).launches;
    profiler::normalization rows{.n = 64, .channels = 32, .sum = true, .dropout = true};
    CHECK(forward == std::vector<profiler::launch>{rows});
    auto const backward = [](ops::operation const& op, std::uint64_t wanted) {
        return profiler::lower(ops::work_of(op, std::vector<std::int32_t>{2, 1, 1}, ops::pass::backward, wanted)).launches;
    };
    rows.backward = true;
    CHECK(backward(passed, 3) == std::vector<profiler::launch>{rows});
    rows.dropout = false;
    CHECK(backward(passed, 2) == std::vector<profiler::launch>{rows});
    rows.sum = false; // both have the one gradient
    rows.kind = profiler::normalization_kind::rms;
    CHECK(backward(alone, 3) == std::vector<profiler::launch>{rows});
    auto broken = alone;
    broken.inputs.pop_back();
    CHECK(profiler::lower(ops::work_of(broken, std::vector<std::int32_t>{1, 1, 1}, ops::pass::forward)).reason ==
          "kind 'add_rms_norm': must have two inputs");
}

TEST_CASE("fused graph: networks keep their parameters and flops, and every kernel has launches") {
    auto const compare = [](auto const& network, std::size_t fewer, bool sums = false) {
        auto const plain = graph::read_graph(network).graph;
        auto const summed = sums ? graph::read_graph(profiler::with_normalized_sums(plain)).graph : plain;
        auto const fused = graph::read_graph(with_fused_operators(summed)).graph;
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
    compare(models::bert({.layers = 2}), 13); // in each layer GELU, and dropout and sum twice; at both ends three
    compare(models::bert({.layers = 2}), 13, true);
    compare(models::gpt({.layers = 2, .vocabulary = 512, .batch = 2}), 11, true);
    compare(models::resnet({.batch = 8}), 65); // ReLU behind 33 normalizations, sum and ReLU behind 16
}
