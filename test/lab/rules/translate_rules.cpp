#include <parsearch/lab/rules/translate_rules.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {
using parameters = std::vector<pattern_parameter>;
parameters along(int dim) { return {{"PM_PARALLEL_DIM", dim}, {"PM_PARALLEL_DEGREE", "degree"}}; }
parameters const joined{{"PM_NUM_INPUTS", 2}, {"PM_AXIS", 1}, {"PM_NUMDIM", 3}};
/// `type` along dim `dim` of x1 and a relu, either first.
rule moved(std::string const& type, int dim) {
    return {.name = "r",
            .source = {{{type, {{-1}}, along(dim)}, {"OP_RELU", {{0}}}}},
            .target = {{{"OP_RELU", {{-1}}}, {type, {{0}}, along(dim)}}},
            .outputs = {{{1, 0}, {1, 0}}},
            .parameters = {"degree"}};
}
untranslatable why(rule const& r) {
    auto const t = translate(r);
    CHECK(t.parallel.has_value() == (t.why == untranslatable::no));
    return t.why;
}
parallel_value value_of(std::array<std::int32_t, 2> extents, std::vector<std::int64_t> data, std::array<std::int32_t, 2> degrees = {1, 1},
                        std::int32_t copies = 1, std::int32_t sums = 1) {
    return {{{1, extents[0], extents[1]}, {1, degrees[0], degrees[1]}, std::move(data), {}}, copies, sums};
}
/// A linear whose samples, outs and channels are split in 2, 3 and 5.
std::vector<parallel_value> const split_linear{value_of({2, 5}, std::vector<std::int64_t>(10, 1), {2, 5}, 3),
                                               value_of({3, 5}, std::vector<std::int64_t>(15, 2), {3, 5}, 2)};
parallel_value const split_output = value_of({2, 3}, std::vector<std::int64_t>(6, 10), {2, 3}, 1, 5);
} // namespace

TEST_CASE("translation: axes are counted from the outermost, copies have none") {
    CHECK(to_string(*translate(moved("OP_PARTITION", 2)).parallel) ==
          "r: 0=OP_PARTITION[PM_PARALLEL_DIM=1,PM_PARALLEL_DEGREE=degree](x1); 1=OP_RELU(0.0) => "
          "0=OP_RELU(x1); 1=OP_PARTITION[PM_PARALLEL_DIM=1,PM_PARALLEL_DEGREE=degree](0.0) where 1.0 is 1.0");
    CHECK(to_string(translate(moved("OP_REPLICATE", 0)).parallel->source) == "0=OP_REPLICATE[PM_PARALLEL_DEGREE=degree](x1); 1=OP_RELU(0.0)");
    auto r = moved("OP_PARTITION", 1);
    r.source.operators[1] = {"OP_CONCAT", {{0}, {-2}}, joined};
    r.target.operators[0] = {"OP_SPLIT", {{-1}}, {{"PM_NUM_OUTPUTS", 2}, {"PM_AXIS", 2}}};
    auto const t = translate(r);
    REQUIRE(t.parallel);
    CHECK(to_string(t.parallel->source.operators[1].parameters[1].value) == "0");
    CHECK(to_string(t.parallel->source.operators[1].parameters[2].value) == "2");
    CHECK(to_string(t.parallel->target.operators[0].parameters[1].value) == "1");
    CHECK(t.parallel->outputs == r.outputs);
    CHECK(t.parallel->parameters == r.parameters);
}

TEST_CASE("translation: what no parallel tensor can be is told") {
    CHECK(why(moved("OP_PARTITION", 0)) == untranslatable::divides_copies);
    CHECK(why(moved("OP_COMBINE", 0)) == untranslatable::divides_copies);
    CHECK(why(moved("OP_COMBINE", 1)) == untranslatable::no);
    CHECK(why(moved("OP_REPLICATE", 1)) == untranslatable::repeats_data);
    CHECK(why(moved("OP_REDUCE", 2)) == untranslatable::sums_data);
    CHECK(why(moved("OP_REDUCE", 0)) == untranslatable::no);
    CHECK(why(moved("OP_NEW", 0)) == untranslatable::not_interpreted);
    auto r = moved("OP_PARTITION", 1);
    r.target.operators[0].inputs[0].op = -2;
    CHECK(why(r) == untranslatable::unbound_input);
    r = moved("OP_PARTITION", 1);
    r.source.operators[1] = {"OP_CONCAT", {{0}, {0}}, {{"PM_NUM_INPUTS", 2}, {"PM_AXIS", 0}, {"PM_NUMDIM", 3}}};
    CHECK(why(r) == untranslatable::joins_copies);
    r = moved("OP_PARTITION", 1);
    r.source.operators[0].parameters[0].value = "dim";
    r.target.operators[1].parameters[0].value = "dim";
    CHECK(why(r) == untranslatable::not_interpreted);
    // A Reduce of copies, also behind what is elementwise; of what a linear makes of them, not.
    r = moved("OP_REPLICATE", 0);
    r.source.operators.push_back({"OP_REDUCE", {{1}}, along(0)});
    r.outputs[0].source.op = 2;
    CHECK(why(r) == untranslatable::sums_copies);
    r.source.operators[1] = {"OP_LINEAR", {{0}, {-4}}, {{"PM_ACTI", 0}}};
    CHECK(why(r) == untranslatable::no);
}

