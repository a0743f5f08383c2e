#include <parsearch/io/foreign/substitutions.hpp>

#include <fstream>
#include <map>
#include <sstream>
#include <tuple>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/lab/rules/judge.hpp>

#include "support/cases.hpp"
#include "support/external_data.hpp"
#include "support/mutations.hpp"
#include "support/refusal.hpp"
#include "support/replaced.hpp"

using namespace parsearch;
using namespace parsearch::io;

namespace {
/// relu of the sum of two tensors, split along an axis: each split by itself.
constexpr char const* small = R"({"_t": "RuleCollection", "rule": [
  {"_t": "Rule", "name": "split",
   "srcOp": [
     {"_t": "Operator", "type": "OP_EW_ADD", "input": [{"_t": "Tensor", "opId": -1, "tsId": 0}, {"_t": "Tensor", "opId": -2, "tsId": 0}], "para": []},
     {"_t": "Operator", "type": "OP_SPLIT", "input": [{"_t": "Tensor", "opId": 0, "tsId": 0}],
      "para": [{"_t": "Parameter", "key": "PM_NUM_OUTPUTS", "value": 3}, {"_t": "Parameter", "key": "PM_AXIS", "value": 1}]}
   ],
   "dstOp": [
     {"_t": "Operator", "type": "OP_PARTITION", "input": [{"_t": "Tensor", "opId": -1, "tsId": 0}],
      "para": [{"_t": "Parameter", "key": "PM_PARALLEL_DIM", "value": 1}, {"_t": "Parameter", "key": "PM_PARALLEL_DEGREE", "value": 2}]},
     {"_t": "Operator", "type": "OP_PARTITION", "input": [{"_t": "Tensor", "opId": 0, "tsId": 0}],
      "para": [{"_t": "Parameter", "key": "PM_PARALLEL_DIM", "value": 1}, {"_t": "Parameter", "key": "PM_PARALLEL_DEGREE", "value": 4}]}
   ],
   "mappedOutput": [
     {"_t": "MapOutput", "srcOpId": 1, "srcTsId": 0, "dstOpId": 1, "dstTsId": 0},
     {"_t": "MapOutput", "srcOpId": 1, "srcTsId": 2, "dstOpId": -1, "dstTsId": 0}
   ]}
]})";

std::vector<rewrite::rule> read(std::string const& text) {
    std::istringstream in(text);
    return read_substitutions(in, "r.json");
}
std::string written(std::vector<rewrite::rule> const& rules) {
    std::ostringstream out;
    write_substitutions(out, rules);
    return out.str();
}
std::string refused(std::string const& part, std::string const& by) {
    return support::refusal([&] { return read(support::replaced(small, part, by)).size(); });
}
template <class F> std::string not_written(F const& change) {
    auto rules = read(small);
    change(rules[0]);
    return support::refusal([&] { return written(rules).size(); });
}
} // namespace

TEST_CASE("substitutions: a file by hand") {
    auto const rules = read(small);
    REQUIRE(rules.size() == 1);
    rewrite::rule const expected{.name = "split",
                                 .source = {{{"OP_EW_ADD", {{-1}, {-2}}}, {"OP_SPLIT", {{0}}, {{"PM_NUM_OUTPUTS", 3}, {"PM_AXIS", 1}}}}},
                                 .target = {{{"OP_PARTITION", {{-1}}, {{"PM_PARALLEL_DIM", 1}, {"PM_PARALLEL_DEGREE", "degree"}}},
                                             {"OP_PARTITION", {{0}}, {{"PM_PARALLEL_DIM", 1}, {"PM_PARALLEL_DEGREE", 4}}}}},
                                 .outputs = {{{1, 0}, {1, 0}}, {{1, 2}, {-1, 0}}},
                                 .parameters = {"degree"},
                                 .constraints = {{"degree", rewrite::relation::at_least, 2}}};
    CHECK(rules[0] == expected);
    CHECK(read(written(rules)) == rules);
    CHECK(read(R"({"_t": "RuleCollection", "rule": []})").empty());
    CHECK(read(written({})).empty());
}

