#pragma once
/// Reflection of option structs: one declaration per struct drives command lines, run manifests and help.

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/hana/for_each.hpp>
#include <boost/hana/tuple.hpp>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::io {

/// An option: the name by which users know it, the member that holds it, and what it means.
template <class Options, class T> struct option_field {
    using type = T;
    std::string_view name;
    T Options::*member;
    std::string_view help;
    template <class O> [[nodiscard]] constexpr auto& of(O& options) const noexcept { return options.*member; }
};
/// The same of a member of a member.
template <class Options, class Inner, class T> struct inner_option_field {
    using type = T;
    std::string_view name;
    Inner Options::*outer;
    T Inner::*member;
    std::string_view help;
    template <class O> [[nodiscard]] constexpr auto& of(O& options) const noexcept { return options.*outer.*member; }
};
/// `field("temperature", &mcmc_options::temperature, "how much worse a step may be")`.
template <class Options, class T>
[[nodiscard]] constexpr option_field<Options, T> field(std::string_view name, T Options::*member, std::string_view help) {
    return {name, member, help};
}
/// `field("candidates", &joint_options::pricing, &graph_pricer_options::candidates, "configurations per operator")`.
template <class Options, class Inner, class T>
[[nodiscard]] constexpr inner_option_field<Options, Inner, T> field(std::string_view name, Inner Options::*outer, T Inner::*member,
                                                                    std::string_view help) {
    return {name, outer, member, help};
}

/// The declaration of option struct `T`: a Hana tuple of fields. Specialise it: see io/described/*.hpp.
template <class T> inline constexpr auto described = nullptr;
template <class T>
concept Described = !std::same_as<std::remove_cv_t<decltype(described<T>)>, std::nullptr_t>;

/// The values of enum `E`, which has `name_of`: `std::array{a, b}`. Specialise it.
template <class E> inline constexpr auto enumerators = nullptr;
template <>
inline constexpr auto enumerators<ops::dtype> = std::array{ops::dtype::f64,  ops::dtype::f32, ops::dtype::tf32, ops::dtype::f16,
                                                           ops::dtype::bf16, ops::dtype::i64, ops::dtype::i32,  ops::dtype::i8};
template <class E>
concept NamedEnum = std::is_enum_v<E> && !std::same_as<std::remove_cv_t<decltype(enumerators<E>)>, std::nullptr_t>;

/// Calls `f(field, member)` for each option of `options`, in the order of the declaration. The member is const where `options` is.
template <class Options, class F>
    requires Described<std::remove_const_t<Options>>
constexpr void for_each_field(Options& options, F&& f) {
    boost::hana::for_each(described<std::remove_const_t<Options>>, [&](auto const& one) { f(one, one.of(options)); });
}

/// How values of type `T` are written: `read` sets a value from text and answers whether the text is one, `print` makes text that reads
/// back to the same value, `allowed` what follows "must be", `placeholder` a word for them in help.
template <class T> struct option_value;

template <> struct option_value<std::string> {
    static bool read(std::string_view s, std::string& v) {
        v = s;
        return true;
    }
    static std::string print(std::string const& v) { return v; }
    static std::string allowed() { return "text"; }
    static constexpr std::string_view placeholder = "TEXT";
};

template <> struct option_value<bool> {
    static bool read(std::string_view s, bool& v) {
        v = s == "true" || s == "yes" || s == "on" || s == "1";
        return v || s == "false" || s == "no" || s == "off" || s == "0";
    }
    static std::string print(bool v) { return text(v); }
    static std::string allowed() { return "true or false"; }
    static constexpr std::string_view placeholder = "true|false";
};

template <class T>
    requires std::is_arithmetic_v<T>
