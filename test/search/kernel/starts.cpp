#include <parsearch/search/kernel/starts.hpp>

#include <algorithm>
#include <optional>
#include <vector>

#include <doctest/doctest.h>

#include "support/toys.hpp"

namespace search = parsearch::search;

TEST_CASE("random starts are made one by one, each once") {
    auto const problem = toys::table_problem<double>(toys::make_space(2, 3), 1, false);
    toys::splitmix rng{7};
    toys::strategy const given{0, 0};
    std::uint64_t const before = rng.state;
    search::other_starts starts("test", problem, given, true, 1'000'000'000'000, rng);
    CHECK(rng.state == before);
    std::vector<toys::strategy> made;
    for (int n = 0; n < 8; ++n) { // all of the space but what is given
        auto one = starts.next();
        REQUIRE(one);
        CHECK(*one != given);
        CHECK(std::find(made.begin(), made.end(), *one) == made.end());
        made.push_back(*one);
    }
    search::other_starts few("test", problem, given, true, 3, rng);
    int count = 0;
    while (few.next()) ++count;
    CHECK(count <= 3);
    CHECK(!few.next());
}
