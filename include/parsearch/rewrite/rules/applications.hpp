#pragma once
/// What becomes of a rule on a graph: where it matches, how many graphs it makes, and why not where it does not.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/rewrite/parallel/parallel_graph.hpp>
#include <parsearch/rewrite/rules/rule.hpp>
#include <parsearch/rewrite/rules/substitution.hpp>

namespace parsearch::rewrite {

/// How far a rule gets on a graph. The farther, the larger.
enum class rule_fate : std::uint8_t { no_match, refused, changes_nothing, applies };
[[nodiscard]] constexpr std::string_view name_of(rule_fate f) noexcept {
    constexpr std::string_view names[]{"no match", "refused at every match", "makes the graph that is there", "applies"};
    return names[static_cast<std::size_t>(f)];
}

/// All that `applications_of` finds.
struct applications {
    std::size_t places = 0;                       ///< where the source matches: sets of nodes, however its operators share them out
    std::size_t made = 0;                         ///< applications that made a graph, at any match and choice
    std::size_t graphs = 0;                       ///< different ones of these, by their hash, the graph itself not counted
    std::map<std::string, std::size_t> refused{}; ///< why the other applications made none, and how many
    std::string why_not{};                        ///< where there is no match: see `matcher::why_not`

    [[nodiscard]] rule_fate fate() const noexcept {
        return places == 0 ? rule_fate::no_match : made == 0 ? rule_fate::refused : graphs == 0 ? rule_fate::changes_nothing : rule_fate::applies;
    }
    /// What most of the refused applications were refused for, the first by name among equals; empty where none was refused.
    [[nodiscard]] std::string_view refusal() const noexcept {
        auto const most = std::ranges::max_element(refused, {}, [](auto const& r) { return r.second; });
        return most == refused.end() ? std::string_view() : std::string_view(most->first);
    }
};

/// Applies `r` at each match in `g`, with each of `choices` of its parameters; where the source binds them all, once. `r` must have been checked.
/// Complexity: O(m (V + E) log V) for m applications.
[[nodiscard]] applications applications_of(parallel_graph const& g, rule const& r, std::span<bindings const> choices);

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/rules/applications.ipp>
#endif
