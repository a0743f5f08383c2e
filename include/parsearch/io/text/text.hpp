#pragma once
/// Text of files: read whole within a limit, counted in lines, quoted in messages.

#include <cstddef>
#include <istream>
#include <string>
#include <string_view>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>

namespace parsearch::io {

/// All that is left of `in`. Throws `invalid_input` where it cannot be read or is longer than `most` bytes; `name` stands for it.
[[nodiscard]] std::string read_text(std::istream& in, std::string_view name, std::size_t most);

/// A place in a text, both counted from 1. A column is a byte of its line.
struct text_position {
    std::size_t line = 1, column = 1;
    friend bool operator==(text_position const&, text_position const&) = default;
    /// "cluster.json:3:14".
    [[nodiscard]] std::string in(std::string_view name) const { return text(name, ':', line, ':', column); }
};

/// The position of byte `offset` of `text`, or behind its end.
[[nodiscard]] text_position position_of(std::string_view text, std::size_t offset);

/// `s` for a message: on one line, in ASCII, at most `most` characters of it.
[[nodiscard]] std::string printable(std::string_view s, std::size_t most = 60);

/// `"s"` for a message.
[[nodiscard]] inline std::string in_quotes(std::string_view s) { return text('"', printable(s), '"'); }

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/text/text.ipp>
#endif
