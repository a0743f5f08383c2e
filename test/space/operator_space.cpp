#include <parsearch/space/operator_space.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/core/random.hpp>

#include "support/refusal.hpp"

using namespace parsearch;
using space::placements;

namespace {

/// An operation with an output along dims of these extents and kinds.
ops::operation with_dims(std::vector<std::pair<std::int64_t, ops::dim_kind>> const& dims) {
    ops::operation op{.kind = "op"};
    for (auto const& [extent, kind] : dims) op.dims.push_back({text('d', op.dims.size()), extent, kind});
    op.outputs.push_back({.name = "y"});
    return op;
}
constexpr auto sample = ops::dim_kind::sample, attribute = ops::dim_kind::attribute, parameter = ops::dim_kind::parameter,
               reduction = ops::dim_kind::reduction, fixed = ops::dim_kind::fixed;

std::vector<space::configuration> all(ops::operation const& op, std::size_t devices, space::space_options const& options = {}) {
    space::operator_space const s(op, devices, options, "x");
    std::vector<space::configuration> out;
    for (auto const& c : s.all()) out.push_back(c);
    CHECK(out.size() == s.size());
    return out;
}

using key = std::tuple<std::vector<std::int32_t>, std::vector<std::int32_t>, std::int32_t>;
key key_of(space::configuration const& c) { return {{c.degree.begin(), c.degree.end()}, {c.stride.begin(), c.stride.end()}, c.start}; }

/// The devices of all shards.
std::vector<std::int32_t> devices_of(space::configuration const& c) {
    std::vector<std::int32_t> out;
    for (std::int64_t n = 0; n < c.shards(); ++n) out.push_back(c.device(n));
    return out;
}

} // namespace

TEST_CASE("operator_space: a range as searches want it") {
    using view = decltype(std::declval<space::operator_space const&>().all());
    static_assert(SizedRandomAccessRange<view>);
    auto const op = with_dims({{8, sample}, {4, parameter}});
    space::operator_space const s(op, 4, {}, "x");
    auto const view_of_all = s.all();
    for (std::uint32_t i = 0; i < s.size(); ++i) CHECK(view_of_all[i] == s[i]);
}

TEST_CASE("operator_space: contiguous placements are FlexFlow's, from any device") {
    auto const found = all(with_dims({{4, sample}}), 3, {.placements = placements::contiguous});
    // Degree 1 from 3 devices, degree 2 from 2; 4 does not fit.
    std::vector<std::vector<std::int32_t>> devices;
    for (auto const& c : found) devices.push_back(devices_of(c));
    CHECK(devices == std::vector<std::vector<std::int32_t>>{{0}, {1}, {2}, {0, 1}, {1, 2}});
}

TEST_CASE("operator_space: strided placements, aligned blocks and every stride that tiles") {
    auto const found = all(with_dims({{4, sample}}), 8);
    std::set<std::vector<std::int32_t>> devices;
    for (auto const& c : found) devices.insert(devices_of(c));
    CHECK(devices == std::set<std::vector<std::int32_t>>{{0},    {1},    {2},    {3},    {4},          {5},          {6},          {7},
                                                         {0, 1}, {2, 3}, {4, 5}, {6, 7}, {0, 2},       {1, 3},       {4, 6},       {5, 7},
                                                         {0, 4}, {1, 5}, {2, 6}, {3, 7}, {0, 1, 2, 3}, {4, 5, 6, 7}, {0, 2, 4, 6}, {1, 3, 5, 7}});
    CHECK(found.size() == devices.size());
}

TEST_CASE("operator_space: one order of the split dims, or all") {
    auto const op = with_dims({{2, sample}, {2, reduction}});
    auto strides = [&](bool all_orders) {
        std::set<std::pair<std::int32_t, std::int32_t>> out;
        for (auto const& c : all(op, 4, {.all_orders = all_orders}))
            if (c.shards() == 4) out.emplace(c.stride[0], c.stride[1]);
        return out;
    };
    CHECK(strides(false) == std::set<std::pair<std::int32_t, std::int32_t>>{{2, 1}}); // reduction shards on neighbours
    CHECK(strides(true) == std::set<std::pair<std::int32_t, std::int32_t>>{{2, 1}, {1, 2}});
}

