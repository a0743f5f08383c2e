#pragma once
/// Operators by the names that people write: exact, or as a listing prints them ("block{1..24}.attention").

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/io/display/listing.hpp>

namespace parsearch::io {

namespace detail {

/// first, first + step, ... last.
struct progression {
    std::int64_t first = 0, last = 0, step = 1;
    [[nodiscard]] bool contains(std::int64_t n) const noexcept { return first <= n && n <= last && (n - first) % step == 0; }
};

/// What `range_text` wrote between its braces: "1..24", "0,4..92", "1,2,5..9"; numbers left out ("1,...,9") may be any between. Nothing where `range`
/// is no such text.
[[nodiscard]] std::optional<std::vector<progression>> read_range(std::string_view range);

/// A name with ranges of numbers in braces.
class name_pattern {
  public:
    explicit name_pattern(std::string_view given);

    [[nodiscard]] bool has_ranges() const noexcept { return !ranges_.empty(); }
    [[nodiscard]] bool matches(std::string_view name) const;
    /// The text around the numbers.
    [[nodiscard]] std::string const& around() const noexcept { return parts_.pattern; }

  private:
    std::string given_;
    std::vector<std::pair<std::size_t, std::vector<progression>>> ranges_; ///< and which number of the name they stand for
    numbered_name parts_;
};

/// The least number of characters to insert, remove or replace that make `b` of `a`.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);
} // namespace detail

/// Whether `name` has ranges of numbers in braces, as a line of a listing.
[[nodiscard]] inline bool is_name_pattern(std::string_view name) { return detail::name_pattern(name).has_ranges(); }

/// The operators of `g` with tasks that `name` stands for, by number: those of that name, or of a name of a listing such as "block{1..24}.attention".
/// Throws `invalid_input` with the nearest names where there is none.
[[nodiscard]] std::vector<std::size_t> operators_named(graph::dense_graph const& g, std::string_view name);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/display/operator_names.ipp>
#endif
