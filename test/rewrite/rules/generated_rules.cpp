#include <parsearch/rewrite/rules/generated_rules.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/lab/rules/generator.hpp>
#include <parsearch/lab/rules/judge.hpp>

#include "support/cases.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

TEST_CASE("generated rules are those of the generator") {
    auto const shipped = generated_rules();
    CHECK(shipped.size() > 16'000);
    if (!support::nightly()) {
        MESSAGE("skipped: all graphs of three operators are for the night");
        return;
    }
    CHECK(generator({.graphs = {.operators = 3, .threads = 2}}).rules().rules == shipped);
}

TEST_CASE("generated rules: the first of them, valid and different") {
    auto const all = generated_rules();
    auto const few = generated_rules(100);
    REQUIRE(few.size() == 100);
    CHECK(std::equal(few.begin(), few.end(), all.begin()));
    CHECK(few.front().name == "generated_0");
    CHECK(generated_rules(0).empty());
    rewrite::detail::rule_notation const notation;
    std::set<std::string> seen;
    for (auto const& r : all) {
        REQUIRE_NOTHROW(check(r));
        REQUIRE(seen.insert(notation.written(r)).second);
    }
}

TEST_CASE("generated rules: the notation") {
    rewrite::detail::rule_notation const notation;
    auto const twice = notation.read("m1mA-m1-BA");
    CHECK(to_string(twice) == ": 0=OP_RELU(x1); 1=OP_RELU(0.0) => 0=OP_RELU(x1) where 1.0 is 0.0");
    CHECK(notation.written(twice) == "m1mA-m1-BA");
    auto const split = notation.read("b1eA--B1");
    CHECK(split.parameters == std::vector<std::string>{"degree"});
    CHECK(notation.written(split) == "b1eA--B1");
    for (auto const* wrong : {"", "m1", "m1-m1", "m1-m1-A", "m-m1-AA", "?1-m1-AA", "n1-m1-AA", "m0-m1-AA", "mZ-m1-AA"})
        CHECK(support::refusal([&] { return notation.read(wrong).name; }) == text("'", wrong, "' is no notation of a rule"));
    rule other{.name = "other", .source = {{{"OP_NEGATE", {{-1}}}}}, .target = {{{"OP_NEGATE", {{-1}}}}}, .outputs = {{{0, 0}, {0, 0}}}};
    CHECK_THROWS_AS((void)notation.written(other), invalid_input);
}

TEST_CASE("generated rules: the notation of marks") {
    rewrite::detail::rule_notation const notation;
    auto const twice = notation.read("m1mA-m1-BA");
    for (auto const& [how, marked] :
         {std::pair{proof::none, "m1mA-m1-BA?"}, {proof::whole_inputs, "m1mA-m1-BA+"}, {proof::any_inputs, "m1mA-m1-BA*"}}) {
        CHECK(notation.written(twice, how) == marked);
        CHECK(notation.unmarked(marked) == std::pair{std::string_view("m1mA-m1-BA"), how});
        CHECK_THROWS_AS((void)notation.read(marked), invalid_input); // a mark is no part of a rule
    }
    for (auto const* wrong : {"", "m1mA-m1-BA", "m1mA-m1-BA!", "m1mA-m1-BA* "})
        CHECK(support::refusal([&] { return notation.unmarked(wrong).first; }) == text("'", wrong, "' has no mark: must end in '*', '+' or '?'"));
}

TEST_CASE("generated rules: each is marked, the proved and the tested") {
    auto const marks = generated_proofs();
    CHECK(marks.size() == generated_rules().size());
    for (auto const how : {proof::none, proof::whole_inputs, proof::any_inputs}) CHECK(std::count(marks.begin(), marks.end(), how) > 1'000);
    auto const few = generated_proofs(100);
    REQUIRE(few.size() == 100);
    CHECK(std::equal(few.begin(), few.end(), marks.begin()));
    CHECK(generated_proofs(0).empty());
}

TEST_CASE("generated rules: all hold on random data of several sizes, the proved ones where numbers wrap around as well") {
    constexpr std::uint64_t seed = 4242; // not that of the generator, nor of the program that marked them
    INFO("seed ", seed);
    auto const rules = generated_rules();
    auto const marks = generated_proofs();
    std::size_t wrapping = 0;
    for (std::size_t i = 0; i < rules.size(); ++i) {
        if (support::sanitized && i % 16 != 5) continue;
        CAPTURE(to_string(rules[i]));
        judging how{.seed = seed + i, .cases = 12, .draws = 4000};
        auto const v = judge(rules[i], how);
        CHECK(!v.refuted);
        CHECK(v.tested == how.cases);
        how.wide = true;
        how.cases = 6;
        bool const wraps = judge(rules[i], how).refuted.has_value();
        CHECK(!(wraps && marks[i] != proof::none));
        wrapping += wraps;
    }
    CHECK(wrapping > 0); // x * x is not negative, and other rules that need numbers without bounds: the test could have failed
}

TEST_CASE("generated rules: those that ask for equal parts are refuted, and do not ship") {
    // Linears over joined channels, the parts of both operands in another order: true where all have the same extent.
    rewrite::detail::rule_notation const notation;
    for (auto const* wrong : {"t12t23vAB-t21t32vAB-CC", "t12t45vAB-t21t54vAB-CC", "t45t56wAB-t54t65wAB-CC"}) {
        auto r = notation.read(wrong);
        r.name = wrong;
        CAPTURE(to_string(r));
        auto const v = judge(r);
        REQUIRE(v.refuted);
        std::vector<dense_tensor> given;
        for (auto const& g : v.refuted->given) given.push_back(g.value);
        CHECK(try_rule(r, given, v.refuted->variables) == trial::data_differ);
        CHECK(!judge_fixture(r).refuted);
    }
}
