#include <parsearch/rewrite/rules/rule.hpp>

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {
/// relu(partition(x)) = partition(relu(x)), of every degree.
rule moved_relu() {
    return {.name = "moved",
            .source = {{{"OP_PARTITION", {{-1}}, {{"PM_PARALLEL_DIM", 1}, {"PM_PARALLEL_DEGREE", "degree"}}}, {"OP_RELU", {{0}}}}},
            .target = {{{"OP_RELU", {{-1}}}, {"OP_PARTITION", {{0}}, {{"PM_PARALLEL_DIM", 1}, {"PM_PARALLEL_DEGREE", "degree"}}}}},
            .outputs = {{{1, 0}, {1, 0}}},
            .parameters = {},
            .constraints = {{"degree", relation::at_least, 2}}};
}
template <class F> std::string refused(F const& change) {
    auto r = moved_relu();
    change(r);
    return support::refusal([&] {
        check(r);
        return 0;
    });
}
} // namespace

TEST_CASE("rules: a rule by hand is well formed and can be told") {
    auto const r = moved_relu();
    check(r);
    CHECK(r == moved_relu());
    CHECK(unbound_inputs(r).empty());
    CHECK(input_numbers(r.source) == std::vector<std::int32_t>{-1});
    CHECK(variables_of(r.target) == std::set<std::string, std::less<>>{"degree"});
    CHECK(to_string(r) == "moved: 0=OP_PARTITION[PM_PARALLEL_DIM=1,PM_PARALLEL_DEGREE=degree](x1); 1=OP_RELU(0.0) => "
                          "0=OP_RELU(x1); 1=OP_PARTITION[PM_PARALLEL_DIM=1,PM_PARALLEL_DEGREE=degree](0.0) where 1.0 is 1.0");
    REQUIRE(find_parameter(r.source.operators[0], op_key::parallel_dim));
    CHECK(*find_parameter(r.source.operators[0], op_key::parallel_dim) == value(1));
    CHECK(!find_parameter(r.source.operators[1], op_key::parallel_dim));
    auto other = r;
    other.source.operators[0].parameters[1].value = 4;
    CHECK(other != r);
}

TEST_CASE("rules: what vanishes is mapped to an input, and operators may stand in any order") {
    rule const r{.name = "undone",
                 .source = {{{"OP_COMBINE", {{1}}, {{"PM_PARALLEL_DIM", 0}}}, {"OP_PARTITION", {{-3}}, {{"PM_PARALLEL_DIM", 0}}}}},
                 .outputs = {{{0, 0}, {-3, 0}}}};
    check(r);
    CHECK(order_of(r.source) == std::vector<std::size_t>{1, 0});
    CHECK(unbound_inputs(r).empty());
    auto free = r;
    free.outputs[0].target.op = -2;
    check(free);
    CHECK(unbound_inputs(free) == std::vector<std::int32_t>{-2});
}

