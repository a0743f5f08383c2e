#pragma once
// Why an operator has the configuration that it has in a plan: what the plan would cost with others.

#include <algorithm>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/interruption.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/io/display/explanation.hpp>
#include <parsearch/io/display/listing.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/pipeline/plans/plan_simulator.hpp>
#include <parsearch/sim/memory/memory_penalty.hpp>
#include <parsearch/sim/task/assemble.hpp>
#include <parsearch/space/likely_configurations.hpp>

namespace parsearch::io::detail {

/// Prices changes to a plan.
class change_pricer {
  public:
    using changes = std::span<change<space::configuration> const>;

    change_pricer(parallelization const& problem, pipeline::pipeline_plan const& plan);

    /// Of the plan as it is.
    [[nodiscard]] picoseconds cost() const noexcept { return cost_; }
    /// With `what`, or nothing where that costs more than `bound`.
    [[nodiscard]] std::optional<picoseconds> operator()(changes what, picoseconds bound);

  private:
    pipeline::pipeline_plan const* plan_;
    space::flat_strategy strategy_;
    std::optional<sim::delta_simulator> plain_;
    std::optional<pipeline::pipeline_simulator> pipelines_; // where the plan is not plain
    picoseconds cost_{};
};

/// Simulates changes to a plan, for all their figures.
class change_figures {
  public:
    change_figures(parallelization const& problem, pipeline::pipeline_plan const& plan)
        : problem_(problem), plan_(&plan), strategy_(plan.strategy), simulator_(problem) {}

    [[nodiscard]] changed_plan operator()(change_pricer::changes what);
    /// Forward and backward of a shard of `op` in the last plan simulated, on the slowest of its devices.
    [[nodiscard]] std::pair<picoseconds, picoseconds> kernel_times(std::size_t op) const;

  private:
    parallelization problem_;
    pipeline::pipeline_plan const* plan_;
    space::flat_strategy strategy_;
    pipeline::plan_simulator simulator_;
};

/// The least costs of splits.
class cheapest_splits {
  public:
    struct entry {
        picoseconds cost{};
        std::uint32_t number = 0; ///< of the configuration
    };

    explicit cheapest_splits(std::size_t listed) : listed_(listed) {}

    /// A configuration that costs no less than this of split number `split` does not change what is listed.
    [[nodiscard]] picoseconds bound(std::size_t split) const;
    void add(std::size_t split, entry const& e) {
        auto const [at, fresh] = best_.try_emplace(split, e);
        if (!fresh && e.cost < at->second.cost) at->second = e;
    }
    /// The cheapest first.
    [[nodiscard]] std::vector<entry> listed() const;

  private:
    std::size_t listed_;
    std::map<std::size_t, entry> best_;
};

} // namespace parsearch::io::detail

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE change_pricer::change_pricer(parallelization const& problem, pipeline::pipeline_plan const& plan)
    : plan_(&plan), strategy_(plan.strategy) {
    if (plan.how.plain()) {
        plain_.emplace(problem.evaluator());
        cost_ = plain_->reset(strategy_);
    } else {
        cost_ = pipelines_.emplace(problem)(plan.how, strategy_);
    }
}

PARSEARCH_IO_INLINE std::optional<picoseconds> change_pricer::operator()(changes what, picoseconds bound) {
    if (plain_) {
        auto const priced = plain_->propose(what, bound);
        plain_->roll_back();
        return priced;
    }
    for (auto const& c : what) strategy_[c.op] = c.configuration;
    auto const priced = pipelines_->within(plan_->how, strategy_, bound);
    for (auto const& c : what) strategy_[c.op] = plan_->strategy[c.op];
    return priced;
}