TEST_CASE("substitutions: what is wrong in a file is named") {
    CHECK(refused("RuleCollection", "Rules") == "r.json: _t is \"Rules\": must be \"RuleCollection\"");
    CHECK(refused("\"srcOp\"", "\"source\"") == "r.json: rule[0].source: unknown member: known are _t, name, srcOp, dstOp, mappedOutput");
    CHECK(refused("\"_t\": \"Rule\", \"name\": \"split\",", "\"_t\": \"Rule\",") == "r.json: rule[0]: name is missing");
    CHECK(refused("\"name\": \"split\"", "\"name\": \"\"") == "r.json: rule[0].name is \"\": must not be empty");
    CHECK(refused("OP_SPLIT", "SPLIT") == "r.json: rule[0].srcOp[1].type is \"SPLIT\": must begin with OP_ and go on (rule \"split\")");
    CHECK(refused("OP_SPLIT", "OP_") == "r.json: rule[0].srcOp[1].type is \"OP_\": must begin with OP_ and go on (rule \"split\")");
    CHECK(refused("PM_AXIS", "AXIS") ==
          "r.json: rule[0].srcOp[1].para[1].key is \"AXIS\": must begin with PM_ and go on (OP_SPLIT) (rule \"split\")");
    CHECK(refused("\"PM_AXIS\", \"value\": 1", "\"PM_AXIS\", \"value\": 1.5") ==
          "r.json: rule[0].srcOp[1].para[1].value is 1.5: must be an integer from -9223372036854775808 to 9223372036854775807 (PM_AXIS) (OP_SPLIT) "
          "(rule \"split\")");
    CHECK(refused("\"value\": 4", "\"value\": 0") == "r.json: rule[0].dstOp[1].para[1].value is 0: must be an integer from 1 to 9223372036854775807 "
                                                     "(PM_PARALLEL_DEGREE) (OP_PARTITION) (rule \"split\")");
    CHECK(refused("\"opId\": -1", "\"opId\": 4294967296") ==
          "r.json: rule[0].srcOp[0].input[0].opId is 4294967296: must be an integer from -2147483648 to 2147483647 (OP_EW_ADD) (rule \"split\")");
    CHECK(refused("\"tsId\": 0", "\"tsId\": -1") ==
          "r.json: rule[0].srcOp[0].input[0].tsId is -1: must be an integer from 0 to 2147483647 (OP_EW_ADD) (rule \"split\")");
    CHECK(refused("\"dstTsId\": 0", "\"dstTsId\": null") ==
          "r.json: rule[0].mappedOutput[0].dstTsId is null: must be an integer from 0 to 2147483647 (rule \"split\")");
    CHECK(refused("\"Tensor\"", "\"Operator\"") ==
          "r.json: rule[0].srcOp[0].input[0]._t is \"Operator\": must be \"Tensor\" (OP_EW_ADD) (rule \"split\")");
    // What is no rule, though each of its parts can be read.
    CHECK(refused("\"opId\": 0", "\"opId\": 1") ==
          "r.json: rule[0]: rule 'split': source: operator 1 (OP_SPLIT) takes what it makes: a pattern has no cycle");
    CHECK(refused("\"srcTsId\": 2", "\"srcTsId\": 3") ==
          "r.json: rule[0]: rule 'split': mapped output 1: its source is slot 3 of operator 1 (OP_SPLIT): "
          "it has 3 outputs");
    CHECK(refused("\"srcTsId\": 2", "\"srcTsId\": 0") ==
          "r.json: rule[0]: rule 'split': mapped output 1: output 1.0 of the source is mapped twice: must be once");
    std::string twice = small;
    twice.insert(twice.rfind(']'), "," + twice.substr(twice.find('[') + 1, twice.rfind(']') - twice.find('[') - 1));
    CHECK(support::refusal([&] { return read(twice).size(); }) ==
          "r.json: rule[1].name is \"split\": must be another one: a rule before it has this name");
}

TEST_CASE("substitutions: what the format cannot say is not written") {
    using rewrite::rule;
    CHECK(not_written([](rule&) {}).empty());
    CHECK(not_written([](rule& r) { r.target.operators[1].parameters[1].value = 2; }) ==
          "rule \"split\": target operator 1 (OP_PARTITION): PM_PARALLEL_DEGREE is the number 2, which stands for any degree in the format");
    CHECK(not_written([](rule& r) { r.target.operators[1].parameters[1].value = 0; }) ==
          "rule \"split\": target operator 1 (OP_PARTITION): PM_PARALLEL_DEGREE is 0: must be at least 1");
    CHECK(not_written([](rule& r) { r.target.operators[1].parameters[0].value = "degree"; }) ==
          "rule \"split\": target operator 1 (OP_PARTITION): PM_PARALLEL_DIM is variable degree: the format has none but degree, as "
          "PM_PARALLEL_DEGREE");
    CHECK(not_written([](rule& r) { r.source.operators[0].type = "add"; }) ==
          "rule \"split\": source operator 0 (add): a type of the format begins with OP_ and goes on");
    CHECK(not_written([](rule& r) { r.source.operators[1].parameters[1].key = "axis"; }) ==
          "rule \"split\": source operator 1 (OP_SPLIT): key \"axis\": a key of the format begins with PM_ and goes on");
    CHECK(not_written([](rule& r) { r.constraints[0].value = 3; }) ==
          "rule \"split\": the format has no parameters and constraints of a rule but that degree is chosen and at least 2");
    CHECK(not_written([](rule& r) { r.parameters.push_back("axis"); }) ==
          "rule \"split\": the format has no parameters and constraints of a rule but that degree is chosen and at least 2");
    CHECK(not_written([](rule& r) { r.outputs.clear(); }) == "rule 'split': no output is mapped: at least one must be");
    auto const rules = read(small);
    CHECK(support::refusal([&] {
              return written({rules[0], rules[0]}).size();
          }) == "rule \"split\": a rule before it has this name: must be another one");
}

