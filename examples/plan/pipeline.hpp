#pragma once
// A pipeline that was found for the operators planned.

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/io/display/comparison.hpp>
#include <parsearch/io/display/listing.hpp>
#include <parsearch/io/files/strategy_file.hpp>
#include <parsearch/pipeline/partition.hpp>
#include <parsearch/topology/cluster.hpp>

#include "problem.hpp"

namespace plan {

// The best pipeline that was found.
struct pipelined {
    ps::pipeline::pipeline_plan plan;
    std::optional<ps::parallelization> problem{}; // of its operators, where they are others than those planned: see `applied`
    std::vector<std::string> applied{};           // rules of a joint search that made them; empty: they are the model's own
    ps::io::compared figures{};
    std::size_t tasks = 0;                         // of an iteration
    double idle = 0;                               // share of the iteration in which its devices compute nothing
    std::vector<std::string> text{};               // the plan in lines
    std::vector<ps::io::listing_line> operators{}; // of a micro-batch
};

// A search of pipelines.
struct pipeline_search {
    ps::search_stats stats{};
    ps::stop_reason reason{};
    std::optional<ps::picoseconds> cost{};    // of the best; nothing where none was found
    std::vector<ps::io::compared> textbook{}; // the best of each family that was simulated
};

// pipeline.json and pipeline.trace.json.
void write_pipeline(std::ostream& out, ps::parallelization const& problem, pipelined const& found, ps::io::strategy_notes notes);
void write_pipeline_trace(std::ostream& out, ps::parallelization const& problem, ps::topology::cluster const& cluster, pipelined const& found);

} // namespace plan
