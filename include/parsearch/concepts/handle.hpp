#pragma once
/// What the other concepts share: equality, and the handles that name operators, devices and links.

#include <concepts>
#include <cstddef>
#include <string_view> // std::hash

#include <parsearch/core/compiler.hpp>

namespace parsearch {

/// `std::equality_comparable`, with a diagnostic of one line where `==` is missing.
template <class T>
concept EqualityComparable = requires(T const& a, T const& b) { a == b; } && std::equality_comparable<T>;

/// A handle is copyable, equality comparable and hashable by `std::hash`. It needs no default value and no order.
template <class H>
concept Handle = std::copyable<H> && EqualityComparable<H> && requires(H const& h) {
    { std::hash<H>{}(h) } -> std::convertible_to<std::size_t>;
};

} // namespace parsearch
