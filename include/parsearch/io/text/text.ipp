#pragma once
// Text of files: read whole within a limit, counted in lines, quoted in messages.

#include <algorithm>

#include <parsearch/io/text/text.hpp>

namespace parsearch::io {

PARSEARCH_IO_INLINE std::string read_text(std::istream& in, std::string_view name, std::size_t most) {
    std::string out;
    if (!in) throw invalid_input(name, ": cannot be read");
    constexpr std::size_t chunk = std::size_t{1} << 16;
    for (std::size_t have = 0;;) {
        out.resize(have + chunk);
        in.read(out.data() + have, static_cast<std::streamsize>(chunk));
        have += static_cast<std::size_t>(in.gcount());
        if (have > most) throw invalid_input(name, ": longer than ", most, " bytes: that is the limit");
        if (!in) {
            out.resize(have);
            break;
        }
    }
    if (in.bad()) throw invalid_input(name, ": cannot be read to its end");
    return out;
}

PARSEARCH_IO_INLINE text_position position_of(std::string_view text, std::size_t offset) {
    auto const before = text.substr(0, offset);
    auto const newline = before.rfind('\n');
    return {1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')),
            newline == before.npos ? before.size() + 1 : before.size() - newline};
}

PARSEARCH_IO_INLINE std::string printable(std::string_view s, std::size_t most) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    for (char const c : s.substr(0, most)) {
        auto const byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7f) out += c;
        else out += text("\\x", digits[byte >> 4], digits[byte & 15]);
    }
    return s.size() > most ? out + "..." : out;
}

} // namespace parsearch::io
