#include <parsearch/search/kernel/merged_changes.hpp>

#include <cstddef>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace ps = parsearch;

TEST_CASE("merged changes: each operator once, as it is last, without what is there already") {
    std::vector<int> const from{5, 6, 7, 8};
    ps::search::merged_changes<int> merged;
    auto const as_pairs = [](auto changes) {
        std::vector<std::pair<std::size_t, int>> out;
        for (auto const& c : changes) out.emplace_back(c.op, c.configuration);
        return out;
    };
    using pairs = std::vector<std::pair<std::size_t, int>>;
    for (int again = 0; again < 2; ++again) {
        merged.clear();
        CHECK(merged.all().empty());
        // Made in the order 1 -> 3, 2 -> 9, 1 -> 6 (back), 2 -> 4, 0 -> 1.
        for (ps::change<int> const& c : {ps::change<int>{0, 1}, {2, 4}, {1, 6}, {2, 9}, {1, 3}}) merged.add(c, from);
        CHECK(as_pairs(merged.all()) == pairs{{0, 1}, {2, 4}});
        std::vector<ps::change<int>> const what{{2, 0}, {3, 3}};
        CHECK(as_pairs(merged.with(what)) == pairs{{0, 1}, {2, 0}, {3, 3}});
    }
}