TEST_CASE("translation: the operators on parallel tensors") {
    auto const made = [](pattern_operator const& o, std::vector<parallel_value> const& given) {
        auto const out = interpret_parallel({{o}}, given, {{"degree", 2}});
        return out.legal ? out.outputs.at(0) : std::vector<parallel_value>{};
    };
    using many = std::vector<parallel_value>;
    pattern_operator const linear{"OP_LINEAR", {{-1}, {-2}}, {{"PM_ACTI", 0}}}, with_relu{"OP_LINEAR", {{-1}, {-2}}, {{"PM_ACTI", 2}}};
    CHECK(made(linear, split_linear) == many{split_output});
    CHECK(made(with_relu, split_linear).empty()); // of partial sums
    auto fewer = split_linear;
    fewer[1].copies = 1;
    CHECK(made(linear, fewer).empty());
    fewer = split_linear;
    fewer[0].sums = 2;
    CHECK(made(linear, fewer).empty());

    parameters const degree{{"PM_PARALLEL_DEGREE", "degree"}};
    auto const x = value_of({2, 2}, {1, -2, 3, 4}, {2, 1}, 3, 4);
    CHECK(made({"OP_REPLICATE", {{-1}}, degree}, {x}) == many{value_of({2, 2}, {1, -2, 3, 4}, {2, 1}, 6, 4)});
    CHECK(made({"OP_REDUCE", {{-1}}, degree}, {x}) == many{value_of({2, 2}, {1, -2, 3, 4}, {2, 1}, 3, 2)});
    CHECK(made({"OP_REDUCE", {{-1}}, degree}, {value_of({1, 1}, {1}, {1, 1}, 2, 1)}).empty());
    CHECK(made({"OP_PARTITION", {{-1}}, along(1)}, {x}) == many{value_of({2, 2}, {1, -2, 3, 4}, {2, 2}, 3, 4)});
    CHECK(made({"OP_PARTITION", {{-1}}, along(0)}, {x}).empty());
    CHECK(made({"OP_COMBINE", {{-1}}, along(0)}, {x}) == many{value_of({2, 2}, {1, -2, 3, 4}, {1, 1}, 3, 4)});
    CHECK(made({"OP_RELU", {{-1}}}, {x}).empty());
    CHECK(made({"OP_RELU", {{-1}}}, {value_of({1, 2}, {1, -2}, {1, 2}, 3)}) == many{value_of({1, 2}, {1, 0}, {1, 2}, 3)});
    CHECK(made({"OP_EW_ADD", {{-1}, {-1}}}, {x}) == many{value_of({2, 2}, {2, -4, 6, 8}, {2, 1}, 3, 4)});
    CHECK(made({"OP_EW_MUL", {{-1}, {-1}}}, {x}).empty());
    CHECK(made({"OP_EW_ADD", {{-1}, {-2}}}, {x, value_of({2, 2}, {1, 1, 1, 1}, {2, 1}, 3, 1)}).empty());
    parameters const rows{{"PM_NUM_INPUTS", 2}, {"PM_AXIS", 0}, {"PM_NUMDIM", 2}}, columns{{"PM_NUM_INPUTS", 2}, {"PM_AXIS", 1}, {"PM_NUMDIM", 2}};
    CHECK(made({"OP_CONCAT", {{-1}, {-1}}, columns}, {x}) == many{value_of({2, 4}, {1, -2, 1, -2, 3, 4, 3, 4}, {2, 1}, 3, 4)});
    CHECK(made({"OP_CONCAT", {{-1}, {-1}}, rows}, {x}).empty()); // along what is partitioned
    CHECK(made({"OP_SPLIT", {{-1}}, {{"PM_NUM_OUTPUTS", 2}, {"PM_AXIS", 1}}}, {x}) ==
          many{value_of({2, 1}, {1, 3}, {2, 1}, 3, 4), value_of({2, 1}, {-2, 4}, {2, 1}, 3, 4)});
    CHECK(support::refusal([&] {
              return made({"OP_COMBINE", {{-1}}, along(-1)}, {x}).size();
          }) == "operator 0 (OP_COMBINE): axis -1: must be 0 or 1");
    CHECK(support::refusal([&] { return made({"OP_RELU", {{-2}}}, {x}).size(); }) == "operator 0 (OP_RELU): input x2 is not given");
}
