#pragma once
/// What a search minimises: any ordered arithmetic type, or a duration.

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <parsearch/core/compiler.hpp>

namespace parsearch {

/// Arithmetic of a cost type `C`; specialise it for a cost type of your own.
/// - `infinity()`: worse than every cost; the cost of what is infeasible.
/// - `value(c)`: the cost as a double (reports, temperatures).
/// - `raised(c, by)`: `c` plus a non-negative amount, saturating at infinity.
template <class C> struct cost_traits;

template <class C>
    requires std::is_arithmetic_v<C>
struct cost_traits<C> {
    static constexpr C infinity() noexcept {
        if constexpr (std::floating_point<C>) return std::numeric_limits<C>::infinity();
        else return std::numeric_limits<C>::max();
    }
    static constexpr double value(C c) noexcept { return static_cast<double>(c); }
    static constexpr C raised(C c, double by) noexcept {
        if constexpr (std::floating_point<C>) {
            return static_cast<C>(c + static_cast<C>(by));
        } else {
            // Compared in double: 0.999 keeps the sum clear of what rounding could push past the largest value.
            double const room = static_cast<double>(infinity()) - static_cast<double>(c);
            if (!(by < room * 0.999)) return infinity();
            // A negative `c` leaves room for more than a C can hold.
            if (by >= static_cast<double>(infinity()) * 0.999) return static_cast<C>(static_cast<double>(c) + by);
            return static_cast<C>(c + static_cast<C>(by));
        }
    }
};

template <class Rep, class Period> struct cost_traits<std::chrono::duration<Rep, Period>> {
    using duration = std::chrono::duration<Rep, Period>;
    static constexpr duration infinity() noexcept { return duration{cost_traits<Rep>::infinity()}; }
    static constexpr double value(duration c) noexcept { return cost_traits<Rep>::value(c.count()); }
    static constexpr duration raised(duration c, double by) noexcept { return duration{cost_traits<Rep>::raised(c.count(), by)}; }
};

/// `cost_traits` is specialised for `C`.
template <class C>
concept HasCostTraits = requires { sizeof(cost_traits<C>); };

/// A totally ordered, copyable type with `cost_traits`.
template <class C>
concept Cost = HasCostTraits<C> && std::copyable<C> && requires(C const& a, C const& b) {
    a == b;
    a < b;
} && std::totally_ordered<C> && requires(C const& c) {
    { cost_traits<C>::infinity() } -> std::convertible_to<C>;
    { cost_traits<C>::value(c) } -> std::convertible_to<double>;
    { cost_traits<C>::raised(c, 1.0) } -> std::convertible_to<C>;
};

} // namespace parsearch
