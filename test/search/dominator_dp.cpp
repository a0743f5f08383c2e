#include <parsearch/search/dominator_dp.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <parsearch/core/interruption.hpp>
#include <parsearch/search/additive_cost.hpp>

#include "support/external_data.hpp"
#include "support/least_of_all.hpp"
#include "support/pase.hpp"
#include "support/toys.hpp"

namespace ps = parsearch;
using ps::search::additive_cost, ps::search::additive_problem, ps::search::dominator_dp;
using std::chrono::nanoseconds;

namespace {

enum class shape { chain, tree, diamonds, dense, islands, sparse };
constexpr shape shapes[] = {shape::chain, shape::tree, shape::diamonds, shape::dense, shape::islands, shape::sparse};

std::size_t below(toys::splitmix& rng, std::size_t n) { return static_cast<std::size_t>(ps::uniform_index(rng, n)); }

std::vector<ps::operator_pair> edges_of(shape s, std::size_t operators, toys::splitmix& rng) {
    std::vector<ps::operator_pair> out;
    auto const join = [&](std::size_t a, std::size_t b) {
        if (a == b) return;
        out.push_back(below(rng, 2) ? ps::operator_pair{a, b} : ps::operator_pair{b, a});
        if (below(rng, 5) == 0) out.push_back(below(rng, 2) ? ps::operator_pair{a, b} : ps::operator_pair{b, a}); // a second edge
    };
    for (std::size_t v = 1; v < operators; ++v) switch (s) {
        case shape::chain: join(v - 1, v); break;
        case shape::tree: join(below(rng, v), v); break;
        case shape::diamonds: // v % 3: a branch, the other, where they meet
            if (v % 3 == 0) join(v - 1, v), join(v - 2, v);
            else join(v - v % 3, v);
            break;
        case shape::dense:
            for (std::size_t u = 0; u < v; ++u)
                if (below(rng, 3) > 0) join(u, v);
            break;
        case shape::islands:
            if (v % 4 > 0) join(v - 1 - below(rng, v % 4), v), join(v - v % 4, v);
            break;
        case shape::sparse:
            join(v - 1, v);
            if (v > 2 && below(rng, 2)) join(below(rng, v), v);
            break;
        }
    return out;
}

// What a cost may be: whole numbers of both signs, rarely infinity; of floating types quarters, whose sums are exact.
template <class C> C draw_cost(toys::splitmix& rng, std::size_t style) {
    if (style % 2 && below(rng, 6) == 0) return ps::cost_traits<C>::infinity();
    auto const n = static_cast<std::int64_t>(below(rng, style % 3 ? 12 : 1000)) - (style % 5 < 2 ? 500 : 0);
    if constexpr (std::is_floating_point_v<C>) return static_cast<C>(n) / 4;
    else return toys::cost_of<C>(n);
}

template <class C> additive_problem<C> random_problem(shape s, std::size_t style, toys::splitmix& rng) {
    // At most 12 operators, and few enough strategies to try all.
    std::size_t const operators = 1 + below(rng, 12), most = operators > 9 ? 2 : operators > 6 ? 3 : 5;
    std::vector<std::vector<C>> own(operators);
    for (auto& costs : own)
        for (std::size_t n = 0, size = 1 + below(rng, most); n < size; ++n) costs.push_back(draw_cost<C>(rng, style));
    auto edges = edges_of(s, operators, rng);
    std::vector<std::vector<C>> tables;
    for (auto const& e : edges) {
        auto& t = tables.emplace_back();
        for (std::size_t n = 0; n < own[e.from].size() * own[e.to].size(); ++n) t.push_back(draw_cost<C>(rng, style));
        // Some repeat an earlier one, as layers do.
        for (std::size_t other = 0; other + 1 < tables.size() && style % 4 == 0; ++other)
            if (tables[other].size() == t.size()) t = tables[other];
    }
    return additive_problem<C>({std::move(own), std::move(edges), std::move(tables)});
}

// The same terms, of configurations that are no numbers, without tables.
template <class C> struct named_terms {
    additive_problem<C> const* problem;
    static std::uint32_t number(std::string const& name) { return static_cast<std::uint32_t>(name.size() - 1); }
    C operator()(std::vector<std::string> const& s) const {
        ps::search::numbered_strategy numbers;
        for (auto const& name : s) numbers.push_back(number(name));
        return problem->costs()(numbers);
    }
    [[nodiscard]] C operator_cost(std::size_t op, std::string const& c) const { return problem->costs().operator_cost(op, number(c)); }
    [[nodiscard]] C edge_cost(std::size_t n, std::string const& from, std::string const& to) const {
        return problem->costs().edge_cost(n, number(from), number(to));
    }
    [[nodiscard]] std::vector<ps::operator_pair> edges() const { return problem->costs().edges(); }
};

template <class C> void check_random(std::uint64_t seed, std::uint64_t count) {
    for (std::uint64_t n = 0; n < count; ++n) {
        CAPTURE(seed);
        CAPTURE(n);
        toys::splitmix rng{seed + n};
        auto const problem = random_problem<C>(shapes[n % std::size(shapes)], static_cast<std::size_t>(n / 7), rng);
        auto const least = support::least_of_all(problem);
        auto const found = dominator_dp(problem, problem.first(), rng);
        support::require_proved(problem, found, least);
        if (n % 16) continue;
        std::vector<std::vector<std::string>> names;
        for (auto const& range : problem.space()) {
            auto& all = names.emplace_back();
            for (std::size_t i = 0; i < range.size(); ++i) all.emplace_back(i + 1, 'x');
        }
        std::vector<std::string> start;
        for (auto const& all : names) start.push_back(all.back());
        auto const by_name = dominator_dp(ps::search_problem(names, named_terms<C>{&problem}), start, rng);
        REQUIRE(by_name.cost == least);
        REQUIRE(by_name.ended == ps::stop_reason::proved_optimal);
    }
}

/// The least by the solver alone, in so many bytes; and what it told on the way.
struct told {
    bool complete = false;
    double value = std::numeric_limits<double>::infinity();
    std::vector<double> bounds;
};
template <class C> told minimise_within(additive_problem<C> const& problem, double bytes, bool repeats) {
    namespace additive = ps::search::additive;
    auto costs = problem.evaluator();
    auto const tables = additive::read_tables<ps::search::numbered_strategy>(problem.space(), costs, "test");
    auto const net = additive::make_network<double>(tables);
    told out;
    auto const cuts = [](std::size_t variables, std::vector<additive::link> const& links) {
        // Only what is passed by all ways, by brute force: leave each variable out and see what is reached.
        std::vector<std::uint32_t> single;
        for (std::uint32_t cut = 0; cut < variables; ++cut) {
            bool crossed = links.empty(), before = false, behind = false;
            for (auto const& [a, b] : links) {
                crossed = crossed || (a < cut && b > cut);
                before = before || b == cut;
                behind = behind || a == cut;
            }
            if (!crossed && before && behind) single.push_back(cut);
        }
        return single;
    };
    auto const found = [&](std::span<std::uint32_t const> positions, double value) {
        CHECK(value < out.value);
        out.value = value;
        ps::search::numbered_strategy s;
        for (std::size_t op = 0; op < positions.size(); ++op) s.push_back(net.numbers[op][positions[op]]);
        CHECK(ps::cost_traits<C>::value(problem.costs()(s)) == value);
    };
    auto const bound = [&](double least) { out.bounds.push_back(least); };
    auto const stop = [](additive::phase) { return false; };
    out.complete = additive::solver<double>(net, bytes, true, repeats, {.cuts = cuts, .found = found, .bound = bound, .stop = stop}).run();
    return out;
}

} // namespace

