#include <parsearch/cost/link_fit.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

#include "support/refusal.hpp"

using namespace parsearch;
using namespace parsearch::cost;

namespace {
/// The sum of squared relative errors of a model.
double loss(std::vector<link_point> const& points, double latency, double seconds_per_byte) {
    double sum = 0;
    for (auto const& p : points) {
        double const error = (latency + seconds_per_byte * static_cast<double>(p.bytes)) / to_seconds(p.time) - 1;
        sum += error * error;
    }
    return sum;
}
} // namespace

TEST_CASE("fit: points of a model give the model back") {
    constexpr std::uint64_t seed = 1;
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    for (int round = 0; round < 300; ++round) {
        double const latency = 1e-6 * (1 + 50 * uniform_unit(rng)), rate = 1e9 * std::exp2(12 * uniform_unit(rng));
        std::vector<link_point> points;
        for (int i = 8; i < 31; ++i) {
            auto const bytes = byte_count{1} << i;
            points.push_back({bytes, from_seconds(latency + static_cast<double>(bytes) / rate)});
        }
        auto const fitted = fit_latency_bandwidth(points);
        REQUIRE(to_seconds(fitted.latency) == doctest::Approx(latency).epsilon(1e-4));
        REQUIRE(fitted.rate.bytes_per_second == doctest::Approx(rate).epsilon(1e-4));
        REQUIRE(*fitted.largest_error < 1e-5);
    }
}

TEST_CASE("fit: no other latency and bandwidth are nearer to noisy points; neither is negative; order does not matter") {
    constexpr std::uint64_t seed = 2;
    INFO("seed ", seed);
    std::mt19937_64 rng(seed);
    int at_zero = 0;
    for (int round = 0; round < 500; ++round) {
        CAPTURE(round);
        double const latency = uniform_unit(rng) < 0.5 ? 0 : 1e-6 * uniform_unit(rng), rate = 1e10 * (1 + uniform_unit(rng));
        std::vector<link_point> points;
        for (auto n = 2 + uniform_index(rng, 20); n > 0; --n) {
            auto const bytes = static_cast<byte_count>(std::exp2(10 + 20 * uniform_unit(rng)));
            points.push_back({bytes, from_seconds((latency + static_cast<double>(bytes) / rate) * (0.7 + 0.6 * uniform_unit(rng)))});
        }
        latency_bandwidth fitted;
        try {
            fitted = fit_latency_bandwidth(points);
        } catch (invalid_input const& e) {
            REQUIRE(std::string_view(e.what()).find("do not grow with bytes") != std::string_view::npos);
            continue;
        }
        REQUIRE(fitted.latency >= picoseconds{0});
        REQUIRE(fitted.rate.bytes_per_second > 0);
        at_zero += fitted.latency == picoseconds{0};
        double const a = to_seconds(fitted.latency), b = 1 / fitted.rate.bytes_per_second, least = loss(points, a, b);
        for (double const up : {0.0, 1e-3, -1e-3, 1e-2, -1e-2})
            for (double const other : {0.0, 1e-3, -1e-3, 1e-2, -1e-2})
                REQUIRE(loss(points, std::max(0.0, a + up * 1e-7), b * (1 + other)) >= least * (1 - 1e-6) - 1e-9);
        double largest = 0;
        for (auto const& p : points) largest = std::max(largest, std::abs(to_seconds(fitted.time(p.bytes)) / to_seconds(p.time) - 1));
        REQUIRE(*fitted.largest_error == doctest::Approx(largest));
        std::reverse(points.begin(), points.end());
        auto const again = fit_latency_bandwidth(points);
        REQUIRE(again.rate.bytes_per_second == doctest::Approx(fitted.rate.bytes_per_second).epsilon(1e-9));
    }
    CHECK(at_zero > 50);
}

TEST_CASE("fit: what tells no bandwidth is refused") {
    auto const refused = [](std::vector<link_point> const& points) {
        return support::refusal([&] { return fit_latency_bandwidth(points).latency.count(); });
    };
    std::string const first = "fit of latency and bandwidth";
    CHECK(refused({}) == first + " to 0 points: must be of at least two sizes");
    CHECK(refused({{8, picoseconds{1}}, {8, picoseconds{2}}}) == first + " to 2 points: must be of at least two sizes");
    CHECK(refused({{8, picoseconds{5}}, {16, picoseconds{5}}}) ==
          first + " to 2 points: their times do not grow with bytes, and so tell no bandwidth");
    CHECK(refused({{8, picoseconds{5}}, {16, picoseconds{4}}}).find("do not grow") != std::string::npos);
    CHECK(refused({{8, picoseconds{5}}, {16, picoseconds{0}}}) == first + ": points[1] (16 bytes) takes 0 ps: must take longer");
    CHECK(refused({{-8, picoseconds{5}}, {16, picoseconds{1}}}) == first + ": points[0] has -8 bytes: must not be negative");
    CHECK(refused({{8, picoseconds{-5}}, {16, picoseconds{1}}}).find("points[0] takes -5 ps: must be from 0 to ") != std::string::npos);
}

TEST_CASE("models of links and collectives: what breaks a rule is named") {
    link_model const good{.device = "H100", .kind = link_kind::local, .fitted = {picoseconds{1}, {1}, 0.0}, .points = {{1, picoseconds{1}}}};
    auto const refused = [&](auto const& change) {
        auto m = good;
        change(m);
        return support::refusal([&] { return validate(m, "f.json"), 0; });
    };
    CHECK(refused([](auto&) {}).empty());
    CHECK(refused([](auto& m) { m.device = ""; }) == "f.json: local copies on '': device is empty: must be a kind of device");
    CHECK(refused([](auto& m) { m.kind = static_cast<link_kind>(9); }) == "f.json: kind of link is number 9: unknown");
    CHECK(refused([](auto& m) { m.fitted.latency = picoseconds{-1}; }).find("latency is -1 ps: must be from 0 to") != std::string::npos);
    CHECK(refused([](auto& m) { m.fitted.rate = {0}; }).ends_with("rate is 0 B/s: must be positive and finite"));
    CHECK(refused([](auto& m) { m.fitted.largest_error = -0.5; }).ends_with("largest error is -0.5: must be finite and not negative"));
    CHECK(refused([](auto& m) { m.points[0].bytes = -1; }).ends_with("points[0] has -1 bytes: must not be negative"));
    CHECK(support::refusal([] {
              return validate(collective_model{.device = "H100", .size = 1, .fitted = {{}, {1}, {}}}, ""), 0;
          }) == "all_reduce of 1 on 'H100': size is 1: must be at least 2");
    CHECK(support::refusal([] { return validate(collective_model{.device = "H100", .kind = static_cast<collective_kind>(7)}, ""), 0; }) ==
          "kind of collective is number 7: unknown");
}
