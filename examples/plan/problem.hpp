#pragma once
// What is searched.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <parsearch/cost/roofline.hpp>
#include <parsearch/graph/operator_graph.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/topology/cluster.hpp>

#include "request.hpp"

namespace plan {

using problem_type = ps::parallelization<ps::cost::roofline, std::uint32_t, std::size_t>;

} // namespace plan