TEST_CASE("the answer is the least of all strategies of random problems") {
    check_random<double>(0x5eed, 1800);
    check_random<std::int64_t>(0x15eed, 1200);
    check_random<std::chrono::duration<std::int64_t, std::pico>>(0x25eed, 900);
    check_random<int>(0x35eed, 600);
    check_random<float>(0x45eed, 300);
    check_random<std::chrono::duration<double>>(0x55eed, 300);
    check_random<long double>(0x65eed, 300);
}

TEST_CASE("arbitrary doubles agree with enumeration up to the rounding of sums") {
    for (std::uint64_t n = 0; n < 600; ++n) {
        CAPTURE(n);
        toys::splitmix rng{0x75eed + n};
        auto const grid = random_problem<double>(shapes[n % std::size(shapes)], 2, rng);
        std::vector<std::vector<double>> own, tables;
        auto const noise = [&](auto const& costs) {
            std::vector<double> out;
            for (auto const c : costs) out.push_back(c + ps::uniform_unit(rng));
            return out;
        };
        for (std::size_t op = 0; op < grid.costs().size(); ++op) own.push_back(noise(grid.costs().operator_costs(op)));
        for (std::size_t e = 0; e < grid.costs().edges().size(); ++e) tables.push_back(noise(grid.costs().edge_costs(e)));
        additive_problem<double> const problem({own, grid.costs().edges(), tables});
        auto const found = dominator_dp(problem, problem.first(), rng);
        CHECK(found.cost == doctest::Approx(support::least_of_all(problem)).epsilon(1e-12));
        CHECK(found.cost == problem.costs()(found.best)); // what the evaluator says
        CHECK(found.lower_bound == found.cost);
    }
}

