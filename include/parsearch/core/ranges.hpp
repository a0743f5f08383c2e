#pragma once
/// The few range concepts that the library's concepts need, without the compile time of `<ranges>`.

#include <concepts>
#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>

#include <parsearch/core/compiler.hpp>

namespace parsearch {

/// The iterator and value type of a range `R`.
template <class R> using iterator_t = decltype(std::ranges::begin(std::declval<R&>()));
template <class R> using range_value_t = std::iter_value_t<iterator_t<R>>;

/// `std::ranges::input_range`, `forward_range`, and a random-access range that knows its size.
template <class R>
concept InputRange = requires(R& r) { std::ranges::end(r); } && std::input_iterator<iterator_t<R>>;
template <class R>
concept ForwardRange = InputRange<R> && std::forward_iterator<iterator_t<R>>;
template <class R>
concept SizedRandomAccessRange = InputRange<R> && std::random_access_iterator<iterator_t<R>> && requires(R& r) {
    { std::ranges::size(r) } -> std::convertible_to<std::size_t>;
};

} // namespace parsearch
