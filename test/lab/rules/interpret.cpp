#include <parsearch/lab/rules/interpret.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {
dense_tensor tensor(std::array<std::int32_t, 3> extents, std::vector<std::int64_t> data, std::array<std::int32_t, 3> degrees = {1, 1, 1}) {
    return {extents, degrees, std::move(data), {}};
}
pattern_operator moved(std::string_view type, int dim, value degree = 2) {
    return {std::string(type), {{-1}}, {{"PM_PARALLEL_DIM", dim}, {"PM_PARALLEL_DEGREE", degree}}};
}
pattern_operator concat(int axis) { return {"OP_CONCAT", {{-1}, {-2}}, {{"PM_NUM_INPUTS", 2}, {"PM_AXIS", axis}, {"PM_NUMDIM", 3}}}; }
/// The only output of a pattern of one operator.
dense_tensor only(pattern_operator const& o, std::vector<dense_tensor> const& given) {
    auto const out = interpret({{o}}, given);
    REQUIRE(out.problem == illegal::no);
    return out.outputs.at(0).at(0);
}
illegal problem(pattern_operator const& o, std::vector<dense_tensor> const& given) { return interpret({{o}}, given).problem; }
std::string refused(pattern_operator const& o) {
    return support::refusal([&] { return interpret({{o}}, std::vector{tensor({1, 1, 1}, {0}), tensor({1, 1, 1}, {0})}).where; });
}
} // namespace

TEST_CASE("interpretation: the parallel operators") {
    std::vector const x{tensor({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})};
    CHECK(only(moved("OP_PARTITION", 2), x) == tensor({1, 2, 4}, x[0].data, {1, 1, 2}));
    CHECK(problem(moved("OP_PARTITION", 2, 8), x) == illegal::indivisible_extent);
    CHECK(problem(moved("OP_PARTITION", 0), x) == illegal::indivisible_extent);
    CHECK(problem(moved("OP_COMBINE", 2), x) == illegal::indivisible_degree);
    CHECK(only(moved("OP_COMBINE", 2), {tensor({1, 2, 4}, x[0].data, {1, 2, 4})}) == tensor({1, 2, 4}, x[0].data, {1, 2, 2}));
    CHECK(only(moved("OP_REPLICATE", 0), x) == tensor({2, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}, {2, 1, 1}));
    CHECK(only(moved("OP_REPLICATE", 1), x) == tensor({1, 4, 4}, {1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8}, {1, 2, 1}));
    CHECK(only(moved("OP_REPLICATE", 2), x).data == std::vector<std::int64_t>{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8});
    CHECK(only(moved("OP_REDUCE", 2), x) == tensor({1, 2, 2}, {3, 7, 11, 15}));
    CHECK(only(moved("OP_REDUCE", 2, 4), x) == tensor({1, 2, 1}, {10, 26}));
    CHECK(only(moved("OP_REDUCE", 1), {tensor({1, 2, 4}, x[0].data, {1, 2, 2})}) == tensor({1, 1, 4}, {6, 8, 10, 12}, {1, 1, 2}));
    CHECK(problem(moved("OP_REDUCE", 2, 3), x) == illegal::indivisible_extent);
    CHECK(problem(moved("OP_REDUCE", 2), {tensor({1, 1, 6}, std::vector<std::int64_t>(6), {1, 1, 6})}) == illegal::no);
    CHECK(problem(moved("OP_REPLICATE", 2, 1024), {tensor({1, 1, 2048}, std::vector<std::int64_t>(2048))}) == illegal::too_large);
}

