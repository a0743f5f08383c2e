#include <parsearch/pipeline/stage_cuts.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/random.hpp>

#include "support/refusal.hpp"

namespace ps = parsearch;
using times = std::vector<std::int64_t>;

namespace {
// Stages on which operators take the same times.
std::vector<std::size_t> balanced_cuts(times const& t, times const& crossing, std::size_t stages) {
    return ps::pipeline::balanced_cuts(std::vector<times>(stages, t), crossing);
}

// The largest load of a stage.
std::int64_t largest_load(std::vector<times> const& t, times const& crossing, std::vector<std::size_t> const& first) {
    std::int64_t most = 0;
    for (std::size_t s = 0; s < first.size(); ++s) {
        std::int64_t own = 0;
        for (auto i = first[s]; i < (s + 1 < first.size() ? first[s + 1] : crossing.size()); ++i) own += t[s][i];
        if (s > 0) own = std::max(own, crossing[first[s]]);
        most = std::max(most, own);
    }
    return most;
}
} // namespace

TEST_CASE("balanced_cuts: by hand") {
    CHECK(balanced_cuts(times{1, 2, 3, 4}, times{0, 0, 0, 0}, 1) == std::vector<std::size_t>{0});
    CHECK(balanced_cuts(times{1, 2, 3, 4}, times{0, 0, 0, 0}, 2) == std::vector<std::size_t>{0, 3});
    CHECK(balanced_cuts(times{1, 2, 3, 4}, times{0, 0, 0, 0}, 4) == std::vector<std::size_t>{0, 1, 2, 3});
    CHECK(balanced_cuts(times{1, 2, 3, 4}, times{0, 0, 0, 50}, 2) == std::vector<std::size_t>{0, 2}); // the best place is dear
    CHECK(balanced_cuts(times{0, 0, 0}, times{0, 0, 0}, 2) == std::vector<std::size_t>{0, 1});
}

TEST_CASE("balanced_cuts: no other cuts are better") {
    std::mt19937_64 rng(20261122);
    for (int round = 0; round < 1500; ++round) {
        auto const n = 1 + ps::uniform_index(rng, 8), stages = 1 + ps::uniform_index(rng, n);
        bool const alike = ps::bernoulli(rng, 0.5); // stages on which operators take the same times
        std::vector<times> t(stages);
        times crossing;
        for (std::size_t i = 0; i < n; ++i) {
            for (auto& of_stage : t)
                of_stage.push_back(alike && &of_stage != &t[0] ? t[0][i] : static_cast<std::int64_t>(ps::uniform_index(rng, 10)));
            crossing.push_back(static_cast<std::int64_t>(ps::uniform_index(rng, 12)));
        }
        auto const found = ps::pipeline::balanced_cuts(t, crossing);
        REQUIRE(found.size() == stages);
        auto best = std::numeric_limits<std::int64_t>::max();
        std::vector<std::size_t> first{0};
        std::function<void()> const every = [&] {
            if (first.size() == stages) {
                best = std::min(best, largest_load(t, crossing, first));
                return;
            }
            for (auto next = first.back() + 1; next < n; ++next) {
                first.push_back(next);
                every();
                first.pop_back();
            }
        };
        every();
        INFO("round ", round);
        REQUIRE(largest_load(t, crossing, found) == best);
    }
}

TEST_CASE("least_load_cuts: by hand") {
    times const t{4, 1, 1, 1, 1};
    auto const load = [&](std::size_t stage, std::size_t from, std::size_t to) {
        if (stage == 0 && to > 1) return std::numeric_limits<std::int64_t>::max(); // holds one part only
        return std::accumulate(t.begin() + static_cast<std::ptrdiff_t>(from), t.begin() + static_cast<std::ptrdiff_t>(to), std::int64_t{0});
    };
    CHECK(ps::pipeline::least_load_cuts(5, 2, load) == std::vector<std::size_t>{0, 1});
    CHECK(ps::pipeline::least_load_cuts(5, 3, load) == std::vector<std::size_t>{0, 1, 4});
    CHECK(ps::pipeline::least_load_cuts(5, 1, load).empty());
    CHECK(ps::pipeline::least_load_cuts(5, 6, load).empty());
    CHECK(ps::pipeline::least_load_cuts(5, 0, load).empty());
}