TEST_CASE("little memory gives the same answers: segments made twice, mini-buckets and branch and bound") {
    std::size_t bounded = 0;
    for (std::uint64_t n = 0; n < 1500; ++n) {
        CAPTURE(n);
        toys::splitmix rng{0x85eed + n};
        auto const problem = random_problem<std::int64_t>(shapes[n % std::size(shapes)], static_cast<std::size_t>(n / 7), rng);
        auto const least = support::least_of_all(problem);
        bool const feasible = least < ps::cost_traits<std::int64_t>::infinity();
        double const value = feasible ? static_cast<double>(least) : std::numeric_limits<double>::infinity();
        for (double const bytes : {1e9, 3000.0, 800.0, 100.0}) {
            CAPTURE(bytes);
            auto const t = minimise_within(problem, bytes, n % 2 == 0);
            REQUIRE(t.complete);
            REQUIRE(t.value == value);
            for (auto const b : t.bounds) REQUIRE(b <= value);
            bounded += t.bounds.size() > 1;
        }
    }
    CHECK(bounded > 500); // branch and bound was there
}

TEST_CASE("integers add up without overflow") {
    constexpr auto big = std::numeric_limits<std::int64_t>::max() / 2 + 7;
    // Twice `big` is more than there is: infinite. The other configuration is feasible.
    additive_problem<std::int64_t> const one({{{big, big - 20}, {big, 3}}, {{0, 1}}, {{0, 0, 1, 5}}});
    toys::splitmix rng{1};
    auto const found = dominator_dp(one, one.first(), rng);
    CHECK(one.costs()(one.first()) == ps::cost_traits<std::int64_t>::infinity());
    CHECK(found.best == ps::search::numbered_strategy{1, 1});
    CHECK(found.cost == big - 12);
    CHECK(found.reason == ps::stop_reason::proved_optimal);
    // A sum that is in range though parts of it are not.
    additive_problem<std::int64_t> const sum({{{big, big}, {big, big}, {-big, -1}}, {{0, 1}, {1, 2}}, {{0, 9, 0, 9}, {-4, 0, 0, 0}}});
    auto const least = support::least_of_all(sum);
    CHECK(dominator_dp(sum, sum.first(), rng).cost == least);
    CHECK(least == big - 4);
}

TEST_CASE("where each operator has one configuration, their sum is the answer") {
    toys::splitmix rng{1};
    additive_problem<std::int64_t> const one({{{5}, {7}, {1}}, {{0, 1}, {2, 1}, {1, 0}}, {{2}, {3}, {4}}});
    auto const found = dominator_dp(one, one.first(), rng);
    CHECK(found.cost == 22);
    CHECK(found.cost == support::least_of_all(one));
    CHECK(found.reason == ps::stop_reason::proved_optimal);
    CHECK(found.lower_bound == 22);
    double const inf = ps::cost_traits<double>::infinity();
    additive_problem<double> const none({{{5}, {7}}, {{0, 1}}, {{inf}}});
    CHECK(dominator_dp(none, none.first(), rng).cost == inf);
}

TEST_CASE("a problem without a feasible strategy is proved to have none") {
    double const inf = ps::cost_traits<double>::infinity();
    // A triangle of two colours.
    std::vector<double> const differ{inf, 0, 0, inf};
    additive_problem<double> const triangle({{{0, 0}, {0, 0}, {0, 0}}, {{0, 1}, {1, 2}, {2, 0}}, {differ, differ, differ}});
    toys::splitmix rng{1};
    auto const found = dominator_dp(triangle, triangle.first(), rng);
    CHECK(found.cost == inf);
    CHECK(found.lower_bound == inf);
    CHECK(found.ended == ps::stop_reason::proved_optimal);
    CHECK(found.reason == ps::stop_reason::nothing_feasible);
    CHECK(found.best == triangle.first());
}

