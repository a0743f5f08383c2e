#pragma once
/// A strategy, or the parameters of a graph, as a table that people read: equal things share a line ("block{1..24}.attention").

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
#include <parsearch/core/compiled.hpp>
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
[[nodiscard]] numbered_name take_apart(std::string_view name);

/// Whether "0,4..92" is a progression of this step (4), the second number being so far (88) from the last; else a number and a range.
[[nodiscard]] constexpr bool reads_as_progression(std::int64_t step, std::int64_t length) noexcept {
    return step > 1 && length >= 2 * step && length % step == 0;
}

/// "7", "{1..24}", "{0,4..92}" (0, 4, 8, ... 92), "{1,2,5..9}"; past `most` pieces the last numbers are left out but for the very last.
[[nodiscard]] std::string range_text(std::set<std::int64_t> const& numbers, std::size_t most = 6);

/// Number tuples as few products of sets, which cover exactly these tuples, each once: {1,2} x {a,b}.
/// Complexity: O(tuples * positions * log tuples).
[[nodiscard]] std::vector<std::vector<std::set<std::int64_t>>> products_of(std::vector<std::vector<std::int64_t>> const& tuples);
/// Things that are equal but for numbers in their names.
struct name_group {
    std::string name;                 ///< stands for exactly these
    std::vector<std::size_t> members; ///< their numbers, by the numbers in their names
};

/// Groups names[i] that differ only in numbers and have one kinds[i], by number of the first of each group.
[[nodiscard]] std::vector<name_group> group_names(std::vector<std::string> const& names, std::vector<std::size_t> const& kinds);
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
[[nodiscard]] std::vector<parameter_line> parameter_listing(graph::dense_graph const& g);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/display/listing.ipp>
#endif
