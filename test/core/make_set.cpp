#include <parsearch/core/make_set.hpp>

#include <vector>

#include <doctest/doctest.h>

TEST_CASE("make_set: sorted, without repetition") {
    std::vector<int> v{3, 1, 3, 2, 1};
    parsearch::make_set(v);
    CHECK(v == std::vector<int>{1, 2, 3});
    v.clear();
    parsearch::make_set(v);
    CHECK(v.empty());
}
