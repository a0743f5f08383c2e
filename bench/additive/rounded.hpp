#pragma once
/// Additive costs as the tables of an instance.

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/io/instances/instance.hpp>
#include <parsearch/search/additive_cost.hpp>

namespace bench {

namespace ps = parsearch;

/// Costs rounded to whole picoseconds; decisions are v0, v1, ...
[[nodiscard]] inline ps::io::table_instance rounded(ps::search::additive_problem<double> const& problem) {
    auto const whole = [](std::span<double const> list) {
        std::vector<ps::picoseconds> out;
        for (auto const c : list) out.push_back(std::isinf(c) ? ps::cost_traits<ps::picoseconds>::infinity() : ps::picoseconds{std::llround(c)});
        return out;
    };
    auto const& costs = problem.costs();
    std::vector<std::string> names;
    std::vector<std::vector<ps::picoseconds>> own, of_pairs;
    for (std::size_t op = 0; op < costs.size(); ++op) {
        names.push_back(ps::text('v', op));
        own.push_back(whole(costs.operator_costs(op)));
    }
    for (std::size_t e = 0; e < costs.edges().size(); ++e) of_pairs.push_back(whole(costs.edge_costs(e)));
    return {.names = std::move(names), .costs = ps::search::additive_problem<ps::picoseconds>({std::move(own), costs.edges(), std::move(of_pairs)})};
}

} // namespace bench
