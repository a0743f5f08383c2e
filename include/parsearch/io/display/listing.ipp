#pragma once
// A strategy, or the parameters of a graph, as a table that people read: equal things share a line ("block{1..24}.attention").

#include <algorithm>
#include <charconv>

#include <parsearch/core/error.hpp>
#include <parsearch/io/display/listing.hpp>

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE numbered_name take_apart(std::string_view name) {
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

PARSEARCH_IO_INLINE std::string range_text(std::set<std::int64_t> const& numbers, std::size_t most) {
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

PARSEARCH_IO_INLINE std::vector<std::vector<std::set<std::int64_t>>> products_of(std::vector<std::vector<std::int64_t>> const& tuples) {
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

PARSEARCH_IO_INLINE std::vector<name_group> group_names(std::vector<std::string> const& names, std::vector<std::size_t> const& kinds) {
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

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE std::vector<parameter_line> parameter_listing(graph::dense_graph const& g) {
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
