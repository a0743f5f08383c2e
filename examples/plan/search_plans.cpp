#include "search_plans.hpp"

#include <algorithm>
#include <cstddef>
#include <random>
#include <type_traits>
#include <utility>

#include <parsearch/io/described/searches.hpp>
#include <parsearch/pipeline/plans/plan_problem.hpp>

namespace plan {
namespace {
using ps::pipeline::plan_decisions;
using ps::pipeline::plan_problem;

template <class Entry> constexpr bool runs = ps::io::missing_for<decltype(Entry::run), plan_problem, plan_decisions>().empty();
} // namespace

bool runs_on_plans(request const& asked) {
    return asked.search &&
           ps::io::visit_search(*asked.search, [](auto const& entry, auto const&) { return runs<std::remove_cvref_t<decltype(entry)>>; });
}

found_plan search_plans(request const& asked, ps::parallelization const& problem, ps::pipeline::pipeline_plan const& start, plan_budget const& budget,
                        progress_display& progress) {
    plan_problem const plans(problem, *asked.pipelines, asked.regular.has_value());
    auto from = plans.decisions(start);
    auto search = *asked.search;
    ps::io::visit_search(search, [&](auto const&, auto& options) {
        options.time = budget.time;
        options.evaluations = budget.evaluations;
        options.stop = budget.stop;
    });
    std::mt19937_64 rng{asked.seed};
    auto found = ps::io::run_search(search, plans, std::move(from), rng, progress);
    auto stages = found.best;
    std::fill(stages.begin() + static_cast<std::ptrdiff_t>(plans.space().first_of_operators()), stages.end(), 0U);
    return {.plan = plans.plan(found.best), .stages = plans.plan(stages), .cost = found.cost, .stats = found.stats, .reason = found.ended};
}

} // namespace plan
