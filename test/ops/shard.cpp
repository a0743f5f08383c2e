#include <parsearch/ops/shard.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/ops/linear.hpp>

using namespace parsearch;

TEST_CASE("part_of: the first parts have what is left over") {
    for (std::int64_t extent = 1; extent < 40; ++extent)
        for (std::int64_t parts = 1; parts <= extent; ++parts) {
            std::int64_t at = 0, largest = 0;
            for (std::int64_t i = 0; i < parts; ++i) {
                auto const p = ops::part_of(extent, parts, i);
                REQUIRE(p.begin == at);
                REQUIRE(p.size() >= extent / parts);
                REQUIRE((i == 0 || p.size() <= ops::part_of(extent, parts, i - 1).size()));
                at = p.end;
                largest = std::max(largest, p.size());
            }
            REQUIRE(at == extent);
            REQUIRE(largest == ops::largest_part(extent, parts));
        }
}

TEST_CASE("uneven shards have the work of the largest") {
    auto const op = ops::linear{.out = 59, .bias = false}.infer(std::vector<ops::tensor>{{{10, 7}}});
    std::vector<std::int32_t> const uneven{3, 50, 1}, even{5, 59, 7};
    CHECK(ops::is_uneven(op, uneven));
    CHECK(!ops::is_uneven(op, even));
    CHECK(ops::work_of_shard(590.0 * 8, op, uneven) == 4 * 2 * 8);
    CHECK(ops::work_of_shard(590.0 * 7, op, even) == 590.0 * 7 / (5 * 59 * 7));
    CHECK(ops::middle_shard(op, uneven)[0] == ops::interval{0, 4});
    CHECK(ops::middle_shard(op, uneven)[1].size() == 2);
    CHECK(ops::work_of(op, uneven, ops::pass::forward).extent(1) == 2);
    CHECK(ops::can_be_in(op.dims[0], 10));
    CHECK(!ops::can_be_in(op.dims[0], 11));
    CHECK(!ops::can_be_in(op.dims[0], 0));
    CHECK(!ops::can_be_in({"f", 4, ops::dim_kind::fixed}, 2));
    CHECK(!ops::can_be_in({"c", 4, ops::dim_kind::copies}, 3));
}
