#include <parsearch/models/dlrm.hpp>

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
/// Parameters and multiply-adds of a perceptron with biases.
struct counts {
    std::int64_t parameters = 0;
    double products = 0;
    counts(std::vector<std::int64_t> const& sizes) {
        for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
            parameters += (sizes[i] + 1) * sizes[i + 1];
            products += static_cast<double>(sizes[i] * sizes[i + 1]);
        }
    }
};
models::dlrm_options const small{
    .dense = 16, .bottom = {32, 8}, .tables = std::vector<std::int64_t>(8, 100'000), .features = 8, .bag = 4, .top = {32}, .batch = 64};
} // namespace

TEST_CASE("dlrm: TopoOpt's sizes have 41,041,831,937 parameters") {
    counts const bottom(std::vector<std::int64_t>(9, 1024));
    std::vector<std::int64_t> sizes(17, 2048);
    sizes.front() = 16 * 256 + 1024;
    sizes.push_back(1);
    counts const top(sizes);
    auto const s = support::check_model(models::dlrm({.batch = 2}));
    CHECK(s.parameters == 41'041'831'937);
    CHECK(s.parameters == 16 * 10'000'000LL * 256 + bottom.parameters + top.parameters);
    CHECK(s.multiply_adds == 2 * (bottom.products + top.products));
}

TEST_CASE("dlrm: TopoOpt's sizes for 128 servers") {
    auto const s = support::check_model(models::dlrm({.dense = 2048,
                                                      .bottom = std::vector<std::int64_t>(8, 2048),
                                                      .tables = std::vector<std::int64_t>(64, 10'000'000),
                                                      .features = 128,
                                                      .top = std::vector<std::int64_t>(16, 4096),
                                                      .batch = 1}));
    std::vector<std::int64_t> sizes(17, 4096);
    sizes.front() = 64 * 128 + 2048;
    sizes.push_back(1);
    CHECK(s.parameters == 64 * 10'000'000LL * 128 + counts(std::vector<std::int64_t>(9, 2048)).parameters + counts(sizes).parameters);
}

TEST_CASE("dlrm: dot interaction, MLPerf's perceptrons have 2,368,897 parameters") {
    auto const model = models::dlrm({.dense = 13,
                                     .bottom = {512, 256, 128},
                                     .tables = std::vector<std::int64_t>(26, 1000),
                                     .features = 128,
                                     .bag = 1,
                                     .interaction = models::feature_interaction::dot,
                                     .top = {1024, 1024, 512, 256},
                                     .batch = 4});
    auto const s = support::check_model(model);
    CHECK(s.parameters == 26 * 1000 * 128 + 2'368'897);
    counts const bottom({13, 512, 256, 128}), top({128 + 27 * 26 / 2, 1024, 1024, 512, 256, 1});
    CHECK(bottom.parameters + top.parameters == 2'368'897);
    // The products of all pairs of 27 vectors of 128.
    CHECK(s.multiply_adds == 4 * (bottom.products + top.products + 27 * 27 * 128));
}

TEST_CASE("dlrm: whole tables on devices of their own move less than data parallelism, and less memory is needed") {
    auto const cluster = topology::dgx_a100(1);
    auto const problem = make_problem(models::dlrm(small), cluster, cost::roofline{cluster});
    auto const data = simulate(problem, data_parallel(problem)), tables = simulate(problem, table_parallel(problem));
    auto const weight_gradients = static_cast<std::size_t>(sim::traffic_kind::weight_gradient);
    double const dense = static_cast<double>(counts({16, 32, 8}).parameters + counts({8 * 8 + 8, 32, 1}).parameters);
    // An all-reduce among 8 moves its bytes 2 (8 - 1) times: of perceptrons and tables, or of perceptrons alone.
    CHECK(data.traffic[weight_gradients] == 14 * 4 * (dense + 8 * 100'000 * 8));
    CHECK(tables.traffic[weight_gradients] == 14 * 4 * dense);
    // What is sent instead: each table's vectors to the seven other devices, and their gradients back.
    auto const activations = static_cast<std::size_t>(sim::traffic_kind::activation),
               gradients = static_cast<std::size_t>(sim::traffic_kind::gradient);
    CHECK(tables.traffic[activations] == 8.0 * 64 * 8 * 4 * 7 / 8);
    CHECK(tables.traffic[gradients] == tables.traffic[activations]);
    CHECK(tables.makespan < data.makespan);
    CHECK(2 * tables.peak_memory() < data.peak_memory());
    CHECK(tables.bytes_moved() < data.bytes_moved() / 10);

    // Rows split over all devices: no gradients of tables are exchanged either, and the vectors are partial sums.
    auto rows = data_parallel(problem);
    for (std::size_t op = 0; op < problem.size(); ++op) {
        auto const& operation = problem.graph().operations[op];
        if (operation.kind != "embedding_bag") continue;
        rows[op] = space::whole(operation);
        rows[op].degree[3] = 8;
        rows[op].stride[3] = 1;
    }
    auto const split = simulate(problem, rows);
    CHECK(split.traffic[weight_gradients] == 14 * 4 * dense);
    CHECK(split.traffic[static_cast<std::size_t>(sim::traffic_kind::partial_sum)] > 0);
    CHECK(split.makespan < data.makespan);
}

TEST_CASE("dlrm: bad options are refused") {
    CHECK(support::refusal([] { return models::dlrm({.dense = 0}); }) == "dlrm: dense is 0: must be at least 1");
    CHECK(support::refusal([] { return models::dlrm({.bottom = {8, 0}}); }) == "dlrm: bottom is 0: must be at least 1");
    CHECK(support::refusal([] { return models::dlrm({.tables = {}}); }) == "dlrm: number of tables is 0: must be at least 1");
    CHECK(support::refusal([] { return models::dlrm({.tables = {5, -1}}); }) == "dlrm: tables is -1: must be at least 1");
    CHECK(support::refusal([] { return models::dlrm({.tables = std::vector<std::int64_t>(65537, 1)}); }) ==
          "dlrm: number of tables is 65537: must be at most 65536");
    CHECK(support::refusal([] { return models::dlrm({.features = 0}); }) == "dlrm: features is 0: must be at least 1");
    CHECK(support::refusal([] { return models::dlrm({.bag = 0}); }) == "dlrm: bag is 0: must be at least 1");
    CHECK(support::refusal([] { return models::dlrm({.interaction = models::feature_interaction::dot}); }) ==
          "dlrm: features is 256: must be the last size of bottom, which is 1024, where the interaction is dot");
    CHECK(support::refusal([] { return models::dlrm({.interaction = static_cast<models::feature_interaction>(7)}); }) ==
          "dlrm: interaction is number 7: must be one of those declared");
    CHECK(support::refusal([] { return models::dlrm({.top = {0}}); }) == "dlrm: top is 0: must be at least 1");
    CHECK(support::refusal([] { return models::dlrm({.batch = 0}); }) == "dlrm: batch is 0: must be at least 1");
    CHECK(support::refusal([] { return models::dlrm({.type = ops::dtype::i8}); }) == "dlrm: type is i8: must be a floating-point type");
}
