#include <parsearch/io/json/json_reader.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "support/cases.hpp"
#include "support/mutations.hpp"
#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::io;

namespace {
json_document parsed(std::string const& text, json_limits const& limits = {}) {
    std::istringstream in(text);
    return json_document(in, "x.json", limits);
}
std::string refused(std::string const& text, json_limits const& limits = {}) {
    return support::refusal([&] { return parsed(text, limits).root().summary(); });
}
/// Member "a" of {"a": text}, given to `f`, or what that refuses.
template <class F> std::string asked(std::string const& value, F const& f) {
    auto const document = parsed("{\"a\": " + value + "}");
    return support::refusal([&] { return f(document.root().object({"a"}).at("a")); });
}
} // namespace

TEST_CASE("json: syntax errors have line and column") {
    CHECK(refused("[1,\n 2") == "x.json:2:2: is no JSON: unexpected end of input; expected ']'");
    CHECK(refused("{\n  \"a\": [1, nul]\n}") == "x.json:2:15: is no JSON: invalid literal; last read: '1, nul]'");
    CHECK(refused("") == "x.json:1:1: is no JSON: unexpected end of input; expected '[', '{', or a literal");
    CHECK(refused(std::string("{}\n\0{", 5)) == "x.json:2:1: is no JSON: a character with the number 0");
    CHECK(refused("NaN") == "x.json:1:1: is no JSON: invalid literal; last read: 'N'");
    CHECK(refused("[1] 2").starts_with("x.json:1:5: is no JSON: unexpected number literal; expected end of input"));
    CHECK(refused("[\"\xff\"]") == "x.json:1:3: is no JSON: invalid string: ill-formed UTF-8 byte; last read: '\"\\xff'");
    CHECK(refused("[1, // no\n]").starts_with("x.json:1:5: is no JSON: invalid literal"));
    CHECK(refused("[" + std::string(300, 'x')).size() < 200);
    CHECK(refused("[Infinity]").starts_with("x.json:1:2: is no JSON"));
    CHECK(refused("[1e999]").starts_with("x.json:1:7: a number is too large: must fit a double"));
}

TEST_CASE("json: members are given once, in each object of its own") {
    CHECK(refused("{\"a\": {\"b\": 1},\n\"a\": 2}") == "x.json:2:3: member \"a\" is given twice: at most once");
    CHECK(refused("[{\"a\": 1}, {\"a\": {\"a\": 1}}]") == "");
    CHECK(refused("{\"a\": 1, \"\\u0061\": 2}") == "x.json:1:17: member \"a\" is given twice: at most once");
}

TEST_CASE("json: limits") {
    json_limits const small{.bytes = 20, .values = 4, .depth = 2};
    CHECK(refused("[1, [2]]", small) == "");
    CHECK(refused("[1, 2, 3, 4]", small) == "x.json:1:12: more than 4 values");
    CHECK(refused("[[[]]]", small) == "x.json:1:3: arrays and objects are more than 2 deep");
    CHECK(refused("[                    ]", small) == "x.json: longer than 20 bytes: that is the limit");
    CHECK(refused(std::string(1'000'000, '[')) == "x.json:1:33: arrays and objects are more than 32 deep");
    CHECK(refused(std::string(31, '[') + "{}" + std::string(31, ']')) == "");
}

