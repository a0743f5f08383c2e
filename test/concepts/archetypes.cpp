#include <parsearch/concepts/archetypes.hpp>

#include <concepts>
#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;
namespace at = parsearch::archetypes;

namespace archetypes_test {

// Less than the types that one would write: what the concepts do not name is not there.
static_assert(!std::default_initializable<at::operator_handle> && !std::totally_ordered<at::operator_handle>);
static_assert(!std::convertible_to<at::operator_handle, std::size_t> && !std::convertible_to<int, at::operator_handle>);
static_assert(!std::equality_comparable_with<at::operator_handle, at::device_handle>);
static_assert(!std::default_initializable<at::strategy> && !std::default_initializable<at::configuration>);
static_assert(!EqualityComparable<at::configuration>);
static_assert(!std::is_arithmetic_v<at::cost> && !std::default_initializable<at::cost>);
template <class T> constexpr bool pinned = !std::default_initializable<T> && !std::movable<T> && !std::copy_constructible<T>;
static_assert(pinned<at::operator_graph<>> && pinned<at::evaluator> && pinned<at::incremental_evaluator>);
static_assert(pinned<at::search_problem<>> && pinned<at::random_bits> && pinned<at::configuration_space>);
static_assert(!std::copyable<at::device_topology>);
static_assert(std::copy_constructible<at::cost_oracle<int, int>> && !std::is_copy_assignable_v<at::cost_oracle<int, int>>);

static_assert(ForwardRange<at::forward<int>> && !SizedRandomAccessRange<at::forward<int>>);
static_assert(InputRange<at::single_pass<int>> && !ForwardRange<at::single_pass<int>>);
static_assert(!std::copyable<at::single_pass<int>::iterator>);
static_assert(SizedRandomAccessRange<at::computed<int>>);

static_assert(!IncrementalEvaluator<at::evaluator, at::strategy, at::configuration>);
static_assert(!HasCollectiveTime<at::cost_oracle<int, int>>);
static_assert(OperatorGraph<at::operator_graph<std::string>>);
static_assert(SearchProblem<at::search_problem<at::incremental_evaluator>, at::strategy>);

inline at::strategy strategy_of(std::vector<std::size_t> const& numbers) {
    std::vector<at::configuration> chosen;
    for (auto const n : numbers) chosen.emplace_back(n);
    return at::strategy(std::move(chosen));
}
inline double value(at::cost const& c) { return cost_traits<at::cost>::value(c); }

} // namespace archetypes_test
using namespace archetypes_test;

TEST_CASE("archetypes: the graph is a diamond with two outputs at the top") {
    std::vector<std::string> const names{"top", "left", "right", "join"};
    at::operator_graph<std::string> const g(std::span<std::string const, 4>(names.data(), 4));
    std::string edges;
    for (auto const& op : operators(g))
        for (auto const& in : inputs(g, op)) edges += text(description(g, in.producer), std::uint32_t(in.slot), '>', description(g, op), ' ');
    CHECK(edges == "top0>left top1>right left0>join right0>join top0>join ");
    std::unordered_map<at::operator_handle, int> seen;
    for (auto const& op : operators(g)) ++seen[op];
    CHECK(seen.size() == 4);
}

TEST_CASE("archetypes: the topology is a line") {
    at::device_topology const t;
    std::vector<at::device_handle> d;
    for (auto const& device : devices(t)) d.push_back(device);
    REQUIRE(d.size() == 3);
    auto const numbers = [&](std::size_t from, std::size_t to) {
        std::vector<std::size_t> out;
        for (at::link_handle const link : route(t, d[from], d[to])) out.push_back(std::hash<at::link_handle>{}(link));
        return out;
    };
    using path = std::vector<std::size_t>;
    CHECK(numbers(0, 1) == path{0});
    CHECK(numbers(1, 2) == path{1});
    CHECK(numbers(0, 2) == path{0, 1});
    CHECK(numbers(1, 0) == path{2});
    CHECK(numbers(2, 1) == path{3});
    CHECK(numbers(2, 0) == path{3, 2});
    CHECK(link_description(describe_link(t, at::link_handle(0))).latency == picoseconds{1000});
    CHECK(node_of(t, d[2]) == 0);
}

TEST_CASE("archetypes: the oracle") {
    at::cost_oracle<int, int> const oracle(picoseconds{5});
    CHECK(picoseconds(shard_time(oracle, 1, 2)) == picoseconds{5});
}

TEST_CASE("archetypes: computed elements by iterator and by number") {
    at::computed<int> const squares(4);
    auto const first = std::ranges::begin(squares), last = std::ranges::end(squares);
    CHECK(last - first == 4);
    CHECK(first[2] == 2);
    CHECK(*(last - 1) == 3);
    CHECK(*(2 + first) == 2);
    auto i = first;
    CHECK(*i++ == 0);
    CHECK(*--i == 0);
    CHECK(first < last);
}

TEST_CASE("archetypes: evaluators count their calls and agree") {
    std::uint64_t calls = 0;
    at::search_problem<at::incremental_evaluator> const p(3, 4, calls);
    auto e = p.evaluator();
    auto const start = strategy_of({1, 2, 3});
    CHECK(value(e.reset(start)) == 6);
    std::vector<change<at::configuration>> const down{{2, at::configuration(0)}}, both{{0, at::configuration(3)}, {1, at::configuration(3)}};
    auto const propose = [&](auto const& changes, double bound) { return std::optional<at::cost>(e.propose(changes, at::cost(bound))); };
    CHECK(value(*propose(down, 3)) == 3);
    e.roll_back();
    CHECK_FALSE(propose(both, 8.5).has_value());
    e.roll_back();
    CHECK(value(*propose(both, 9)) == 9);
    e.commit();
    CHECK(value(*propose(down, 100)) == 6);
    CHECK(calls == 5);
    CHECK(value(e(strategy_of({3, 3, 0}))) == 6);
    CHECK(calls == 6);
}

TEST_CASE("archetypes: strategies compare by their configurations") {
    auto s = strategy_of({1, 2});
    CHECK(s == strategy_of({1, 2}));
    set_configuration(s, 1, at::configuration(0));
    CHECK_FALSE(s == strategy_of({1, 2}));
    CHECK(s == strategy_of({1, 0}));
    CHECK_FALSE(s == strategy_of({1}));
}

TEST_CASE("archetypes: the engine is Lehmer's") {
    at::random_bits rng(0);
    std::set<std::uint32_t> seen;
    CHECK(rng() == 48271);
    CHECK(rng() == 182605794);
    for (int i = 0; i < 1000; ++i) seen.insert(rng());
    CHECK(seen.size() == 1000);
    CHECK(uniform_index(rng, 1000) < 1000);
}

TEST_CASE("archetypes: the searcher answers its start") {
    std::uint64_t calls = 0;
    at::search_problem<> const p(2, 3, calls);
    at::random_bits rng(7);
    at::searcher<at::search_problem<>, at::strategy, at::random_bits> const search;
    auto const r = search(p, strategy_of({2, 1}), rng);
    CHECK(r.best == strategy_of({2, 1}));
    CHECK(value(r.cost) == 3);
    CHECK(r.stats.evaluations == calls);
}
