#pragma once
// From a request to a plan.

#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/io/cluster_name.hpp>
#include <parsearch/io/comparison.hpp>
#include <parsearch/io/report/data.hpp>
#include <parsearch/sim/report.hpp>

#include "model.hpp"
#include "problem.hpp"

namespace plan {

struct named_strategy {
    std::string name{};
    ps::space::flat_strategy strategy{};
    ps::picoseconds cost{}; // what a search minimises
    ps::io::compared figures{};
};

// All that is read before anything is simulated.
struct inputs {
    loaded_model model;
    ps::io::named_cluster cluster;
    std::string cluster_hash{}, start_hash{}; // of the files; empty where there are none
};

struct planned {
    problem_type problem;
    std::vector<named_strategy> strategies{}; // data parallelism first, the found one last
    std::string start{};                      // the name of the strategy that the search begins with
    ps::space::flat_strategy start_strategy{};
    ps::sim::report report{};                 // of the found one
    std::optional<ps::search_stats> stats{};
    std::optional<ps::stop_reason> reason{};
    std::vector<ps::io::cost_point> curve{};
    std::vector<std::string> notes{};
    std::string verdict{};                    // of a rerun, the last of the notes
    bool differs = false;                     // a rerun found something else

    [[nodiscard]] named_strategy const& found() const { return strategies.back(); }
};

// Reads model and cluster, and checks that a rerun has the files of the first run. Throws invalid_input.
[[nodiscard]] inputs read_inputs(request const& asked);

// The problem, the experts' strategies and the one to start from, where that is a file; checks all options. Fixes in `asked.search` what follows from
// its budget. Nothing is simulated yet. Throws invalid_input.
[[nodiscard]] planned begin_plan(request& asked, inputs const& given, std::stop_token const& stop);

// Evaluates the experts, searches, and evaluates what was found; ends soon after `stop` is requested.
void finish_plan(request const& asked, inputs const& given, planned& made, std::stop_token const& stop);

} // namespace plan
