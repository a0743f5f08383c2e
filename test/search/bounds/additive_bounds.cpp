#include <parsearch/search/bounds/additive_bounds.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/search/additive_cost.hpp>
#include <parsearch/search/bounds/problem_bounds.hpp>
#include <parsearch/search/dominator_dp.hpp>
#include <parsearch/search/exact.hpp>
#include <parsearch/search/exhaustive.hpp>

#include "support/additive_toys.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;
using picoseconds = std::chrono::duration<std::int64_t, std::pico>;

namespace {
/// The least cost of the strategies that have what is fixed.
template <class P> auto least_completion(P const& problem, std::vector<int> const& fixed) {
    auto const& x = problem.space();
    auto evaluate = problem.evaluator();
    toys::space rest = x;
    for (std::size_t op = 0; op < x.size(); ++op)
        if (fixed[op] >= 0) rest[op] = {fixed[op]};
    auto least = ps::cost_traits<decltype(evaluate(toys::strategy{}))>::infinity();
    std::vector<std::size_t> at(x.size(), 0);
    for (;;) {
        toys::strategy s;
        for (std::size_t op = 0; op < x.size(); ++op) s.push_back(rest[op][at[op]]);
        least = std::min(least, evaluate(s));
        std::size_t op = 0;
        while (op < x.size() && ++at[op] == rest[op].size()) at[op++] = 0;
        if (op == x.size()) return least;
    }
}
template <class C> void check(std::uint64_t seed) {
    CAPTURE(seed);
    toys::splitmix rng{seed};
    auto const problem = toys::random_additive<C>(rng, 1 + seed % 5, 4);
    auto evaluate = problem.evaluator();
    auto bounds = search::make_bounds<toys::strategy>(evaluate, problem.space());
    std::vector<int> fixed(problem.space().size(), -1);
    std::vector<std::size_t> order;
    std::vector<C> values{bounds.value()};
    CHECK(values.back() <= least_completion(problem, fixed));
    while (order.size() < fixed.size()) {
        auto const op = static_cast<std::size_t>(ps::uniform_index(rng, fixed.size()));
        if (fixed[op] >= 0) continue;
        auto const i = static_cast<std::size_t>(ps::uniform_index(rng, problem.space()[op].size()));
        bounds.fix(op, i);
        fixed[op] = problem.space()[op][i];
        order.push_back(op);
        CHECK(bounds.value() <= least_completion(problem, fixed));
        if constexpr (std::floating_point<C>) CHECK(bounds.value() > values.back() - 1e-9); // the order of the sum changes
        else CHECK(bounds.value() >= values.back());
        values.push_back(bounds.value());
    }
    if constexpr (!std::floating_point<C>) CHECK(values.back() == evaluate(fixed));
    for (auto n = order.size(); n-- > 0;) {
        CHECK(bounds.value() == values[n + 1]);
        bounds.release(order[n]);
    }
    CHECK(bounds.value() == values.front());
}
} // namespace

TEST_CASE("additive bounds hold, rise with what is fixed, and are exact at the end") {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        check<std::int64_t>(seed);
        check<double>(seed);
        check<int>(seed);
    }
}

TEST_CASE("additive bounds refuse edges and terms that are none") {
    toys::additive<double> e{.own = {{1}, {1}}, .pairs = {{0, 2}}, .terms = {{{1}}}};
    toys::space const x{{0}, {0}};
    CHECK_THROWS_WITH_AS((void)search::make_bounds<toys::strategy>(e, x),
                         "additive bounds: edge number 0 joins operators number 0 and 2: must be two different ones below 2", ps::invalid_input);
    e = {.own = {{1}, {std::numeric_limits<double>::quiet_NaN()}}, .pairs = {}, .terms = {}};
    CHECK_THROWS_WITH_AS((void)search::make_bounds<toys::strategy>(e, x), "additive bounds: a term of operator number 1 does not equal itself (NaN)",
                         ps::invalid_input);
}