TEST_CASE("a start outside the space that is better stays the answer") {
    auto const shifted = [] {
        struct cost {
            double operator()(std::vector<int> const& s) const { return s[0] + s[1]; }
            [[nodiscard]] double operator_cost(std::size_t, int c) const { return c; }
            [[nodiscard]] double edge_cost(std::size_t, int, int) const { return 0; }
            [[nodiscard]] std::vector<ps::operator_pair> edges() const { return {{0, 1}}; }
        };
        return cost{};
    }();
    ps::search_problem const problem(std::vector<std::vector<int>>{{1, 2}, {3, 4}}, shifted);
    toys::splitmix rng{1};
    CHECK(dominator_dp(problem, std::vector<int>{0, 0}, rng).cost == 0);
    auto const found = dominator_dp(problem, std::vector<int>{2, 4}, rng);
    CHECK(found.best == std::vector<int>{1, 3});
    CHECK(found.lower_bound == 4);
}

TEST_CASE("bad evaluators are refused by place and rule") {
    toys::splitmix rng{1};
    auto const refuse = [&](std::vector<ps::operator_pair> edges, double term) {
        struct bad {
            std::vector<ps::operator_pair> pairs;
            double term;
            double operator()(std::vector<std::uint32_t> const&) const { return 0; }
            [[nodiscard]] double operator_cost(std::size_t, std::uint32_t) const { return term; }
            [[nodiscard]] double edge_cost(std::size_t, std::uint32_t, std::uint32_t) const { return 0; }
            [[nodiscard]] std::vector<ps::operator_pair> const& edges() const { return pairs; }
        };
        ps::search_problem const problem(std::vector<ps::search::index_range>(2, ps::search::index_range(2)), bad{std::move(edges), term});
        (void)dominator_dp(problem, std::vector<std::uint32_t>{0, 0}, rng);
    };
    CHECK_THROWS_WITH_AS(refuse({{0, 2}}, 1), "dominator_dp: edge number 0 joins operators 0 and 2: the space has 2", ps::invalid_input);
    CHECK_THROWS_WITH_AS(refuse({{0, 1}, {1, 1}}, 1), "dominator_dp: edge number 1 joins operator 1 to itself: must join two", ps::invalid_input);
    CHECK_THROWS_WITH_AS(refuse({{0, 1}}, std::numeric_limits<double>::quiet_NaN()),
                         "dominator_dp: operator_cost(0, configuration number 0) is nan: terms must be numbers above negative infinity",
                         ps::invalid_input);
    CHECK_THROWS_WITH_AS(refuse({{0, 1}}, -ps::cost_traits<double>::infinity()),
                         "dominator_dp: operator_cost(0, configuration number 0) is -inf: terms must be numbers above negative infinity",
                         ps::invalid_input);
    CHECK_THROWS_WITH_AS((void)additive_cost<int>({{1}, {}}, {}, {}), "additive_cost: operator number 1 has 0 configurations: must be from 1 to 2^31",
                         ps::invalid_input);
    CHECK_THROWS_WITH_AS((void)additive_cost<int>({{1}, {2, 3}}, {{0, 1}}, {{1}}), "additive_cost: the table of edge number 0 has 1 costs: must be 2",
                         ps::invalid_input);
    additive_problem<int> const fine({{{1}}, {}, {}});
    CHECK_THROWS_WITH_AS((void)dominator_dp(fine, fine.first(), rng, {.memory = 5}),
                         "dominator_dp: option 'memory' is 5 bytes: must be at least 1048576 (1 MiB)", ps::invalid_input);
    CHECK_THROWS_WITH_AS((void)dominator_dp(fine, fine.first(), rng, {.evaluations = 0}),
                         "dominator_dp: option 'evaluations' is 0: must be at least 1, the start is priced too", ps::invalid_input);
}

namespace {
// A grid of so many rows and columns: its width is the rows, too many for tables.
additive_problem<int> grid(std::size_t rows, std::size_t columns, std::size_t choices, std::uint64_t seed) {
    toys::splitmix rng{seed};
    std::vector<std::vector<int>> own(rows * columns), tables;
    for (auto& costs : own)
        for (std::size_t n = 0; n < choices; ++n) costs.push_back(static_cast<int>(below(rng, 100)));
    std::vector<ps::operator_pair> edges;
    for (std::size_t v = 0; v < own.size(); ++v) {
        if (v % columns + 1 < columns) edges.push_back({v, v + 1});
        if (v + columns < own.size()) edges.push_back({v, v + columns});
    }
    for (std::size_t n = 0; n < edges.size() * choices * choices; ++n) {
        if (n % (choices * choices) == 0) tables.emplace_back();
        tables.back().push_back(static_cast<int>(below(rng, 100)));
    }
    return additive_problem<int>({std::move(own), std::move(edges), std::move(tables)});
}
} // namespace

