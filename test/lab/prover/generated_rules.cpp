#include <parsearch/rewrite/rules/generated_rules.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/lab/prover/prover.hpp>
#include <parsearch/lab/rules/judge.hpp>

#include "support/cases.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

TEST_CASE("generated rules: a sample is proved as far as it is marked") {
    constexpr std::uint64_t seed = 11;
    INFO("seed ", seed);
    split_mix rng(seed);
    auto const rules = generated_rules();
    auto const marks = generated_proofs();
    REQUIRE(marks.size() == rules.size());
    auto const axioms = verify::axioms();
    int others = 0;
    for (int i = 0; i < support::cases(200); ++i) {
        auto const k = uniform_index(rng, rules.size());
        if (verify::prove(rules[k], axioms) != marks[k]) {
            ++others;
            MESSAGE("marked otherwise: ", to_string(rules[k]));
        }
    }
    CHECK(others <= support::cases(200) / 50); // another version of Z3 takes other steps, and fewer or more rules within their limit
}

TEST_CASE("generated rules: with outputs interchanged they are refuted and not proved") {
    constexpr std::uint64_t seed = 12;
    INFO("seed ", seed);
    split_mix rng(seed);
    auto const marks = generated_proofs();
    auto const rules = generated_rules();
    auto const axioms = verify::axioms();
    auto const wanted = support::cases(40);
    int refuted = 0;
    for (int i = 0; i < 60 * wanted && refuted < wanted; ++i) {
        auto const k = uniform_index(rng, rules.size());
        if (marks[k] == proof::none || rules[k].outputs.size() < 2) continue;
        auto wrong = rules[k];
        std::swap(wrong.outputs[0].target, wrong.outputs[1].target);
        CAPTURE(to_string(wrong));
        auto const found = judge(wrong);
        if (!found.refuted) continue; // both compute the same, or are never legal together
        ++refuted;
        CHECK(verify::prove(wrong, axioms) == proof::none);
        // The counterexample is one, of the wrong rule and not of the rule.
        std::vector<dense_tensor> given;
        for (auto const& g : found.refuted->given) given.push_back(g.value);
        CHECK(try_rule(wrong, given, found.refuted->variables) == found.refuted->how);
        CHECK(try_rule(rules[k], given, found.refuted->variables) == trial::holds);
    }
    CHECK(refuted == wanted);
}