PARSEARCH_IO_INLINE changed_plan change_figures::operator()(change_pricer::changes what) {
    for (auto const& c : what) strategy_[c.op] = c.configuration;
    auto const time = simulator_.simulate(plan_->how, strategy_);
    for (auto const& c : what) strategy_[c.op] = plan_->strategy[c.op];
    changed_plan out{
        .time = time, .cost = sim::total_cost(time, simulator_.penalty()), .fullest = fullest_of(simulator_.memory(), problem_.topology().devices)};
    for (auto const bytes : simulator_.traffic()) out.moved += bytes;
    return out;
}

PARSEARCH_IO_INLINE std::pair<picoseconds, picoseconds> change_figures::kernel_times(std::size_t op) const {
    auto const& p = simulator_.plan().operators[op];
    std::int64_t forward = 0, backward = 0;
    for (auto const d : p.devices) {
        auto const kind = problem_.topology().kind[d];
        forward = std::max(forward, p.forward[kind]);
        backward = std::max(backward, p.backward[kind]);
    }
    return {picoseconds{forward}, picoseconds{backward}};
}

/// By device, whether the stage of `op` uses it: all where there is one stage.
PARSEARCH_IO_INLINE std::vector<bool> devices_of_stage(parallelization const& part, pipeline::pipeline_plan const& plan, std::size_t op) {
    std::vector<bool> out(part.topology().size(), plan.how.stages == 1);
    if (plan.how.stages > 1)
        for (std::size_t other = 0; other < part.size(); ++other)
            if (plan.how.stage[other] == plan.how.stage[op] && part.graph().operations[other].work != ops::work_class::source)
                for (std::int64_t n = 0; n < plan.strategy[other].shards(); ++n) out[static_cast<std::size_t>(plan.strategy[other].device(n))] = true;
    return out;
}

PARSEARCH_IO_INLINE candidate_list candidates_of(parallelization const& part, pipeline::pipeline_plan const& plan, std::size_t op, std::size_t most,
                                                 std::stop_token const& stop) {
    auto const& all = part.space().of(op);
    auto const& operation = part.graph().operations[op];
    auto const devices = devices_of_stage(part, plan, op);
    auto const allowed = [&](space::configuration const& c) {
        if (c == plan.strategy[op]) return false;
        if (plan.how.stages == 1) return true;
        for (std::int64_t n = 0; n < c.shards(); ++n)
            if (!devices[static_cast<std::size_t>(c.device(n))]) return false;
        return true;
    };
    auto const first_device = static_cast<std::uint32_t>(std::find(devices.begin(), devices.end(), true) - devices.begin());
    auto const per_node = std::max<std::size_t>(1, topology::devices_per_node(part.topology()));
    auto const likely = space::likely_configurations(operation, all, part.topology().size(), {.per_node = per_node});
    candidate_list out;
    std::vector<std::tuple<std::size_t, picoseconds, std::uint32_t>> ranked; // placement of its split, from 1; time of a shard; number
    for (std::size_t split = 0; split < all.splits() && !stop.stop_requested(); ++split) {
        auto const [first, last] = all.placements_of(split);
        auto const degrees = all[first];
        picoseconds time{};
        if (operation.work != ops::work_class::view)
            for (auto const pass : {ops::pass::forward, ops::pass::backward})
                time += part.workload()->oracle.shard_time(ops::work_of(operation, degrees.degrees(), pass), first_device);
        std::size_t placement = 0;
        for (auto i = first; i < last; ++i) {
            auto const c = all[i];
            if (!allowed(c)) continue;
            bool const is_likely = std::find(likely.begin(), likely.end(), c) != likely.end();
            ranked.emplace_back(is_likely ? 0 : placement + 1, time, static_cast<std::uint32_t>(i));
            ++placement;
        }
        out.all += placement;
        out.splits += placement > 0;
    }
    std::sort(ranked.begin(), ranked.end());
    for (std::size_t i = 0; i < std::min(most, ranked.size()); ++i) out.numbers.push_back(std::get<2>(ranked[i]));
    return out;
}