namespace {
template <class C> using table_set = std::vector<std::vector<C>>;

/// Up to four operators of up to three configurations, joined at random; `draw()` makes terms.
template <class Draw> auto random_costs(toys::splitmix& rng, Draw draw) {
    auto const below = [&](std::size_t n) { return static_cast<std::size_t>(ps::uniform_index(rng, n)); };
    auto const drawn = [&](std::size_t size) {
        std::vector<decltype(draw())> out;
        while (out.size() < size) out.push_back(draw());
        return out;
    };
    table_set<decltype(draw())> own, terms;
    std::vector<ps::operator_pair> pairs;
    for (std::size_t n = 1 + below(4); n > 0; --n) own.push_back(drawn(1 + below(3)));
    for (std::size_t n = below(2 * own.size()); n > 0; --n) {
        auto const a = below(own.size()), b = below(own.size());
        if (a == b) continue;
        pairs.push_back({a, b});
        terms.push_back(drawn(own[a].size() * own[b].size()));
    }
    return search::additive_problem(search::additive_cost(std::move(own), std::move(pairs), std::move(terms)));
}

/// Near the limits of `C`, near nothing, in between, or infinite; of either sign where there are two.
template <class C> C wild(toys::splitmix& rng) {
    constexpr auto most = std::numeric_limits<C>::max(), least = std::numeric_limits<C>::min();
    auto const some = static_cast<C>(ps::uniform_index(rng, 40));
    switch (ps::uniform_index(rng, 8)) {
    case 0: return static_cast<C>(most - some - 1);
    case 1: return static_cast<C>(least + some);
    case 2: return static_cast<C>(most / 2 + some);
    case 3: return static_cast<C>(least / 2 + some);
    case 4: return some;
    case 5: return static_cast<C>(most / 3 - some);
    case 6: return static_cast<C>(least / 3 + some);
    default: return ps::uniform_index(rng, 3) == 0 ? most : static_cast<C>(some / 10);
    }
}

/// Enumeration, branch and bound and dynamic programming agree, whatever the start and the queue.
template <bool programmed, class P> auto agreed_least(P const& problem, toys::splitmix& rng, std::uint64_t seed) {
    auto start = problem.first();
    for (std::size_t op = 0; op < start.size(); ++op) start[op] = static_cast<std::uint32_t>(ps::uniform_index(rng, problem.space()[op].size()));
    auto const all = search::exhaustive(problem, start, rng);
    auto const cut = search::exact(problem, start, rng, {.walk = seed % 2 ? 0 : 5, .sweeps = seed % 3, .open = seed % 5 ? 1 + seed % 7 : 65536});
    CHECK(all.ended == ps::stop_reason::proved_optimal);
    CHECK(cut.ended == ps::stop_reason::proved_optimal);
    CHECK(cut.cost == all.cost);
    CHECK(cut.lower_bound == all.cost);
    CHECK(problem.evaluator()(cut.best) == cut.cost);
    CHECK(*search::root_bound<search::numbered_strategy>(problem) <= all.cost);
    if constexpr (programmed) {
        auto const made = search::dominator_dp(problem, start, rng);
        CHECK(made.ended == ps::stop_reason::proved_optimal);
        CHECK(made.cost == all.cost);
    }
    return all.cost;
}

/// Bounds of partial strategies hold, and are the cost at the end where sums are exact.
template <class P> void check_path(P const& problem, toys::splitmix& rng) {
    auto evaluate = problem.evaluator();
    auto bounds = search::make_bounds<search::numbered_strategy>(evaluate, problem.space());
    search::numbered_strategy s = problem.first();
    for (auto& c : s) c = static_cast<std::uint32_t>(ps::uniform_index(rng, problem.space()[static_cast<std::size_t>(&c - s.data())].size()));
    auto const cost = evaluate(s);
    auto const root = bounds.value();
    CHECK(root <= cost);
    for (std::size_t op = 0; op < s.size(); ++op) {
        bounds.fix(op, s[op]);
        CHECK(bounds.value() <= cost);
    }
    if constexpr (search::additive::counts_integers<decltype(evaluate(s))>) CHECK(bounds.value() == cost);
    for (auto op = s.size(); op-- > 0;) bounds.release(op);
    CHECK(bounds.value() == root);
}
} // namespace