struct option_value<T> {
    /// All of `s`, finite.
    static bool read(std::string_view s, T& v) {
        auto const [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
        if (error != std::errc{} || end != s.data() + s.size() || s.empty()) return false;
        if constexpr (std::floating_point<T>) return std::isfinite(v);
        else return true;
    }
    static std::string print(T v) { return text(v); }
    static std::string allowed() {
        if constexpr (std::floating_point<T>) return "a finite number";
        else return text("an integer from ", std::numeric_limits<T>::min(), " to ", std::numeric_limits<T>::max());
    }
    static constexpr std::string_view placeholder = std::floating_point<T> ? "NUMBER" : "INTEGER";
};

template <NamedEnum E> struct option_value<E> {
    static bool read(std::string_view s, E& v) {
        for (auto const e : enumerators<E>)
            if (name_of(e) == s) {
                v = e;
                return true;
            }
        return false;
    }
    static std::string print(E v) { return std::string(name_of(v)); }
    static std::string allowed() { return "one of " + list(", "); }
    static std::string list(std::string_view between) {
        std::string out;
        for (auto const e : enumerators<E>) out += text(out.empty() ? "" : between, name_of(e));
        return out;
    }
    static constexpr std::string_view placeholder = "NAME";
};

template <> struct option_value<std::chrono::nanoseconds> {
    struct unit {
        std::string_view name;
        std::int64_t nanoseconds;
    };
    static constexpr std::array<unit, 6> units{
        {{"h", 3'600'000'000'000}, {"min", 60'000'000'000}, {"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}}};
    /// A number that is not negative and a unit, rounded to nanoseconds; below 292 years.
    static bool read(std::string_view s, std::chrono::nanoseconds& v) {
        auto const digits = std::min(s.find_first_not_of("0123456789."), s.size());
        for (auto const& u : units) {
            if (s.substr(digits) != u.name) continue;
            if (std::int64_t whole = 0; option_value<std::int64_t>::read(s.substr(0, digits), whole)) {
                if (whole > std::numeric_limits<std::int64_t>::max() / u.nanoseconds) return false;
                v = std::chrono::nanoseconds{whole * u.nanoseconds};
                return true;
            }
            double number = 0;
            if (!option_value<double>::read(s.substr(0, digits), number) || number * static_cast<double>(u.nanoseconds) > 9e18) return false;
            v = std::chrono::nanoseconds{std::llround(number * static_cast<double>(u.nanoseconds))};
            return true;
        }
        return false;
    }
    /// In the largest unit that leaves a whole number.
    static std::string print(std::chrono::nanoseconds v) {
        if (v.count() == 0) return "0s";
        for (auto const& u : units)
            if (v.count() % u.nanoseconds == 0) return text(v.count() / u.nanoseconds, u.name);
        return {};
    }
    static std::string allowed() { return "a time in ns, us, ms, s, min or h such as 250ms, 10s or 2min"; }
    static constexpr std::string_view placeholder = "TIME";
};

/// "4096x1024", or "8192*16" for sixteen times 8192, or both; "none" for no element.
template <std::integral T> struct option_value<std::vector<T>> {
    static constexpr std::size_t most = 1 << 16;
    static bool read(std::string_view s, std::vector<T>& v) {
        v.clear();
        if (s == "none") return true;
        for (std::size_t begin = 0; begin <= s.size();) {
            auto const end = std::min(s.find('x', begin), s.size());
            auto const part = s.substr(begin, end - begin);
            auto const star = part.find('*');
            T value{};
            std::size_t times = 1;
            if (!option_value<T>::read(part.substr(0, star), value)) return false;
            if (star != std::string_view::npos && !option_value<std::size_t>::read(part.substr(star + 1), times)) return false;
            if (times < 1 || times > most - v.size()) return false;
            v.insert(v.end(), times, value);
            begin = end + 1;
        }
        return true;
    }
    static std::string print(std::vector<T> const& v) {
        std::string out;
        for (std::size_t i = 0, n; i < v.size(); i += n) {
            for (n = 1; i + n < v.size() && v[i + n] == v[i];) ++n;
            // Two equal sizes read better side by side.
            if (n < 3) n = 1;
            out += text(i ? "x" : "", v[i]);
            if (n > 1) out += text('*', n);
        }
        return out.empty() ? "none" : out;
    }
    static std::string allowed() { return text("integers such as 4096x1024, or 8192*16 for sixteen times 8192, at most ", most, ", or none"); }
    static constexpr std::string_view placeholder = "AxBx...";
};

template <class T> struct option_value<std::optional<T>> {
    static bool read(std::string_view s, std::optional<T>& v) {
        if (s == "none") v.reset();
        return s == "none" || option_value<T>::read(s, v.emplace());
    }
    static std::string print(std::optional<T> const& v) { return v ? option_value<T>::print(*v) : "none"; }
    static std::string allowed() { return option_value<T>::allowed() + ", or none"; }
    static constexpr std::string_view placeholder = option_value<T>::placeholder;
};

/// Sets `v` from text. Throws `invalid_input` "PLACE: option 'NAME' is 'VALUE': must be ..." where that is none.
template <class T> void read_option(std::string_view value, std::string_view name, std::string_view place, T& v) {
    T read{};
    if (!option_value<T>::read(value, read))
        throw invalid_input(place, ": option '", name, "' is '", value, "': must be ", option_value<T>::allowed());
    v = std::move(read);
}

/// The names of the options of `T`, comma separated.
template <Described T> [[nodiscard]] std::string option_names() {
    std::string out;
    boost::hana::for_each(described<T>, [&](auto const& f) { out += text(out.empty() ? "" : ", ", f.name); });
    return out;
}

/// True where `T` has an option of that name.
template <Described T> [[nodiscard]] bool has_option(std::string_view name) {
    bool found = false;
    boost::hana::for_each(described<T>, [&](auto const& f) { found = found || f.name == name; });
    return found;
}

/// Calls `f(field, member)` for the option `name`. Throws `invalid_input` listing the known names where there is none.
template <class Options, class F> void visit_option(Options& options, std::string_view name, std::string_view place, F&& f) {
    bool found = false;
    for_each_field(options, [&](auto const& one, auto& member) {
        if (one.name != name) return;
        found = true;
        f(one, member);
    });
    if (!found) throw invalid_input(place, ": option '", name, "' is not known: must be one of ", option_names<std::remove_const_t<Options>>());
}

/// Sets option `name` of `options` from text. Throws `invalid_input` naming `place`, option, value and what is allowed.
template <Described Options> void set_option(Options& options, std::string_view name, std::string_view value, std::string_view place) {
    visit_option(options, name, place, [&](auto const& f, auto& member) { read_option(value, f.name, place, member); });
}

/// "key=value" pairs, in the order in which they were given.
struct setting {
    std::string key, value;
    friend bool operator==(setting const&, setting const&) = default;
};
/// "NAME,key=value,key=value" taken apart.
struct named_settings {
    std::string name;
    std::vector<setting> settings;
};

/// Takes "NAME,key=value,..." apart. What follows the last comma is a setting where it has an '='; a name may hold commas otherwise. Throws
/// `invalid_input` on an empty name or key and on a key given twice.
[[nodiscard]] named_settings parse_settings(std::string_view given);

/// "NAME,key=value,..." of them: what `parse_settings` takes apart.
[[nodiscard]] inline std::string to_string(named_settings const& given) {
    auto out = given.name;
    for (auto const& [key, value] : given.settings) out += text(',', key, '=', value);
    return out;
}

/// Sets every one of `settings`.
template <Described Options> void set_options(Options& options, std::vector<setting> const& settings, std::string_view place) {
    for (auto const& s : settings) set_option(options, s.key, s.value, place);
}

/// The options of `options` as text, in order; those that differ from `T{}` only where `changed`.
template <Described Options> [[nodiscard]] std::vector<setting> settings_of(Options const& options, bool changed = false) {
    std::vector<setting> out;
    Options const defaults{};
    for_each_field(options, [&](auto const& f, auto const& member) {
        using value = option_value<typename std::remove_cvref_t<decltype(f)>::type>;
        auto written = value::print(member);
        if (!changed || written != value::print(f.of(defaults))) out.push_back({std::string(f.name), std::move(written)});
    });
    return out;
}

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/described/described.ipp>
#endif
