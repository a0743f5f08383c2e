#pragma once
// Between plans and decisions.

#include <parsearch/core/error.hpp>
#include <parsearch/pipeline/plans/plan_maker.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE std::optional<pipeline_plan> plan_maker::plan(plan_decisions const& d, detail::candidate const& c) {
    auto out = builder_->plan(c);
    if (!has_own_operators(d)) return admitted(std::move(out));
    auto const group = builder_->devices() / c.groups();
    auto const splits = space_->splits().size();
    for (std::size_t g = 0; g < space_->ties().size(); ++g) {
        auto const n = d[space_->first_of_operators() + g];
        if (n == 0) continue;
        for (auto const op : space_->ties().of(g)) {
            auto configuration = n <= splits ? of_split(c.micro_batches, group, space_->splits()[n - 1], op)
                                             : of_space(c.micro_batches, space_->strategies().of(op)[n - 1 - splits], op);
            if (!configuration || !has_room(*configuration, group, c.micro_batches, op)) return {};
            configuration->start += first_device(out.how, op);
            out.strategy[op] = std::move(*configuration);
        }
    }
    out.tensor_parallel.clear(); // none of these any more
    out.expert_parallel = out.context_parallel = out.context_heads = 1;
    return admitted(std::move(out));
}

PARSEARCH_INLINE plan_decisions plan_maker::decisions(pipeline_plan const& plan) {
    auto const& g = problem_->graph();
    auto const& how = plan.how;
    validate(how, g);
    if (plan.strategy.size() != g.size())
        throw invalid_input("a pipeline's strategy of ", plan.strategy.size(), " configurations: the graph has ", g.size(),
                            " operators, must be one each");
    plan_decisions d(space_->size(), 0);
    auto const set = [&](plan_decision which, auto const& values, auto const& value, auto const&... said) {
        auto const at = std::ranges::find(values, value);
        if (at == values.end()) throw invalid_input("plan: ", said..., ": the space of plans has none");
        d[plan_space::number(which)] = static_cast<std::uint32_t>(at - values.begin());
    };
    auto const groups = how.launching().groups();
    set(plan_decision::groups, space_->groups(), groups, groups, " groups of devices");
    set(plan_decision::interleaved, space_->interleaved(), how.interleaved, how.interleaved, " stages on each group of devices");
    set(plan_decision::micro_batches, space_->micro_batches(), how.micro_batches, how.micro_batches, " micro-batches");
    set(plan_decision::order, space_->orders(), how.order, "launches in order ", name_of(how.order));
    set(plan_decision::sharded, space_->sharded(), how.sharded, "sharded states (", listed(how.sharded), ')');
    if (how.stages > space_->most_stages())
        throw invalid_input("plan: ", how.stages, " stages: the space of plans has at most ", space_->most_stages());
    set_split(d, plan);
    set_beginnings(d, how);
    set_recomputation(d, how);
    set_joined(d, how);
    if (auto const why = why_not(d); !why.empty()) throw invalid_input("plan: ", why);
    set_operators(d, plan);
    return d;
}

