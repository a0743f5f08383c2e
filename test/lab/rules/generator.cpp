#include <parsearch/lab/rules/generator.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/cases.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {
bool has(generated const& g, std::string const& text) {
    return std::any_of(g.rules.begin(), g.rules.end(), [&](rule const& r) { return to_string(r).find(text) != std::string::npos; });
}
/// A random graph of up to two operators of `set`, legal on the fixture or not.
pattern random_pattern(split_mix& rng, operator_set const& set) {
    pattern p;
    for (auto n = 1 + uniform_index(rng, 2); n > 0; --n) {
        auto o = set[uniform_index(rng, set.size())];
        bool const two = o.type == op_type::linear || o.type == op_type::ew_add || o.type == op_type::ew_mul || o.type == op_type::concat;
        for (int k = 0; k < (two ? 2 : 1); ++k) {
            auto const op = static_cast<std::int32_t>(uniform_index(rng, 6 + p.operators.size())) - 6;
            o.inputs.push_back({op, op >= 0 && p.operators[static_cast<std::size_t>(op)].type == op_type::split
                                        ? static_cast<std::int32_t>(uniform_index(rng, 2))
                                        : 0});
        }
        p.operators.push_back(o);
    }
    return p;
}
} // namespace

TEST_CASE("generation: the laws of addition and relu") {
    generator const g({.graphs = {.operators = 2, .set = {{"OP_RELU"}, {"OP_EW_ADD"}}, .inputs = {{1, 2, 4}, {1, 2, 4}, {1, 2, 4}}}});
    auto const made = g.rules();
    CHECK(made.refuted == 0);
    // Associativity of three inputs and where two are one, and relu x + relu x = relu(x + x).
    CHECK(has(made, "0=OP_RELU(x1); 1=OP_EW_ADD(0.0,0.0) => 0=OP_EW_ADD(x1,x1); 1=OP_RELU(0.0) where 1.0 is 1.0"));
    CHECK(has(made, "0=OP_EW_ADD(x1,x1); 1=OP_EW_ADD(x2,0.0) => 0=OP_EW_ADD(x1,x2); 1=OP_EW_ADD(x1,0.0) where 1.0 is 1.0"));
    CHECK(has(made, "0=OP_RELU(x1); 1=OP_RELU(0.0) => 0=OP_RELU(x1) where 1.0 is 0.0"));
    CHECK(has(made, "0=OP_EW_ADD(x1,x2); 1=OP_EW_ADD(x3,0.0) => 0=OP_EW_ADD(x1,x3); 1=OP_EW_ADD(x2,0.0) where 1.0 is 1.0"));
    CHECK(made.rules.size() == made.candidates);
    CHECK(made.rules.size() == 4);
}

TEST_CASE("generation: what undoes itself vanishes") {
    generator const g({.graphs = {.operators = 2,
                                  .set = {{"OP_PARTITION", {}, {{"PM_PARALLEL_DIM", 1}, {"PM_PARALLEL_DEGREE", 2}}},
                                          {"OP_COMBINE", {}, {{"PM_PARALLEL_DIM", 1}, {"PM_PARALLEL_DEGREE", 2}}}}}});
    auto const made = g.rules();
    REQUIRE(made.rules.size() == 2); // of activations and of weights
    CHECK(to_string(made.rules[0]) == "generated_0: 0=OP_PARTITION[PM_PARALLEL_DIM=1,PM_PARALLEL_DEGREE=degree](x1); "
                                      "1=OP_COMBINE[PM_PARALLEL_DIM=1,PM_PARALLEL_DEGREE=degree](0.0) =>  where 1.0 is x1");
    CHECK(made.rules[0].parameters == std::vector<std::string>{"degree"});
}

TEST_CASE("generation: reduction parallelism is found with four operators") {
    auto const along = [](int dim) { return std::vector<pattern_parameter>{{"PM_PARALLEL_DIM", dim}, {"PM_PARALLEL_DEGREE", 2}}; };
    generator const g({.graphs = {.operators = 4,
                                  .set = {{"OP_PARTITION", {}, along(2)}, {"OP_REDUCE", {}, along(0)}, {"OP_LINEAR", {}, {{"PM_ACTI", 0}}}},
                                  .inputs = {{1, 2, 4}, {1, 4, 4}}},
                       .rounds = 4,
                       .others = {.seed = 1, .cases = 0, .draws = 1}}); // x2 is a weight here, which other extents do not know
    auto const made = g.rules();
    auto const found = std::find_if(made.rules.begin(), made.rules.end(), [](rule const& r) {
        return to_string(r.source) == "0=OP_PARTITION[PM_PARALLEL_DIM=2,PM_PARALLEL_DEGREE=degree](x1); 1=OP_PARTITION[PM_PARALLEL_DIM=2,"
                                      "PM_PARALLEL_DEGREE=degree](x2); 2=OP_LINEAR[PM_ACTI=0](0.0,1.0); 3=OP_REDUCE[PM_PARALLEL_DIM=0,"
                                      "PM_PARALLEL_DEGREE=degree](2.0)" &&
               to_string(r.target) == "0=OP_LINEAR[PM_ACTI=0](x1,x2)";
    });
    CHECK(found != made.rules.end());
}

