#include <parsearch/io/display/operator_names.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/models/gpt.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

#include "support/refusal.hpp"

using namespace parsearch;
using io::detail::edit_distance;
using io::detail::name_pattern;
using io::detail::read_range;

namespace {
std::vector<std::int64_t> numbers_of(std::string_view range) {
    std::vector<std::int64_t> out;
    auto const read = read_range(range);
    REQUIRE(read);
    for (std::int64_t n = 0; n < 100; ++n)
        if (std::any_of(read->begin(), read->end(), [&](auto const& p) { return p.contains(n); })) out.push_back(n);
    return out;
}
} // namespace

TEST_CASE("operator names: ranges are read as they are written") {
    using list = std::vector<std::int64_t>;
    CHECK(numbers_of("7") == list{7});
    CHECK(numbers_of("1..4") == list{1, 2, 3, 4});
    CHECK(numbers_of("0,4..12") == list{0, 4, 8, 12});
    CHECK(numbers_of("1,2,5..8") == list{1, 2, 5, 6, 7, 8});
    CHECK(numbers_of("1,3..5") == list{1, 3, 4, 5});
    CHECK(numbers_of("1,5,...,9") == list{1, 5, 6, 7, 8, 9});
    for (auto const* const wrong :
         {"", "a", "1..", "..4", "4..1", "1,,2", "-1", "3,2", "...,3", "1,...", "1,...,...,3", "1...3", " 1", "99999999999999999999"}) {
        INFO(wrong);
        CHECK(!read_range(wrong));
    }
}

TEST_CASE("operator names: every range that is written is read") {
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        std::mt19937_64 rng(seed);
        std::set<std::int64_t> numbers;
        auto const chance = 0.1 + 0.8 * static_cast<double>(uniform_index(rng, 10)) / 10;
        for (std::int64_t n = 0; n < 20; ++n)
            if (bernoulli(rng, chance)) numbers.insert(n);
        if (numbers.size() < 2) continue;
        auto const written = io::detail::range_text(numbers, 100);
        INFO(written);
        CHECK(numbers_of(std::string_view(written).substr(1, written.size() - 2)) == std::vector<std::int64_t>(numbers.begin(), numbers.end()));
    }
}

TEST_CASE("operator names: patterns match the names that they stand for") {
    name_pattern const all("block{1..24}.mlp.{1,2}");
    CHECK(all.has_ranges());
    for (auto const* const name : {"block1.mlp.1", "block24.mlp.2", "block{1..24}.mlp.{1,2}"}) CHECK(all.matches(name));
    for (auto const* const name : {"block0.mlp.1", "block25.mlp.1", "block1.mlp.3", "block1.mlp", "block01.mlp.1", "block1.mlp.1x", ""})
        CHECK(!all.matches(name));
    name_pattern const one("block{1..24}.mlp.2");
    CHECK(one.matches("block3.mlp.2"));
    CHECK(!one.matches("block3.mlp.1"));
    name_pattern const braces("a{b}c{1");
    CHECK(!braces.has_ranges());
    CHECK(braces.matches("a{b}c{1"));
    CHECK(!name_pattern("x1{2..3}").matches("x12")); // a listing writes no numbers side by side
    CHECK(!name_pattern("x{1..2}3").matches("x13"));
    CHECK(!name_pattern("x{1..2}3").matches("x1"));
    CHECK(!name_pattern("x{1..2}{3..4}").matches("x13"));
    CHECK(name_pattern("x1{2..3}").matches("x1{2..3}"));
}

TEST_CASE("operator names: the lines of a listing stand for their operators") {
    auto const g = graph::read_graph(models::gpt({.layers = 6})).graph;
    auto strategy = space::data_parallel(g, 4);
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        for (std::size_t op = 0; op < g.size(); ++op)
            strategy[op] = bernoulli(rng, 0.3) ? space::whole(g.operations[op]) : space::data_parallel(g, 4)[op];
        for (auto const& group : io::operator_groups(g, strategy)) {
            auto expected = group.operators;
            std::sort(expected.begin(), expected.end());
            CHECK(io::operators_named(g, group.name) == expected);
            for (auto const op : expected) CHECK(io::operators_named(g, g.names[op]) == std::vector<std::size_t>{op});
        }
    }
}

TEST_CASE("operator names: an unknown one is refused with the nearest") {
    auto const g = graph::read_graph(models::gpt({.layers = 2})).graph;
    CHECK(support::refusal([&] { return io::operators_named(g, "block1.atention"); }) ==
          "'block1.atention' is none of the 26 operators; the nearest names are block{1,2}.attention, block{1,2}.attention.add, "
          "block{1,2}.attention.norm, block{1,2}.mlp.norm, block{1,2}.mlp.{1,2}");
    CHECK(support::refusal([&] { return io::operators_named(g, "block7.mlp.1"); }).find("the nearest names are block{1,2}.mlp.{1,2}, ") !=
          std::string::npos);
    CHECK(!support::refusal([&] { return io::operators_named(g, "block{3..9}.attention"); }).empty());
}

TEST_CASE("operator names: distances are those of single changes") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("", "abc") == 3);
    CHECK(edit_distance("abc", "") == 3);
    CHECK(edit_distance("kitten", "sitting") == 3);
    CHECK(edit_distance("flaw", "lawn") == 2);
    CHECK(edit_distance("same", "same") == 0);
}
