#include <parsearch/rewrite/rules/applications.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/ops/elementwise.hpp>
#include <parsearch/ops/linear.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>

using namespace parsearch;
using namespace parsearch::rewrite;

namespace {

constexpr pattern_tensor x1{-1, 0}, x2{-2, 0}, x3{-3, 0};
pattern_operator relu(pattern_tensor x) { return {"OP_RELU", {x}}; }
pattern_operator resharded_by(char const* type, pattern_tensor x) { return {type, {x}, {{"PM_PARALLEL_DIM", 0}, {"PM_PARALLEL_DEGREE", "degree"}}}; }

// Two layers of one input, a relu behind each.
struct layers {
    parallel_graph g;
    layers() {
        std::vector<tensor_ref> results;
        auto const x = g.add_input("x", {{8, 4}});
        for (auto const* const name : {"a", "b"}) {
            auto const w = g.add_weight(name, {{6, 4}});
            auto const linear = g.add_operator(name, ops::linear{.out = 6, .bias = false}.infer(std::vector<ops::tensor>{{{8, 4}}}), {x, w});
            results.push_back({g.add_operator("relu", ops::relu{}.infer(std::vector<ops::tensor>{{{8, 6}}}), {{linear, 0}}), 0});
        }
        g.set_results(std::move(results));
    }
};

std::vector<bindings> const choices{{{"degree", 2}}, {{"degree", 3}}, {{"degree", 4}}};

applications of(parallel_graph const& g, rule const& r) {
    check(r);
    return applications_of(g, r, choices);
}

} // namespace

TEST_CASE("applications: every place and every degree that is legal") {
    layers l;
    rule const detour{.name = "detour",
                      .source = {{relu(x1)}},
                      .target = {{resharded_by("OP_PARTITION", x1), relu({0, 0}), resharded_by("OP_COMBINE", {1, 0})}},
                      .outputs = {{{0, 0}, {2, 0}}},
                      .parameters = {"degree"}};
    auto const found = of(l.g, detour);
    CHECK(found.fate() == rule_fate::applies);
    CHECK(found.places == 2);
    CHECK(found.made == 4); // 3 does not divide 8 samples
    CHECK(found.graphs == 4);
    REQUIRE(found.refused.size() == 1);
    CHECK(found.refused.begin()->second == 2);
    CHECK(found.refusal().find("the parts would not be equal") != std::string::npos);
    CHECK(found.why_not.empty());

    // A degree that the source binds is not chosen.
    auto const split = *substitute(l.g, detour, matcher(l.g).find(detour)[0], choices[0]);
    rule const behind{.name = "behind",
                      .source = {{relu(x1), resharded_by("OP_COMBINE", {0, 0})}},
                      .target = {{resharded_by("OP_COMBINE", x1), relu({0, 0})}},
                      .outputs = {{{1, 0}, {1, 0}}},
                      .parameters = {"degree"}};
    auto const once = of(split, behind);
    CHECK(once.places == 1);
    CHECK(once.made == 1);
}

TEST_CASE("applications: operators that may change places are one place") {
    layers l;
    rule const joined{.name = "joined",
                      .source = {{{"OP_LINEAR", {x1, x2}}, {"OP_LINEAR", {x1, x3}}}},
                      .target = {{{"OP_CONCAT", {x2, x3}, {{"PM_AXIS", 0}}},
                                  {"OP_LINEAR", {x1, {0, 0}}, {{"PM_ACTI", 0}}},
                                  {"OP_SPLIT", {{1, 0}}, {{"PM_AXIS", 1}, {"PM_NUM_OUTPUTS", 2}}}}},
                      .outputs = {{{0, 0}, {2, 0}}, {{1, 0}, {2, 1}}}};
    auto const found = of(l.g, joined);
    CHECK(found.places == 1);
    CHECK(found.made == 2);
    CHECK(found.graphs == 2); // the weights stand in either order
}

TEST_CASE("applications: a rule that makes what is there, one that is refused, one that does not match") {
    layers l;
    rule const same{.name = "same", .source = {{relu(x1)}}, .target = {{relu(x1)}}, .outputs = {{{0, 0}, {0, 0}}}};
    auto const unchanged = of(l.g, same);
    CHECK(unchanged.fate() == rule_fate::changes_nothing);
    CHECK(unchanged.made == 2);
    CHECK(unchanged.graphs == 0);

    rule const taller{
        .name = "taller", .source = {{relu(x1)}}, .target = {{{"OP_CONCAT", {x1, x1}, {{"PM_AXIS", 0}}}}}, .outputs = {{{0, 0}, {0, 0}}}};
    auto const refused = of(l.g, taller);
    CHECK(refused.fate() == rule_fate::refused);
    CHECK(refused.places == 2);
    CHECK(refused.refusal().find("must be alike") != std::string::npos);

    rule const undone{.name = "undone",
                      .source = {{resharded_by("OP_PARTITION", x1), resharded_by("OP_COMBINE", {0, 0})}},
                      .target = {},
                      .outputs = {{{1, 0}, x1}},
                      .parameters = {"degree"}};
    auto const missing = of(l.g, undone);
    CHECK(missing.fate() == rule_fate::no_match);
    CHECK(missing.why_not == "the graph has no OP_PARTITION");
    CHECK(missing.refusal().empty());
    CHECK(name_of(missing.fate()) == "no match");
}
