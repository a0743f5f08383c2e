#pragma once
// The joint search over operators and their strategies, in a file of its own: it takes long to compile.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/rewrite/rules/rule.hpp>

#include "request.hpp"
#include "progress.hpp"

namespace plan {

// How many of `rules` apply somewhere in `g`.
[[nodiscard]] std::size_t matching_rules(std::vector<ps::rewrite::rule> const& rules, ps::graph::dense_graph const& g);

// Operators that a joint search made, and the best strategy of those that it simulated for them.
struct rewritten_graph {
    ps::graph::dense_graph operators{};
    ps::space::flat_strategy strategy{};
    std::vector<std::string> applied{}; // rules, as below; empty: the model's operators
    ps::picoseconds cost{};
};

// What a joint search found: operators and their strategy.
struct joint_outcome {
    ps::parallelization problem; // of the operators found, each with a name of its own; where no rule was applied, the one given
    ps::space::flat_strategy strategy{};
    std::vector<std::string> applied{}; // rules that made them of those given: name, then operators
    ps::picoseconds cost{};
    std::optional<ps::picoseconds> bound{}; // of the operators found
    ps::search_stats stats{};
    ps::stop_reason reason{};
    bool nothing_feasible = false;
    std::vector<rewritten_graph> others{}; // that it simulated, the cheapest first
};

// The problem of `g` instead: with_graph, with the operators' numbers as handles.
[[nodiscard]] ps::parallelization problem_of(ps::parallelization const& problem, ps::graph::dense_graph const& g);

// The operators that are fastest on one device among those that the library's rules make of the model's: `ps::rewrite::rewritten_first`, numbered in
// topological order. `stats.evaluations` counts graphs. Throws `interrupted` where `time` or `stop` end it first: blocks that repeat would differ.
[[nodiscard]] joint_outcome rewrite_first(request const& asked, ps::parallelization const& problem, std::optional<std::chrono::nanoseconds> time,
                                          std::stop_token const& stop);

// `ps::rewrite::joint` with the options that `asked.search` has. `rules`: beside the library's; where there is none, operators stay as they are.
// Candidates are of `asked.space`.
[[nodiscard]] joint_outcome search_jointly(request const& asked, ps::parallelization const& problem, std::vector<ps::rewrite::rule> const* rules,
                                           std::optional<std::uint64_t> evaluations, progress_display* progress);

} // namespace plan
