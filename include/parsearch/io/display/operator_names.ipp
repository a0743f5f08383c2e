#pragma once
// Operators by the names that people write: exact, or as a listing prints them ("block{1..24}.attention").

#include <algorithm>
#include <charconv>
#include <numeric>

#include <parsearch/core/error.hpp>
#include <parsearch/io/display/operator_names.hpp>
#include <parsearch/ops/operation.hpp>

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE std::optional<std::vector<progression>> read_range(std::string_view range) {
    auto const number = [](std::string_view digits) -> std::optional<std::int64_t> {
        std::int64_t n = 0;
        auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
        if (error != std::errc{} || end != digits.data() + digits.size() || n < 0) return std::nullopt;
        return n;
    };
    std::vector<progression> out;
    bool skipped = false; // numbers were left out
    for (std::size_t begin = 0; begin <= range.size();) {
        auto const end = std::min(range.find(',', begin), range.size());
        auto const piece = range.substr(begin, end - begin);
        begin = end + 1;
        if (piece == "..." && !out.empty() && !skipped) {
            skipped = true;
            continue;
        }
        auto const dots = piece.find("..");
        auto const first = number(piece.substr(0, dots)), last = dots == piece.npos ? first : number(piece.substr(dots + 2));
        if (!first || !last || *last < *first || (!out.empty() && *first <= out.back().last)) return std::nullopt;
        progression next{*first, *last};
        if (skipped) {
            next.first = out.back().last + 1;
        } else if (dots != piece.npos && !out.empty() && out.back().first == out.back().last) {
            auto const step = *first - out.back().last;
            if (reads_as_progression(step, *last - *first)) next.step = step;
        }
        skipped = false;
        out.push_back(next);
    }
    return skipped ? std::nullopt : std::optional(out);
}

PARSEARCH_IO_INLINE name_pattern::name_pattern(std::string_view given) : given_(given) {
    auto const is_digit = [](char c) { return c >= '0' && c <= '9'; };
    std::string plain; // with a 0 in the place of each range
    for (std::size_t i = 0; i < given.size();) {
        auto const end = given[i] == '{' ? given.find('}', i) : given.npos;
        // Beside a digit it would stand for a part of a number.
        bool const whole = end != given.npos && !(i > 0 && is_digit(plain.back())) && !(end + 1 < given.size() && is_digit(given[end + 1]));
        auto const range = whole ? read_range(given.substr(i + 1, end - i - 1)) : std::nullopt;
        if (range) ranges_.emplace_back(take_apart(plain).numbers.size(), *range);
        if (range) plain += '0';
        else plain += given[i];
        i = range ? end + 1 : i + 1;
    }
    parts_ = take_apart(plain);
}

PARSEARCH_IO_INLINE bool name_pattern::matches(std::string_view name) const {
    if (name == given_) return true;
    if (!has_ranges()) return false;
    auto [text, numbers] = take_apart(name);
    if (text != parts_.pattern) return false;
    for (auto const& [position, range] : ranges_) {
        auto& n = numbers[position];
        if (std::none_of(range.begin(), range.end(), [&](auto const& p) { return p.contains(n); })) return false;
        n = parts_.numbers[position];
    }
    return numbers == parts_.numbers;
}

PARSEARCH_IO_INLINE std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        auto diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j)
            diagonal = std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, diagonal + (a[i] != b[j])}));
    }
    return row.back();
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE std::vector<std::size_t> operators_named(graph::dense_graph const& g, std::string_view name) {
    detail::name_pattern const pattern(name);
    std::vector<std::size_t> out;
    std::vector<std::string> names;
    for (std::size_t op = 0; op < g.size(); ++op) {
        if (g.operations[op].work == ops::work_class::source) continue;
        if (pattern.matches(g.names[op])) out.push_back(op);
        names.push_back(g.names[op]);
    }
    if (!out.empty()) return out;
    auto const known = detail::group_names(names, std::vector<std::size_t>(names.size(), 0));
    std::vector<std::pair<std::size_t, std::size_t>> nearest; // distance, and which of these
    for (std::size_t i = 0; i < known.size(); ++i)
        nearest.emplace_back(detail::edit_distance(pattern.around(), detail::take_apart(names[known[i].members.front()]).pattern), i);
    std::sort(nearest.begin(), nearest.end());
    constexpr std::size_t told = 5;
    std::string list;
    for (std::size_t i = 0; i < std::min(told, nearest.size()); ++i) list += text(list.empty() ? "" : ", ", known[nearest[i].second].name);
    throw invalid_input("'", name, "' is none of the ", names.size(), " operators; the nearest names are ", list);
}

} // namespace parsearch::io
