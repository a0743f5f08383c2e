#pragma once
/// A strategy as a table that people read: a line per operator, equal ones in one line ("block{1..24}.attention").

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::io {

namespace detail {

/// A name taken apart: the text around its numbers, and the numbers.
struct numbered_name {
    std::string pattern; ///< '\0' stands for a number
    std::vector<std::int64_t> numbers;
};

/// Digits with a leading zero, or too many of them, are text: as numbers they would be written otherwise.
[[nodiscard]] inline numbered_name take_apart(std::string_view name) {
    numbered_name out;
    for (std::size_t i = 0; i < name.size();) {
        auto const end = std::min(name.find_first_not_of("0123456789", i), name.size());
        auto const digits = name.substr(i, end - i);
        if (digits.empty()) {
            out.pattern += name[i++];
        } else {
            if (digits.size() > 9 || (digits.size() > 1 && digits[0] == '0')) {
                out.pattern += digits;
            } else {
                out.pattern += '\0';
                out.numbers.push_back(0);
                std::from_chars(digits.data(), digits.data() + digits.size(), out.numbers.back());
            }
            i = end;
        }
    }
    return out;
}

/// "7", "{1..24}", "{0,4..92}" (0, 4, 8, ... 92), "{1,2,5..9}"; past `most` pieces the last numbers are left out but for the very last.
[[nodiscard]] inline std::string range_text(std::set<std::int64_t> const& numbers, std::size_t most = 6) {
    std::vector<std::int64_t> const v(numbers.begin(), numbers.end());
    if (v.size() == 1) return text(v[0]);
    std::vector<std::string> pieces;
    for (std::size_t i = 0, n; i < v.size(); i += n) {
        for (n = 1; i + n < v.size() && (n == 1 || v[i + n] - v[i + n - 1] == v[i + 1] - v[i]);) ++n;
        auto const step = n > 1 ? v[i + 1] - v[i] : 1;
        // Two numbers of a kind make no progression, nor do three unless they follow each other.
        if (n < (step == 1 ? 3U : 4U)) n = 1;
        if (n == 1) pieces.push_back(text(v[i]));
        else pieces.push_back(step == 1 ? text(v[i], "..", v[i + n - 1]) : text(v[i], ',', v[i + 1], "..", v[i + n - 1]));
    }
    std::string out;
    for (std::size_t i = 0; i < pieces.size() && i < most; ++i) out += text(i ? "," : "", pieces[i]);
    if (pieces.size() > most) out += text(",...,", v.back());
    return '{' + out + '}';
}

/// Number tuples as few products of sets, which cover exactly these tuples, each once: {1,2} x {a,b}.
/// Complexity: O(tuples * positions * log tuples).
[[nodiscard]] inline std::vector<std::vector<std::set<std::int64_t>>> products_of(std::vector<std::vector<std::int64_t>> const& tuples) {
    std::vector<std::vector<std::set<std::int64_t>>> boxes;
    for (auto const& t : tuples) {
        boxes.emplace_back();
        for (auto const n : t) boxes.back().push_back({n});
    }
    // Boxes that agree but for one position join there, the last position first: numbers inside a block before blocks.
    for (std::size_t p = tuples.front().size(); p-- > 0;) {
        std::map<std::vector<std::set<std::int64_t>>, std::size_t> seen;
        std::vector<std::vector<std::set<std::int64_t>>> joined;
        for (auto& box : boxes) {
            auto key = box;
            key[p].clear();
            auto const [at, fresh] = seen.try_emplace(std::move(key), joined.size());
            if (fresh) joined.push_back(std::move(box));
            else joined[at->second][p].insert(box[p].begin(), box[p].end());
        }
        boxes = std::move(joined);
    }
    return boxes;
}
} // namespace detail

/// One line of a listing: operators that are equal but for numbers in their names.
struct listing_line {
    std::string name;          ///< "block{1..24}.attention"
    std::size_t operators = 0; ///< how many
    std::string kind;          ///< "linear"
    std::string shape;         ///< of the first output: "f32[64,4096]"
    std::string configuration; ///< "s8 o4 @0+4,1"
    friend bool operator==(listing_line const&, listing_line const&) = default;
};

/// The operators of `g` with tasks, by number of the first of each line. Those of a line have names that differ only in numbers, one
/// kind, one shape of output and one configuration; its name stands for exactly these.
template <Strategy<space::configuration> S> [[nodiscard]] std::vector<listing_line> listing(graph::dense_graph const& g, S const& s) {
    struct family {
        listing_line line; ///< all but the name and how many
        std::string pattern;
        std::vector<std::vector<std::int64_t>> numbers;
        std::map<std::vector<std::int64_t>, std::size_t> op; ///< by these
    };
    std::vector<family> families;
    std::map<std::tuple<std::string, std::string, std::string, std::string>, std::size_t> known;
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto const& operation = g.operations[op];
        if (operation.work == ops::work_class::source) continue;
        listing_line const line{.name = {},
                                .kind = operation.kind,
                                .shape = ops::to_string(ops::tensor_of(operation.outputs.front())),
                                .configuration = space::to_string(configuration_of(s, op), operation)};
        auto [pattern, numbers] = detail::take_apart(g.names[op]);
        auto const [at, fresh] = known.try_emplace({pattern, line.kind, line.shape, line.configuration}, families.size());
        if (fresh) families.push_back({line, pattern, {}, {}});
        auto& f = families[at->second];
        // A user's graph may name two operators alike: the last number, which is not shown, tells them apart.
        for (numbers.push_back(0); !f.op.try_emplace(numbers, op).second;) ++numbers.back();
        f.numbers.push_back(std::move(numbers));
    }
    std::vector<std::pair<std::size_t, listing_line>> lines;
    for (auto const& f : families) {
        for (auto const& box : detail::products_of(f.numbers)) {
            std::vector<std::int64_t> first;
            listing_line line = f.line;
            line.operators = 1;
            for (auto const& numbers : box) {
                first.push_back(*numbers.begin());
                line.operators *= numbers.size();
            }
            std::size_t position = 0;
            for (auto const c : f.pattern)
                if (c == '\0') line.name += detail::range_text(box[position++]);
                else line.name += c;
            lines.emplace_back(f.op.at(first), std::move(line));
        }
    }
    std::sort(lines.begin(), lines.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
    std::vector<listing_line> out;
    for (auto& [op, line] : lines) out.push_back(std::move(line));
    return out;
}

} // namespace parsearch::io
