#include <parsearch/space/read_configuration.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/space/configuration.hpp>
#include <parsearch/space/operator_space.hpp>

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
    CHECK(wrong("s9") == "'s9': s9: the degree must be from 1 to the extent, 8" + rule);
    CHECK(wrong("s0") == "'s0': s0: the degree must be from 1 to the extent, 8" + rule);
    CHECK(wrong("s99999999999999") == "'s99999999999999': s99999999999999: the degree must be from 1 to the extent, 8" + rule);
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

TEST_CASE("read_configuration: what to_string prints, with devices or without") {
    auto op = example();
    op.dims.erase(op.dims.begin() + 2); // o12 would be of o, or of o1
    space::operator_space const all(op, 24, {}, "thing");
    for (auto const& c : all.all()) {
        auto const said = space::to_string(c, op);
        CAPTURE(said);
        auto const read = space::read_configuration(said, op);
        CHECK(read.placed);
        CHECK(read.configuration == c);
        auto const split = space::read_configuration(said.substr(0, said.find(" @")), op);
        CHECK_FALSE(split.placed);
        CHECK(std::ranges::equal(split.configuration.degrees(), c.degrees()));
    }
    auto listed = space::whole(op);
    listed.degree[0] = 2;
    listed.listed = {5, 0};
    CHECK(space::read_configuration(space::to_string(listed, op), op).configuration == listed);
}

TEST_CASE("read_configuration: what is wrong is named") {
    auto const wrong = [](std::string const& text) { return refusal([&] { return space::read_configuration(text, example()).placed; }); };
    std::string const rule = ": must be such as \"s2 @0+1\", or \"whole @0\"";
    CHECK(wrong("s2 @") == "'s2 @': no number at ''" + rule);
    CHECK(wrong("s2@0+1") == "'s2@0+1': no split and blank before '@'" + rule);
    CHECK(wrong("@0") == "'@0': no split and blank before '@'" + rule);
    CHECK(wrong("s2 @x") == "'s2 @x': no number at 'x'" + rule);
    CHECK(wrong("s2 @99999999999+1") == "'s2 @99999999999+1': no number at '99999999999+1'" + rule);
    CHECK(wrong("s2 @0") == "'s2 @0': 0 strides for 1 split dims" + rule);
    CHECK(wrong("s2 o2 @0+1") == "'s2 o2 @0+1': 1 strides for 2 split dims" + rule);
    CHECK(wrong("s2 @0+1,1") == "'s2 @0+1,1': 2 strides for 1 split dims" + rule);
    CHECK(wrong("whole @0+") == "'whole @0+': no number at ''" + rule);
    CHECK(wrong("whole @0 ") == "'whole @0 ': ' ' behind the devices" + rule);
    CHECK(wrong("s2 @{0,1") == "'s2 @{0,1': '' behind the devices" + rule);
    CHECK(wrong("s2 @{0}") == "'s2 @{0}': 1 devices for 2 shards" + rule);
    CHECK(wrong("s9 @0").starts_with("'s9': s9: the degree must be from 1 to the extent, 8"));
}
