#pragma once
// Plans with micro-batches, stages or shared states, and the plan that is chosen in the end.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/io/display/comparison.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/report.hpp>

#include "request.hpp"

namespace plan {

// The best pipeline that was found.
struct pipelined {
    ps::pipeline::pipeline_plan plan;
    std::optional<ps::parallelization> problem{}; // of its operators, where they are others than those planned: see `applied`
    std::vector<std::string> applied{};           // rules of a joint search that made them; empty: they are the model's own
    ps::io::compared figures{};
    double idle = 0;         // share of the iteration in which its devices compute nothing
    std::uint64_t tasks = 0; // of its simulation
};

// What is printed and written.
struct chosen_plan {
    ps::pipeline::pipeline_plan plan;        // a strategy is one of one stage and micro-batch
    ps::parallelization problem;             // of its operators
    ps::parallelization part;                // of one of its micro-batches
    std::vector<std::string> applied{};      // the rules that made its operators of the model's
    std::vector<std::string> text{};         // how it runs, and a line per stage; none of a strategy
    std::optional<ps::sim::report> report{}; // where something is to be written of it, and memory suffices
    std::unique_ptr<chosen_plan> all{};      // where it is of one of several replicas, that of all devices

    [[nodiscard]] chosen_plan const& on_all() const { return all ? *all : *this; }
};

// A search of pipelines.
struct pipeline_search {
    ps::search_stats stats{}; // `seconds` with the search that went on
    ps::stop_reason reason{};
    std::optional<std::uint64_t> estimates{}; // ways to divide the network that were estimated; nothing where it came to none
    std::optional<ps::picoseconds> cost{};    // of the best; nothing where none was found
    std::vector<ps::io::compared> textbook{}; // the best of each family that was simulated
    std::optional<ps::search_stats> plans{};  // of the search that went on from the best, decision by decision
    ps::stop_reason plans_reason{};           // why that ended
};

// What rules made of the model's operators, and the best pipeline of that.
struct operator_search {
    std::vector<std::string> rules{}; // applied; none: nothing is faster
    std::uint64_t graphs = 0;         // priced
    std::uint64_t evaluations = 0;    // pipelines simulated
    double seconds = 0;               // of both
    ps::stop_reason reason = ps::stop_reason::exhausted;
    std::optional<ps::picoseconds> cost{}; // of the best, where it costs less than the best of the model's own
    bool fits = false;                     // it
};

} // namespace plan
