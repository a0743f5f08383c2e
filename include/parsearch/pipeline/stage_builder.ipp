#pragma once
// Candidates of `partition`, the pipelines that they stand for, and what these take at least.

#include <limits>
#include <numeric>

#include <parsearch/concepts/cost_oracle.hpp>
#include <parsearch/pipeline/stage_builder.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>

namespace parsearch::pipeline::detail {

PARSEARCH_INLINE stage_builder::stage_builder(parallelization const& problem, bool cuts_anywhere)
    : graph_(&problem.graph()), topology_(&problem.topology()), oracle_(&problem.workload()->oracle), training_(problem.options().training),
      replicas_(problem.options().replicas), simulator_(problem) {
    for (auto const op : graph_->order)
        if (graph_->operations[op].work != ops::work_class::source) order_.push_back(op);
    place_.resize(graph_->size());
    for (std::size_t i = 0; i < order_.size(); ++i) place_[order_[i]] = i;
    places_ = stage_places(*graph_, order_, cuts_anywhere);
    experts_ = space::experts_of(*graph_);
    positions_ = space::positions_of(*graph_);
    heads_ = space::splittable_heads(*graph_);
}

PARSEARCH_INLINE std::vector<std::uint32_t> const& stage_builder::degrees(std::size_t group) {
    auto const [at, added] = degrees_.try_emplace(group);
    for (std::uint32_t t = 1; added && t <= group; ++t) {
        if (group % t != 0 || !share_nodes(t)) continue;
        auto const alike = [&](std::uint32_t other) { return strategy(1, group, {.tensor = other}) == strategy(1, group, {.tensor = t}); };
        if (std::ranges::none_of(at->second, alike)) at->second.push_back(t);
    }
    return at->second;
}

PARSEARCH_INLINE bool stage_builder::allows(std::uint32_t micro_batches, std::size_t group, space::neighbour_split by) {
    auto const& options = simulator_.micro_batches(1).space().options();
    if (!options.allows) return true;
    auto const [at, fresh] = allowed_.try_emplace({micro_batches, group, by}, true);
    if (!fresh) return at->second;
    auto const& s = strategy(micro_batches, group, by);
    auto const& g = simulator_.micro_batches(micro_batches).graph();
    // All strides are positive.
    auto const stays = [&](space::configuration const& c) { return c.place(c.shards() - 1) < static_cast<std::int64_t>(group); };
    return at->second = !space::first_not_allowed(options, g, s) && std::ranges::all_of(order_, [&](auto op) { return stays(s[op]); });
}

PARSEARCH_INLINE std::vector<space::neighbour_split> stage_builder::context_splits(std::size_t group, std::uint32_t tensor, bool most) const {
    std::vector<space::neighbour_split> out;
    for (std::uint32_t c = 2; std::size_t{c} * tensor <= group; ++c) {
        if (group % (std::size_t{c} * tensor) != 0 || positions_ % (std::int64_t{c} * tensor) != 0) continue;
        out.push_back({.tensor = tensor, .context = c});
        if (tensor > 1) continue;
        for (auto const h : shared_by(heads_, c, most))
            if (h > 1) out.push_back({.context = c, .heads = h});
    }
    return out;
}

PARSEARCH_INLINE candidate stage_builder::balanced(std::size_t stages, std::uint32_t interleaved, std::uint32_t micro_batches,
                                                   space::neighbour_split by) {
    auto const groups = stages / interleaved, group = devices() / groups;
    auto const& t = times(micro_batches, group, by);
    std::vector<std::vector<std::int64_t>> of_stage;
    for (std::size_t s = 0; s < stages; ++s) of_stage.push_back(busiest(t, s % groups * group));
    return {.first = balanced_cuts(of_stage, t.crossing, places_.of(stages)),
            .tensor = std::vector<std::uint32_t>(stages, by.tensor),
            .recompute = std::vector<bool>(stages, false),
            .micro_batches = micro_batches,
            .interleaved = interleaved,
            .experts = by.experts,
            .context = by.context,
            .heads = by.heads};
}

PARSEARCH_INLINE std::int64_t stage_builder::least_time(candidate const& c) {
    auto const stages = c.first.size(), groups = c.groups(), group = devices() / groups;
    std::vector<std::uint32_t> stage(order_.size());
    for (std::size_t s = 0; s < stages; ++s)
        for (auto i = c.first[s]; i < c.end(s, order_.size()); ++i) stage[i] = static_cast<std::uint32_t>(s);
    auto const of = [&](std::size_t i) -> operator_times const& { return times(c.micro_batches, group, c.split(stage[i])); };
    // The longest way that all shards have to wait for, forward to an operator and backward from it.
    std::vector<std::int64_t> head(order_.size(), 0), tail(order_.size(), 0);
    for (std::size_t i = 0; i < order_.size(); ++i)
        for (auto const e : of(i).needed[i]) {
            auto const p = place_[graph_->edges[e].producer];
            head[i] = std::max(head[i], saturating_sum(head[p], of(p).least_forward[p]));
            if (graph_->carries_gradient(graph_->edges[e])) tail[i] = std::max(tail[i], saturating_sum(of(p).least_backward[p], tail[p]));
        }
    std::int64_t least = 0;
    std::vector<std::int64_t> busy(devices());
    for (std::size_t on = 0; on < groups; ++on) {
        auto before = std::numeric_limits<std::int64_t>::max(), after = before;
        std::fill(busy.begin(), busy.end(), 0);
        for (auto s = on; s < stages; s += groups)
            for (auto i = c.first[s]; i < c.end(s, order_.size()); ++i) {
                before = std::min(before, head[i]);
                after = std::min(after, graph_->trains[order_[i]] && training_ && !cuts_backward(c.order) ? tail[i] : 0);
                add_work(of(i), i, on * group, busy);
            }
        auto const most = *std::max_element(busy.begin(), busy.end());
        auto const all =
            most > std::numeric_limits<std::int64_t>::max() / c.micro_batches ? std::numeric_limits<std::int64_t>::max() : most * c.micro_batches;
        least = std::max(least, saturating_sum(saturating_sum(before, all), after));
    }
    return least;
}

PARSEARCH_INLINE pipeline_plan stage_builder::plan(candidate const& c) {
    pipeline_plan out;
    auto const stages = c.first.size(), groups = c.groups(), group = devices() / groups;
    out.how = {.stage = std::vector<std::uint32_t>(graph_->size(), 0),
               .stages = static_cast<std::uint32_t>(stages),
               .interleaved = c.interleaved,
               .micro_batches = c.micro_batches,
               .order = c.order,
               .recompute = c.recompute,
               .sharded = c.sharded};
    if (c.sharded >= sharded_states::gradients) {
        out.how.block.assign(graph_->size(), 0);
        auto const blocks = places_.blocks_of_stages(c.first, order_.size(), c.joined);
        for (std::size_t i = 0; i < order_.size(); ++i) out.how.block[order_[i]] = blocks[i];
    }
    out.tensor_parallel = c.tensor;
    out.expert_parallel = c.experts;
    out.context_parallel = c.context;
    out.context_heads = c.heads;
    out.strategy = strategy(c.micro_batches, group, c.split(0));
    for (std::uint32_t s = 0; s < stages; ++s) {
        auto const& of_stage = strategy(c.micro_batches, group, c.split(s));
        auto const end = c.end(s, order_.size());
        for (auto i = c.first[s]; i < end; ++i) {
            out.how.stage[order_[i]] = s;
            out.strategy[order_[i]] = of_stage[order_[i]];
            out.strategy[order_[i]].start += static_cast<std::int32_t>(s % groups * group);
        }
        if ((c.segments > 1 && c.recompute[s]) || c.offloaded > 0) {
            if (out.how.segment.empty()) out.how.segment.assign(graph_->size(), 0);
            auto const& t = times(c.micro_batches, group, c.split(s));
            auto const of_this = [&](auto const& all) { return std::span(all).subspan(c.first[s], end - c.first[s]); };
            auto const cuts = narrow_cuts(of_this(busiest(t, s % groups * group)), of_this(t.bytes), c.segments);
            auto const kept_from = cuts.size() - std::min<std::size_t>(c.kept, cuts.size());
            if (c.kept > 0 && c.recompute[s]) out.how.kept.resize(graph_->size(), false);
            if (c.offloaded > 0) out.how.offloaded.resize(graph_->size(), false);
            for (auto i = c.first[s]; i < end; ++i) {
                auto const segment = static_cast<std::size_t>(std::upper_bound(cuts.begin(), cuts.end(), i - c.first[s]) - cuts.begin() - 1);
                out.how.segment[order_[i]] = static_cast<std::uint32_t>(segment);
                bool const keeps = c.offloaded > 0 ? is_among(segment, c.kept, c.segments) : segment >= kept_from;
                if (keeps && c.recompute[s]) out.how.kept[order_[i]] = true;
                if (is_among(segment, c.offloaded, c.segments)) out.how.offloaded[order_[i]] = true;
            }
        }
    }
    return out;
}

PARSEARCH_INLINE stage_builder::group_strategy const& stage_builder::on_group(std::uint32_t micro_batches, std::size_t group,
                                                                              space::neighbour_split by) {
    auto const at = strategies_.find({micro_batches, group, by});
    if (at != strategies_.end()) return at->second;
    auto const& micro = simulator_.micro_batches(micro_batches);
    auto const wanted = split_among_neighbours(micro, group, by);
    group_strategy out{.strategy = micro.space().nearest(wanted)};
    for (std::size_t op = 0; op < wanted.size(); ++op)
        if (out.strategy[op].degree == wanted[op].degree) out.strategy[op] = wanted[op];
        else out.as_wanted = false;
    return strategies_.emplace(key{micro_batches, group, by}, std::move(out)).first->second;
}

PARSEARCH_INLINE std::vector<std::uint32_t> stage_builder::shared_by(std::int64_t n, std::size_t group, bool most, std::uint32_t of) const {
    std::vector<std::uint32_t> out;
    auto const all = static_cast<std::uint32_t>(std::gcd(n, static_cast<std::int64_t>(group)));
    for (auto e = all; e > 1; --e)
        if (all % e == 0 && e % of == 0 && (!most || out.empty() || share_nodes(e))) {
            out.push_back(e);
            if (most && share_nodes(e)) break;
        }
    out.push_back(1);
    std::ranges::reverse(out);
    return out;
}

PARSEARCH_INLINE std::vector<std::int64_t> stage_builder::busiest(operator_times const& t, std::size_t start) const {
    std::vector<std::int64_t> out, busy(devices());
    for (std::size_t i = 0; i < order_.size(); ++i) {
        std::fill(busy.begin(), busy.end(), 0);
        add_work(t, i, start, busy);
        out.push_back(*std::max_element(busy.begin(), busy.end()));
    }
    return out;
}

PARSEARCH_INLINE stage_builder::operator_times const& stage_builder::times(std::uint32_t micro_batches, std::size_t group,
                                                                           space::neighbour_split by) {
    if (auto const at = times_.find({micro_batches, group, by}); at != times_.end()) return at->second;
    auto const& of_all = strategy(micro_batches, group, by);
    auto const& plan = simulator_.plan_micro_batch(micro_batches, of_all);
    auto const& g = simulator_.micro_batches(micro_batches).graph();
    operator_times out;
    for (auto const op : order_) {
        auto const& p = plan.operators[op];
        bool const backward = g.trains[op] && training_;
        out.devices.push_back(p.devices);
        out.time.push_back(p.forward);
        for (std::size_t k = 0; backward && k < p.forward.size(); ++k) out.time.back()[k] = saturating_sum(p.forward[k], p.backward[k]);
        out.least_forward.push_back(*std::min_element(p.forward.begin(), p.forward.end()));
        out.least_backward.push_back(backward ? *std::min_element(p.backward.begin(), p.backward.end()) : 0);
        auto& needed = out.needed.emplace_back();
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e)
            if (g.operations[g.edges[e].producer].work != ops::work_class::source && reaches_all(g, g.edges[e], of_all)) needed.push_back(e);
    }
    out.bytes = graph::crossing_sums(g, order_, [&](auto op, auto slot) { return ops::bytes_of(g.operations[op].outputs[slot]); });
    for (auto const b : out.bytes) out.crossing.push_back(group < devices() ? crossing_time(b / static_cast<byte_count>(group), group) : 0);
    return times_.emplace(key{micro_batches, group, by}, std::move(out)).first->second;
}

PARSEARCH_INLINE bool stage_builder::reaches_all(graph::dense_graph const& g, graph::edge const& e, space::flat_strategy const& strategy) {
    auto const& to = g.operations[e.consumer];
    auto const& c = strategy[e.consumer];
    if (to.inputs[e.input].summed) return false; // a share of the partial sums may be empty
    for (std::int64_t n = 0; n < c.shards(); ++n)
        if (ops::shard_elements(to.inputs[e.input], ops::shard_box(to, c.degrees(), n)) == 0) return false;
    return true;
}

PARSEARCH_INLINE std::int64_t stage_builder::crossing_time(byte_count bytes, std::size_t group) const {
    auto const one_way = [&](std::size_t a, std::size_t b) {
        std::int64_t slowest = 0;
        for (auto const l : topology_->route(a, b))
            slowest = std::max(slowest, static_cast<std::int64_t>(oracle_->transfer_time(bytes, topology_->links[l]).count()));
        return slowest;
    };
    return saturating_sum(one_way(0, group), training_ ? one_way(group, 0) : 0);
}

} // namespace parsearch::pipeline::detail
