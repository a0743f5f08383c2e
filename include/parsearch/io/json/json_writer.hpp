#pragma once
/// Deterministic writing of JSON: members in the order given, two spaces of indent, the shortest numbers that read back equal.

#include <cstddef>
#include <ostream>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <parsearch/core/compiled.hpp>

namespace parsearch::io {

/// What is written: an object keeps its members in the order in which they were added.
using ordered_json = nlohmann::ordered_json;

namespace detail {

void append_json(std::string& out, ordered_json const& value, std::size_t indent, std::size_t column);
} // namespace detail

/// Writes `value` and a newline. Arrays and objects that fit are on one line of at most 150 columns, the root excepted; lists of scalars fill
/// lines. The same value
/// makes the same bytes everywhere. Throws `invalid_input` on a number that is not finite and on a string that is not UTF-8, and where the
/// stream fails.
void write_json(std::ostream& out, ordered_json const& value);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/json/json_writer.ipp>
#endif