TEST_CASE("where tables do not fit the search goes on until its budget ends, and knows the gap") {
    auto const problem = grid(14, 14, 6, 3); // tables of 6^14 entries
    toys::splitmix rng{1};
    int raised = 0, improved = 0;
    int last = std::numeric_limits<int>::min();
    auto const watch = ps::search::on<ps::search::bound_raised>([&](auto const& e) {
        CHECK(e.bound > last);
        CHECK(e.bound <= e.best);
        last = e.bound;
        ++raised;
    });
    auto const better = ps::search::on<ps::search::improved>([&](auto const& e) {
        CHECK(e.cost < e.before);
        ++improved;
    });
    SUBCASE("time") {
        auto const begin = std::chrono::steady_clock::now();
        auto const found = dominator_dp(problem, problem.first(), rng, {.time = std::chrono::milliseconds{400}, .memory = 1 << 22}, watch, better);
        CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{30}); // a sanitized build on a busy machine takes its time
        CHECK(found.reason == ps::stop_reason::time_budget);
        CHECK(found.cost == problem.costs()(found.best));
        if (found.lower_bound) CHECK(*found.lower_bound < found.cost);
    }
    SUBCASE("the gap") {
        // However slow the machine is: bounds rise and strategies improve until both have been seen.
        std::stop_source source;
        auto const stop = [&](auto const&) {
            if (raised >= 2 && improved >= 1) source.request_stop();
        };
        auto const found = dominator_dp(problem, problem.first(), rng, {.stop = source.get_token(), .memory = 1 << 22}, watch, better,
                                        ps::search::on<ps::search::bound_raised>(stop), ps::search::on<ps::search::improved>(stop));
        CHECK(found.reason == ps::stop_reason::stop_requested);
        REQUIRE(found.lower_bound.has_value());
        CHECK(*found.lower_bound < found.cost);
        CHECK(*found.lower_bound == last);
        CHECK(found.cost == problem.costs()(found.best));
    }
    SUBCASE("evaluations") {
        auto const found = dominator_dp(problem, problem.first(), rng, {.evaluations = 4, .memory = 1 << 22}, watch, better);
        CHECK(found.reason == ps::stop_reason::evaluation_budget);
        CHECK(found.stats.evaluations == 4);
        auto const one = dominator_dp(problem, problem.first(), rng, {.evaluations = 1});
        CHECK(one.best == problem.first());
        CHECK(one.reason == ps::stop_reason::evaluation_budget);
    }
    SUBCASE("stop") {
        std::stop_source source;
        auto const stop = ps::search::on<ps::search::improved>([&](auto const&) { source.request_stop(); });
        auto const found = dominator_dp(problem, problem.first(), rng, {.stop = source.get_token(), .memory = 1 << 22}, stop);
        CHECK(found.reason == ps::stop_reason::stop_requested);
        CHECK(found.cost < problem.costs()(problem.first()));
    }
}

