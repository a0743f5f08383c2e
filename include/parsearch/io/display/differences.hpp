#pragma once
/// Two plans side by side: what differs, equal things in one line.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/io/display/listing.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>

namespace parsearch::io {

/// One thing that differs.
struct difference_line {
    std::string name;          ///< "micro-batches", or operators that differ alike: "block{1..24}.attention"
    std::size_t operators = 0; ///< how many; 0: it is of the whole plan
    std::string kind;          ///< of the operators: "linear"
    std::string first, second; ///< what either plan has: "8", "s8 o4 @0+4,1"; "-" where it has no such operator
    friend bool operator==(difference_line const&, difference_line const&) = default;
};

/// A plan, and the graph of one of its micro-batches. Both must outlive the call.
struct plan_and_graph {
    pipeline::pipeline_plan const& plan;
    graph::dense_graph const& graph;
};

/// What differs between two plans: first of the whole plan, then operators, which are matched by their names, by number of the first of each line.
/// Empty where they are the same. Throws `invalid_input` where a plan has not one configuration for each operator of its graph.
/// Complexity: O(n log n) in operators.
[[nodiscard]] std::vector<difference_line> differences(plan_and_graph const& first, plan_and_graph const& second);

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/display/differences.ipp>
#endif
