#pragma once
// Searches of plans, decision by decision, in a file of its own: they take long to compile.

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>

#include <parsearch/concepts/searcher.hpp>
#include <parsearch/pipeline/partition_options.hpp>
#include <parsearch/pipeline/pipeline_plan.hpp>

#include "progress.hpp"
#include "request.hpp"

namespace plan {

// What a search may take.
struct plan_budget {
    std::optional<std::chrono::nanoseconds> time{};
    std::optional<std::uint64_t> evaluations{};
    std::stop_token stop{};
};

// What a search of plans found.
struct found_plan {
    ps::pipeline::pipeline_plan plan{};
    ps::pipeline::pipeline_plan stages{}; // the same with operators as its stages say
    ps::picoseconds cost{};
    ps::search_stats stats{};
    ps::stop_reason reason{};
};

// Whether the search asked for runs on plans: dominator_dp and joint do not.
[[nodiscard]] bool runs_on_plans(request const& asked);

// Goes on from `start` by the search asked for; blocks that repeat are alike, but with `--regular none`. Throws invalid_input where the space of
// plans has no such plan, and interrupted where `problem` has no time.
[[nodiscard]] found_plan search_plans(request const& asked, ps::parallelization const& problem, ps::pipeline::pipeline_plan const& start,
                                      plan_budget const& budget, progress_display& progress);

} // namespace plan
