#include <parsearch/models/candle_uno.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/nodes.hpp>

#include "support/models.hpp"

using namespace parsearch;

namespace {
/// Products of a sample, which are the parameters without bias.
std::int64_t products(std::int64_t layers, std::int64_t dense, std::int64_t width, bool shared = false) {
    std::int64_t const drug = 5270 + 2048, inputs = 942 + (shared ? 1 : 2) * drug, towers = shared ? 3 : 5;
    return inputs * width + towers * (layers - 1) * width * width + (5 * width + 2) * width + (dense - 1) * width * width + width;
}
} // namespace

TEST_CASE("candle_uno: TopoOpt's sizes have 1,187,893,248 parameters") {
    auto const s = support::check_model(models::candle_uno({.batch = 2}));
    CHECK(s.parameters == 1'187'893'248);
    CHECK(s.parameters == products(12, 8, 4096));
    CHECK(s.multiply_adds == 2.0 * 1'187'893'248.0);
}

TEST_CASE("candle_uno: FlexFlow's sizes, biases and shared towers") {
    models::candle_uno_options o{.tower = std::vector<std::int64_t>(8, 4192), .dense = std::vector<std::int64_t>(4, 4192), .batch = 1};
    CHECK(support::check_model(models::candle_uno(o)).parameters == products(8, 4, 4192));
    o.bias = true;
    CHECK(support::check_model(models::candle_uno(o)).parameters == products(8, 4, 4192) + (5 * 8 + 4) * 4192 + 1);
    o.bias = false;
    o.shared_drugs = true;
    auto const s = support::check_model(models::candle_uno(o));
    CHECK(s.parameters == products(8, 4, 4192, true));
    CHECK(s.multiply_adds == static_cast<double>(products(8, 4, 4192)));
}

TEST_CASE("candle_uno: simulates under expert strategies; splitting the layers moves fewer gradients") {
    auto const cluster = topology::dgx_a100(1);
    auto const problem = make_problem(models::candle_uno({.tower = {1024, 1024}, .dense = {1024}}), cluster, cost::roofline{cluster});
    auto const data = simulate(problem, data_parallel(problem)), trick = simulate(problem, one_weird_trick(problem)),
               operation = simulate(problem, operation_parallel(problem));
    auto const gradients = static_cast<std::size_t>(sim::traffic_kind::weight_gradient);
    // Two layers of the five towers, one of dense, which sees the doses too, and the output.
    double const weights = (942 + 2 * 5270 + 2 * 2048) * 1024.0 + 5 * 1024 * 1024.0 + (5 * 1024 + 2) * 1024.0 + 1024;
    CHECK(data.traffic[gradients] == 14 * 4 * weights);
    CHECK(trick.traffic[gradients] == 0); // the one unit at the end is on one device
    CHECK(operation.traffic[gradients] == 0);
}

TEST_CASE("candle_uno: bad options are refused") {
    CHECK(support::refusal([] { return models::candle_uno({.expression = 0}); }) == "candle_uno: expression is 0: must be at least 1");
    CHECK(support::refusal([] { return models::candle_uno({.descriptors = 0}); }) == "candle_uno: descriptors is 0: must be at least 1");
    CHECK(support::refusal([] { return models::candle_uno({.fingerprints = 0}); }) == "candle_uno: fingerprints is 0: must be at least 1");
    CHECK(support::refusal([] { return models::candle_uno({.tower = {0}}); }) == "candle_uno: tower is 0: must be at least 1");
    CHECK(support::refusal([] { return models::candle_uno({.dense = {4, -4}}); }) == "candle_uno: dense is -4: must be at least 1");
    CHECK(support::refusal([] { return models::candle_uno({.batch = 0}); }) == "candle_uno: batch is 0: must be at least 1");
    CHECK(support::refusal([] { return models::candle_uno({.type = ops::dtype::i64}); }) == "candle_uno: type is i64: must be a floating-point type");
}