TEST_CASE("substitutions: whatever a file holds, rules or a refusal") {
    auto const counts = support::read_mutations(31, 1500, small, [&](std::string const& text) {
        auto const rules = read(text);
        CHECK(read(written(rules)) == rules);
    });
    CHECK(counts.read > 100);
    CHECK(counts.refused > 1000);
}

TEST_CASE("data: substitutions: Unity's files read whole and are written again equal") {
    for (auto const& [name, count, unbound] : {std::tuple{"graph_subst_3_v2.json", 640, 112}, std::tuple{"test_subst.json", 1, 0}}) {
        CAPTURE(name);
        auto const file = support::external_data(std::string("unity/") + name);
        if (!file) return;
        std::ifstream in(*file);
        auto const rules = read_substitutions(in, name);
        CHECK(rules.size() == static_cast<std::size_t>(count));
        auto const once = written(rules);
        CHECK(read(once) == rules);
        CHECK(written(read(once)) == once);
        int found = 0;
        for (auto const& r : rules) {
            found += !rewrite::unbound_inputs(r).empty();
            for (auto const* const side : {&r.source, &r.target})
                for (auto const& o : side->operators)
                    if (auto const* const d = rewrite::find_parameter(o, rewrite::op_key::parallel_degree)) CHECK(d->variable == "degree");
        }
        CHECK(found == unbound);
    }
}

TEST_CASE("data: substitutions: Unity's rules hold in the reading that was found for them, and in no other") {
    auto const file = support::external_data("unity/graph_subst_3_v2.json");
    if (!file) return;
    std::ifstream in(*file);
    auto const rules = read_substitutions(in);
    rewrite::judging const how{.seed = 1, .cases = support::cases(40), .draws = 20000};
    struct tally {
        int holds = 0, refuted = 0, never_legal = 0;
        void add(rewrite::verdict const& v) { ++(v.refuted ? refuted : v.tested ? holds : never_legal); }
        bool operator==(tally const&) const = default;
    };
    auto const on_fixture = [&](rewrite::reading const& as) {
        tally t;
        for (auto const& r : rules) t.add(rewrite::judge_fixture(r, how, as));
        return t;
    };
    CHECK(on_fixture({}) == tally{640, 0, 0});
    CHECK(on_fixture({.replicate_blocks = true}) == tally{590, 50, 0});
    CHECK(on_fixture({.reduce_blocks = true}) == tally{585, 55, 0});
    CHECK(on_fixture({.replicate_blocks = true, .reduce_blocks = true}) == tally{635, 5, 0});
    CHECK(on_fixture({.reduce_partitioned = true}) == tally{432, 0, 208});
    CHECK(on_fixture({.split_equally = true}) == tally{638, 2, 0});

    std::vector<std::string> refuted;
    tally parallel;
    std::map<rewrite::untranslatable, int> why;
    for (auto const& r : rules) {
        if (rewrite::judge(r, how).refuted) refuted.push_back(r.name);
        auto const t = rewrite::translate(r);
        ++why[t.why];
        if (t.parallel) parallel.add(rewrite::judge_parallel(*t.parallel, how));
    }
    // 299 and 300 say that 2 x is x + x, which is true of the degree 2 alone; 445 is true where there are two samples.
    CHECK(refuted == std::vector<std::string>{"taso_rule_299", "taso_rule_300", "taso_rule_445"});
    CHECK(parallel == tally{130, 0, 0});
    using rewrite::untranslatable;
    CHECK(why == std::map<untranslatable, int>{{untranslatable::no, 130},
                                               {untranslatable::unbound_input, 112},
                                               {untranslatable::repeats_data, 212},
                                               {untranslatable::sums_data, 109},
                                               {untranslatable::divides_copies, 7},
                                               {untranslatable::joins_copies, 61},
                                               {untranslatable::sums_copies, 9}});
}
