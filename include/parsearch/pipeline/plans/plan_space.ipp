#pragma once
// Plans as decisions: what is chosen once for a whole plan, for a stage, and for an operator.

#include <set>

#include <parsearch/core/joined_sets.hpp>
#include <parsearch/pipeline/plans/plan_space.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE std::vector<std::uint32_t> plan_space::first_of_ties(parallelization const& problem, bool blocks) {
    joined_sets sets(problem.size());
    auto const join = [&](std::vector<std::uint32_t> const& first) {
        for (std::uint32_t op = 0; op < first.size(); ++op) sets.join(op, first[op]);
    };
    if (blocks) join(graph::first_repeats(problem.graph()));
    join(problem.ties());
    std::vector<std::uint32_t> out;
    for (std::uint32_t op = 0; op < problem.size(); ++op) out.push_back(sets.root(op));
    return out;
}

PARSEARCH_INLINE plan_space::plan_space(parallelization const& problem, detail::stage_builder& builder, partition_options const& options, bool tied)
    : devices_(builder.devices()), operators_(builder.order().size()), strategies_(problem.space()),
      ties_(std::make_shared<operator_ties const>(first_of_ties(problem, tied), problem.space())) {
    plan_rules const rules(problem, options);
    auto const rounds = std::min<std::uint64_t>(options.max_interleaved, operators_);
    most_stages_ = static_cast<std::uint32_t>(std::min<std::uint64_t>({options.max_stages, operators_, devices_ * rounds}));
    std::set<std::uint32_t> tensor{1};
    for (std::uint32_t g = 1; g <= std::min<std::size_t>(most_stages_, devices_); ++g) {
        if (devices_ % g != 0) continue;
        groups_.push_back(g);
        for (auto const t : builder.degrees(devices_ / g)) tensor.insert(t);
    }
    degrees_.assign(tensor.begin(), tensor.end());
    bool const may_interleave = groups_.size() > 1 && problem.options().training;
    for (std::uint32_t r = 1; r <= options.max_interleaved && r <= most_stages_ && (r == 1 || may_interleave); r *= 2) interleaved_.push_back(r);
    for (std::uint64_t m = 1; m <= rules.most_micro_batches(); ++m)
        if (rules.divide_samples(m)) micro_batches_.push_back(static_cast<std::uint32_t>(m));
    for (auto const order : orders_to_try)
        if (rules.may_run(order, sharded_states::none)) orders_.push_back(order);
    for (auto const states : all_sharded_states)
        if (rules.may_shard(states, devices_, builder.may_share_within_nodes(devices_))) sharded_.push_back(states);
    for (auto const t : degrees_) {
        for (auto const e : builder.expert_degrees(devices_, t)) splits_.push_back({.tensor = t, .experts = e});
        if (!options.context_parallel) continue;
        for (auto const& by : builder.context_splits(devices_, t)) splits_.push_back(by);
    }
    for (std::uint32_t s = 1; s <= most_segments; s *= 2) segments_.push_back(s);
    joined_.push_back(0);
    bool const by_blocks = std::ranges::any_of(sharded_, [](auto s) { return s >= sharded_states::gradients; });
    for (std::uint32_t j = 1; by_blocks && j <= operators_; j *= 2) joined_.push_back(j);
    bool const recomputes = rules.may_recompute();
    auto const count = [&](plan_decision d, std::size_t n) { counts_[number(d)] = static_cast<std::uint32_t>(n); };
    counts_.resize(plan_wide_decisions);
    count(plan_decision::groups, groups_.size());
    count(plan_decision::interleaved, interleaved_.size());
    count(plan_decision::micro_batches, micro_batches_.size());
    count(plan_decision::order, orders_.size());
    count(plan_decision::sharded, sharded_.size());
    count(plan_decision::split, splits_.size());
    count(plan_decision::recompute, recomputes ? 2 : 1);
    bool const offloads = rules.may_offload() && builder.may_offload();
    count(plan_decision::segments, recomputes || offloads ? segments_.size() : 1);
    count(plan_decision::kept, recomputes ? most_segments : 1);
    count(plan_decision::offloaded, offloads ? most_segments + 1 : 1);
    count(plan_decision::joined, joined_.size());
    for (std::uint32_t s = 1; s < most_stages_; ++s) counts_.push_back(static_cast<std::uint32_t>(2 * operators_ - 1));
    counts_.insert(counts_.end(), most_stages_, static_cast<std::uint32_t>(1 + degrees_.size()));
    counts_.insert(counts_.end(), most_stages_, recomputes ? 2 : 1);
    for (std::size_t g = 0; g < ties_->size(); ++g) {
        auto const op = ties_->of(g).front();
        bool const decided = problem.graph().operations[op].work != ops::work_class::source;
        counts_.push_back(decided ? static_cast<std::uint32_t>(1 + splits_.size() + strategies_.of(op).size()) : 1);
    }
}

PARSEARCH_INLINE plan_decisions plan_space::canonical(plan_decisions d) const {
    auto const stages = this->stages(d);
    bool again = d[number(plan_decision::recompute)] == 1;
    for (std::uint32_t s = 0; s < most_stages_; ++s) {
        if (s >= stages) {
            d[tensor_of(s)] = d[recompute_of(s)] = 0;
            if (s > 0) d[beginning_of(s)] = 0;
        }
        again = again || d[recompute_of(s)] == 1;
    }
    if (!again) d[number(plan_decision::kept)] = 0;
    if (!again && d[number(plan_decision::offloaded)] == 0) d[number(plan_decision::segments)] = 0;
    if (sharded_[d[number(plan_decision::sharded)]] < sharded_states::gradients) d[number(plan_decision::joined)] = 0;
    return d;
}

} // namespace parsearch::pipeline
