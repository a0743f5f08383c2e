#include <parsearch/space/likely_configurations.hpp>

#include <algorithm>
#include <cstdint>
#include <random>

#include <doctest/doctest.h>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/graph/vector_graph.hpp>
#include <parsearch/models/inception_v3.hpp>
#include <parsearch/models/mlp.hpp>
#include <parsearch/ops/embedding.hpp>

#include "support/cases.hpp"
#include "support/random_network.hpp"

namespace ps = parsearch;
using ps::space::likely_configurations;

namespace {
bool has(std::vector<ps::space::configuration> const& list, ps::space::configuration const& c) {
    return std::find(list.begin(), list.end(), c) != list.end();
}
} // namespace

TEST_CASE("candidates: data parallelism first, none twice, all legal, at most so many") {
    for (std::uint64_t seed = 1; seed <= support::cases(40u); ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const g = ps::graph::read_graph(support::random_network(rng)).graph;
        std::size_t const devices = 1 + ps::uniform_index(rng, 12), limit = 1 + ps::uniform_index(rng, 20);
        std::size_t const per_node = devices % 2 == 0 ? devices / 2 : 1;
        auto const plain = ps::space::data_parallel(g, devices);
        for (std::size_t op = 0; op < g.size(); ++op) {
            ps::space::operator_space const all(g.operations[op], devices, {}, g.names[op]);
            auto const list = likely_configurations(g.operations[op], all, devices, {.limit = limit, .per_node = per_node});
            REQUIRE(!list.empty());
            CHECK(list.front() == plain[op]);
            bool const repeats = std::ranges::any_of(g.operations[op].dims, [](auto const& d) { return ps::ops::repeats_work(d.kind); });
            CHECK(list.size() <= limit + (repeats ? limit / 3 : 0));
            for (std::size_t n = 0; n < list.size(); ++n) {
                CHECK_NOTHROW(ps::space::validate(list[n], g.operations[op], devices, g.names[op]));
                CHECK((n == 0 || all.contains(list[n])));
                CHECK(std::find(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(n), list[n]) ==
                      list.begin() + static_cast<std::ptrdiff_t>(n));
            }
        }
    }
}

TEST_CASE("candidates: what experts give linear layers is among them") {
    std::size_t const devices = 24;
    auto const g = ps::graph::read_graph(ps::models::mlp({.features = 96, .hidden = {96, 192}, .classes = 24, .batch = 48})).graph;
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto const& operation = g.operations[op];
        ps::space::operator_space const all(operation, devices, {}, g.names[op]);
        auto const list = likely_configurations(operation, all, devices, {.limit = 64, .per_node = 6});
        if (operation.work == ps::ops::work_class::source) continue;
        CHECK(has(list, ps::space::whole(operation)));
        CHECK(has(list, ps::space::split_samples(operation, 6)));
        if (operation.weights.empty()) continue;
        CHECK(has(list, ps::space::one_weird_trick(g, devices)[op]));
        for (std::size_t const degree : {2u, 3u, 4u, 6u, 8u, 12u, 24u}) CHECK(has(list, ps::space::tensor_parallel(g, devices, degree)[op]));
    }
}

TEST_CASE("candidates: tables that are looked up are also split among few devices, far apart") {
    ps::graph::operator_graph net;
    net.add("table", ps::ops::embedding{.entries = 96, .features = 8}, net.input("indices", {{48, 2}, ps::ops::dtype::i64}));
    auto const g = ps::graph::read_graph(net).graph;
    ps::space::operator_space const all(g.operations[1], 24, {}, "table");
    auto const list = likely_configurations(g.operations[1], all, 24, {.limit = 64, .per_node = 6});
    int apart = 0;
    for (auto const& c : list)
        if (c.shards() > 1 && c.shards() < 24 && c.device(1) == 24 / c.shards()) {
            CHECK(c.device(c.shards() - 1) == 24 - 24 / c.shards());
            ++apart;
        }
    CHECK(apart == 3 + 6 + 3); // features by 2, 4 and 8, rows by 2, 3, 4, 6, 8 and 12; samples by 4, 8 and 12
}

TEST_CASE("candidates: attribute dims are split among a node unless samples are few") {
    std::size_t const devices = 24;
    auto const widest = [&](std::int64_t batch) {
        auto const g = ps::graph::read_graph(ps::models::inception_v3({.batch = batch})).graph;
        std::int32_t most = 1;
        for (std::size_t op = 0; op < g.size(); ++op) {
            ps::space::operator_space const all(g.operations[op], devices, {}, g.names[op]);
            for (auto const& c : likely_configurations(g.operations[op], all, devices, {.limit = 64, .per_node = 6}))
                for (std::size_t k = 0; k < c.rank; ++k)
                    if (g.operations[op].dims[k].kind == ps::ops::dim_kind::attribute) most = std::max(most, c.degree[k]);
        }
        return most;
    };
    CHECK(widest(48) <= 6);
    CHECK(widest(48) > 1);
    CHECK(widest(12) > 6);
}

TEST_CASE("candidates: the space's limits hold for all but the first") {
    auto const g = ps::graph::read_graph(ps::models::mlp({.features = 96, .hidden = {96}, .batch = 48})).graph;
    ps::space::space_options const options{.parameter = false};
    for (std::size_t op = 0; op < g.size(); ++op) {
        ps::space::operator_space const all(g.operations[op], 12, options, g.names[op]);
        for (auto const& c : likely_configurations(g.operations[op], all, 12, {.limit = 64, .per_node = 1}))
            for (std::size_t k = 0; k < c.rank; ++k) CHECK((g.operations[op].dims[k].kind != ps::ops::dim_kind::parameter || c.degree[k] == 1));
    }
}
