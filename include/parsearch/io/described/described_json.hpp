#pragma once
/// Option structs to and from JSON: numbers, booleans and arrays as such, everything else as its text ("10s", "bf16", "none").

#include <string>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include <parsearch/io/described/described.hpp>
#include <parsearch/io/json/json_reader.hpp>

namespace parsearch::io {

namespace detail {
template <class T> struct is_optional : std::false_type {};
template <class T> struct is_optional<std::optional<T>> : std::true_type {};
template <class T> struct is_vector : std::false_type {};
template <class T> struct is_vector<std::vector<T>> : std::true_type {};

template <class T> [[nodiscard]] nlohmann::ordered_json value_to_json(T const& v) {
    if constexpr (is_optional<T>::value) return v ? value_to_json(*v) : nlohmann::ordered_json("none");
    else if constexpr (std::is_arithmetic_v<T> || is_vector<T>::value) return v;
    else return option_value<T>::print(v);
}

template <class T> void value_from_json(json_value const& json, T& v) {
    if constexpr (is_optional<T>::value) {
        if (json.is_string() && json.string() == "none") v.reset();
        else value_from_json(json, v.emplace());
    } else if constexpr (std::is_same_v<T, bool>) {
        v = json.boolean();
    } else if constexpr (std::is_floating_point_v<T>) {
        v = json.number();
    } else if constexpr (std::is_integral_v<T>) {
        v = json.integer<T>();
    } else if constexpr (is_vector<T>::value) {
        v.clear();
        for (std::size_t i = 0; i < json.size(); ++i) value_from_json(json[i], v.emplace_back());
    } else if (!option_value<T>::read(json.string(), v)) {
        json.refuse("must be ", option_value<T>::allowed());
    }
}
} // namespace detail

/// All options of `options`, in the order of the declaration.
template <Described Options> [[nodiscard]] nlohmann::ordered_json options_to_json(Options const& options) {
    auto out = nlohmann::ordered_json::object();
    for_each_field(options, [&](auto const& f, auto const& member) { out[std::string(f.name)] = detail::value_to_json(member); });
    return out;
}

/// Sets those options that `json`, an object, holds; the others stay. Throws `invalid_input` naming place, option, value and
/// rule on an unknown option and on a value of the wrong kind or range.
template <Described Options> void set_options_from_json(Options& options, json_value const& json) {
    json.for_members([&](std::string const& name, json_value const& value) {
        visit_option(options, name, json.place(), [&](auto const&, auto& member) {
            std::remove_reference_t<decltype(member)> read{};
            detail::value_from_json(value, read);
            member = std::move(read);
        });
    });
}

/// The struct of which `json`, an object, holds every member. Throws as `set_options_from_json`, and where one
/// is missing.
template <Described T> [[nodiscard]] T described_from_json(json_value const& json) {
    member_names names;
    T out{};
    for_each_field(out, [&](auto const& f, auto const&) { names.push_back(f.name); });
    auto const object = json.object(std::move(names));
    for_each_field(out, [&](auto const& f, auto& member) { detail::value_from_json(object.at(f.name), member); });
    return out;
}

} // namespace parsearch::io
