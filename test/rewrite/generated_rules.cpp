#include <parsearch/rewrite/generated_rules.hpp>

#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include <parsearch/rewrite/generator.hpp>

#include "support/refusal.hpp"
#include "support/sanitized.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

TEST_CASE("generated rules are those of the generator") {
    auto const shipped = generated_rules();
    CHECK(shipped.size() > 16'000);
    if (support::sanitized) {
        MESSAGE("skipped: under sanitizers all graphs of three operators take minutes");
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