TEST_CASE("operator_space: limits") {
    auto const op = with_dims({{8, sample}, {8, attribute}, {8, parameter}, {8, reduction}, {8, fixed}});
    auto const largest = [&](space::space_options const& options) {
        std::vector<std::int32_t> most(6, 0); // of each dim, and of shards
        for (auto const& c : all(op, 8, options)) {
            for (std::size_t k = 0; k < 5; ++k) most[k] = std::max(most[k], c.degree[k]);
            most[5] = std::max(most[5], static_cast<std::int32_t>(c.shards()));
        }
        return most;
    };
    using degrees = std::vector<std::int32_t>;
    CHECK(largest({}) == degrees{8, 8, 8, 8, 1, 8});
    CHECK(largest({.sample = false}) == degrees{1, 8, 8, 8, 1, 8});
    CHECK(largest({.attribute = false}) == degrees{8, 1, 8, 8, 1, 8});
    CHECK(largest({.parameter = false}) == degrees{8, 8, 1, 8, 1, 8});
    CHECK(largest({.reduction = false}) == degrees{8, 8, 8, 1, 1, 8});
    CHECK(largest({.min_shard = 4}) == degrees{2, 2, 2, 2, 1, 8});
    CHECK(largest({.min_shard = 9}) == degrees{1, 1, 1, 1, 1, 1});
    CHECK(largest({.max_shards = 4}) == degrees{4, 4, 4, 4, 1, 4});
    CHECK(largest({.max_shards = 100}) == degrees{8, 8, 8, 8, 1, 8});
    CHECK(largest({.max_degree = [](ops::operation const&, ops::dim const& d) { return d.kind == reduction ? 2 : 4; }}) == degrees{4, 4, 4, 2, 1, 8});
    CHECK(largest({.max_degree = [](ops::operation const&, ops::dim const&) { return 1; }}) == degrees{1, 1, 1, 1, 1, 1});
    CHECK_THROWS_WITH_AS(largest({.max_degree = [](ops::operation const&, ops::dim const&) { return 0; }}),
                         doctest::Contains("is 0: must be at least 1"), invalid_input);
}

TEST_CASE("operator_space: contains exactly what it enumerates") {
    auto const op = with_dims({{6, sample}, {4, parameter}});
    for (auto const& options : {space::space_options{}, space::space_options{.min_shard = 2}, space::space_options{.all_orders = true},
                                space::space_options{.placements = space::placements::contiguous}}) {
        space::operator_space const s(op, 12, options, "x");
        std::size_t contained = 0;
        for (std::int32_t a = 1; a <= 6; ++a)
            for (std::int32_t b = 1; b <= 4; ++b)
                for (std::int32_t sa = 0; sa <= 12; ++sa)
                    for (std::int32_t sb = 0; sb <= 12; ++sb)
                        for (std::int32_t start = -1; start <= 12; ++start)
                            contained += s.contains({.rank = 2, .degree = {a, b}, .stride = {sa, sb}, .start = start});
        CHECK(contained == s.size());
        for (std::size_t i = 0; i < s.size(); ++i) CHECK(s.contains(s[i]));
        CHECK_FALSE(s.contains({.rank = 1, .degree = {1}}));
        CHECK_FALSE(s.contains({.rank = 2, .degree = {1, 1}, .listed = {0}}));
    }
}

