#pragma once
// Deterministic writing of JSON: members in the order given, two spaces of indent, the shortest numbers that read back equal.

#include <algorithm>
#include <cmath>

#include <parsearch/core/error.hpp>
#include <parsearch/io/json/json_writer.hpp>
#include <parsearch/io/text/text.hpp>

namespace parsearch::io::detail {

/// The text of a value on one line; nothing is appended past `most` characters.
class one_line {
  public:
    explicit one_line(std::size_t most) : most_(most) {}

    /// False where the value takes more than `most` characters.
    bool add(ordered_json const& value);

    [[nodiscard]] static std::string scalar(ordered_json const& value);

    std::string out;

  private:
    std::size_t most_;
};

} // namespace parsearch::io::detail

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE bool one_line::add(ordered_json const& value) {
    if (value.is_structured()) {
        bool const object = value.is_object();
        char const* before = object ? "{" : "[";
        for (auto at = value.begin(); at != value.end(); ++at) {
            out += std::exchange(before, ", ");
            if (object) out += text(ordered_json(at.key()).dump(), ": ");
            if (!add(*at)) return false;
        }
        if (value.empty()) out += before;
        out += object ? '}' : ']';
    } else {
        out += scalar(value);
    }
    return out.size() <= most_;
}

PARSEARCH_IO_INLINE std::string one_line::scalar(ordered_json const& value) {
    if (!value.is_number_float()) return value.dump();
    auto const number = value.get<double>();
    if (!std::isfinite(number)) throw invalid_input("the number ", number, ": JSON holds finite numbers only");
    return number == 0 && std::signbit(number) ? "-0.0" : text(number); // "-0" would be read as the integer 0
}

PARSEARCH_IO_INLINE void append_json(std::string& out, ordered_json const& value, std::size_t indent, std::size_t column) {
    constexpr std::size_t width = 150;
    one_line line(column < width ? width - column : 0);
    if (!value.is_structured() || (indent > 0 && line.add(value))) {
        out += value.is_structured() ? line.out : one_line::scalar(value);
        return;
    }
    bool const object = value.is_object();
    bool const fill = std::none_of(value.begin(), value.end(), [](auto const& element) { return element.is_structured(); }) && !object;
    out += object ? '{' : '[';
    std::size_t begin = 0; // of the line that a list of scalars is filling
    for (auto at = value.begin(); at != value.end(); ++at) {
        auto const number = fill ? one_line::scalar(*at) : std::string();
        bool const first = at == value.begin();
        if (!first) out += ',';
        if (fill && !first && out.size() - begin + number.size() + 2 <= width) {
            out += ' ';
        } else {
            out += '\n';
            begin = out.size();
            out.append(indent + 2, ' ');
        }
        if (object) out += text(ordered_json(at.key()).dump(), ": ");
        if (fill) out += number;
        else append_json(out, *at, indent + 2, out.size() - begin + 1);
    }
    out += '\n';
    out.append(indent, ' ');
    out += object ? '}' : ']';
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE void write_json(std::ostream& out, ordered_json const& value) {
    std::string document;
    try {
        detail::append_json(document, value, 0, 0);
    } catch (ordered_json::type_error const&) {
        throw invalid_input("a string to be written is not UTF-8: JSON holds no other");
    }
    document += '\n';
    out.write(document.data(), static_cast<std::streamsize>(document.size()));
    if (!out) throw invalid_input("JSON of ", document.size(), " bytes cannot be written: the stream has failed");
}

} // namespace parsearch::io