TEST_CASE("a small budget of memory still proves what branch and bound can") {
    auto const problem = grid(5, 5, 5, 11);
    auto const wide = minimise_within(problem, 1e9, true), narrow = minimise_within(problem, 20'000, true);
    CHECK(wide.complete);
    CHECK(narrow.complete);
    CHECK(wide.value == narrow.value);
}

TEST_CASE("equal calls give equal runs") {
    auto const problem = grid(6, 6, 5, 2);
    toys::splitmix a{1}, b{77};
    auto const one = dominator_dp(problem, problem.first(), a, {.memory = 1 << 20}),
               other = dominator_dp(problem, problem.first(), b, {.memory = 1 << 20});
    CHECK(toys::same_run(one, other));
    CHECK(a.state == 1); // the engine is not used
}

namespace {
// A cost that is no sum: the largest term. Its surrogate is the sum.
struct bottleneck {
    additive_problem<int> sums;
    [[nodiscard]] auto const& space() const { return sums.space(); }
    [[nodiscard]] auto evaluator() const {
        return [costs = sums.costs()](ps::search::numbered_strategy const& s) {
            int most = 0;
            for (std::size_t op = 0; op < s.size(); ++op) most = std::max(most, costs.operator_cost(op, s[op]));
            return most;
        };
    }
    [[nodiscard]] additive_problem<int> const& surrogate() const { return sums; }
};
} // namespace

TEST_CASE("of other costs the surrogate is minimised and its answer priced") {
    bottleneck const problem{grid(3, 3, 4, 5)};
    auto const evaluate = problem.evaluator();
    toys::splitmix rng{1};
    auto const found = dominator_dp(problem, problem.sums.first(), rng);
    CHECK(found.cost == evaluate(found.best));
    CHECK(found.cost <= evaluate(problem.sums.first()));
    CHECK(found.reason == ps::stop_reason::exhausted);
    CHECK(!found.lower_bound);
    auto const by_sum = dominator_dp(problem.sums, problem.sums.first(), rng);
    CHECK(found.cost == std::min(evaluate(by_sum.best), evaluate(problem.sums.first())));
    // The start is the answer where the surrogate's is no better.
    auto const again = dominator_dp(problem, found.best, rng);
    CHECK(again.best == found.best);
}

namespace {
// Its surrogate takes all the time that there is, `slow` times; then none.
struct slow_to_prepare : bottleneck {
    int slow;
    int* asked;
    [[nodiscard]] additive_problem<int> const& surrogate(std::uint64_t = 1, std::optional<std::chrono::steady_clock::time_point> end = {}) const {
        if (!end) throw ps::interrupted(); // as by a stop token of its own
        if (++*asked > slow) return sums;
        std::this_thread::sleep_until(*end);
        throw ps::interrupted();
    }
};
} // namespace

TEST_CASE("time ends the making of a surrogate, and an observer may grant more") {
    toys::splitmix rng{1};
    int asked = 0, granted = 0;
    slow_to_prepare const problem{{grid(3, 3, 4, 5)}, 1, &asked}, slower{{grid(3, 3, 4, 5)}, 2, &asked};
    auto const start = problem.sums.first();
    auto const brief = std::chrono::milliseconds{100};
    auto const found = dominator_dp(problem, start, rng, {.time = brief});
    CHECK(found.reason == ps::stop_reason::time_budget);
    CHECK(found.best == start);
    CHECK(found.stats.evaluations == 1);
    CHECK(asked == 1);
    CHECK_THROWS_AS(dominator_dp(problem, start, rng), ps::interrupted);

    asked = 0;
    auto const grants = ps::search::on<ps::search::budget_spent>(
        [&](auto const&) { return std::optional(ps::search::extension{.time = ++granted < 2 ? brief : std::chrono::milliseconds{60'000}}); });
    auto const more = dominator_dp(slower, start, rng, {.time = brief}, grants);
    CHECK(asked == 3);
    CHECK(granted == 2);
    CHECK(more.reason == ps::stop_reason::exhausted);
    CHECK(more.cost == dominator_dp(bottleneck(problem), start, rng).cost);
}

TEST_CASE("data: PaSE's problems are solved to their proven optima") {
    std::map<std::string, double> const optima{{"alexnet_p4", 148215719552},      {"alexnet_p8", 97098296512},      {"alexnet_p16", 70320712672},
                                               {"alexnet_p32", 53136349552},      {"alexnet_p64", 41120456048},     {"rnnlm_p4", 13247562153984},
                                               {"rnnlm_p8", 7462723813376},       {"rnnlm_p16", 4322906226688},     {"rnnlm_p32", 2625038401536},
                                               {"rnnlm_p64", 1566423818240},      {"inception3_p4", 986757044608},  {"inception3_p8", 782140602432},
                                               {"inception3_p16", 673045949344},  {"resnet101_p4", 1718742247936},  {"resnet101_p8", 1425262849920},
                                               {"transformer_p4", 3943828242432}, {"transformer_p8", 2340308361216}};
    toys::splitmix rng{1};
    for (auto const& [name, optimum] : optima) {
        CAPTURE(name);
        auto const file = support::external_data("pase/" + name + ".bin");
        if (!file) return;
        auto const problem = support::read_pase(*file);
        auto const found = dominator_dp(problem, problem.first(), rng);
        CHECK(std::abs(found.cost - optimum) <= 1e-12 * optimum);
        CHECK(found.reason == ps::stop_reason::proved_optimal);
        CHECK(found.lower_bound == found.cost);
        CHECK(found.stats.evaluations == 2);
    }
}
