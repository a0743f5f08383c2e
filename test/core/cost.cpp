#include <parsearch/core/cost.hpp>

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>
#include <ratio>
#include <string>

#include <doctest/doctest.h>

using namespace parsearch;

namespace {

using picoseconds = std::chrono::duration<std::int64_t, std::pico>;

template <class C> using traits = cost_traits<C>;
constexpr auto int_max = std::numeric_limits<int>::max();
constexpr auto int_min = std::numeric_limits<int>::min();
constexpr auto long_max = std::numeric_limits<std::int64_t>::max();
constexpr auto long_min = std::numeric_limits<std::int64_t>::min();
constexpr double infinite = std::numeric_limits<double>::infinity();

} // namespace

namespace own {

/// A cost of a user's own.
struct money {
    double euros;
    friend auto operator<=>(money const&, money const&) = default;
};
struct unordered {
    friend bool operator==(unordered, unordered) = default;
};
struct without_traits {
    friend auto operator<=>(without_traits, without_traits) = default;
};
struct half_traits {
    friend auto operator<=>(half_traits, half_traits) = default;
};

} // namespace own

using namespace own;

template <> struct parsearch::cost_traits<money> {
    static money infinity() { return {infinite}; }
    static double value(money m) { return m.euros; }
    static money raised(money m, double by) { return {m.euros + by}; }
};
template <> struct parsearch::cost_traits<unordered> {
    static unordered infinity();
    static double value(unordered);
    static unordered raised(unordered, double);
};
template <> struct parsearch::cost_traits<half_traits> {
    static half_traits infinity();
    static double value(half_traits);
};

namespace {
static_assert(Cost<int>);
static_assert(Cost<double>);
static_assert(Cost<float>);
static_assert(Cost<std::uint64_t>);
static_assert(Cost<picoseconds>);
static_assert(Cost<std::chrono::duration<double>>);
static_assert(Cost<money>);
static_assert(!Cost<void>);
static_assert(!Cost<int&>);
static_assert(!Cost<std::string>);
static_assert(!Cost<char const*>);
static_assert(!Cost<without_traits>);
static_assert(!Cost<unordered>);
static_assert(!Cost<half_traits>);
} // namespace

TEST_CASE("cost: infinity is worse than every cost") {
    CHECK(traits<double>::infinity() == infinite);
    CHECK(traits<int>::infinity() == int_max);
    CHECK(traits<std::uint8_t>::infinity() == 255);
    CHECK(traits<picoseconds>::infinity() == picoseconds::max());
    CHECK(traits<std::chrono::duration<double>>::infinity().count() == infinite);
}

TEST_CASE("cost: value is the count as a double") {
    CHECK(traits<int>::value(-3) == -3.0);
    CHECK(traits<float>::value(0.5F) == 0.5);
    CHECK(traits<picoseconds>::value(std::chrono::nanoseconds(2)) == 2000.0);
    CHECK(traits<money>::value({1.5}) == 1.5);
}

TEST_CASE("cost: raised adds") {
    CHECK(traits<int>::raised(5, 0) == 5);
    CHECK(traits<int>::raised(5, 2.9) == 7);
    CHECK(traits<int>::raised(-5, 7) == 2);
    CHECK(traits<double>::raised(1.5, 0.25) == 1.75);
    CHECK(traits<picoseconds>::raised(picoseconds{1000}, 500).count() == 1500);
    CHECK(traits<std::chrono::duration<double>>::raised(std::chrono::duration<double>{1}, 0.5).count() == 1.5);
    // Beyond 2^53 the cost itself keeps every bit.
    CHECK(traits<std::int64_t>::raised((std::int64_t{1} << 60) + 1, 2) == (std::int64_t{1} << 60) + 3);
}

TEST_CASE("cost: raised saturates at infinity") {
    CHECK(traits<int>::raised(int_max, 0) == int_max);
    CHECK(traits<int>::raised(int_max, 1) == int_max);
    CHECK(traits<int>::raised(int_max - 10, 1e9) == int_max);
    CHECK(traits<int>::raised(0, infinite) == int_max);
    CHECK(traits<int>::raised(0, std::numeric_limits<double>::quiet_NaN()) == int_max);
    CHECK(traits<std::uint8_t>::raised(250, 100) == 255);
    CHECK(traits<std::int64_t>::raised(long_max - 1, 1e15) == long_max);
    CHECK(traits<std::int64_t>::raised(0, 1e300) == long_max);
    CHECK(traits<picoseconds>::raised(picoseconds::max(), 1e6) == picoseconds::max());
    CHECK(traits<picoseconds>::raised(picoseconds{5}, infinite) == picoseconds::max());
    CHECK(traits<double>::raised(1, infinite) == infinite);
    CHECK(traits<double>::raised(infinite, 1) == infinite);
}

TEST_CASE("cost: a negative cost may be raised by more than its type holds") {
    CHECK(traits<int>::raised(int_min, 3e9) == 852'516'352);
    CHECK(traits<int>::raised(int_min, 4.2e9) == 2'052'516'352);
    CHECK(traits<int>::raised(int_min, 4.3e9) == int_max);
    CHECK(traits<int>::raised(-1, 2147483647.0) == int_max);
    CHECK(traits<std::int64_t>::raised(long_min, 0x1p63) == 0);
    CHECK(traits<std::int64_t>::raised(long_min, 0x1p64) == long_max);
}

TEST_CASE("cost: raised never goes down") {
    for (int const c : {int_min, -1, 0, 1, int_max / 2, int_max - 1, int_max})
        for (double const by : {0.0, 0.5, 1.0, 1e6, 1e9, 2.14e9, 2.2e9, 4e9, 1e12}) CHECK(traits<int>::raised(c, by) >= c);
}
