#include <parsearch/pipeline/stage_times.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

namespace pipeline = parsearch::pipeline;
using pipeline::launch_order;
using pipeline::stage_times;

TEST_CASE("stage_times: even stages, by hand") {
    auto const end = [](launch_order o, stage_times const& each, std::uint32_t micro_batches) {
        return std::ranges::max(pipeline::ends_of(std::vector<stage_times>(4, each), {o, 4, micro_batches}, true));
    };
    for (std::int64_t const m : {8, 16}) {
        auto const n = static_cast<std::uint32_t>(m);
        CHECK(end(launch_order::gpipe, {.forward = 1, .backward = 2}, n) == (m + 3) * 3);
        CHECK(end(launch_order::one_f_one_b, {.forward = 1, .backward = 2}, n) == (m + 3) * 3);
        CHECK(end(launch_order::zb_h1, {.forward = 1, .backward = 1, .weights = 1}, n) == 3 * m + 3);
        CHECK(end(launch_order::zb_h2, {.forward = 1, .backward = 1, .weights = 1}, n) == 3 * m + 3);
        CHECK(end(launch_order::gpipe, {.forward = 1, .backward = 2, .head = 5, .tail = 7}, n) == (m + 3) * 3 + 12);
        // Computed again: all of it behind the gradients, or half of it before they are there.
        CHECK(end(launch_order::gpipe, {.forward = 2, .backward = 2, .again = 2}, n) == (m + 3) * 6);
        CHECK(end(launch_order::gpipe, {.forward = 2, .backward = 2, .again = 2, .ahead = 1}, n) == (m + 3) * 6 - 3);
    }
    CHECK(pipeline::ends_of(std::vector<stage_times>(2, {.forward = 10, .backward = 90, .message = 1}), {launch_order::one_f_one_b, 2, 3}, false) ==
          std::vector<std::int64_t>{30, 41});
}
