#pragma once
// Reads configurations, and splits alone, as `to_string` prints them.

#include <algorithm>
#include <charconv>

#include <parsearch/core/error.hpp>
#include <parsearch/space/read_configuration.hpp>

namespace parsearch::space {

PARSEARCH_INLINE dim_degrees read_split(std::string_view text_of_split, ops::operation const& op) {
    auto const wrong = [&](auto const&... why) {
        std::string dims;
        for (auto const& d : op.dims) dims += text(dims.empty() ? "" : ", ", d.name);
        return invalid_input("'", text_of_split, "': ", why..., "; ", op.kind, " has dims ", dims, ": must be \"whole\", or such as \"",
                             op.dims.empty() ? "s" : op.dims.front().name, "2\"");
    };
    dim_degrees out{};
    out.fill(1);
    if (text_of_split == "whole") return out;
    std::vector<bool> met(op.dims.size(), false);
    for (std::size_t from = 0, end = 0; from == 0 || end < text_of_split.size(); from = end + 1) {
        end = std::min(text_of_split.find(' ', from), text_of_split.size());
        auto const word = text_of_split.substr(from, end - from);
        auto const digits = word.find_last_not_of("0123456789") + 1; // and a name may end in some
        std::size_t found = op.dims.size();
        for (std::size_t k = 0; k < op.dims.size(); ++k) {
            auto const& name = op.dims[k].name;
            if (!word.starts_with(name) || name.size() < digits || name.size() == word.size()) continue;
            if (found < op.dims.size()) throw wrong(word, " may be of dim ", op.dims[found].name, " and of dim ", name);
            found = k;
        }
        if (found == op.dims.size()) throw wrong(word.empty() ? "an empty word" : word, " is no dim and degree");
        auto const& d = op.dims[found];
        std::int32_t degree = 0; // where it is too large for a number, too
        std::from_chars(word.data() + d.name.size(), word.data() + word.size(), degree);
        if (met[found]) throw wrong("dim ", d.name, " is named twice");
        met[found] = true;
        if (degree > 1 && d.kind == ops::dim_kind::fixed) throw wrong("dim ", d.name, " can not be split");
        if (degree < 1 || degree > d.extent) throw wrong(word, ": the degree must be from 1 to the extent, ", d.extent);
        if (!ops::can_be_in(d, degree)) throw wrong(word, ": the degree must divide the extent, ", d.extent, ", of a dim that repeats work");
        out[found] = degree;
    }
    return out;
}

PARSEARCH_INLINE configuration_reading read_configuration(std::string_view from, ops::operation const& op) {
    auto const at = from.find('@');
    auto const wrong = [&](auto const&... why) {
        return invalid_input("'", from, "': ", why..., ": must be such as \"", op.dims.empty() ? "s" : op.dims.front().name,
                             "2 @0+1\", or \"whole @0\"");
    };
    if (at != std::string_view::npos && (at == 0 || from[at - 1] != ' ')) throw wrong("no split and blank before '@'");
    auto const degrees = read_split(from.substr(0, at == std::string_view::npos ? at : at - 1), op);
    configuration_reading out{.configuration = whole(op), .placed = at != std::string_view::npos};
    auto& c = out.configuration;
    for (std::size_t k = 0; k < c.rank; ++k) c.degree[k] = degrees[k];
    if (!out.placed) return out;

    auto rest = from.substr(at + 1);
    auto const next = [&](std::vector<std::int32_t>& to) {
        std::int32_t number = 0;
        auto const [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
        if (error != std::errc{}) throw wrong("no number at '", rest, "'");
        rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
        to.push_back(number);
    };
    auto const list = [&](std::vector<std::int32_t>& to) {
        for (next(to); rest.starts_with(','); next(to)) rest.remove_prefix(1);
    };
    std::vector<std::int32_t> numbers;
    if (rest.starts_with('{')) {
        rest.remove_prefix(1);
        list(c.listed);
        if (rest != "}") throw wrong("'", rest, "' behind the devices");
        if (std::cmp_not_equal(c.listed.size(), c.shards())) throw wrong(c.listed.size(), " devices for ", c.shards(), " shards");
        return out;
    }
    next(numbers);
    c.start = numbers.front();
    std::vector<std::int32_t> strides;
    if (rest.starts_with('+')) {
        rest.remove_prefix(1);
        list(strides);
    }
    if (!rest.empty()) throw wrong("'", rest, "' behind the devices");
    std::size_t used = 0;
    for (std::size_t k = 0; k < c.rank; ++k)
        if (c.degree[k] > 1 && used++ < strides.size()) c.stride[k] = strides[used - 1];
    if (used != strides.size()) throw wrong(strides.size(), " strides for ", used, " split dims");
    return out;
}

} // namespace parsearch::space
