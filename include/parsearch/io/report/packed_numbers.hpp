#pragma once
/// Numbers for the report in few characters: variable-length integers in base64.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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
[[nodiscard]] inline std::string base64(std::string_view bytes) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t group = 0;
        for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
        for (std::size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? digits[group >> (18 - 6 * k) & 63] : '=';
    }
    return out;
}

} // namespace parsearch::io
