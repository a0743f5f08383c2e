#pragma once
// Writing large texts piece by piece: a buffer before a stream, strings as JSON, HTML and DOT write them.

#include <parsearch/io/text/stream_text.hpp>

namespace parsearch::io {

PARSEARCH_IO_INLINE std::string html_text(std::string_view s) {
    auto const clean = nlohmann::json::parse(json_string(s)).get<std::string>();
    std::string out;
    for (char const c : clean) {
        if (c == '&') out += "&amp;";
        else if (c == '<') out += "&lt;";
        else if (c == '>') out += "&gt;";
        else if (c == '"') out += "&quot;";
        else if (c == '\'') out += "&#39;";
        else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) out += "\xef\xbf\xbd";
        else out += c;
    }
    return out;
}

} // namespace parsearch::io