PARSEARCH_IO_INLINE picoseconds cheapest_splits::bound(std::size_t split) const {
    auto const at = best_.find(split);
    auto out = at == best_.end() ? cost_traits<picoseconds>::infinity() : at->second.cost;
    if (best_.size() < listed_ || listed_ == 0) return out;
    std::vector<picoseconds> costs;
    for (auto const& [number, e] : best_) costs.push_back(e.cost);
    std::nth_element(costs.begin(), costs.begin() + static_cast<std::ptrdiff_t>(listed_ - 1), costs.end());
    return std::min(out, costs[listed_ - 1]);
}

PARSEARCH_IO_INLINE std::vector<cheapest_splits::entry> cheapest_splits::listed() const {
    std::vector<entry> out;
    for (auto const& [number, e] : best_) out.push_back(e);
    std::stable_sort(out.begin(), out.end(), [](auto const& a, auto const& b) { return a.cost < b.cost; });
    if (out.size() > listed_) out.resize(listed_);
    return out;
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE explanation explain(parallelization const& problem, pipeline::pipeline_plan const& plan, std::size_t op,
                                        explain_options const& options) {
    if (op >= problem.size() || problem.graph().operations[op].work == ops::work_class::source)
        throw invalid_input("operator number ", op, " is to be explained: must be one with tasks, of ", problem.size());
    if (plan.strategy.size() != problem.size())
        throw invalid_input("a plan of ", plan.strategy.size(), " configurations: the problem has ", problem.size(), " operators, must be one each");
    auto const part = plan.how.micro_batches == 1 ? problem : pipeline::micro_batch_problem(problem, plan.how.micro_batches);
    auto const& all = part.space().of(op);
    explanation out{.op = op};
    for (auto const& group : operator_groups(part.graph(), plan.strategy))
        if (std::find(group.operators.begin(), group.operators.end(), op) != group.operators.end())
            for (auto const other : group.operators)
                if (part.graph().operations[other].dims == part.graph().operations[op].dims) out.alike.push_back(other);
    std::sort(out.alike.begin(), out.alike.end());
    bool const several = out.alike.size() > 1;
    std::vector<change<space::configuration>> one, each;
    auto const change_to = [&](space::configuration const& c) {
        one = {{op, c}};
        each.clear();
        for (auto const other : out.alike) each.push_back({other, c});
    };

    detail::cheapest_splits cheapest(options.listed);
    auto const candidates = detail::candidates_of(part, plan, op, options.priced, options.price);
    out.configurations = candidates.all;
    out.splits = candidates.splits;
    try {
        detail::change_pricer price(problem.until(options.price), plan);
        auto const count = [&](std::optional<picoseconds> cost, change_counts& counts) {
            counts.less += cost && *cost < price.cost();
            counts.same += cost && *cost == price.cost();
        };
        for (auto const number : candidates.numbers) {
            auto const split = all.split_of(all[number]);
            change_to(all[number]);
            auto const bound = std::max(price.cost(), cheapest.bound(split));
            auto const alone = price(one, bound), together = several ? price(each, bound) : std::nullopt;
            count(alone, out.alone);
            count(together, out.together);
            ++out.priced;
            if (alone || together)
                cheapest.add(split,
                             {std::min(alone.value_or(cost_traits<picoseconds>::infinity()), together.value_or(cost_traits<picoseconds>::infinity())),
                              number});
        }
    } catch (interrupted const&) {
        // what was priced before is told
    }

    detail::change_figures figures(problem.until(options.stop), plan);
    out.chosen = {.configuration = plan.strategy[op], .alone = figures({})};
    std::tie(out.chosen.forward, out.chosen.backward) = figures.kernel_times(op);
    try {
        for (auto const& e : cheapest.listed()) {
            operator_option option{.configuration = all[e.number]};
            change_to(option.configuration);
            option.alone = figures(one);
            std::tie(option.forward, option.backward) = figures.kernel_times(op);
            if (several) option.alike = figures(each);
            out.others.push_back(std::move(option));
        }
    } catch (interrupted const&) {
        // nor is more told than there is time for
    }
    return out;
}

} // namespace parsearch::io