TEST_CASE("sums of integers that leave the range of costs come back") {
    toys::splitmix rng{1};
    using problem = search::additive_problem<std::int32_t>;
    search::additive_cost<std::int32_t> const terms({{2'000'000'000}, {2'000'000'000}, {0, 0}}, {{0, 1}, {1, 2}}, {{-2'100'000'000}, {5, 0}});
    problem const three(terms);
    CHECK(search::root_bound<search::numbered_strategy>(three) == 1'900'000'000);
    auto const found = search::exact(three, three.first(), rng);
    CHECK(found.cost == 1'900'000'000);
    CHECK(found.best == search::numbered_strategy{0, 0, 1});

    // Durations used to overflow, and unsigned numbers to wrap.
    constexpr auto large = picoseconds{std::int64_t{1} << 62};
    search::additive_problem<picoseconds> const two(search::additive_cost<picoseconds>({{large}, {large}}, {}, {}));
    CHECK(search::root_bound<search::numbered_strategy>(two) == picoseconds::max());
    search::additive_problem<picoseconds> const back(search::additive_cost<picoseconds>({{large}, {large}, {-large}}, {}, {}));
    CHECK(search::root_bound<search::numbered_strategy>(back) == large);
    search::additive_problem<std::uint32_t> const wide(search::additive_cost<std::uint32_t>({{4'000'000'000}, {4'000'000'000}}, {}, {}));
    CHECK(search::root_bound<search::numbered_strategy>(wide) == std::numeric_limits<std::uint32_t>::max());

    // An infinite term is not outweighed.
    problem const none(search::additive_cost<std::int32_t>({{std::numeric_limits<std::int32_t>::max()}, {-5}}, {}, {}));
    CHECK(search::root_bound<search::numbered_strategy>(none) == std::numeric_limits<std::int32_t>::max());
    problem const low(search::additive_cost<std::int32_t>({{std::numeric_limits<std::int32_t>::min()}, {-5}}, {}, {}));
    CHECK(search::root_bound<search::numbered_strategy>(low) == std::numeric_limits<std::int32_t>::min());
}

TEST_CASE("near the limits of integers branch and bound, dynamic programming and enumeration agree") {
    std::size_t inside = 0, infinite = 0;
    auto const check = [&](auto draw) {
        for (std::uint64_t seed = 0; seed < 400; ++seed) {
            CAPTURE(seed);
            toys::splitmix rng{seed};
            auto const problem = random_costs(rng, [&] { return draw(rng); });
            auto const least = agreed_least<true>(problem, rng, seed);
            using cost = std::remove_const_t<decltype(least)>;
            ++(least < ps::cost_traits<cost>::infinity() ? inside : infinite);
            for (int n = 0; n < 5; ++n) check_path(problem, rng);
        }
    };
    check(wild<std::int8_t>);
    check(wild<std::int32_t>);
    check(wild<std::int64_t>);
    check(wild<std::uint32_t>);
    check(wild<std::uint64_t>);
    check([](toys::splitmix& rng) { return picoseconds{wild<std::int64_t>(rng)}; });
    CHECK(inside > 500);
    CHECK(infinite > 200);
}

TEST_CASE("what cancels in a floating-point sum leaves its rounding") {
    toys::splitmix rng{1};
    // The evaluator loses 3 or 7 in 1e17: it is the edge of 1 that the last three strategies have.
    search::additive_problem<double> const problem(search::additive_cost<double>({{3, 7}, {1e17, 1e17, 1e17}, {0, 0, 0}}, {{0, 1}, {0, 2}},
                                                                                 {{-1e17, -1e17, -1e17, -1e17, -1e17, -1e17}, {5, 5, 5, 1, 1, 1}}));
    for (auto const open : {std::uint64_t{1}, std::uint64_t{65536}}) {
        auto const found = search::exact(problem, problem.first(), rng, {.walk = 0, .sweeps = 0, .open = open});
        CHECK(found.reason == ps::stop_reason::proved_optimal);
        CHECK(found.cost == 1);
    }
    // Neither overflow nor its opposite makes a bound: 1e308 + 1e308 - 1e308.
    search::additive_problem<double> const most(search::additive_cost<double>({{1e308}, {-1e308}, {1e308}}, {{0, 2}}, {{0}}));
    CHECK(*search::root_bound<search::numbered_strategy>(most) <= most.evaluator()(search::numbered_strategy{0, 0, 0}));
    search::additive_problem<double> const never(search::additive_cost<double>({{std::numeric_limits<double>::infinity()}, {-1e308}}, {}, {}));
    CHECK(*search::root_bound<search::numbered_strategy>(never) == std::numeric_limits<double>::infinity());
}

TEST_CASE("a large cost of some strategies does not blur the bounds of others") {
    search::additive_problem<double> const problem(search::additive_cost<double>({{1, 1e30}, {2, 1e30}}, {{0, 1}}, {{3, 1e30, 1e30, 1e30}}));
    auto const bound = *search::root_bound<search::numbered_strategy>(problem);
    CHECK(bound < 6);
    CHECK(bound > 6 - 1e-12);
}

TEST_CASE("no strategy of floating-point costs is below what exact proves, whatever cancels") {
    auto const check = [](auto one) {
        using cost = decltype(one);
        for (std::uint64_t seed = 0; seed < 600; ++seed) {
            CAPTURE(seed);
            toys::splitmix rng{seed};
            double const scales[] = {1, 1e8, seed % 2 ? 1e17 : 3e9};
            auto const draw = [&] {
                auto const scale = scales[ps::uniform_index(rng, 3)];
                auto const n = static_cast<double>(ps::uniform_index(rng, 9)) - 4;
                auto const term = ps::uniform_index(rng, 60) ? n * (scale > 1 ? scale : 1.1) : std::numeric_limits<double>::infinity();
                return cost{static_cast<typename search::additive::amount<cost>::type>(term)};
            };
            auto const problem = random_costs(rng, draw);
            (void)agreed_least<false>(problem, rng, seed);
            for (int n = 0; n < 5; ++n) check_path(problem, rng);
        }
    };
    check(double{});
    check(float{});
    check(std::chrono::duration<double>{});
}
