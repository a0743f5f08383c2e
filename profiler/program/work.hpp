#pragma once
// From models and a cluster to the work.

#include <cstdint>
#include <string>
#include <vector>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/topology/cluster.hpp>

#include "profiler/program/request.hpp"

namespace parsearch::profiler {

struct named_graph {
    std::string name{};
    graph::dense_graph graph{};
};

struct listed_work {
    work_list list{};                  // with --validate: of the models' iterations on one device
    std::vector<named_graph> models{}; // to be validated
    topology::cluster cluster;
    std::string kind{};               // of device
    std::uint32_t example = 0;        // a device of that kind
    std::vector<std::string> notes{}; // what the user should know
};

// Reads models and cluster. Throws `invalid_input`.
[[nodiscard]] listed_work make_work(request const& asked);

// The time that a roofline predicts for a kernel.
[[nodiscard]] picoseconds predicted_time(cost::roofline const& oracle, work_item const& item, std::uint32_t example);

// What measuring one kernel takes, about, with making it ready.
[[nodiscard]] double measuring_seconds(picoseconds predicted, timed_launches const& timed, timing_options const& o);

// Prints the work.
void print_work(request const& asked, listed_work const& work, console const& to);

} // namespace parsearch::profiler