TEST_CASE("least_load_cuts: no other cuts are better, and where there are some they are found") {
    std::mt19937_64 rng(20261123);
    int none = 0;
    for (int round = 0; round < 1500; ++round) {
        auto const n = 1 + ps::uniform_index(rng, 8), stages = 1 + ps::uniform_index(rng, n);
        std::vector<times> t(stages, times(n)), bytes(stages, times(n));
        for (auto* of : {&t, &bytes})
            for (std::size_t i = 0; i < n; ++i)
                for (auto s = stages; s-- > 0;)
                    (*of)[s][i] = (s + 1 < stages ? (*of)[s + 1][i] : 0) + static_cast<std::int64_t>(ps::uniform_index(rng, s + 1 < stages ? 4 : 10));
        auto const capacity = static_cast<std::int64_t>(ps::uniform_index(rng, 40));
        auto const load = [&](std::size_t s, std::size_t from, std::size_t to) {
            std::int64_t time = 0, held = 0;
            for (auto i = from; i < to; ++i) time += t[s][i], held += bytes[s][i];
            return held > capacity ? std::numeric_limits<std::int64_t>::max() : time;
        };
        auto const largest = [&](std::vector<std::size_t> const& first) {
            std::int64_t most = 0;
            for (std::size_t s = 0; s < stages; ++s) most = std::max(most, load(s, first[s], s + 1 < stages ? first[s + 1] : n));
            return most;
        };
        auto best = std::numeric_limits<std::int64_t>::max();
        std::function<void(std::vector<std::size_t>)> const all = [&](std::vector<std::size_t> first) {
            if (first.size() == stages) {
                best = std::min(best, largest(first));
                return;
            }
            for (auto i = first.back() + 1; i < n; ++i) {
                first.push_back(i);
                all(first);
                first.pop_back();
            }
        };
        all({0});
        auto const found = ps::pipeline::least_load_cuts(n, stages, load);
        INFO("round ", round);
        none += found.empty();
        REQUIRE(found.empty() == (best == std::numeric_limits<std::int64_t>::max()));
        if (found.empty()) continue;
        REQUIRE(found.size() == stages);
        CHECK(largest(found) == best);
    }
    CHECK(none > 100);
    CHECK(none < 1400);
}

TEST_CASE("narrow_cuts: near equal loads, where the least crosses") {
    using sizes = std::vector<ps::byte_count>;
    using ps::pipeline::narrow_cuts;
    times const t{1, 1, 1, 1, 1, 1, 1, 1};
    CHECK(narrow_cuts(t, sizes{0, 9, 9, 9, 9, 9, 9, 9}, 2) == std::vector<std::size_t>{0, 4}); // the middle
    CHECK(narrow_cuts(t, sizes{0, 9, 9, 4, 9, 9, 9, 1}, 2) == std::vector<std::size_t>{0, 3}); // 7 is too far from it
    CHECK(narrow_cuts(t, sizes{0, 9, 4, 9, 4, 9, 9, 3}, 4) == std::vector<std::size_t>{0, 2, 4, 6});
    CHECK(narrow_cuts(t, sizes{0, 8, 7, 6, 5, 4, 3, 2}, 1) == std::vector<std::size_t>{0});
    CHECK(narrow_cuts(t, sizes{0, 9, 9, 9, 9, 9, 9, 9}, 100) == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7});
    CHECK(narrow_cuts(times{100, 1, 1}, sizes{0, 9, 9}, 4) == std::vector<std::size_t>{0}); // no cut near a third of the load
    CHECK(narrow_cuts(times{7}, sizes{3}, 4) == std::vector<std::size_t>{0});
    CHECK(support::refusal([] { return narrow_cuts(times{}, sizes{}, 1); }) == "narrow_cuts: 0 times and 0 sizes: must be as many, at least 1");
}

TEST_CASE("balanced_cuts: what does not fit is refused; times that no sum can hold are not cut off") {
    CHECK(support::refusal([] {
              return balanced_cuts(times{1, 2}, times{0, 0}, 3);
          }) == "balanced_cuts: 3 stages of 2 operators: must be from 1 to as many as operators");
    CHECK(support::refusal([] {
              return balanced_cuts(times{1, 2}, times{0, 0}, 0);
          }) == "balanced_cuts: 0 stages of 2 operators: must be from 1 to as many as operators");
    CHECK(support::refusal([] {
              return balanced_cuts(times{1}, times{0, 0}, 1);
          }) == "balanced_cuts: 1 times of a stage: must be one for each of 2 operators");
    auto const most = std::numeric_limits<std::int64_t>::max();
    CHECK(balanced_cuts(times{most, most, most}, times{0, 0, 0}, 3) == std::vector<std::size_t>{0, 1, 2});
}
