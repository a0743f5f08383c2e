#pragma once
/// The one exception type that bad input raises.

#include <charconv>
#include <concepts>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include <parsearch/core/compiler.hpp>

namespace parsearch {

namespace detail {
template <class T> void append_text(std::string& out, T const& part) {
    if constexpr (std::convertible_to<T const&, std::string_view>) out += std::string_view(part);
    else if constexpr (std::same_as<T, bool>) out += part ? "true" : "false";
    else if constexpr (std::same_as<T, char>) out += part;
    else if constexpr (std::floating_point<T>) {
        char digits[32]; // the shortest that reads back to the same value
        out.append(digits, std::to_chars(digits, digits + sizeof digits, part).ptr);
    } else out += std::to_string(part);
}
} // namespace detail

/// The concatenated text of `parts` (strings, characters, numbers, booleans).
template <class... Parts> [[nodiscard]] std::string text(Parts const&... parts) {
    std::string out;
    (detail::append_text(out, parts), ...);
    return out;
}

/// Thrown at the boundary for any input that breaks a rule: the message names the value, the place and the rule.
class invalid_input : public std::invalid_argument {
  public:
    template <class... Parts>
        requires(sizeof...(Parts) > 1 || (sizeof...(Parts) == 1 && (std::convertible_to<Parts const&, std::string_view> && ...)))
    explicit invalid_input(Parts const&... parts) : std::invalid_argument(text(parts...)) {}
};

} // namespace parsearch
