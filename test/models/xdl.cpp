#include <parsearch/models/xdl.hpp>

#include <cstddef>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/models.hpp"

using namespace parsearch;

TEST_CASE("xdl: FlexFlow's example has 256,131,584 parameters") {
    auto const s = support::check_model(models::xdl({.batch = 2}));
    CHECK(s.parameters == 4 * 1'000'000 * 64 + 256 * 256 + 256 * 256 + 256 * 2);
    CHECK(s.parameters == 256'131'584);
    CHECK(s.multiply_adds == 2 * (2 * 256 * 256 + 256 * 2));
}

TEST_CASE("xdl: whole tables on devices of their own are cheaper than data parallelism") {
    auto const cluster = topology::dgx_a100(1);
    auto const problem = make_problem(models::xdl({.batch = 1024}), cluster, cost::roofline{cluster});
    auto const data = simulate(problem, data_parallel(problem)), tables = simulate(problem, table_parallel(problem));
    auto const gradients = static_cast<std::size_t>(sim::traffic_kind::weight_gradient);
    CHECK(data.traffic[gradients] == 14 * 4 * 256'131'584.0);
    CHECK(tables.traffic[gradients] == 14 * 4 * 131'584.0);
    CHECK(tables.makespan < data.makespan);
}

TEST_CASE("xdl: bad options are refused") {
    CHECK(support::refusal([] { return models::xdl({.tables = {}}); }) == "xdl: number of tables is 0: must be at least 1");
    CHECK(support::refusal([] { return models::xdl({.tables = {0}}); }) == "xdl: tables is 0: must be at least 1");
    CHECK(support::refusal([] { return models::xdl({.features = 0}); }) == "xdl: features is 0: must be at least 1");
    CHECK(support::refusal([] { return models::xdl({.bag = -1}); }) == "xdl: bag is -1: must be at least 1");
    CHECK(support::refusal([] { return models::xdl({.hidden = {0}}); }) == "xdl: hidden is 0: must be at least 1");
    CHECK(support::refusal([] { return models::xdl({.classes = 0}); }) == "xdl: classes is 0: must be at least 1");
    CHECK(support::refusal([] { return models::xdl({.batch = 0}); }) == "xdl: batch is 0: must be at least 1");
    CHECK(support::refusal([] { return models::xdl({.type = ops::dtype::i64}); }) == "xdl: type is i64: must be a floating-point type");
}