TEST_CASE("interpretation: elementwise, concatenated, split") {
    std::vector const x{tensor({1, 1, 2}, {-1, 2}), tensor({1, 1, 2}, {3, 4})};
    CHECK(only({"OP_RELU", {{-1}}}, x) == tensor({1, 1, 2}, {0, 2}));
    CHECK(only({"OP_EW_ADD", {{-1}, {-2}}}, x) == tensor({1, 1, 2}, {2, 6}));
    CHECK(only({"OP_EW_MUL", {{-1}, {-2}}}, x) == tensor({1, 1, 2}, {-3, 8}));
    CHECK(problem({"OP_EW_ADD", {{-1}, {-2}}}, {x[0], tensor({1, 1, 2}, {3, 4}, {1, 1, 2})}) == illegal::other_degrees);
    CHECK(problem({"OP_EW_ADD", {{-1}, {-2}}}, {x[0], tensor({1, 2, 1}, {3, 4})}) == illegal::other_extents);
    CHECK(only(concat(1), x) == tensor({1, 2, 2}, {-1, 2, 3, 4}));
    CHECK(only(concat(2), {tensor({1, 2, 1}, {1, 2}), tensor({1, 2, 2}, {3, 4, 5, 6})}) == tensor({1, 2, 3}, {1, 3, 4, 2, 5, 6}));
    CHECK(problem(concat(1), {x[0], tensor({1, 1, 1}, {3})}) == illegal::other_extents);

    // What was joined comes apart as it was joined, and in equal parts where nothing was.
    std::vector const uneven{tensor({1, 2, 1}, {1, 2}), tensor({1, 4, 1}, {3, 4, 5, 6})};
    pattern_operator split{"OP_SPLIT", {{0}}, {{"PM_NUM_OUTPUTS", 2}, {"PM_AXIS", 1}}};
    auto const back = interpret({{concat(1), split}}, uneven);
    REQUIRE(back.outputs[1].size() == 2);
    CHECK(back.outputs[1][0] == uneven[0]);
    CHECK(back.outputs[1][1] == uneven[1]);
    auto doubled = moved("OP_REPLICATE", 1), halved = moved("OP_REDUCE", 1);
    doubled.inputs = {{0}}, halved.inputs = {{1}}, split.inputs = {{2}};
    auto const twice = interpret({{concat(1), doubled, halved, split}}, uneven);
    CHECK(twice.outputs[3][0] == tensor({1, 2, 1}, {2, 4}));
    split.inputs = {{-2}};
    CHECK(interpret({{split}}, uneven).outputs[0][1] == tensor({1, 2, 1}, {5, 6}));
}

TEST_CASE("interpretation: a linear, its degrees and its partial sums") {
    pattern_operator const plain{"OP_LINEAR", {{-1}, {-2}}, {{"PM_ACTI", 0}}}, relu{"OP_LINEAR", {{-1}, {-2}}, {{"PM_ACTI", 2}}};
    std::vector const xw{tensor({1, 1, 2}, {1, 2}), tensor({1, 3, 2}, {1, 0, -5, 1, 1, 1})};
    CHECK(only(plain, xw) == tensor({1, 1, 3}, {1, -3, 3}));
    CHECK(only(relu, xw) == tensor({1, 1, 3}, {1, 0, 3}));
    // Only the first entry of a replica dim is read.
    CHECK(only(plain, {tensor({2, 1, 2}, {1, 2, 9, 9}), xw[1]}) == tensor({1, 1, 3}, {1, -3, 3}));
    CHECK(only(plain, {tensor({1, 1, 2}, {1, 2}, {1, 1, 2}), tensor({1, 3, 2}, xw[1].data, {1, 1, 2})}) ==
          tensor({2, 1, 3}, {1, -5, 1, 0, 2, 2}, {2, 1, 1}));
    CHECK(problem(plain, {tensor({1, 1, 2}, {1, 2}, {1, 1, 2}), xw[1]}) == illegal::other_degrees);
    CHECK(only(plain, {tensor({1, 2, 1}, {1, 2}, {1, 2, 1}), tensor({2, 1, 1}, {3, 3}, {2, 1, 1})}) == tensor({1, 2, 1}, {3, 6}, {1, 2, 1}));
    CHECK(problem(plain, {xw[0], tensor({1, 1, 3}, {1, 1, 1})}) == illegal::other_extents);
}