TEST_CASE("threads: generation makes the same rules for any number of threads") {
    generator_options options{.graphs = {.operators = 2}};
    auto const made = generator(options).rules();
    options.graphs.threads = 3;
    auto const again = generator(options).rules();
    CHECK(again.rules == made.rules);
    CHECK(again.candidates == made.candidates);
}

TEST_CASE("generation: rules are well formed, true elsewhere and different") {
    generator const g({.graphs = {.operators = 2}});
    auto const made = g.rules();
    CHECK(made.rules.size() == 388);
    CHECK(made.candidates == made.rules.size() + made.refuted);
    CHECK(made.refuted > 0); // true of the fixture alone, or of degree 2
    std::set<std::pair<rewrite::detail::code, rewrite::detail::code>> keys;
    for (auto const& r : made.rules) {
        check(r);
        CHECK(unbound_inputs(r).empty());
        auto const v = judge(r, {.seed = 99, .cases = support::cases(40), .draws = 5000});
        CHECK(!v.refuted);
        CHECK(v.tested > 0);
        if (r.target.operators.empty()) continue;
        CHECK(g.knows(r));
        auto const key = g.key_of(r);
        REQUIRE(key);
        CHECK(keys.insert(*key).second);
    }
    CHECK(has(made, "0=OP_LINEAR[PM_ACTI=0](x1,x4); 1=OP_RELU(0.0) => 0=OP_LINEAR[PM_ACTI=2](x1,x4)"));
}

TEST_CASE("generation: every graph that is legal on the fixture is known, in any order and by any names") {
    generator const g({.graphs = {.operators = 2}});
    constexpr std::uint64_t seed = 5;
    INFO("seed ", seed);
    split_mix rng(seed);
    auto const set = file_operators();
    auto const given = rewrite::detail::drawn_inputs(fixture, 3);
    int legal = 0;
    for (int i = 0; i < support::cases(3000); ++i) {
        auto const p = random_pattern(rng, set);
        rule r{.name = "same", .source = p, .target = p};
        // All that nothing reads is an output; the target in another order where there is one.
        for (std::size_t o = 0; o < p.operators.size(); ++o)
            for (std::int32_t slot = 0; slot < *output_count(p.operators[o]); ++slot) {
                pattern_tensor const t{static_cast<std::int32_t>(o), slot};
                bool read = false;
                for (auto const& other : p.operators) read = read || std::find(other.inputs.begin(), other.inputs.end(), t) != other.inputs.end();
                if (!read) r.outputs.push_back({t, t});
            }
        bool const apart =
            p.operators.size() == 2 && std::all_of(p.operators[1].inputs.begin(), p.operators[1].inputs.end(), [](auto t) { return t.is_input(); });
        if (apart) {
            std::swap(r.target.operators[0], r.target.operators[1]);
            for (auto& m : r.outputs) m.target.op = 1 - m.target.op;
        }
        bool const twice = p.operators.size() == 2 && p.operators[0] == p.operators[1];
        if (interpret(p, given).problem != illegal::no || twice) continue;
        ++legal;
        INFO(to_string(p));
        CHECK(g.knows(r));
    }
    CHECK(legal > support::cases(400));
}

TEST_CASE("generation: what is no graph of the set is not known") {
    generator const g({.graphs = {.operators = 1}});
    rule r{.name = "r", .source = {{{"OP_RELU", {{-1}}}}}, .target = {{{"OP_RELU", {{-1}}}}}, .outputs = {{{0, 0}, {0, 0}}}};
    CHECK(g.knows(r));
    auto other = r;
    other.target.operators[0].inputs[0].op = -2;
    CHECK(!g.knows(other)); // not equal
    other = r;
    other.target.operators[0].inputs[0].op = -7;
    CHECK(!g.knows(other));
    CHECK(!g.key_of(other));
    other = r;
    other.target.operators[0].type = "OP_NEW";
    CHECK(!g.knows(other));
    other = r;
    other.source.operators.push_back({"OP_RELU", {{0}}});
    other.outputs[0].source.op = 1;
    CHECK(!g.knows(other)); // too large
    other = r;
    other.target = {};
    other.outputs[0].target.op = -1;
    CHECK(!g.knows(other)); // an input is no graph
    CHECK(g.class_count() < g.graph_count());
}
