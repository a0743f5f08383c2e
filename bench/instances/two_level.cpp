// What the searches of two levels have in common.
#include <algorithm>
#include <utility>

#include <parsearch/core/cost.hpp>
#include <parsearch/search/kernel/search_options.hpp>

#include "two_level.hpp"

namespace bench {

using ps::pipeline::pipeline_plan, ps::pipeline::sharded_states;

two_level_search::two_level_search(std::string_view name, ps::parallelization const& problem, ps::pipeline::partition_options const& options,
                                   improvement_observer const& observer, pipeline_plan start)
    : problem_(&problem), observer_(observer), tell_(observer_), kernel_(name, ps::search::budget_of(options), {}, tell_), builder_(problem),
      rules_(problem, options) {
    price(std::move(start));
}

void two_level_search::price(pipeline_plan&& plan) {
    constexpr auto unbounded = ps::cost_traits<ps::picoseconds>::infinity();
    auto& simulate = builder_.simulator();
    auto const priced = simulate.within(plan.how, plan.strategy, feasible_ ? kernel_.best_cost() : unbounded);
    kernel_.count_evaluation();
    bool const fits = priced && *priced < unbounded && simulate.fits();
    auto const cost = feasible_ && !fits ? unbounded : priced.value_or(unbounded);
    if (fits && !feasible_ && kernel_.has_best()) { // one that fits is better than any that does not
        kernel_.improve(std::move(plan), cost);
        feasible_ = true;
    } else if (kernel_.offer(std::move(plan), cost)) {
        feasible_ = fits;
    }
}

double two_level_search::consider(layered_stages const& s) {
    price(plan_of(s));
    if (builder_.simulator().fits()) return 0;
    double most = 0;
    auto const& memory = builder_.simulator().memory();
    for (std::size_t d = 0; d < memory.size(); ++d)
        most = std::max(most, static_cast<double>(memory[d].total()) / static_cast<double>(problem_->topology().devices[d].memory));
    return most;
}

ps::pipeline::pipeline_result two_level_search::finish() { return kernel_.finish(kernel_.due().value_or(ps::stop_reason::exhausted), feasible_); }

std::vector<std::uint32_t> two_level_search::micro_batches() const {
    std::vector<std::uint32_t> out;
    for (std::uint32_t n = 1; rules_.divide_samples(n); n *= 2) out.push_back(n);
    std::ranges::reverse(out);
    return out;
}

std::vector<std::size_t> two_level_search::layers(std::size_t stages) {
    std::vector<std::size_t> out{0};
    auto const& places = builder_.places().of(stages);
    out.insert(out.end(), places.begin(), places.end());
    return out;
}

pipeline_plan two_level_search::plan_of(layered_stages const& s) {
    auto const& order = builder_.order();
    auto const stages = s.first.size();
    pipeline_plan out;
    auto const all = problem_->graph().size();
    out.how = {.stage = std::vector<std::uint32_t>(all, 0),
               .stages = static_cast<std::uint32_t>(stages),
               .micro_batches = s.micro_batches,
               .recompute = std::vector<bool>(stages, false),
               .segment = std::vector<std::uint32_t>(all, 0),
               .kept = std::vector<bool>(all, false),
               .sharded = s.sharded};
    out.strategy = s.strategy;
    for (std::size_t i = 0, stage = 0, layer = 0; i < order.size(); ++i) {
        while (stage + 1 < stages && s.first[stage + 1] <= i) ++stage;
        while (layer + 1 < s.layer.size() && s.layer[layer + 1] <= i) ++layer;
        auto const op = order[i];
        out.how.stage[op] = static_cast<std::uint32_t>(stage);
        out.how.segment[op] = static_cast<std::uint32_t>(layer);
        if (s.again[layer]) out.how.recompute[stage] = true;
        else out.how.kept[op] = true;
        out.strategy[op].start += s.device[stage];
        for (auto& d : out.strategy[op].listed) d += s.device[stage];
    }
    if (s.sharded >= sharded_states::gradients) {
        out.how.block.assign(all, 0);
        auto const blocks = builder_.places().blocks_of_stages(s.first, order.size(), 0);
        for (std::size_t i = 0; i < order.size(); ++i) out.how.block[order[i]] = blocks[i];
    }
    if (std::ranges::find(out.how.recompute, true) == out.how.recompute.end()) {
        out.how.segment.clear();
        out.how.kept.clear();
        out.how.recompute.clear();
    }
    return out;
}

} // namespace bench
