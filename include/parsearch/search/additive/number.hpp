#pragma once
/// The numbers in which additive costs are added up: wide enough that sums of integers are exact.

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include <parsearch/core/cost.hpp>

namespace parsearch::search::additive {

/// Sums of 64-bit integers that no table can overflow.
__extension__ using wide_integer = __int128;

/// What is done with a number `N`, a floating point type or `wide_integer`.
template <class N> struct number {
    static constexpr N infinity() noexcept { return std::numeric_limits<N>::infinity(); }
    static constexpr bool is_infinite(N n) noexcept { return n == infinity(); }
    static constexpr N sum(N a, N b) noexcept { return a + b; }
};
template <> struct number<wide_integer> {
    // 2^40 terms of 64 bits stay far below it, and several of it can be added.
    static constexpr wide_integer infinity() noexcept { return wide_integer{1} << 120; }
    static constexpr bool is_infinite(wide_integer n) noexcept { return n >= infinity() / 2; }
    static constexpr wide_integer sum(wide_integer a, wide_integer b) noexcept { return is_infinite(a) || is_infinite(b) ? infinity() : a + b; }
};

/// The arithmetic type behind cost type `C`: itself, a duration's representation, or the double that `cost_traits` makes of any other.
template <class C> struct amount {
    using type = double;
    static constexpr bool converts_back = false;
    static constexpr double of(C const& c) { return cost_traits<C>::value(c); }
};
template <class C>
    requires std::is_arithmetic_v<C>
struct amount<C> {
    using type = C;
    static constexpr bool converts_back = true;
    static constexpr C of(C c) noexcept { return c; }
    static constexpr C back(type n) noexcept { return n; }
};
template <class Rep, class Period> struct amount<std::chrono::duration<Rep, Period>> {
    using type = Rep;
    static constexpr bool converts_back = std::is_arithmetic_v<Rep>;
    static constexpr Rep of(std::chrono::duration<Rep, Period> c) noexcept { return c.count(); }
    static constexpr std::chrono::duration<Rep, Period> back(type n) noexcept { return std::chrono::duration<Rep, Period>{n}; }
};

/// Sums of this cost type are sums of integers: exact, as doubles below 2^53 and as `wide_integer` above.
template <class C> inline constexpr bool counts_integers = std::integral<typename amount<C>::type>;
/// The numbers in which costs `C` are added where doubles are not exact.
template <class C>
using widest_number = std::conditional_t<counts_integers<C>, wide_integer,
                                         std::conditional_t<std::same_as<typename amount<C>::type, long double>, long double, double>>;

template <class N, class C> [[nodiscard]] constexpr N to_number(C const& c) {
    if (!(c < cost_traits<C>::infinity())) return number<N>::infinity();
    return static_cast<N>(amount<C>::of(c));
}

/// The cost of a sum, clamped to the range of `C`; nothing where a `C` cannot be made of a number.
template <class C, class N> [[nodiscard]] constexpr std::optional<C> to_cost(N n) {
    if (number<N>::is_infinite(n)) return cost_traits<C>::infinity();
    if constexpr (amount<C>::converts_back) {
        using type = typename amount<C>::type;
        if constexpr (std::integral<type>) {
            // Compared as wide integers: doubles hold whole numbers below 2^53 here.
            auto const whole = static_cast<wide_integer>(n);
            if (whole >= static_cast<wide_integer>(std::numeric_limits<type>::max())) return cost_traits<C>::infinity();
            if (whole <= static_cast<wide_integer>(std::numeric_limits<type>::min())) return amount<C>::back(std::numeric_limits<type>::min());
        }
        return amount<C>::back(static_cast<type>(n));
    } else {
        return std::nullopt;
    }
}

} // namespace parsearch::search::additive