PARSEARCH_INLINE std::string_view plan_maker::read(plan_decisions const& d, detail::candidate& c) {
    auto const at = [&](plan_decision which) { return d[plan_space::number(which)]; };
    auto const groups = space_->groups()[at(plan_decision::groups)], rounds = space_->interleaved()[at(plan_decision::interleaved)];
    auto const stages = groups * rounds, m = space_->micro_batches()[at(plan_decision::micro_batches)];
    auto const group = builder_->devices() / groups;
    if (stages > space_->most_stages()) return "it has more stages than there may be, or operators";
    if (rounds > 1 && groups == 1) return "stages are interleaved on one group of devices: must be on several";
    if (rounds > 1 && m % groups != 0) return "stages are interleaved: micro-batches must be a multiple of the groups of devices";
    auto const order = space_->orders()[at(plan_decision::order)];
    auto const sharded = space_->sharded()[at(plan_decision::sharded)];
    if (!rules_.may_shard(sharded, group, builder_->may_share_within_nodes(group))) return "a group of devices can not share these states";
    auto const offloaded = at(plan_decision::offloaded);
    if (!rules_.may_run(order, sharded, offloaded > 0))
        return "an order that cuts backward does not go with sharded gradients, nor with offloaded activations";
    if (cuts_backward(order) && groups == 1) return "an order that cuts backward needs several groups of devices";
    auto const by = space_->splits()[at(plan_decision::split)];
    if (!space_->has(by, group)) return "a group of devices can not share operators so";
    if (!builder_->allows(m, group, by)) return not_allowed;
    c = balanced(stages, rounds, m, by);
    c.order = order;
    c.sharded = sharded;
    auto const& places = builder_->places().of(stages);
    bool again = false;
    for (std::uint32_t s = 0; s < stages; ++s) {
        if (auto const n = d[space_->tensor_of(s)]; n > 0) c.tensor[s] = space_->degrees()[n - 1];
        if (!space_->has(c.split(s), group)) return "a stage's group of devices can not share operators so";
        c.recompute[s] = (at(plan_decision::recompute) + d[space_->recompute_of(s)]) % 2 == 1;
        again = again || c.recompute[s];
        if (s == 0) continue;
        auto const place = (std::ranges::lower_bound(places, c.first[s]) - places.begin()) + plan_space::shift_of(d[space_->beginning_of(s)]);
        if (place < 0 || place >= std::ssize(places) || places[static_cast<std::size_t>(place)] <= c.first[s - 1])
            return "a stage would begin before the one before it, or behind the last operator";
        c.first[s] = places[static_cast<std::size_t>(place)];
    }
    if (again || offloaded > 0) c.segments = space_->segments()[at(plan_decision::segments)];
    if (again) c.kept = at(plan_decision::kept);
    if (c.kept > 0 && c.kept >= c.segments) return "of segments that are computed again some must be";
    c.offloaded = offloaded;
    if (c.offloaded > c.segments) return "more segments are offloaded than there are";
    if (sharded >= sharded_states::gradients) c.joined = space_->joined()[at(plan_decision::joined)];
    if (!builder_->allows(c)) return not_allowed;
    return {};
}

PARSEARCH_INLINE detail::candidate const& plan_maker::balanced(std::uint32_t stages, std::uint32_t rounds, std::uint32_t micro_batches,
                                                               space::neighbour_split by) {
    std::tuple const key(stages, rounds, micro_batches, by);
    if (auto const known = balanced_.find(key); known != balanced_.end()) return known->second;
    return balanced_.emplace(key, builder_->balanced(stages, rounds, micro_batches, by)).first->second;
}

