#pragma once
/// Writing large texts piece by piece: a buffer before a stream, strings as JSON, HTML and DOT write them.

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>

namespace parsearch::io {

/// Text on its way to a stream, in pieces of 64 KiB.
class text_writer {
  public:
    explicit text_writer(std::ostream& out) : out_(&out) {}

    /// Appends strings, characters and numbers.
    template <class... Parts> text_writer& add(Parts const&... parts) {
        (parsearch::detail::append_text(buffer_, parts), ...);
        if (buffer_.size() >= std::size_t{1} << 16) flush();
        return *this;
    }
    /// Writes what is left. Throws `invalid_input`, naming `what`, where the stream has failed.
    void finish(std::string_view what) {
        flush();
        out_->flush();
        if (!*out_) throw invalid_input(what, " cannot be written: the stream has failed");
    }

  private:
    void flush() {
        out_->write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
        buffer_.clear();
    }
    std::ostream* out_;
    std::string buffer_;
};

/// `s` as a JSON string, quotes included. What is not UTF-8 becomes U+FFFD.
[[nodiscard]] inline std::string json_string(std::string_view s) {
    return nlohmann::json(s).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// `s` as text of an HTML element or attribute, or of an HTML-like label of DOT: characters with a meaning are escaped, control
/// characters and what is not UTF-8 become U+FFFD.
[[nodiscard]] std::string html_text(std::string_view s);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/text/stream_text.ipp>
#endif
