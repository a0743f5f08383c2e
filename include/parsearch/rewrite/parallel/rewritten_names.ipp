#pragma once
// Names of operators after rewriting.

#include <cctype>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <parsearch/rewrite/parallel/rewritten_names.hpp>

namespace parsearch::rewrite::detail {

/// The place behind the number "~12" at `at` of `name`; `at` where there is none.
PARSEARCH_INLINE std::size_t behind_number(std::string const& name, std::size_t at) {
    auto end = at;
    if (end < name.size() && name[end] == '~') ++end;
    while (end > at && end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
    return end > at + 1 ? end : at;
}

/// `name` without the numbers of its parts: "a~2|b~2~3" is "a|b".
PARSEARCH_INLINE std::string without_numbers(std::string const& name) {
    std::string out;
    for (std::size_t at = 0; at < name.size();) {
        auto const end = behind_number(name, at);
        bool const whole = end == name.size() || std::string_view("|&+~.").find(name[end]) != std::string_view::npos;
        if (end > at && whole) at = end;
        else out += name[at++];
    }
    return out;
}

/// `name` without the number at its end; itself where it has none.
PARSEARCH_INLINE std::string without_last_number(std::string const& name) {
    auto const at = name.find_last_of('~');
    return at != std::string::npos && behind_number(name, at) == name.size() ? name.substr(0, at) : name;
}

} // namespace parsearch::rewrite::detail

namespace parsearch::rewrite {

PARSEARCH_INLINE void keep_names(graph::dense_graph& g, graph::dense_graph const& model) {
    std::set<std::string> const of_model(model.names.begin(), model.names.end());
    std::set<std::string> taken(g.names.begin(), g.names.end());
    for (auto const op : g.order) {
        auto& name = g.names[op];
        if (of_model.contains(name)) continue;
        auto best = name; // what was replaced several times is "a~2~2": the shortest name that is free
        for (auto longer = name, shorter = detail::without_last_number(name); shorter != longer && !shorter.empty();
             longer = std::exchange(shorter, detail::without_last_number(shorter)))
            if (!taken.contains(shorter)) best = shorter;
        if (auto const plain = detail::without_numbers(name); !plain.empty() && !taken.contains(plain)) best = plain;
        if (best == name) continue;
        taken.erase(name);
        taken.insert(best);
        name = std::move(best);
    }
}

} // namespace parsearch::rewrite