TEST_CASE("operator_space: random spaces are valid, distinct and of the counted size") {
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        INFO("seed ", seed);
        std::mt19937_64 rng(seed);
        constexpr ops::dim_kind kinds[] = {sample, attribute, parameter, reduction, fixed};
        std::vector<std::pair<std::int64_t, ops::dim_kind>> dims;
        for (auto n = uniform_index(rng, 5); n-- > 0;)
            dims.emplace_back(static_cast<std::int64_t>(1 + uniform_index(rng, 12)), kinds[uniform_index(rng, 5)]);
        auto const op = with_dims(dims);
        auto const devices = 1 + uniform_index(rng, 12);
        space::space_options const options{.uneven = bernoulli(rng, 0.3),
                                           .min_shard = static_cast<std::int64_t>(1 + uniform_index(rng, 3)),
                                           .max_shards = static_cast<std::int32_t>(uniform_index(rng, 6)),
                                           .placements = bernoulli(rng, 0.5) ? placements::contiguous : placements::strided,
                                           .all_orders = bernoulli(rng, 0.5)};
        std::set<key> seen;
        for (auto const& c : all(op, devices, options)) {
            REQUIRE(support::refusal([&] {
                        space::validate(c, op, devices, "x");
                        return 0;
                    }) == "");
            REQUIRE(seen.insert(key_of(c)).second);
            auto const where = devices_of(c);
            REQUIRE(std::set<std::int32_t>(where.begin(), where.end()).size() == where.size());
            for (std::size_t k = 0; k < dims.size(); ++k) REQUIRE((c.degree[k] == 1 || dims[k].first / c.degree[k] >= options.min_shard));
            REQUIRE((options.max_shards == 0 || c.shards() <= options.max_shards));
            // Split over a block of neighbours, or over equally spaced devices that tile all of them.
            auto sorted = where;
            std::sort(sorted.begin(), sorted.end());
            auto const stride = sorted.size() > 1 ? sorted[1] - sorted[0] : 1;
            for (std::size_t i = 1; i < sorted.size(); ++i) REQUIRE(sorted[i] - sorted[i - 1] == stride);
            if (options.placements == placements::contiguous) REQUIRE(stride == 1);
            if (stride > 1) REQUIRE(static_cast<std::int64_t>(devices) % (stride * c.shards()) == 0);
        }
        // The size by counting: combinations of degrees, orders of the split dims, placements.
        std::size_t expected = 0;
        auto const limit = options.max_shards == 0 ? static_cast<std::int64_t>(devices)
                                                   : std::min<std::int64_t>(options.max_shards, static_cast<std::int64_t>(devices));
        std::vector<std::int64_t> degree(dims.size(), 1);
        for (bool more = true; more;) {
            std::int64_t shards = 1;
            std::size_t split = 0, orders = 1;
            bool legal = true;
            for (std::size_t k = 0; k < dims.size(); ++k) {
                shards *= degree[k];
                if (degree[k] == 1) continue;
                orders *= options.all_orders ? ++split : 1;
                auto const divides = dims[k].first % degree[k] == 0;
                auto const parts_devices = options.uneven && static_cast<std::int64_t>(devices) % degree[k] == 0;
                legal = legal && dims[k].second != fixed && (divides || parts_devices) && dims[k].first / degree[k] >= options.min_shard;
            }
            if (legal && shards <= limit) {
                auto const n = static_cast<std::int64_t>(devices);
                std::int64_t places = 0;
                if (options.placements == placements::contiguous) places = n - shards + 1;
                else if (shards == 1) places = n;
                else
                    for (std::int64_t stride = 1; stride * shards <= n; ++stride)
                        if (stride == 1) places += n / shards;
                        else if (n % (stride * shards) == 0) places += n / shards;
                expected += orders * static_cast<std::size_t>(places);
            }
            more = false;
            for (std::size_t k = 0; k < dims.size() && !more; ++k) {
                more = ++degree[k] <= dims[k].first;
                if (!more) degree[k] = 1;
            }
        }
        REQUIRE(seen.size() == expected);
    }
}

TEST_CASE("operator_space: bad options are refused") {
    auto const op = with_dims({{8, sample}});
    auto const refused = [&](std::size_t devices, space::space_options const& o) {
        return support::refusal([&] { return space::operator_space(op, devices, o, "fc"); });
    };
    CHECK(refused(0, {}) == "configuration space on 0 devices: must be from 1 to 2^31 - 1");
    CHECK(refused(4, {.min_shard = 0}) == "space option min_shard is 0: must be at least 1");
    CHECK(refused(4, {.max_shards = -1}) == "space option max_shards is -1: must be 0 (no limit) or more");
}

TEST_CASE("operator_space: the nearest of the space to what is outside") {
    auto const op = with_dims({{8, sample}, {8, parameter}, {4, reduction}});
    space::operator_space const whole(op, 8, {}, "x");
    space::operator_space const samples(op, 8, {.parameter = false, .reduction = false}, "x");
    space::operator_space const pairs(op, 8, {.max_shards = 2}, "x");
    auto const split = [&](std::int32_t a, std::int32_t b, std::int32_t start) {
        space::operator_space const neighbours(op, 8, {.placements = placements::contiguous}, "x");
        for (auto const& c : neighbours.all())
            if (c.degree[0] == a && c.degree[1] == b && c.degree[2] == 1 && c.start == start) return c;
        FAIL("no such configuration");
        return space::configuration{};
    };
    CHECK(whole.nearest(split(4, 2, 0)) == split(4, 2, 0));                                      // it is of the space
    CHECK(devices_of(samples.nearest(split(4, 2, 0))) == std::vector<std::int32_t>{0, 2, 4, 6}); // where the samples were
    CHECK(samples.nearest(split(1, 8, 0)) == split(1, 1, 0));
    CHECK(devices_of(samples.nearest(split(2, 2, 4))) == std::vector<std::int32_t>{4, 6});
    CHECK(pairs.nearest(split(4, 2, 0)).shards() == 2);
    auto listed = split(2, 1, 0);
    listed.listed = {5, 3};
    CHECK(whole.nearest(listed).shards() == 2);
    CHECK(whole.contains(whole.nearest(listed)));
}

