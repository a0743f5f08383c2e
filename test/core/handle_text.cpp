#include <parsearch/core/handle_text.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>

using parsearch::handle_text;
using parsearch::said_of_handle;

namespace handles {
enum class color : std::uint8_t { red = 7 };
enum class step { load };
[[maybe_unused]] constexpr std::string_view to_string(step) { return "load"; }
enum class phase { warm };
[[maybe_unused]] std::ostream& operator<<(std::ostream& out, phase) { return out << "warm"; }
struct written {
    int block, layer;
    friend std::ostream& operator<<(std::ostream& out, written const& w) { return out << w.block << '.' << w.layer; }
};
struct both {
    friend std::ostream& operator<<(std::ostream& out, both) { return out << "by <<"; }
    friend std::string to_string(both) { return "by to_string"; }
};
struct number {
    std::int64_t value;
    operator std::int64_t() const { return value; } // NOLINT: conversion is the point
};
struct named {
    std::string name;
    operator std::string_view() const { return name; } // NOLINT: conversion is the point
};
struct silent {
    int value;
};
struct counted { // as text, but not the text of a value
    friend int to_string(counted) { return 1; }
};
} // namespace handles

TEST_CASE("handle_text: numbers, characters, enums, text") {
    CHECK(handle_text(200) == "200");
    CHECK(handle_text(std::int8_t{-3}) == "-3");
    CHECK(handle_text(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
    CHECK(handle_text('a') == "a");
    CHECK(handle_text('\n') == "10");
    CHECK(handle_text(true) == "1"); // as the position that it may be
    CHECK(handle_text(0.5) == "0.5");
    CHECK(handle_text(handles::color::red) == "7");
    CHECK(handle_text(std::string("fc1")) == "fc1");
    CHECK(handle_text(handles::named{"fc2"}) == "fc2");
}

TEST_CASE("handle_text: what a type says of itself") {
    CHECK(handle_text(handles::step::load) == "load");
    CHECK(handle_text(handles::phase::warm) == "warm");
    CHECK(handle_text(handles::written{3, 1000}) == "3.1000");
    CHECK(handle_text(handles::both{}) == "by to_string");
    CHECK(handle_text(handles::number{-7}) == "-7");
}

TEST_CASE("handle_text: nothing of what can not be printed, or would be printed as an address") {
    int here = 1;
    CHECK(handle_text(handles::silent{1}).empty());
    CHECK(handle_text(handles::counted{}).empty());
    CHECK(handle_text(&here).empty());
    CHECK(handle_text(static_cast<void*>(&here)).empty());
    CHECK(handle_text(std::make_shared<int>(1)).empty());
    CHECK(handle_text(std::pair{1, 2}).empty());
}

TEST_CASE("handle_text: said in messages, text in quotes") {
    CHECK(said_of_handle(999) == " (its handle is 999)");
    CHECK(said_of_handle(std::string("fc1")) == " (its handle is 'fc1')");
    CHECK(said_of_handle(handles::written{3, 1}) == " (its handle is 3.1)");
    CHECK(said_of_handle(handles::silent{1}).empty());
}
