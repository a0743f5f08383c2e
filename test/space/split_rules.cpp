#include <parsearch/space/split_rules.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/space/configuration.hpp>

#include "support/refusal.hpp"

using namespace parsearch;
using support::refusal;

namespace {
ops::operation example() {
    ops::operation op{.kind = "thing"};
    op.dims = {
        {"s", 8, ops::dim_kind::sample}, {"o", 12, ops::dim_kind::parameter}, {"o1", 24, ops::dim_kind::parameter}, {"f", 4, ops::dim_kind::fixed}};
    return op;
}
std::vector<std::int32_t> degrees(std::string_view text) {
    auto const s = space::read_split(text, example());
    return {s.begin(), s.begin() + 4};
}
} // namespace

TEST_CASE("read_split: degrees by the names of dims, as a listing has them") {
    using list = std::vector<std::int32_t>;
    CHECK(degrees("whole") == list{1, 1, 1, 1});
    CHECK(degrees("s8 o4") == list{8, 4, 1, 1});
    CHECK(degrees("o3 s2") == list{2, 3, 1, 1});
    CHECK(degrees("f1") == list{1, 1, 1, 1});
    auto c = space::whole(example());
    c.degree[0] = 4;
    c.degree[1] = 6;
    auto const said = space::to_string(c, example());
    CHECK(degrees(said.substr(0, said.find(" @"))) == list{4, 6, 1, 1});
}

TEST_CASE("read_split: what is wrong is named") {
    auto const wrong = [](std::string const& text) { return refusal([&] { return degrees(text); }); };
    std::string const rule = "; thing has dims s, o, o1, f: must be \"whole\", or such as \"s2\"";
    CHECK(wrong("s3") == "'s3': s3: the degree must divide the extent, 8" + rule);
    CHECK(wrong("s0") == "'s0': s0: the degree must divide the extent, 8" + rule);
    CHECK(wrong("s99999999999999") == "'s99999999999999': s99999999999999: the degree must divide the extent, 8" + rule);
    CHECK(wrong("z2") == "'z2': z2 is no dim and degree" + rule);
    CHECK(wrong("s") == "'s': s is no dim and degree" + rule);
    CHECK(wrong("s2  o2") == "'s2  o2': an empty word is no dim and degree" + rule);
    CHECK(wrong("") == "'': an empty word is no dim and degree" + rule);
    CHECK(wrong("s2 ") == "'s2 ': an empty word is no dim and degree" + rule);
    CHECK(wrong(" s2") == "' s2': an empty word is no dim and degree" + rule);
    CHECK(wrong("s1 s2") == "'s1 s2': dim s is named twice" + rule);
    CHECK(wrong("s2 s4") == "'s2 s4': dim s is named twice" + rule);
    CHECK(wrong("o12") == "'o12': o12 may be of dim o and of dim o1" + rule);
    CHECK(wrong("f2") == "'f2': dim f can not be split" + rule);
}

TEST_CASE("split_rules: one of those that must be, none of those that must not") {
    auto const op = example();
    space::split_rules rules;
    CHECK(rules.empty());
    rules.require("a", space::read_split("s2", op));
    rules.require("a", space::read_split("s4", op));
    rules.forbid("a", space::read_split("s4", op));
    rules.forbid("b", space::read_split("whole", op));
    CHECK_FALSE(rules.empty());
    auto const allowed = [&](std::string_view name, std::string_view text) {
        auto const s = space::read_split(text, op);
        return rules(name, op, std::span(s).first(4));
    };
    CHECK(allowed("a", "s2"));
    CHECK_FALSE(allowed("a", "s4"));
    CHECK_FALSE(allowed("a", "s2 o2"));
    CHECK_FALSE(allowed("b", "whole"));
    CHECK(allowed("b", "s2"));
    CHECK(allowed("c", "whole"));
}
