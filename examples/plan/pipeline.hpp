#pragma once
// A pipeline that was found for the operators planned.

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/io/display/comparison.hpp>
#include <parsearch/io/files/strategy_file.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/topology/cluster.hpp>

#include "problem.hpp"

namespace plan {

// What `ps::pipeline::partition` found.
struct pipelined {
    ps::pipeline::pipeline_plan plan;
    std::optional<ps::parallelization> problem{}; // of its operators, where they are others than those planned: a joint search made them
    std::vector<std::string> applied{};           // by these rules
    ps::io::compared figures{};                   // speed-up over `unpipelined`; what moves is not counted
    ps::picoseconds unpipelined{};                // time of the strategy found, with devices that run operators in the order of pipelines, too
    double idle = 0;                              // share of the iteration in which its devices compute nothing
    std::vector<std::string> text{};              // the plan in lines
    ps::search_stats stats{};
    ps::stop_reason reason{};
};

// pipeline.json and pipeline.trace.json.
void write_pipeline(std::ostream& out, ps::parallelization const& problem, pipelined const& found, ps::io::strategy_notes notes);
void write_pipeline_trace(std::ostream& out, ps::parallelization const& problem, ps::topology::cluster const& cluster, pipelined const& found);

} // namespace plan