TEST_CASE("operator_space: what is nearest is of the space, and splits nothing that was whole") {
    for (std::uint64_t seed = 1; seed <= 500; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 rng{seed};
        auto const op = with_dims({{static_cast<std::int64_t>(1 + uniform_index(rng, 12)), sample},
                                   {static_cast<std::int64_t>(1 + uniform_index(rng, 12)), parameter},
                                   {static_cast<std::int64_t>(1 + uniform_index(rng, 6)), reduction}});
        auto const devices = 1 + uniform_index(rng, 12);
        space::operator_space const whole(op, devices, {.all_orders = true}, "x");
        space::operator_space const part(op, devices,
                                         {.sample = bernoulli(rng, 0.5),
                                          .parameter = bernoulli(rng, 0.5),
                                          .reduction = bernoulli(rng, 0.5),
                                          .min_shard = static_cast<std::int64_t>(1 + uniform_index(rng, 3)),
                                          .max_shards = static_cast<std::int32_t>(uniform_index(rng, 5)),
                                          .placements = bernoulli(rng, 0.5) ? placements::contiguous : placements::strided},
                                         "x");
        for (int i = 0; i < 20; ++i) {
            auto const c = whole[uniform_index(rng, whole.size())];
            auto const near = part.nearest(c);
            REQUIRE(part.contains(near));
            if (part.contains(c)) REQUIRE(near == c);
            for (std::size_t d = 0; d < 3; ++d) REQUIRE(c.degree[d] % near.degree[d] == 0);
        }
    }
}

TEST_CASE("operator_space: part of the configurations is a space like all of them") {
    std::mt19937_64 rng{11};
    for (int n = 0; n < 300; ++n) {
        CAPTURE(n);
        auto const op = with_dims({{static_cast<std::int64_t>(1 + uniform_index(rng, 12)), sample},
                                   {static_cast<std::int64_t>(1 + uniform_index(rng, 12)), parameter},
                                   {static_cast<std::int64_t>(1 + uniform_index(rng, 6)), reduction}});
        auto const devices = 1 + uniform_index(rng, 12);
        space::operator_space const whole(op, devices, {.all_orders = bernoulli(rng, 0.3)}, "x");
        std::vector<space::configuration> kept;
        auto const keeps = [&](space::configuration const& c) { return std::ranges::find(kept, c) != kept.end(); };
        for (auto const& c : whole.all())
            if (bernoulli(rng, 0.4)) kept.push_back(c);
        auto const part = whole.of_those(keeps);
        REQUIRE(std::ranges::equal(part.all(), kept));
        if (kept.empty()) continue;
        for (std::size_t split = 0; split < part.splits(); ++split) {
            auto const [first, last] = part.placements_of(split);
            REQUIRE(first < last);
            for (auto i = first; i < last; ++i) REQUIRE(part.split_of(part[i]) == split);
        }
        for (auto const& c : whole.all()) {
            REQUIRE(part.contains(c) == keeps(c));
            auto const near = part.nearest(c);
            REQUIRE(keeps(near));
            if (keeps(c)) REQUIRE(near == c);
        }
        // Again a part, by degrees and by configurations.
        auto const even = [](std::span<std::int32_t const> degrees) { return degrees[0] % 2 == 0 || degrees[1] > 1; };
        auto const low = [](space::configuration const& c) { return c.start < 2; };
        std::vector<space::configuration> left;
        for (auto const& c : kept)
            if (even(c.degrees()) && low(c)) left.push_back(c);
        REQUIRE(std::ranges::equal(part.restricted(even).of_those(low).all(), left));
        REQUIRE(std::ranges::equal(part.of_those(low).restricted(even).all(), left));
    }
}