TEST_CASE("rules: what is wrong is named") {
    CHECK(refused([](rule& r) { r.name.clear(); }) == "a rule has no name");
    CHECK(refused([](rule& r) { r.source.operators.clear(); }) == "rule 'moved': source: has no operators");
    CHECK(refused([](rule& r) { r.source.operators[1].type.clear(); }) == "rule 'moved': source: operator 1 has no type");
    CHECK(refused([](rule& r) { r.target.operators[0].inputs.clear(); }) ==
          "rule 'moved': target: operator 0 (OP_RELU) takes no input: must take at least one");
    CHECK(refused([](rule& r) { r.source.operators[1].inputs[0].op = 2; }) ==
          "rule 'moved': source: operator 1 (OP_RELU): input 0 is operator 2: the pattern has 2 operators");
    CHECK(refused([](rule& r) { r.source.operators[1].inputs[0].slot = 1; }) ==
          "rule 'moved': source: operator 1 (OP_RELU): input 0 is slot 1 of operator 0 (OP_PARTITION): it has 1 outputs");
    CHECK(refused([](rule& r) { r.source.operators[0].type = "OP_NEW", r.source.operators[1].inputs[0].slot = -1; }) ==
          "rule 'moved': source: operator 1 (OP_RELU): input 0 is slot -1 of operator 0 (OP_NEW): slots begin at 0");
    CHECK(refused([](rule& r) { r.source.operators[0].inputs[0].slot = 1; }) ==
          "rule 'moved': source: operator 0 (OP_PARTITION): input 0 is slot 1 of input -1: an input of a pattern is one tensor, slot 0");
    CHECK(refused([](rule& r) { r.source.operators[0].inputs[0].op = 1; }) ==
          "rule 'moved': source: operator 0 (OP_PARTITION) takes what it makes: a pattern has no cycle");
    CHECK(refused([](rule& r) { r.target.operators[0].inputs[0].op = 0; }) ==
          "rule 'moved': target: operator 0 (OP_RELU) takes what it makes: a pattern has no cycle");
    CHECK(refused([](rule& r) { r.source.operators[0].parameters[0].key.clear(); }) ==
          "rule 'moved': source: operator 0 (OP_PARTITION): parameter 0 has no key");
    CHECK(refused([](rule& r) { r.source.operators[0].parameters[0].key = "PM_PARALLEL_DEGREE"; }) ==
          "rule 'moved': source: operator 0 (OP_PARTITION): parameter PM_PARALLEL_DEGREE is there twice: must be once");
    CHECK(refused([](rule& r) { r.outputs.clear(); }) == "rule 'moved': no output is mapped: at least one must be");
    CHECK(refused([](rule& r) { r.outputs.push_back(r.outputs[0]); }) ==
          "rule 'moved': mapped output 1: output 1.0 of the source is mapped twice: must be once");
    CHECK(refused([](rule& r) { r.outputs[0].source.op = 7; }) ==
          "rule 'moved': mapped output 0: its source is operator 7: the pattern has 2 operators");
    CHECK(refused([](rule& r) { r.outputs[0].source.op = -1; }) ==
          "rule 'moved': mapped output 0: its source is input -1: must be made by an operator");
    CHECK(refused([](rule& r) { r.outputs[0].target.slot = 2; }) ==
          "rule 'moved': mapped output 0: its target is slot 2 of operator 1 (OP_PARTITION): it has 1 outputs");
    CHECK(refused([](rule& r) { r.outputs[0].source.op = 0; }) ==
          "rule 'moved': source: operator 1 (OP_RELU): no operator reads what it makes, and it is not mapped");
    CHECK(refused([](rule& r) { r.outputs[0].target.op = -1; }) ==
          "rule 'moved': target: operator 1 (OP_PARTITION): no operator reads what it makes, and it is not mapped");
    CHECK(refused([](rule& r) { r.source.operators[0].parameters.pop_back(); }) ==
          "rule 'moved': target: operator 1 (OP_PARTITION): PM_PARALLEL_DEGREE: variable degree is neither bound by the source nor a parameter of "
          "the rule");
    CHECK(refused([](rule& r) {
              r.constraints.push_back({"other", relation::divides, "degree"});
          }) == "rule 'moved': constraint 1: variable other is neither bound by the source nor a parameter of the rule");
    CHECK(refused([](rule& r) { r.parameters = {"a", "a"}; }) == "rule 'moved': parameter a is there twice: must be once");
    CHECK(refused([](rule& r) { r.parameters = {""}; }) == "rule 'moved': parameter 0 has no name");
    // A variable that the source does not bind is the applier's to choose.
    CHECK(refused([](rule& r) { r.source.operators[0].parameters.pop_back(), r.parameters = {"degree"}; }).empty());
}

TEST_CASE("rules: a split has as many outputs as it says") {
    rule r{.name = "split",
           .source = {{{"OP_SPLIT", {{-1}}, {{"PM_NUM_OUTPUTS", 2}, {"PM_AXIS", 0}}}, {"OP_EW_ADD", {{0, 0}, {0, 1}}}}},
           .target = {{{"OP_REDUCE", {{-1}}, {{"PM_PARALLEL_DIM", 0}}}}},
           .outputs = {{{1, 0}, {0, 0}}}};
    check(r);
    r.source.operators[1].inputs[1].slot = 2;
    CHECK(support::refusal([&] { return check(r), 0; }) ==
          "rule 'split': source: operator 1 (OP_EW_ADD): input 1 is slot 2 of operator 0 (OP_SPLIT): it has 2 outputs");
}

TEST_CASE("rules: constraints hold or not, and ask for the numbers of their variables") {
    bindings const b{{"d", 4}, {"n", 12}, {"zero", 0}, {"minus", -1}};
    CHECK(holds({"d", relation::equal, 4}, b));
    CHECK(!holds({"d", relation::equal, "n"}, b));
    CHECK(holds({"d", relation::at_least, 4}, b));
    CHECK(!holds({"d", relation::at_least, 5}, b));
    CHECK(holds({"d", relation::at_most, "n"}, b));
    CHECK(!holds({"n", relation::at_most, "d"}, b));
    CHECK(holds({"d", relation::divides, "n"}, b));
    CHECK(!holds({"n", relation::divides, "d"}, b));
    CHECK(holds({"n", relation::multiple_of, "d"}, b));
    CHECK(!holds({"d", relation::multiple_of, 3}, b));
    CHECK(!holds({"zero", relation::divides, "n"}, b));
    CHECK(holds({"d", relation::divides, "zero"}, b));
    CHECK(holds({"zero", relation::divides, "zero"}, b));
    CHECK(holds({"minus", relation::divides, std::numeric_limits<std::int64_t>::min()}, b));
    CHECK(support::refusal([&] { return holds({"d", relation::divides, "k"}, b); }) == "constraint 'd divides k': variable k has no number");
}
