#pragma once
// Numbers as people write them.

#include <string>

#include <parsearch/core/units.hpp>

namespace tools {

namespace ps = parsearch;

[[nodiscard]] std::string shown_time(ps::picoseconds t);  // "12.34 ms"
[[nodiscard]] std::string shown_seconds(double s);        // "3.2 s", "2:05 min"
[[nodiscard]] std::string shown_bytes(double bytes);      // "1.234 GB": what moves, decimal
[[nodiscard]] std::string shown_memory(ps::byte_count n); // "16.0 GiB": what is kept, binary
[[nodiscard]] std::string shown_count(double n);          // "12.3 k", "124.4 M"

} // namespace tools
