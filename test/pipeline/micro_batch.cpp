#include <parsearch/pipeline/micro_batch.hpp>

#include <string>

#include <doctest/doctest.h>

#include <parsearch/models/all_models.hpp>
#include <parsearch/ops/all_operators.hpp>

#include "support/refusal.hpp"

namespace ps = parsearch;
namespace graph = parsearch::graph;
namespace ops = parsearch::ops;
namespace pipeline = parsearch::pipeline;
using support::refusal;

namespace {
graph::dense_graph read(graph::operator_graph const& g) { return graph::read_graph(g).graph; }

// `model(batch)` makes a network.
template <class Model> void check_model(Model const& model) {
    auto const whole = read(model(16));
    REQUIRE(pipeline::samples_of(whole) == 16);
    for (std::int64_t const n : {1, 2, 4, 8}) {
        auto const part = pipeline::micro_batch(whole, n), expected = read(model(16 / n));
        REQUIRE(part.size() == expected.size());
        for (std::size_t op = 0; op < part.size(); ++op) {
            INFO(part.names[op], " in ", n, " micro-batches");
            auto operation = part.operations[op];
            if (operation.kind == "batch_norm") operation.saved_bytes = expected.operations[op].saved_bytes; // statistics: as many for few samples
            REQUIRE(operation == expected.operations[op]);
        }
        REQUIRE(part.edges == expected.edges);
        REQUIRE(part.order == expected.order);
        REQUIRE(part.sharing == expected.sharing);
    }
}
} // namespace

TEST_CASE("micro_batch: a part of a batch is the network made for that many samples") {
    namespace models = ps::models;
    SUBCASE("convolutions") {
        check_model([](std::int64_t b) { return models::lenet({.batch = b}); });
        check_model([](std::int64_t b) { return models::alexnet({.batch = b}); });
        check_model([](std::int64_t b) { return models::resnet({.batch = b}); });
        check_model([](std::int64_t b) { return models::inception_v3({.batch = b}); });
    }
    SUBCASE("recurrent networks") {
        check_model([](std::int64_t b) { return models::rnnlm({.batch = b}); });
        check_model([](std::int64_t b) { return models::nmt({.batch = b}); });
    }
    SUBCASE("transformers") {
        check_model([](std::int64_t b) { return models::gpt({.batch = b}); });
        check_model([](std::int64_t b) { return models::bert({.batch = b}); });
        check_model([](std::int64_t b) { return models::llama({.batch = b}); });
        check_model([](std::int64_t b) { return models::vit({.batch = b}); });
        check_model([](std::int64_t b) { return models::t5({.batch = b}); });
    }
    SUBCASE("recommendation and others") {
        check_model([](std::int64_t b) { return models::mlp({.batch = b}); });
        check_model([](std::int64_t b) { return models::dlrm({.batch = b}); });
        check_model([](std::int64_t b) { return models::candle_uno({.batch = b}); });
        check_model([](std::int64_t b) { return models::xdl({.batch = b}); });
    }
}

TEST_CASE("micro_batch: any network is one micro-batch, and no network more than it has samples") {
    graph::operator_graph g;
    auto const x = g.input("x", {{4, 6}});
    g.add("y", ops::concat{.axis = 0}, g.add("a", ops::linear{.out = 6}, x), g.add("b", ops::linear{.out = 6}, x));
    CHECK(pipeline::micro_batch(read(g), 1).operations == read(g).operations);
    CHECK(refusal([&] { return pipeline::micro_batch(read(g), 2).size(); }).find("it can not be divided") != std::string::npos);
    auto const one = read(ps::models::mlp({.features = 8, .hidden = {8}, .classes = 8, .batch = 1}));
    CHECK(refusal([&] { return pipeline::micro_batch(one, 7).size(); }) ==
          "micro-batches: the graph has 1 samples: 7 micro-batches must divide them");
}

TEST_CASE("micro_batch: operators without samples do all of their work each time") {
    ops::operation const op{.kind = "positions",
                            .dims = {{"o", 6, ops::dim_kind::parameter}},
                            .outputs = {{.name = "out", .axes = {{.extent = 6, .terms = {{0, 1}}}}}},
                            .flops = 5};
    CHECK(ops::on_samples(op, {.n = 4}, "op") == op);
    graph::operator_graph g;
    g.insert("op", op, {});
    CHECK(pipeline::samples_of(read(g)) == 1);
}

