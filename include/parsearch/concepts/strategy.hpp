#pragma once
/// The concept `Strategy`: the configuration of each operator, replaceable for one operator.

#include <concepts>
#include <cstddef>

#include <parsearch/concepts/handle.hpp>

namespace parsearch {

namespace detail::strategy_cpo {

void configuration_of() = delete;
void set_configuration() = delete;

struct configuration_of_fn {
    template <class S> constexpr decltype(auto) operator()(S const& s, std::size_t op) const {
        if constexpr (requires { s.configuration_of(op); }) return s.configuration_of(op);
        else if constexpr (requires { configuration_of(s, op); }) return configuration_of(s, op);
        else return s[op];
    }
};
struct set_configuration_fn {
    template <class S, class C> constexpr void operator()(S& s, std::size_t op, C const& c) const {
        if constexpr (requires { s.set_configuration(op, c); }) s.set_configuration(op, c);
        else if constexpr (requires { set_configuration(s, op, c); }) set_configuration(s, op, c);
        else s[op] = c;
    }
};
template <class S>
concept has_configuration_of = requires(S const& s, std::size_t op) { s.configuration_of(op); } ||
                               requires(S const& s, std::size_t op) { configuration_of(s, op); } || requires(S const& s, std::size_t op) { s[op]; };
template <class S, class C>
concept has_set_configuration = requires(S& s, std::size_t op, C const& c) {
    s.set_configuration(op, c);
} || requires(S& s, std::size_t op, C const& c) { set_configuration(s, op, c); } || requires(S& s, std::size_t op, C const& c) { s[op] = c; };
} // namespace detail::strategy_cpo

/// `configuration_of(s, op)`: the configuration of operator number `op`. Member, then ADL, then `s[op]`.
inline constexpr detail::strategy_cpo::configuration_of_fn configuration_of{};
/// `set_configuration(s, op, c)`: replaces it. Member, then ADL, then `s[op] = c`.
inline constexpr detail::strategy_cpo::set_configuration_fn set_configuration{};

/// A configuration of type `C` per operator. See docs/concepts/strategy.md. `std::vector<C>` is a model.
template <class S, class C>
concept Strategy = std::copyable<S> && EqualityComparable<S> && detail::strategy_cpo::has_configuration_of<S> &&
                   detail::strategy_cpo::has_set_configuration<S, C> && requires(S const& s, S& m, std::size_t op, C const& c) {
                       { parsearch::configuration_of(s, op) } -> std::convertible_to<C>;
                       parsearch::set_configuration(m, op, c);
                   };

} // namespace parsearch
