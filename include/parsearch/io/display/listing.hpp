#pragma once
/// A strategy, or the parameters of a graph, as a table that people read: equal things share a line ("block{1..24}.attention").

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

/// Whether "0,4..92" is a progression of this step (4), the second number being so far (88) from the last; else a number and a range.
[[nodiscard]] constexpr bool reads_as_progression(std::int64_t step, std::int64_t length) noexcept {
    return step > 1 && length >= 2 * step && length % step == 0;
}

/// "7", "{1..24}", "{0,4..92}" (0, 4, 8, ... 92), "{1,2,5..9}"; past `most` pieces the last numbers are left out but for the very last.
[[nodiscard]] inline std::string range_text(std::set<std::int64_t> const& numbers, std::size_t most = 6) {
    std::vector<std::int64_t> const v(numbers.begin(), numbers.end());
    if (v.size() == 1) return text(v[0]);
    std::vector<std::string> pieces;
    bool after_single = false;
    for (std::size_t i = 0, n; i < v.size(); i += n) {
        for (n = 1; i + n < v.size() && (n == 1 || v[i + n] - v[i + n - 1] == v[i + 1] - v[i]);) ++n;
        auto const step = n > 1 ? v[i + 1] - v[i] : 1;
        // Two numbers of a kind make no progression, nor do three unless they follow each other.
        if (n < (step == 1 ? 3U : 4U)) n = 1;
        if (n > 1 && step == 1 && after_single && reads_as_progression(v[i] - v[i - 1], v[i + n - 1] - v[i])) n = 1;
        after_single = n == 1;
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
/// Things that are equal but for numbers in their names.
struct name_group {
    std::string name;                 ///< stands for exactly these
    std::vector<std::size_t> members; ///< their numbers, by the numbers in their names
};

/// Groups names[i] that differ only in numbers and have one kinds[i], by number of the first of each group.
[[nodiscard]] inline std::vector<name_group> group_names(std::vector<std::string> const& names, std::vector<std::size_t> const& kinds) {
    struct family {
        std::string pattern;
        std::vector<std::vector<std::int64_t>> numbers;
        std::map<std::vector<std::int64_t>, std::size_t> place; ///< by these
    };
    std::vector<family> families;
    std::map<std::pair<std::string, std::size_t>, std::size_t> known;
    for (std::size_t i = 0; i < names.size(); ++i) {
        auto [pattern, numbers] = take_apart(names[i]);
        auto const [at, fresh] = known.try_emplace({pattern, kinds[i]}, families.size());
        if (fresh) families.push_back({pattern, {}, {}});
        auto& f = families[at->second];
        // A user's graph may name two operators alike: the last number, which is not shown, tells them apart.
        for (numbers.push_back(0); !f.place.try_emplace(numbers, i).second;) ++numbers.back();
        f.numbers.push_back(std::move(numbers));
    }
    std::vector<name_group> out;
    for (auto const& f : families)
        for (auto const& box : products_of(f.numbers)) {
            name_group group;
            std::size_t position = 0;
            for (auto const c : f.pattern)
                if (c == '\0') group.name += range_text(box[position++]);
                else group.name += c;
            std::vector<std::vector<std::int64_t>> tuples{{}};
            for (auto const& numbers : box) {
                std::vector<std::vector<std::int64_t>> longer;
                for (auto const& t : tuples)
                    for (auto const n : numbers) longer.emplace_back(t).push_back(n);
                tuples = std::move(longer);
            }
            for (auto const& t : tuples) group.members.push_back(f.place.at(t));
            out.push_back(std::move(group));
        }
    std::sort(out.begin(), out.end(), [](auto const& a, auto const& b) { return a.members.front() < b.members.front(); });
    return out;
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

/// Operators that share a line of a listing.
struct operator_group {
    std::string name;                   ///< "block{1..24}.attention": stands for exactly these
    std::vector<std::size_t> operators; ///< their numbers
};

/// The operators of `g` with tasks, by number of the first of each group. Those of a group have names that differ only in numbers, one kind, one
/// shape of output and one configuration.
template <Strategy<space::configuration> S> [[nodiscard]] std::vector<operator_group> operator_groups(graph::dense_graph const& g, S const& s) {
    std::vector<std::string> names;
    std::vector<std::size_t> kinds, numbers;
    std::map<std::tuple<std::string, std::string, std::string>, std::size_t> known;
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto const& operation = g.operations[op];
        if (operation.work == ops::work_class::source) continue;
        std::tuple key(operation.kind, ops::to_string(ops::tensor_of(operation.outputs.front())),
                       space::to_string(configuration_of(s, op), operation));
        names.push_back(g.names[op]);
        kinds.push_back(known.try_emplace(std::move(key), known.size()).first->second);
        numbers.push_back(op);
    }
    std::vector<operator_group> out;
    for (auto& group : detail::group_names(names, kinds)) {
        for (auto& member : group.members) member = numbers[member];
        out.push_back({std::move(group.name), std::move(group.members)});
    }
    return out;
}

/// A line for each of `operator_groups`.
template <Strategy<space::configuration> S> [[nodiscard]] std::vector<listing_line> listing(graph::dense_graph const& g, S const& s) {
    std::vector<listing_line> out;
    for (auto& group : operator_groups(g, s)) {
        auto const first = group.operators.front();
        auto const& operation = g.operations[first];
        out.push_back({.name = std::move(group.name),
                       .operators = group.operators.size(),
                       .kind = operation.kind,
                       .shape = ops::to_string(ops::tensor_of(operation.outputs.front())),
                       .configuration = space::to_string(configuration_of(s, first), operation)});
    }
    return out;
}

/// One line of a listing of parameters: tensors that are equal but for numbers in their names.
struct parameter_line {
    std::string name;          ///< "block{1..24}.attention.qkv.weight"
    std::size_t tensors = 0;   ///< how many
    std::string shape;         ///< of each: "f32[1024,3072]"
    std::int64_t elements = 0; ///< of all of them
    friend bool operator==(parameter_line const&, parameter_line const&) = default;
};

/// The parameters of `g`, by number of the first operator that reads one of each line; a shared tensor counts once. A tensor without a name of its
/// own has those of its operator and place: "block1.mlp.up.weight".
[[nodiscard]] inline std::vector<parameter_line> parameter_listing(graph::dense_graph const& g) {
    std::vector<parameter_line> single;
    std::vector<std::string> names;
    std::vector<std::size_t> kinds;
    std::map<std::string, std::size_t> known;
    std::set<std::string> shared;
    for (std::size_t op = 0; op < g.size(); ++op)
        for (auto const& w : g.operations[op].weights) {
            if (w.cache) continue;
            if (!w.parameter.empty() && !shared.insert(w.parameter).second) continue;
            auto const shape = ops::to_string(ops::tensor_of(w));
            single.push_back({.name = {}, .shape = shape, .elements = ops::elements_of(w)});
            names.push_back(w.parameter.empty() ? text(g.names[op], '.', w.name) : w.parameter);
            kinds.push_back(known.try_emplace(shape, known.size()).first->second);
        }
    std::vector<parameter_line> out;
    for (auto& group : detail::group_names(names, kinds)) {
        auto& line = out.emplace_back(single[group.members.front()]);
        line.name = std::move(group.name);
        line.tensors = group.members.size();
        line.elements *= static_cast<std::int64_t>(group.members.size());
    }
    return out;
}

} // namespace parsearch::io
