#include <parsearch/search/kernel/moves.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include <parsearch/search/mcmc.hpp>

#include "support/toys.hpp"

namespace ps = parsearch;
namespace search = parsearch::search;
using changes = std::vector<ps::change<int>>;

namespace {
// Exchanges the configurations of two operators: symmetric, two changes, no number drawn, no weight.
struct swap_move {
    template <class X, class S, class R> bool operator()(X const& space, S const& s, R& rng, changes& out) const {
        auto const a = static_cast<std::size_t>(ps::uniform_index(rng, space.size()));
        auto const b = static_cast<std::size_t>(ps::uniform_index(rng, space.size()));
        if (a == b) return false;
        out.push_back({a, s[b]});
        out.push_back({b, s[a]});
        return true;
    }
};
struct weighted {
    static constexpr std::string_view name = "weighted";
    double weight = 1;
    template <class X, class S, class R> bool operator()(X const&, S const&, R&, changes& out) const {
        out.push_back({0, 1});
        return true;
    }
};
struct never {
    float weight = 1;
    template <class X, class S, class R> bool operator()(X const&, S const&, R&, changes&) const { return false; }
};
struct stray {
    template <class X, class S, class R> bool operator()(X const&, S const&, R&, changes& out) const {
        out.push_back({9, 1});
        return true;
    }
};
} // namespace

TEST_CASE("uniform_move draws operators that have a choice, and their configurations, uniformly") {
    toys::space const x{{0}, {0, 1}, {0}, {0, 1, 2, 3}};
    search::uniform_move move;
    toys::splitmix rng{11};
    std::array<std::array<int, 4>, 4> count{};
    int const draws = 40000;
    changes out;
    for (int n = 0; n < draws; ++n) {
        out.clear();
        auto const index = move(x, toys::strategy(4, 0), rng, out);
        REQUIRE(index);
        REQUIRE(out.size() == 1);
        CHECK(out[0].configuration == x[out[0].op][*index]);
        ++count[out[0].op][*index];
    }
    auto const near = [](int got, double expected) { return std::abs(got - expected) < 5 * std::sqrt(expected); };
    CHECK(count[0][0] == 0);
    CHECK(count[2][0] == 0);
    for (std::size_t n = 0; n < 2; ++n) CHECK(near(count[1][n], draws / 4.0));
    for (std::size_t n = 0; n < 4; ++n) CHECK(near(count[3][n], draws / 8.0));
}

TEST_CASE("a mix draws by weight") {
    toys::space const x = toys::make_space(4, 3);
    search::move_mix mix(std::tuple(weighted{1}, weighted{0}, search::uniform_move(3), swap_move{}));
    toys::splitmix rng{12};
    std::array<int, 4> count{};
    int nothing = 0, numbered = 0;
    int const draws = 50000;
    for (int n = 0; n < draws; ++n) {
        changes out;
        auto const drawn = mix(x, toys::strategy(4, 0), rng, out);
        if (!drawn) {
            ++nothing;
            continue;
        }
        ++count[drawn->move];
        if (drawn->index) ++numbered;
    }
    auto const near = [](int got, double expected) { return std::abs(got - expected) < 5 * std::sqrt(expected); };
    CHECK(near(count[0], draws * 0.2));
    CHECK(count[1] == 0);
    CHECK(near(count[2], draws * 0.6));
    CHECK(near(count[3] + nothing, draws * 0.2));
    CHECK(near(nothing, draws * 0.05));
    CHECK(numbered == count[2]);
}

TEST_CASE("moves have names, by their numbers") {
    auto const problem = toys::table_problem<double>(toys::make_space(2, 2), 2, true);
    auto const mixed = search::with_moves(problem, swap_move{}, weighted{}, search::uniform_move{});
    constexpr auto names = search::move_names<decltype(mixed)>();
    static_assert(names.size() == 3);
    CHECK(names[0].empty());
    CHECK(names[1] == "weighted");
    CHECK(names[2] == "uniform");
    static_assert(search::move_names<decltype(problem)>()[0] == "uniform"); // without moves of its own
}

TEST_CASE("with_moves hands on what the problem starts from and its order") {
    struct all_of_it {
        toys::space x = toys::make_space(2, 2);
        std::vector<toys::strategy> known{{0, 1}, {1, 1}};
        std::vector<std::size_t> visits{1, 0};
        [[nodiscard]] toys::space const& space() const { return x; }
        [[nodiscard]] auto evaluator() const {
            return [](toys::strategy const& s) { return s[0]; };
        }
        [[nodiscard]] auto const& starts() const { return known; }
        [[nodiscard]] auto const& order() const { return visits; }
    } const problem;
    auto const wrapped = search::with_moves(problem, swap_move{});
    CHECK(&wrapped.starts() == &problem.known);
    CHECK(&wrapped.order() == &problem.visits);
}

