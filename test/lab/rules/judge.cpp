#include <parsearch/lab/rules/judge.hpp>

#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include "support/cases.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {
pattern_operator parallel(std::string_view type, pattern_tensor of, int dim) {
    return {std::string(type), {of}, {{"PM_PARALLEL_DIM", dim}, {"PM_PARALLEL_DEGREE", "degree"}}};
}
pattern_operator linear(pattern_tensor x, pattern_tensor w, int activation = 0) { return {"OP_LINEAR", {x, w}, {{"PM_ACTI", activation}}}; }
/// A linear over split channels, its partial sums reduced: reduction parallelism, which Unity's file does not have.
rule reduction(int activation) {
    return {.name = "reduction",
            .source = {{linear({-1}, {-4}, activation)}},
            .target = {{parallel("OP_PARTITION", {-1}, 2), parallel("OP_PARTITION", {-4}, 2), linear({0}, {1}, activation),
                        parallel("OP_REDUCE", {2}, 0)}},
            .outputs = {{{0, 0}, {3, 0}}},
            .parameters = {"degree"}};
}
judging const quick{.seed = 7, .cases = 80, .draws = 20000};
} // namespace

TEST_CASE("judging: a true rule holds in every reading") {
    auto const r = reduction(0);
    for (auto const& v : {judge_fixture(r, quick), judge(r, quick)}) {
        CHECK(v.tested > 0);
        CHECK(!v.refuted);
    }
    auto const t = translate(r);
    REQUIRE(t.parallel);
    auto const v = judge_parallel(*t.parallel, quick);
    CHECK(v.tested == quick.cases);
    CHECK(!v.refuted);
    CHECK(v.refused > 0); // channels that are not divisible
}

TEST_CASE("judging: a relu of partial sums is not the relu of the sum") {
    auto const r = reduction(2);
    auto const v = judge(r, quick);
    REQUIRE(v.refuted);
    CHECK(v.refuted->how == trial::data_differ);
    CHECK(to_string(r, *v.refuted).find("data differ") != std::string::npos);
    // The counterexample is one.
    std::vector<dense_tensor> given;
    for (auto const& g : v.refuted->given) given.push_back(g.value);
    CHECK(try_rule(r, given, v.refuted->variables) == trial::data_differ);
    // As a rule of parallel tensors its target is legal nowhere.
    auto const p = judge_parallel(*translate(r).parallel, quick);
    CHECK(p.tested == 0);
    CHECK(p.refused > 0);
}

TEST_CASE("judging: what holds on the fixture need not hold elsewhere") {
    // Rule 445 of Unity's file: true where the two rows of x1 and x2 are all that there is.
    rule const r{.name = "445",
                 .source = {{parallel("OP_REDUCE", {-1}, 1), parallel("OP_REDUCE", {-2}, 1), {"OP_EW_ADD", {{0}, {1}}}}},
                 .target = {{{"OP_CONCAT", {{-1}, {-2}}, {{"PM_NUM_INPUTS", 2}, {"PM_AXIS", 1}, {"PM_NUMDIM", 3}}},
                             parallel("OP_REDUCE", {0}, 1),
                             parallel("OP_REDUCE", {1}, 1)}},
                 .outputs = {{{2, 0}, {2, 0}}},
                 .parameters = {"degree"}};
    CHECK(!judge_fixture(r, quick).refuted);
    auto const v = judge(r, quick);
    REQUIRE(v.refuted);
    // The same draws, the same counterexample.
    CHECK(judge(r, quick).refuted->given == v.refuted->given);
    // Reduce by another reading, and the fixture refutes it.
    CHECK(judge_fixture(r, quick, {.reduce_partitioned = true}).tested == 0);
}

TEST_CASE("judging: constraints restrict the variables that are drawn") {
    // x + x is the sum of two copies, not of three.
    rule r{.name = "twice",
           .source = {{parallel("OP_REPLICATE", {-1}, 0), parallel("OP_REDUCE", {0}, 0)}},
           .target = {{{"OP_EW_ADD", {{-1}, {-1}}}}},
           .outputs = {{{1, 0}, {0, 0}}}};
    CHECK(judge(r, quick).refuted);
    r.constraints = {{"degree", relation::equal, 2}};
    auto const v = judge(r, quick);
    CHECK(!v.refuted);
    CHECK(v.tested == quick.cases);
}

TEST_CASE("judging: numbers of 64 bits wrap around where they are asked for") {
    // A square is not negative, but modulo 2^64.
    rule const square{.name = "square",
                      .source = {{{"OP_EW_MUL", {{-1}, {-1}}}, {"OP_RELU", {{0}}}}},
                      .target = {{{"OP_EW_MUL", {{-1}, {-1}}}}},
                      .outputs = {{{1, 0}, {0, 0}}}};
    rule const twice{
        .name = "twice", .source = {{{"OP_RELU", {{-1}}}, {"OP_RELU", {{0}}}}}, .target = {{{"OP_RELU", {{-1}}}}}, .outputs = {{{1, 0}, {0, 0}}}};
    auto wide = quick;
    wide.wide = true;
    CHECK(!judge(square, quick).refuted);
    CHECK(!judge_fixture(square, quick).refuted);
    CHECK(judge(square, wide).refuted);
    CHECK(judge_fixture(square, wide).refuted);
    CHECK(!judge(twice, wide).refuted);
}

TEST_CASE("judging: tensors that are joined have different extents often enough") {
    // The parts of a sum in another order: true where all have the same extent.
    auto const joined = [](pattern_tensor first, pattern_tensor second) {
        return pattern_operator{"OP_CONCAT", {first, second}, {{"PM_NUM_INPUTS", 2}, {"PM_AXIS", 2}, {"PM_NUMDIM", 3}}};
    };
    rule const r{.name = "exchanged",
                 .source = {{joined({-1}, {-2}), joined({-4}, {-5}), linear({0}, {1})}},
                 .target = {{joined({-2}, {-1}), joined({-5}, {-4}), linear({0}, {1})}},
                 .outputs = {{{2, 0}, {2, 0}}}};
    CHECK(!judge_fixture(r, quick).refuted);
    auto const seeds = support::cases(40);
    int refuted = 0;
    for (int seed = 0; seed < seeds; ++seed) refuted += judge(r, {.seed = static_cast<std::uint64_t>(seed), .cases = 100}).refuted.has_value();
    CHECK(refuted >= seeds - 1);
}

TEST_CASE("judging: what is asked must make sense") {
    CHECK(support::refusal([] { return judge(reduction(0), {.cases = 0}).tested; }) ==
          "judging in 0 cases of 20000 draws: must be 1 <= cases <= draws");
    auto r = reduction(0);
    r.source.operators[0].inputs[1].op = -65;
    CHECK(support::refusal([&] { return judge(r).tested; }) == "rule 'reduction' has input x65: must be at most x64 to be judged");
}
