#pragma once
// An operator graph under a strategy as Graphviz DOT.

#include <parsearch/io/display/dot.hpp>

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE std::string dot_text(std::string_view s) {
    auto const clean = nlohmann::json::parse(json_string(s)).get<std::string>();
    std::string out;
    for (char const c : clean) {
        if (c == '"' || c == '\\') out += text('\\', c);
        else if (c == '\n' || c == '\r' || c == '\t') out += ' ';
        else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) out += "\xef\xbf\xbd";
        else out += c;
    }
    return out;
}

PARSEARCH_IO_INLINE std::string dot_fill(std::size_t number) {
    constexpr std::array<std::string_view, 12> chosen{"#bcd7f2", "#f8d3a8", "#c3e3bd", "#f3c1c3", "#d8caee", "#f6e6a4",
                                                      "#b5e2df", "#f4c9e2", "#dccbb6", "#d5d9de", "#c8d98f", "#a9bfe8"};
    if (number < chosen.size()) return std::string(chosen[number]);
    auto const hue = (number * 618 + 583) % 1000; // thousandths of a turn
    return text("0.", std::to_string(1000 + hue).substr(1), number % 2 ? " 0.32 0.95" : " 0.20 0.90");
}

} // namespace parsearch::io::detail
