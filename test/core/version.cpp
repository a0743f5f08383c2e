#include <parsearch/core/version.hpp>

#include <string>

#include <doctest/doctest.h>

TEST_CASE("version: the string spells the three macros") {
    std::string const expected =
        std::to_string(PARSEARCH_VERSION_MAJOR) + "." + std::to_string(PARSEARCH_VERSION_MINOR) + "." + std::to_string(PARSEARCH_VERSION_PATCH);
    CHECK(parsearch::version == expected);
}
