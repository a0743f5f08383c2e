#pragma once
/// Everything, for programs. A library includes the headers that it uses.

#include <parsearch/core/version.hpp>

#include <parsearch/concepts/additive_evaluator.hpp>
#include <parsearch/concepts/cost_oracle.hpp>
#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/concepts/operator_graph.hpp>
#include <parsearch/concepts/search_problem.hpp>
#include <parsearch/concepts/searcher.hpp>
#include <parsearch/concepts/strategy.hpp>

#include <parsearch/ops/all_operators.hpp>

#include <parsearch/graph/boost.hpp>
#include <parsearch/graph/described_by.hpp>
#include <parsearch/graph/fusion.hpp>
#include <parsearch/graph/vector_graph.hpp>

#include <parsearch/models/all_models.hpp>

#include <parsearch/topology/cluster_builder.hpp>
#include <parsearch/topology/machine_file.hpp>
#include <parsearch/topology/nodes.hpp>
#include <parsearch/topology/regular_clusters.hpp>

#include <parsearch/cost/memoized.hpp>
#include <parsearch/cost/roofline.hpp>

#include <parsearch/problem/problem.hpp>
#include <parsearch/problem/tied.hpp>

#include <parsearch/search/additive_cost.hpp>
#include <parsearch/search/budgeted_cost.hpp>
#include <parsearch/search/dominator_dp.hpp>
#include <parsearch/search/exact.hpp>
#include <parsearch/search/exhaustive.hpp>
#include <parsearch/search/greedy.hpp>
#include <parsearch/search/mcmc.hpp>
#include <parsearch/search/portfolio.hpp>
#include <parsearch/search/random_search.hpp>

#include <parsearch/search/tempering.hpp>