PARSEARCH_INLINE void plan_maker::set_split(plan_decisions& d, pipeline_plan const& plan) {
    auto const group = space_->group(d);
    auto const& t = plan.tensor_parallel;
    auto const choose = [&](space::neighbour_split by) {
        auto const at = std::ranges::find(space_->splits(), by);
        if (at == space_->splits().end())
            throw invalid_input("plan: operators shared by ", by.tensor, " neighbours, experts by ", by.experts, ", positions by ", by.context,
                                ", heads by ", by.heads, ": the space of plans has none");
        d[plan_space::number(plan_decision::split)] = static_cast<std::uint32_t>(at - space_->splits().begin());
    };
    if (!t.empty()) {
        if (t.size() != plan.how.stages)
            throw invalid_input("plan: degrees of tensor parallelism of ", t.size(), " stages: it has ", plan.how.stages, ", must be one each");
        choose({.tensor = t.front(), .experts = plan.expert_parallel, .context = plan.context_parallel, .heads = plan.context_heads});
        for (std::size_t s = 1; s < t.size(); ++s) {
            if (t[s] == t.front()) continue;
            auto const at = std::ranges::find(space_->degrees(), t[s]);
            if (at == space_->degrees().end()) throw invalid_input("plan: tensor parallelism of degree ", t[s], ": the space of plans has none");
            d[space_->tensor_of(s)] = static_cast<std::uint32_t>(1 + (at - space_->degrees().begin()));
        }
        return;
    }
    auto const m = plan.how.micro_batches;
    // Of operators for which `counts`, how many are as textbooks have them; none where they may not be.
    auto const alike = [&](space::neighbour_split by, auto const& counts) -> std::ptrdiff_t {
        if (!space_->has(by, group) || !builder_->allows(m, group, by)) return -1;
        auto const& s = builder_->strategy(m, group, by);
        return std::ranges::count_if(builder_->order(), [&](auto op) { return counts(op) && relative(plan, op) == s[op]; });
    };
    auto const best = std::ranges::max(space_->splits(), {}, [&](auto const& by) { return alike(by, [](auto) { return true; }); });
    choose(best);
    for (std::uint32_t s = 0; s < plan.how.stages && space_->degrees().size() > 1; ++s) {
        auto const in_stage = [&](std::uint32_t tensor) {
            auto by = best;
            by.tensor = tensor;
            return alike(by, [&](auto op) { return plan.how.stage[op] == s; });
        };
        auto const at = std::ranges::max_element(space_->degrees(), {}, in_stage);
        if (in_stage(*at) > in_stage(best.tensor)) d[space_->tensor_of(s)] = static_cast<std::uint32_t>(1 + (at - space_->degrees().begin()));
    }
}

PARSEARCH_INLINE void plan_maker::set_beginnings(plan_decisions& d, pipelining const& how) {
    auto const& order = builder_->order();
    auto const& g = problem_->graph();
    std::vector<std::size_t> first;
    for (std::size_t i = 0; i < order.size(); ++i) {
        auto const s = how.stage[order[i]];
        if (s == first.size()) first.push_back(i);
        else if (s + 1 != first.size())
            throw invalid_input("plan: operator '", g.names[order[i]], "' of stage ", s, " is out of place: the space of plans has stages of ",
                                "neighbours in topological order, each of at least one");
    }
    if (first.size() != how.stages) throw invalid_input("plan: stage ", first.size(), " has no operators: must have at least one");
    auto const by = space_->splits()[d[plan_space::number(plan_decision::split)]];
    if (!builder_->allows(how.micro_batches, space_->group(d), by)) throw invalid_input("plan: ", not_allowed);
    auto const& equal = balanced(how.stages, how.interleaved, how.micro_batches, by);
    auto const& places = builder_->places().of(how.stages);
    for (std::size_t s = 1; s < first.size(); ++s) {
        auto const at = std::ranges::lower_bound(places, first[s]);
        if (at == places.end() || *at != first[s])
            throw invalid_input("plan: stage ", s, " begins with operator '", g.names[order[first[s]]],
                                "': the space of plans has stages that begin between blocks, unless 'cuts_anywhere'");
        d[space_->beginning_of(s)] = plan_space::number_of_shift(at - std::ranges::lower_bound(places, equal.first[s]));
    }
}