TEST_CASE("micro_batch: what can not be divided is refused by name") {
    auto const sample = ops::dim{"s", 6, ops::dim_kind::sample};
    ops::operation op{.kind = "made up", .dims = {sample}, .outputs = {{.name = "out", .axes = {{.extent = 6, .terms = {{0, 1}}}}}}};
    auto const refused = [&](ops::operation const& o, std::int64_t n) { return refusal([&] { return ops::on_samples(o, {.n = n}, "x"); }); };
    CHECK(refused(op, 4) == "micro-batches: operator 'x' (made up) has 6 samples: 4 micro-batches must divide them");
    CHECK(refused(op, 0) == "micro-batches: operator 'x' (made up) is to run in 0 micro-batches: must be at least 1");
    auto two = op;
    two.dims.push_back({"t", 2, ops::dim_kind::sample});
    CHECK(refused(two, 2) == "micro-batches: operator 'x' (made up) has two dims of samples, 's' and 't': one can be divided");
    auto weighted = op;
    weighted.weights = {{.name = "w", .axes = {{.extent = 6, .terms = {{0, 1}}}}}};
    CHECK(refused(weighted, 2) == "micro-batches: operator 'x' (made up) has weights 'w' of which each sample has its own: they can not be divided");
    auto padded = op;
    padded.inputs = {{.name = "in", .axes = {{.extent = 8, .terms = {{0, 1}}, .offset = 2}}}};
    CHECK(refused(padded, 2) == "micro-batches: operator 'x' (made up) has an axis of extent 8 in 'in' that is not 6 equal parts of consecutive "
                                "samples: it can not be divided");

    graph::operator_graph g;
    auto const in = g.input("in", {{6, 3}});
    auto const y = g.add("y", ops::relu{}, in);
    ops::operation all{.kind = "statistics",
                       .dims = {{"o", 3, ops::dim_kind::parameter}},
                       .inputs = {{.name = "in", .axes = {{.extent = 6}, {.extent = 3, .terms = {{0, 1}}}}}},
                       .outputs = {{.name = "out", .axes = {{.extent = 3, .terms = {{0, 1}}}}}}};
    g.add("all", all, y);
    CHECK(refusal([&] { return pipeline::micro_batch(read(g), 3); }) ==
          "micro-batches: operator 'all' (statistics) reads f32[6,3] of 'y', which makes f32[2,3] in a micro-batch: the samples are along another "
          "axis for it, or it needs those of all "
          "micro-batches at once");
    CHECK(pipeline::micro_batch(read(g), 1).operations == read(g).operations);
}

TEST_CASE("micro_batch: parts of a batch") {
    using pipeline::part_of_replica;
    CHECK(part_of_replica(64, 2, 4, 1) == ops::batch_part{.n = 8});
    CHECK(part_of_replica(64, 2, 5, 1) == ops::batch_part{.n = 64, .taken = 7});  // 32 samples on five: 7, 7, 6, 6, 6
    CHECK(part_of_replica(60, 1, 1, 8) == ops::batch_part{.n = 60, .taken = 60}); // 8, 8, 8, 8, 7, ...: all of them
    CHECK(part_of_replica(64, 1, 1, 8) == ops::batch_part{.n = 1});
    auto const g = read(ps::models::lenet({.batch = 16}));
    auto const part = pipeline::micro_batch(g, {.n = 16, .taken = 5}), expected = read(ps::models::lenet({.batch = 5}));
    for (std::size_t op = 0; op < g.size(); ++op) {
        CHECK(part.operations[op].dims == expected.operations[op].dims);
        CHECK(part.operations[op].flops == doctest::Approx(expected.operations[op].flops).epsilon(1e-12));
    }
    CHECK(refusal([&] { return pipeline::micro_batch(g, {.n = 4, .taken = 0}).size(); }).find("is to do 0 of 4 parts: must be from 1 to 4") !=
          std::string::npos);
    CHECK(refusal([&] { return pipeline::micro_batch(g, {.n = 4, .taken = 5}).size(); }).find("is to do 5 of 4 parts") != std::string::npos);
}