TEST_CASE("json: reading takes time in proportion to the text") {
    std::string text = "[{}";
    for (int i = 0; i < 300'000; ++i) text += ",{\"a\":[]}";
    CHECK(parsed(text + "]").root().size() == 300'001); // in a parser that looks at all elements behind each: minutes
}

TEST_CASE("json: integers are neither rounded nor wrapped") {
    auto const to_int8 = [](json_value const& v) { return v.integer<std::int8_t>(); };
    CHECK(asked("127", to_int8) == "");
    CHECK(asked("-128", to_int8) == "");
    CHECK(asked("128", to_int8) == "x.json: a is 128: must be an integer from -128 to 127");
    CHECK(asked("-129", to_int8) == "x.json: a is -129: must be an integer from -128 to 127");
    CHECK(asked("1.0", to_int8) == "x.json: a is 1.0: must be an integer from -128 to 127");
    CHECK(asked("1e2", to_int8) == "x.json: a is 100.0: must be an integer from -128 to 127");
    CHECK(asked("\"1\"", to_int8) == "x.json: a is \"1\": must be an integer from -128 to 127");
    CHECK(asked("null", to_int8) == "x.json: a is null: must be an integer from -128 to 127");
    CHECK(asked("[1]", to_int8) == "x.json: a is an array of 1: must be an integer from -128 to 127");
    CHECK(asked("true", to_int8) == "x.json: a is true: must be an integer from -128 to 127");
    CHECK(asked("0", [](json_value const& v) { return v.integer<std::uint32_t>(1, 8); }) == "x.json: a is 0: must be an integer from 1 to 8");
    CHECK(asked("-1", [](json_value const& v) { return v.integer<std::uint64_t>(); }) ==
          "x.json: a is -1: must be an integer from 0 to 18446744073709551615");
    auto const edge = parsed("[9223372036854775807, -9223372036854775808, 18446744073709551615, 18446744073709551616]");
    CHECK(edge.root()[0].integer<std::int64_t>() == std::numeric_limits<std::int64_t>::max());
    CHECK(edge.root()[1].integer<std::int64_t>() == std::numeric_limits<std::int64_t>::min());
    CHECK(edge.root()[2].integer<std::uint64_t>() == std::numeric_limits<std::uint64_t>::max());
    CHECK(support::refusal([&] { return edge.root()[2].integer<std::int64_t>(); }).starts_with("x.json: [2] is 18446744073709551615: must be"));
    CHECK(support::refusal([&] { return edge.root()[3].integer<std::uint64_t>(); }).starts_with("x.json: [3] is 1.8446744073709552e+19: must be"));
}

TEST_CASE("json: numbers, booleans, strings, choices") {
    auto const number = parsed("[3, 2.5, -1]");
    CHECK(number.root()[0].number(0) == 3);
    CHECK(number.root()[1].positive() == 2.5);
    CHECK(number.root()[2].number() == -1);
    CHECK(asked("-0.5", [](json_value const& v) { return v.number(0); }) == "x.json: a is -0.5: must be a number of at least 0");
    CHECK(asked("0", [](json_value const& v) { return v.positive(); }) == "x.json: a is 0: must be a number above 0");
    CHECK(asked("\"NaN\"", [](json_value const& v) { return v.number(); }) == "x.json: a is \"NaN\": must be a number");
    CHECK(asked("0", [](json_value const& v) { return v.boolean(); }) == "x.json: a is 0: must be true or false");
    CHECK(asked("{}", [](json_value const& v) { return v.string(); }) == "x.json: a is an object: must be a string");
    CHECK(asked("\"c\"", [](json_value const& v) { return v.one_of({"a", "b"}); }) == "x.json: a is \"c\": must be one of a, b");
    CHECK(asked("{}", [](json_value const& v) { return v.size(); }) == "x.json: a is an object: must be an array");
    CHECK(asked("[]", [](json_value const& v) { return v.object({}).has("b"); }) == "x.json: a is an array of 0: must be an object");
    CHECK(parsed("[true, \"b\"]").root()[0].boolean());
    CHECK(parsed("\"b\"").root().one_of({"a", "b"}) == 1);
}

TEST_CASE("json: objects know their members, and every value its path") {
    auto const document = parsed(R"({"links": [{"from": 1}, {"from": {"my switch": [0, -5]}, "too": 2}]})");
    auto const links = document.root().object({"links"}).at("links");
    CHECK(links.size() == 2);
    auto const first = links[0].object({"from", "to"});
    CHECK(first.has("from"));
    CHECK(first.find("to") == std::nullopt);
    CHECK(support::refusal([&] { return first.at("to").integer<int>(); }) == "x.json: links[0]: to is missing");
    CHECK(support::refusal([&] { return links[1].object({"from", "to"}).has("to"); }) == "x.json: links[1].too: unknown member: known are from, to");
    CHECK(support::refusal([&] { return document.root().object({}).has("a"); }) == "x.json: links: unknown member: known are ");
    std::string seen;
    links[1].object({"from", "too"}).at("from").for_members([&](std::string const& name, json_value const& value) {
        seen = text(name, ' ', value.place(), ' ', value[1].place(), ' ', value[1].integer<int>());
    });
    CHECK(seen == "my switch x.json: links[1].from[\"my switch\"] x.json: links[1].from[\"my switch\"][1] -5");
    CHECK(support::refusal([&] { return document.root().integer<int>(); }).starts_with("x.json: the document is an object: must be an integer"));
    CHECK(support::refusal([&] { return placed(links[0], []() -> int { throw invalid_input("link 0 is short"); }); }) ==
          "x.json: links[0]: link 0 is short");
}

TEST_CASE("json: the header says what a document is") {
    auto const header = [](std::string const& text) {
        auto const document = parsed(text);
        return support::refusal([&] { return document.object("f", 2, {"a"}).has("a"); });
    };
    CHECK(header(R"({"format": "f", "version": 1})") == "");
    CHECK(header(R"({"a": 3, "version": 2, "format": "f"})") == "");
    CHECK(header(R"({"format": "g", "version": 1, "b": 0})") == "x.json: format is \"g\": must be \"f\"");
    CHECK(header(R"({"format": 7, "version": 1})") == "x.json: format is 7: must be a string");
    CHECK(header(R"({"format": "f", "version": 3, "b": 0})") == "x.json: version is 3: must be from 1 to 2, which this release reads");
    CHECK(header(R"({"format": "f", "version": 0})").starts_with("x.json: version is 0: must be"));
    CHECK(header(R"({"format": "f", "version": 1.0})").starts_with("x.json: version is 1.0: must be"));
    CHECK(header(R"({"format": "f", "version": -1})").starts_with("x.json: version is -1: must be"));
    CHECK(header(R"({"format": "f", "version": "1"})").starts_with("x.json: version is \"1\": must be"));
    CHECK(header(R"({"version": 1})") == "x.json: format is missing: a document says its format and version");
    CHECK(header(R"({"format": "f"})") == "x.json: version is missing: a document says its format and version");
    CHECK(header(R"({"format": "f", "version": 1, "b": 0})") == "x.json: b: unknown member: known are format, version, a");
    CHECK(header("[]") == "x.json: the document is an array of 0: must be an object");
    CHECK(support::refusal([] { return json_document(std::string("/nowhere/x.json")).root().size(); }) == "/nowhere/x.json: cannot be opened");
}

TEST_CASE("json: whatever the bytes, a document or a refusal") {
    constexpr std::uint64_t seed = 20240611;
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    std::string const good = R"({"format": "f", "version": 1, "a": [1, -2, 3.5e-3, "x\u00e9\n", {"b": null, "c": [true, false, {}]}]})";
    std::size_t read = 0, refusals = 0;
    auto const tries = support::cases(20'000u);
    for (std::uint64_t i = 0; i < tries; ++i) {
        auto const text = support::mutated_bytes(rng, good);
        if (refused(text, {.bytes = 200, .values = 30, .depth = 6}).empty()) ++read;
        else ++refusals;
    }
    CHECK(read > tries / 20);
    CHECK(refusals > tries / 20);
}