TEST_CASE("interpretation: a rule is tried with any degree") {
    rule r{.name = "moved",
           .source = {{moved("OP_PARTITION", 1, "degree"), {"OP_RELU", {{0}}}}},
           .target = {{{"OP_RELU", {{-1}}}, {"OP_PARTITION", {{0}}, {{"PM_PARALLEL_DIM", 1}, {"PM_PARALLEL_DEGREE", "degree"}}}}},
           .outputs = {{{1, 0}, {1, 0}}}};
    std::vector const x{tensor({1, 6, 1}, {-1, 2, -3, 4, -5, 6})};
    CHECK(try_rule(r, x, {{"degree", 2}}) == trial::holds);
    CHECK(try_rule(r, x, {{"degree", 3}}) == trial::holds);
    CHECK(try_rule(r, x, {{"degree", 4}}) == trial::source_illegal);
    CHECK(support::refusal([&] { return try_rule(r, x); }) == "operator 0: OP_PARTITION: PM_PARALLEL_DEGREE is variable degree, which has no number");
    r.target.operators[1].parameters[0].value = 2;
    CHECK(try_rule(r, x, {{"degree", 2}}) == trial::target_illegal);
    r.target.operators[1].parameters[0].value = 1;
    r.target.operators[1].parameters[1].value = 3;
    CHECK(try_rule(r, x, {{"degree", 2}}) == trial::degrees_differ);
    r.target.operators[1] = {"OP_REDUCE", {{0}}, {{"PM_PARALLEL_DIM", 1}, {"PM_PARALLEL_DEGREE", 2}}};
    CHECK(try_rule(r, x, {{"degree", 2}}) == trial::extents_differ);
    r.target.operators[1] = {"OP_PARTITION", {{-1}}, {{"PM_PARALLEL_DIM", 1}, {"PM_PARALLEL_DEGREE", 2}}};
    r.outputs.push_back({{0, 0}, {0, 0}});
    CHECK(try_rule(r, x, {{"degree", 2}}) == trial::data_differ);
}

TEST_CASE("interpretation: what cannot be interpreted is named") {
    CHECK(refused({"OP_CONV2D", {{-1}, {-2}}}) == "operator 0: OP_CONV2D: what it computes is not known");
    CHECK(refused({"OP_RELU", {{-1}, {-2}}}) == "operator 0: OP_RELU: takes 2 inputs: must take 1");
    CHECK(refused({"OP_RELU", {{-1}}, {{"PM_ACTI", 0}}}) == "operator 0: OP_RELU: parameter PM_ACTI has no meaning here");
    CHECK(refused({"OP_LINEAR", {{-1}, {-2}}}) == "operator 0: OP_LINEAR: PM_ACTI is missing");
    CHECK(refused({"OP_LINEAR", {{-1}, {-2}}, {{"PM_ACTI", 1}}}) == "operator 0: OP_LINEAR: PM_ACTI is 1: must be 0 (none) or 2 (relu)");
    CHECK(refused(moved("OP_REDUCE", 3)) == "operator 0: OP_REDUCE: PM_PARALLEL_DIM is 3: must be from 0 to 2");
    CHECK(refused(moved("OP_REDUCE", 1, 0)) == "operator 0: OP_REDUCE: PM_PARALLEL_DEGREE is 0: must be from 1 to 1024");
    CHECK(refused({"OP_RELU", {{-3}}}) == "operator 0 (OP_RELU): input x3 is not given");
    CHECK(support::refusal([&] {
              return interpret({{{"OP_RELU", {{-1}}}}}, std::vector{tensor({1, 2, 1}, {1})}).where;
          }) == "input x1: its extents must be positive, its degrees divide them, its data be as many as they say, at most 1048576");
}
