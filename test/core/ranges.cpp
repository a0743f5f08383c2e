#include <parsearch/core/ranges.hpp>

#include <array>
#include <cstddef>
#include <deque>
#include <forward_list>
#include <iterator>
#include <list>
#include <ranges>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

using namespace parsearch;

namespace {

using single_pass = std::ranges::basic_istream_view<int, char>;
using squares = decltype(std::views::iota(0, 3) | std::views::transform([](int i) { return i * i; }));

static_assert(!InputRange<int>);
static_assert(!InputRange<int*>);
static_assert(!InputRange<void>);
static_assert(InputRange<int[3]>);
static_assert(InputRange<single_pass>);
static_assert(InputRange<std::vector<int>>);
static_assert(InputRange<std::vector<int> const&>);
static_assert(InputRange<std::list<int>&>);

static_assert(!ForwardRange<single_pass>);
static_assert(ForwardRange<std::forward_list<int>>);
static_assert(ForwardRange<std::vector<bool> const&>);
static_assert(ForwardRange<squares>);

static_assert(!SizedRandomAccessRange<std::list<int>>);
static_assert(!SizedRandomAccessRange<decltype(std::views::iota(0))>); // no size
static_assert(SizedRandomAccessRange<std::array<int, 3>>);
static_assert(SizedRandomAccessRange<std::deque<int> const&>);
static_assert(SizedRandomAccessRange<std::span<int const>>);
static_assert(SizedRandomAccessRange<std::string>);
static_assert(SizedRandomAccessRange<squares>);

// What the headers say of themselves: the same as the standard's concepts.
template <class R>
constexpr bool agree = InputRange<R> == std::ranges::input_range<R> && ForwardRange<R> == std::ranges::forward_range<R> &&
                       SizedRandomAccessRange<R> == (std::ranges::random_access_range<R> && std::ranges::sized_range<R>);
static_assert(agree<int> && agree<single_pass> && agree<std::forward_list<int>> && agree<std::list<int> const> && agree<std::vector<int>&> &&
              agree<std::span<int>> && agree<squares> && agree<int[4]> && agree<std::vector<bool>>);

static_assert(std::is_same_v<range_value_t<std::vector<int> const&>, int>);
static_assert(std::is_same_v<range_value_t<std::vector<bool>>, bool>);
static_assert(std::is_same_v<range_value_t<squares>, int>);
static_assert(std::is_same_v<iterator_t<std::vector<int> const>, std::vector<int>::const_iterator>);

template <InputRange R> int kind_of(R const&) { return 1; }
template <ForwardRange R> int kind_of(R const&) { return 2; }

} // namespace

TEST_CASE("ranges: the forward range refines the input range") {
    std::istringstream in("1 2");
    CHECK(kind_of(std::vector{1, 2}) == 2);
    static_assert(!ForwardRange<single_pass> && InputRange<single_pass>);
    int sum = 0;
    for (int const i : single_pass(in)) sum += i;
    CHECK(sum == 3);
}
