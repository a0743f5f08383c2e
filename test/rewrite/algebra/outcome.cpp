#include <parsearch/rewrite/algebra/outcome.hpp>

#include <doctest/doctest.h>

using namespace parsearch::rewrite;

TEST_CASE("outcome: a result, or why there is none") {
    auto const half = [](int n) -> outcome<int> {
        if (n % 2) return refused(n, " is odd");
        return n / 2;
    };
    CHECK(half(4));
    CHECK(*half(4) == 2);
    CHECK(half(4).why().empty());
    CHECK_FALSE(half(3));
    CHECK(half(3).why() == "3 is odd");
    CHECK_THROWS_AS((void)*half(3), std::bad_optional_access);
    outcome<std::string> const text = std::string("abc");
    CHECK(text->size() == 3);
}
