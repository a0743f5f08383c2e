#include <parsearch/models/ncf.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/models.hpp"

using namespace parsearch;

TEST_CASE("ncf: MLPerf's sizes on MovieLens 20M have 31,832,577 parameters") {
    auto const s = support::check_model(models::ncf({.batch = 2}));
    CHECK(s.parameters == 31'832'577);
    CHECK(s.parameters == (138'493 + 26'744) * (64 + 128) + 257 * 256 + 257 * 128 + 129 * 64 + 129);
    CHECK(s.multiply_adds == 2 * (256 * 256 + 256 * 128 + 128 * 64 + 128));
}

TEST_CASE("ncf: TopoOpt's 128 tables") {
    auto const model = models::ncf({.users = 1'000'000, .items = 1'000'000, .tables = 32, .hidden = std::vector<std::int64_t>(8, 4096), .batch = 1});
    auto const s = support::check_model(model);
    CHECK(support::count(model, "embedding") == 128);
    CHECK(s.parameters == 32 * 2 * 1'000'000LL * (64 + 128) + (64 * 128 + 1) * 4096LL + 7 * 4097 * 4096LL + (32 * 64 + 4096 + 1));
}

TEST_CASE("ncf: whole tables on devices of their own are cheaper than data parallelism") {
    auto const cluster = topology::dgx_a100(1);
    auto const problem = make_problem(models::ncf({.batch = 1024}), cluster, cost::roofline{cluster});
    auto const data = simulate(problem, data_parallel(problem)), tables = simulate(problem, table_parallel(problem));
    auto const gradients = static_cast<std::size_t>(sim::traffic_kind::weight_gradient);
    CHECK(data.traffic[gradients] == 14 * 4 * 31'832'577.0);
    CHECK(tables.traffic[gradients] == 14 * 4 * (31'832'577.0 - (138'493 + 26'744) * 192));
    CHECK(tables.makespan < data.makespan);
}

TEST_CASE("ncf: bad options are refused") {
    CHECK(support::refusal([] { return models::ncf({.users = 0}); }) == "ncf: users is 0: must be at least 1");
    CHECK(support::refusal([] { return models::ncf({.items = 0}); }) == "ncf: items is 0: must be at least 1");
    CHECK(support::refusal([] { return models::ncf({.tables = 0}); }) == "ncf: tables is 0: must be at least 1");
    CHECK(support::refusal([] { return models::ncf({.tables = 70'000}); }) == "ncf: tables is 70000: must be at most 65536");
    CHECK(support::refusal([] { return models::ncf({.factors = 0}); }) == "ncf: factors is 0: must be at least 1");
    CHECK(support::refusal([] { return models::ncf({.embedding = 0}); }) == "ncf: embedding is 0: must be at least 1");
    CHECK(support::refusal([] { return models::ncf({.hidden = {0}}); }) == "ncf: hidden is 0: must be at least 1");
    CHECK(support::refusal([] { return models::ncf({.batch = 0}); }) == "ncf: batch is 0: must be at least 1");
    CHECK(support::refusal([] { return models::ncf({.type = ops::dtype::i64}); }) == "ncf: type is i64: must be a floating-point type");
}
