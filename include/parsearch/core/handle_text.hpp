#pragma once
/// Handles as text, for names and messages.

#include <concepts>
#include <locale>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <parsearch/core/error.hpp>

namespace parsearch {

namespace detail::handle_text_adl {
void to_string() = delete;

/// `to_string(handle)`, found by ADL, is text.
template <class H>
concept has_to_string = requires(H const& handle) {
    { to_string(handle) } -> std::convertible_to<std::string_view>;
};
/// A function `operator<<(std::ostream&, handle)` is found by ADL. What points somewhere has one that prints an address, another in each run.
template <class H>
concept has_output = (std::is_class_v<H> || std::is_enum_v<H>)&&requires(std::ostream& out, H const& handle) { operator<<(out, handle); } &&
                     !requires(H const& handle) { *handle; };

template <has_to_string H> std::string asked(H const& handle) { return std::string(std::string_view(to_string(handle))); }
} // namespace detail::handle_text_adl

/// What is printed of a handle: text itself; else its `to_string(handle)` or its `<<` to a `std::ostream`, found by ADL; else the number that it is
/// or converts to, of an enum its number; a character itself. Empty where there is none of these, and of pointers, which differ from run to run.
template <class H> [[nodiscard]] std::string handle_text(H const& handle) {
    if constexpr (std::convertible_to<H const&, std::string_view>) {
        return std::string(std::string_view(handle));
    } else if constexpr (detail::handle_text_adl::has_to_string<H>) {
        return detail::handle_text_adl::asked(handle);
    } else if constexpr (detail::handle_text_adl::has_output<H>) {
        std::ostringstream out;
        out.imbue(std::locale::classic());
        out << handle;
        return std::move(out).str();
    } else if constexpr (std::is_enum_v<H>) {
        return text(+static_cast<std::underlying_type_t<H>>(handle));
    } else if constexpr (std::same_as<H, char>) {
        return handle > ' ' && handle <= '~' ? text(handle) : text(+handle);
    } else if constexpr (std::same_as<H, bool>) {
        return text(+handle);
    } else if constexpr ((std::is_class_v<H> || std::is_arithmetic_v<H>)&&requires { std::to_string(handle); }) {
        return text(handle);
    } else {
        return {};
    }
}

/// " (its handle is 7)", or " (its handle is 'fc1')" of text; empty where it can not be printed.
template <class H> [[nodiscard]] std::string said_of_handle(H const& handle) {
    auto const said = handle_text(handle);
    if (said.empty()) return {};
    std::string_view const quote = std::convertible_to<H const&, std::string_view> ? "'" : "";
    return text(" (its handle is ", quote, said, quote, ')');
}

} // namespace parsearch