TEST_CASE("weights out of range are refused") {
    double const infinity = std::numeric_limits<double>::infinity();
    CHECK_THROWS_WITH_AS(search::move_mix(std::tuple(swap_move{}, weighted{-1})), "move number 1: weight -1: must be finite and not negative",
                         ps::invalid_input);
    CHECK_THROWS_AS(search::move_mix(std::tuple(weighted{infinity})), ps::invalid_input);
    CHECK_THROWS_AS(search::move_mix(std::tuple(weighted{std::nan("")})), ps::invalid_input);
    CHECK_THROWS_WITH_AS(search::move_mix(std::tuple(weighted{0}, never{0})), "the weights of 2 moves sum to 0: must be positive and finite",
                         ps::invalid_input);
}

TEST_CASE("with_moves keeps the problem and replaces its moves") {
    auto const problem = toys::table_problem<double>(toys::make_space(5, 5), 2, true);
    auto const swapped = search::with_moves(problem, swap_move{});
    static_assert(ps::SearchProblem<decltype(swapped), toys::strategy>);
    CHECK(&swapped.space() == &problem.space());
    CHECK(&search::with_moves(swapped, swap_move{}).space() == &problem.space());

    toys::strategy const start{4, 3, 2, 1, 0};
    toys::splitmix rng{3};
    search::move_counts counts;
    search::mcmc_options const options{.evaluations = 2000, .relative_temperature = 0.005};
    auto const result = search::mcmc(swapped, start, rng, options, counts);
    auto sorted = result.best;
    std::sort(sorted.begin(), sorted.end());
    CHECK(sorted == toys::strategy{0, 1, 2, 3, 4}); // swaps only
    CHECK(result.cost == problem.evaluator()(result.best));
    CHECK(result.cost < problem.evaluator()(start));

    // The least over all orders.
    double least = result.cost;
    auto order = sorted;
    do least = std::min(least, problem.evaluator()(order));
    while (std::next_permutation(order.begin(), order.end()));
    CHECK(result.cost == least);

    toys::splitmix again{3};
    auto const owned = search::with_moves(toys::table_problem<double>(toys::make_space(5, 5), 2, true), swap_move{});
    CHECK(toys::same_run(search::mcmc(owned, start, again, options), result));
}

TEST_CASE("acceptances are counted per move") {
    auto const problem = toys::table_problem<double>(toys::make_space(5, 5), 2, true);
    toys::splitmix rng{3};
    search::move_counts counts;
    auto const result = search::mcmc(search::with_moves(problem, search::uniform_move(2), swap_move{}), toys::strategy(5, 0), rng,
                                     {.evaluations = 3000, .relative_temperature = 0.05}, counts);
    REQUIRE(counts.of_move.size() == 2);
    CHECK(counts.of_move[0].proposed + counts.of_move[1].proposed == result.stats.proposals);
    CHECK(counts.of_move[0].accepted + counts.of_move[1].accepted == result.stats.accepted);
    CHECK(counts.of_move[0].improved + counts.of_move[1].improved == result.stats.improved);
    CHECK(counts.of_move[1].accepted > 0);
    CHECK(counts.of_move[0].proposed > counts.of_move[1].proposed);
}

TEST_CASE("a move that names an operator that does not exist") {
    auto const problem = toys::table_problem<double>(toys::make_space(5, 5), 2, true);
    toys::splitmix rng{3};
    CHECK_THROWS_WITH_AS(search::mcmc(search::with_moves(problem, stray{}), toys::strategy(5, 0), rng),
                         "mcmc: move number 0 changed operator number 9: the space has 5 operators", ps::invalid_input);
}

TEST_CASE("moves with nothing to propose end the search") {
    auto const problem = toys::table_problem<double>(toys::make_space(5, 5), 2, true);
    toys::splitmix rng{3};
    auto const result = search::mcmc(search::with_moves(problem, never{}), toys::strategy(5, 0), rng, {.evaluations = 10});
    CHECK(result.reason == ps::stop_reason::exhausted);
    CHECK(result.stats.proposals == 0);
    CHECK(result.stats.evaluations == 1);

    // Always the same change: proposed, priced once, then never again.
    auto const stuck = search::mcmc(search::with_moves(problem, weighted{}), toys::strategy(5, 0), rng,
                                    {.evaluations = 10, .temperature = 1e9, .reset_interval = 0});
    CHECK(stuck.reason == ps::stop_reason::exhausted);
    CHECK(stuck.stats.evaluations == 2);
    CHECK(stuck.stats.proposals > 1000);
}