PARSEARCH_INLINE void plan_maker::set_recomputation(plan_decisions& d, pipelining const& how) {
    bool const first = how.recomputes(0);
    bool any = first;
    for (std::uint32_t s = 1; s < how.stages; ++s) {
        any = any || how.recomputes(s);
        if (how.recomputes(s) != first) d[space_->recompute_of(s)] = 1;
    }
    bool const offloads = how.offloads();
    if (!any && !offloads) return;
    if (offloads && (!rules_.may_offload() || !builder_->may_offload()))
        throw invalid_input("plan: activations are offloaded: the space of plans has none that are");
    if (any && !rules_.may_recompute()) throw invalid_input("plan: stages compute again: the space of plans has none that do");
    if (first) d[plan_space::number(plan_decision::recompute)] = 1;
    auto const same = [&](pipelining const& other) {
        return std::ranges::all_of(builder_->order(), [&](auto op) {
            return (!how.recomputes(how.stage[op]) && !offloads) ||
                   (how.segment_of(op) == other.segment_of(op) && how.computes_again(op) == other.computes_again(op) &&
                    how.offloads(op) == other.offloads(op));
        });
    };
    for (std::uint32_t n = 0; n < space_->segments().size(); ++n)
        for (std::uint32_t kept = 0; kept == 0 || (any && kept < space_->segments()[n]); ++kept) {
            bool other_segments = false;
            for (std::uint32_t offloaded = offloads ? 1 : 0; offloaded <= (offloads ? space_->segments()[n] : 0) && !other_segments; ++offloaded) {
                d[plan_space::number(plan_decision::segments)] = n;
                d[plan_space::number(plan_decision::kept)] = kept;
                d[plan_space::number(plan_decision::offloaded)] = offloaded;
                auto const c = stages(d);
                if (!c) continue;
                auto const made = builder_->plan(*c).how;
                if (same(made)) return;
                other_segments = !how.segment.empty() && !same_segments(how, made);
            }
            if (kept == 0 && other_segments) break;
        }
    throw invalid_input("plan: segments that are computed again or offloaded: the space of plans has up to ", most_segments,
                        " of about equal load in each stage, of which the last keep their activations, and some, evenly among them, are offloaded");
}

PARSEARCH_INLINE void plan_maker::set_joined(plan_decisions& d, pipelining const& how) {
    if (how.sharded < sharded_states::gradients) return;
    std::map<std::uint32_t, std::uint32_t> first; // blocks, numbered as they come in topological order
    std::vector<std::uint32_t> blocks;
    for (auto const op : builder_->order())
        blocks.push_back(first.try_emplace(how.block_of(op), static_cast<std::uint32_t>(first.size())).first->second);
    for (std::uint32_t n = 0; n < space_->joined().size(); ++n) {
        d[plan_space::number(plan_decision::joined)] = n;
        auto const c = stages(d);
        if (c && builder_->places().blocks_of_stages(c->first, builder_->order().size(), c->joined) == blocks) return;
    }
    if (auto const why = why_not(d); !why.empty()) throw invalid_input("plan: ", why);
    throw invalid_input("plan: blocks of weights that are gathered together: the space of plans has those between places where stages may begin");
}

PARSEARCH_INLINE void plan_maker::set_operators(plan_decisions& d, pipeline_plan const& plan) {
    auto const& g = problem_->graph();
    auto const m = plan.how.micro_batches;
    auto const group = space_->group(d);
    auto const as_stages = builder_->plan(*stages(d)).strategy;
    auto const& splits = space_->splits();
    for (std::size_t tie = 0; tie < space_->ties().size(); ++tie) {
        auto const& tied = space_->ties().of(tie);
        if (g.operations[tied.front()].work == ops::work_class::source) continue;
        auto& n = d[space_->first_of_operators() + tie];
        if (std::ranges::all_of(tied, [&](auto op) { return plan.strategy[op] == as_stages[op]; })) continue;
        auto const c = relative(plan, tied.front());
        for (auto const op : tied)
            if (!(relative(plan, op) == c))
                throw invalid_input("plan: operators '", g.names[tied.front()], "' and '", g.names[op],
                                    "', which are tied, have different configurations: must have one");
        for (std::uint32_t by = 0; by < splits.size() && n == 0; ++by)
            if (space_->has(splits[by], group) && builder_->strategy(m, group, splits[by])[tied.front()] == c) n = 1 + by;
        if (n > 0) continue;
        auto const& all = space_->strategies().of(tied.front());
        auto const split = all.split_of(c);
        if (split != all.splits())
            for (auto [i, end] = all.placements_of(split); i < end && n == 0; ++i)
                if (all[i] == c) n = static_cast<std::uint32_t>(1 + splits.size() + i);
        if (n == 0)
            throw invalid_input("plan: operator '", g.names[tied.front()], "' has the configuration ",
                                space::to_string(plan.strategy[tied.front()], g.operations[tied.front()]), ": the space of plans does not have it");
    }
}

} // namespace parsearch::pipeline
