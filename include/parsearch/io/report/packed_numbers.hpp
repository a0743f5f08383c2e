#pragma once
/// Numbers for the report in few characters: variable-length integers in base64.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <parsearch/core/compiled.hpp>

namespace parsearch::io {

/// Numbers of 7 bits per byte, least significant first; the high bit says that more follow (LEB128).
class packed_numbers {
  public:
    void add(std::uint64_t n) {
        for (; n >= 0x80; n >>= 7) bytes_ += static_cast<char>((n & 0x7f) | 0x80);
        bytes_ += static_cast<char>(n);
    }
    [[nodiscard]] std::string const& bytes() const noexcept { return bytes_; }

  private:
    std::string bytes_;
};

/// Source: RFC 4648, section 4.
[[nodiscard]] std::string base64(std::string_view bytes);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/report/packed_numbers.ipp>
#endif
