#include <parsearch/core/error.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include <doctest/doctest.h>

using parsearch::invalid_input;
using parsearch::text;

TEST_CASE("error: text joins strings, characters, numbers and booleans") {
    std::string const owned = "owned";
    std::string_view const seen = "seen";
    CHECK(text() == "");
    CHECK(text("literal ", owned, ' ', seen) == "literal owned seen");
    CHECK(text(-7, ' ', 7U, ' ', std::int64_t{-9'223'372'036'854'775'807}, ' ', std::uint64_t{18'446'744'073'709'551'615U}) ==
          "-7 7 -9223372036854775807 18446744073709551615");
    CHECK(text(std::int8_t{65}, std::uint8_t{66}) == "6566"); // numbers, not letters
    CHECK(text(true, '/', false) == "true/false");
    CHECK(text(0.5).find("0.5") == 0);
    CHECK(text(std::string_view("with\0zero", 9)).size() == 9);
}

TEST_CASE("error: invalid_input carries its text") {
    invalid_input const e("link ", 3, ": rate ", -1, " B/s: must be positive");
    CHECK(std::string(e.what()) == "link 3: rate -1 B/s: must be positive");
    CHECK(std::string(invalid_input("alone").what()) == "alone");
    invalid_input const copy(e);
    CHECK(std::string(copy.what()) == e.what());
    CHECK_THROWS_AS(throw invalid_input("as a standard exception"), std::invalid_argument);
}

TEST_CASE("error: a message needs words") {
    static_assert(std::is_constructible_v<invalid_input, std::string>);
    static_assert(std::is_constructible_v<invalid_input, char const*, int>);
    static_assert(!std::is_constructible_v<invalid_input>);
    static_assert(!std::is_constructible_v<invalid_input, int>);
    static_assert(!std::is_convertible_v<char const*, invalid_input>);
}
