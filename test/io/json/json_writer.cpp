#include <parsearch/io/json/json_writer.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::io;

namespace {
std::string written(ordered_json const& value) {
    std::ostringstream out;
    write_json(out, value);
    return out.str();
}

ordered_json random_value(std::mt19937_64& rng, int depth) {
    static std::vector<std::string> const names{"", "a", "a b", "\"q\"", "\n", "\xc3\xa9", "a long name of a member, so that lines break"};
    auto const name = [&] { return names[uniform_index(rng, names.size())]; };
    switch (uniform_index(rng, depth > 0 ? 9 : 6)) {
    case 0: return nullptr;
    case 1: return uniform_index(rng, 2) == 0;
    case 2: return static_cast<std::int64_t>(uniform_bits(rng));
    case 3: return uniform_bits(rng);
    case 4: {
        auto const number = std::bit_cast<double>(uniform_bits(rng));
        return number - number == 0 ? ordered_json(number) : ordered_json(0.1); // finite ones
    }
    case 5: return name();
    default: break;
    }
    bool const object = uniform_index(rng, 2) == 0;
    auto out = object ? ordered_json::object() : ordered_json::array();
    for (auto n = uniform_index(rng, uniform_index(rng, 4) ? 4 : 60); n > 0; --n) {
        if (object) out[name()] = random_value(rng, depth - 1);
        else out.push_back(random_value(rng, depth - 1));
    }
    return out;
}
} // namespace

TEST_CASE("json_write: members in order, two spaces, short values on one line") {
    ordered_json value;
    value["z"] = 1;
    value["a"] = {1.5, "x", nullptr, true};
    value["e"] = ordered_json::object();
    value["l"] = {{{"b", 1}}, ordered_json::array()};
    CHECK(written(value) == "{\n  \"z\": 1,\n  \"a\": [1.5, \"x\", null, true],\n  \"e\": {},\n  \"l\": [{\"b\": 1}, []]\n}\n");
    CHECK(written(3) == "3\n");
    CHECK(written(ordered_json::array()) == "[\n]\n");
}

TEST_CASE("json_write: numbers are the shortest that read back equal") {
    ordered_json const numbers{
        0.1, 1e12, 4.5e11, 1e-9, 1.0 / 3, -0.0, 123456.0, std::int64_t{-9223372036854775807}, std::uint64_t{18446744073709551615u}};
    ordered_json const root{{"n", numbers}};
    CHECK(written(root) ==
          "{\n  \"n\": [0.1, 1e+12, 4.5e+11, 1e-09, 0.3333333333333333, -0.0, 123456, -9223372036854775807, 18446744073709551615]\n}\n");
    CHECK(std::signbit(nlohmann::json::parse(written(root))["n"][5].get<double>()));
    for (double const bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
        CHECK(support::refusal([&] { return written(bad); }).ends_with(": JSON holds finite numbers only"));
}

TEST_CASE("json_write: long lists of scalars fill lines, others have a line per element") {
    ordered_json root;
    for (int i = 0; i < 100; ++i) root["numbers"].push_back(1000 + i);
    for (int i = 0; i < 20; ++i) root["objects"].push_back({{"number", i}});
    std::istringstream lines(written(root));
    std::vector<std::string> all;
    for (std::string line; std::getline(lines, line);) all.push_back(line);
    for (auto const& line : all) CHECK(line.size() <= 150);
    CHECK(all[2].starts_with("    1000, 1001, "));
    CHECK(all[2].size() > 140);
    CHECK(all[2].back() == ',');
    CHECK(all.size() == 1 + 1 + 5 + 1 + 1 + 20 + 1 + 1);
    CHECK(all[9] == "    {\"number\": 0},");
}

TEST_CASE("json_write: what cannot be written is refused") {
    CHECK(support::refusal([] { return written("\xff"); }) == "a string to be written is not UTF-8: JSON holds no other");
    CHECK(support::refusal([] { return written({{"\xff", 1}}); }) == "a string to be written is not UTF-8: JSON holds no other");
    CHECK(support::refusal([] {
              std::ostringstream out;
              out.setstate(std::ios::failbit);
              write_json(out, 1);
              return 0;
          }) == "JSON of 2 bytes cannot be written: the stream has failed");
}

TEST_CASE("json_write: what is written reads back equal, and the same value makes the same bytes") {
    constexpr std::uint64_t seed = 77;
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    for (int i = 0; i < 2000; ++i) {
        auto const value = random_value(rng, 4);
        auto const text = written(value);
        auto const back = ordered_json::parse(text);
        // Whole doubles are written without a fraction and read back as integers of the same value.
        CHECK(back == value);
        CHECK(written(back) == text);
    }
}
