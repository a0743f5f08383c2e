#pragma once
// The task graph of a pipeline: that of one micro-batch, once for each of them, in the order in which stages launch.

#include <algorithm>

#include <parsearch/pipeline/unroll.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE void unroller::run(sim::task_graph const& one, graph::dense_graph const& g, std::uint32_t devices, pipelining const& how,
                                    shared_blocks const& shared, offload_plan const& offloaded, bool launch_in_order, sim::task_graph& out,
                                    std::vector<task_origin>& origins) {
    one_ = &one;
    out_ = &out;
    offloaded_ = &offloaded;
    origins_ = &origins;
    how_ = &how;
    shared_ = &shared;
    sort_tasks(g);
    first_host_ = one.resources - 1;
    out.clear(one.resources + (offloaded.empty() ? 0 : 2 * devices));
    on_.assign(offloaded.empty() ? 0 : devices, {});
    copied_.clear();
    origins.clear();
    transfers_.clear();
    number_.assign(how.micro_batches, std::vector<std::uint32_t>(one.size(), none));
    if (cuts_backward(how.order)) of_weights_ = number_;
    again_.assign(one.size(), none);
    previous_.assign(launch_in_order ? devices : 0, none);
    now_.assign(how.launching().groups(), {});
    before_it_.assign(now_.size(), {});
    reductions_.clear();
    for (auto const& [number, b] : shared.blocks)
        reductions_[number].left.assign(how.micro_batches, static_cast<std::uint32_t>(b.contributors.size()));
    std::vector<std::uint32_t> left(how.stages, how.micro_batches);
    launches_ = launches(how.launching(), last_backward_ != none);
    first_task_.clear();
    first_transfer_.clear();
    for (auto const& l : launches_) {
        first_task_.push_back(out.size());
        first_transfer_.push_back(transfers_.size());
        switch (l.pass) {
        case launch_pass::forward: add_forward(l.stage, l.micro_batch); break;
        case launch_pass::backward: add_backward(l.stage, l.micro_batch, !cuts_backward(how.order) && --left[l.stage] == 0); break;
        case launch_pass::weight_gradients: add_weight_gradients(l.stage, l.micro_batch, --left[l.stage] == 0); break;
        }
    }
    first_task_.push_back(out.size());
    first_transfer_.push_back(transfers_.size());
    for (auto const t : tail_) add_once(t, how.order == launch_order::gpipe ? 0 : how.micro_batches - 1);
}

PARSEARCH_INLINE void unroller::sort_tasks(graph::dense_graph const& g) {
    auto const& one = *one_;
    forward_.assign(how_->stages, {});
    backward_.assign(how_->stages, {});
    again_in_.resize(how_->stages);
    tail_.clear();
    part_.resize(one.size());
    stage_.resize(one.size());
    segment_.resize(one.size());
    last_backward_ = none;
    for (std::uint32_t t = 0; t < one.size(); ++t)
        if (one.kind[t] == sim::task_kind::backward) last_backward_ = t;
    runs_again_ = detail::computed_again(g, *how_);
    share_.assign(g.size(), 0);
    for (std::size_t op = 0; op < g.size() && cuts_backward(how_->order); ++op) share_[op] = weight_gradient_share(g, op);
    std::vector<bool> of_several(one.size(), false); // stages
    for (std::uint32_t t = 0; t < one.size(); ++t) {
        auto const& label = one.label[t];
        auto const s = how_->stage[label.op], segment = how_->segment_of(label.op);
        if (one.kind[t] == sim::task_kind::update || synchronises(one, t)) {
            part_[t] = part::once;
            stage_[t] = how_->stages - 1; // then where gradients come last
            segment_[t] = none;
            for (auto const p : one_->before(t)) {
                std::tie(stage_[t], segment_[t]) = std::min(std::pair(stage_[t], segment_[t]), std::pair(stage_[p], segment_[p]));
                of_several[t] = of_several[t] || of_several[p] || stage_[p] != stage_[one_->before(t).front()];
            }
            bool const at_end = last_backward_ == none || t > last_backward_ || (of_several[t] && cuts_backward(how_->order));
            if (!is_replaced(t)) (at_end ? tail_ : backward_[stage_[t]]).push_back(t);
        } else if (one.kind[t] == sim::task_kind::backward || (moves(t) && label.traffic == sim::traffic_kind::gradient)) {
            part_[t] = part::backward;
            stage_[t] = s;
            segment_[t] = segment;
            backward_[s].push_back(t);
        } else {
            bool arrives = false;
            if (moves(t) && label.edge != sim::task_label::no_edge) {
                auto const& e = g.edges[label.edge];
                // What is passed on in a ring within a stage was kept in parts, and comes again.
                arrives = detail::enters(g, *how_, e) &&
                          !(g.operations[e.consumer].inputs[e.input].passed_on && how_->stage[e.producer] == how_->stage[e.consumer]);
            }
            part_[t] = arrives ? part::arrival : part::forward;
            stage_[t] = s;
            segment_[t] = segment;
            forward_[s].push_back(t);
        }
    }
    auto const offload = offloading_stages(g, *how_);
    for (std::uint32_t s = 0; s < how_->stages; ++s) {
        again_in_[s].clear();
        if (!how_->recomputes(s) && !offload[s]) continue;
        for (auto const t : forward_[s])
            if (part_[t] == part::forward && runs_again_[one.label[t].op]) again_in_[s].push_back(t);
        auto const last_first = [&](auto a, auto b) { return segment_[a] > segment_[b]; };
        if (offload[s]) std::ranges::stable_sort(forward_[s], {}, [&](auto t) { return segment_[t]; });
        std::stable_sort(again_in_[s].begin(), again_in_[s].end(), last_first);
        std::stable_sort(backward_[s].begin(), backward_[s].end(), last_first);
    }
}

PARSEARCH_INLINE std::uint32_t unroller::add_transfer(std::uint32_t block, std::uint32_t m, block_transfer what,
                                                      shared_block::link_times const& links) {
    auto const first = shared_->blocks.at(block).first;
    task_origin const origin{.task = first, .micro_batch = m, .moves = what};
    transfers_.emplace_back(block, what);
    auto const& label = one_->label[first];
    auto const add_task = [&](std::uint32_t resource, std::int64_t time, sim::task_kind kind) {
        origins_->push_back(origin);
        return out_->add(resource, time, kind, label);
    };
    auto const barrier = out_->resources - 1;
    auto const begin = add_task(barrier, 0, sim::task_kind::barrier);
    for (auto const& [link, time] : links) {
        out_->after(begin);
        add_task(link, time, sim::task_kind::collective);
    }
    for (auto t = begin + 1; t < out_->size(); ++t) out_->after(t);
    if (links.empty()) out_->after(begin);
    return add_task(barrier, 0, sim::task_kind::barrier);
}

PARSEARCH_INLINE std::uint32_t unroller::turn_to(std::uint32_t t, std::uint32_t m, bool backward) {
    auto const device = one_->resource[t];
    auto& on = on_[device];
    auto& now = on.now;
    detail::stage_segment const segment{stage_[t], segment_[t]};
    if (now.segment == segment && now.micro_batch == m) {
        now.backward = backward;
        return none;
    }
    if (auto const old = offloaded_->find({device, now.segment}); old != offloaded_->end()) {
        auto over = now.last;
        if (!now.backward) {
            out_->after(now.last);
            over = add_copy(device, old->second, {.task = now.last_task, .micro_batch = now.micro_batch, .copies = host_copy::to_host});
            copied_[{device, now.segment, now.micro_batch}] = over;
        }
        on.over_before = std::exchange(on.over, over);
    }
    now = {.segment = segment, .micro_batch = m, .backward = backward};
    auto const own = offloaded_->find({device, segment});
    if (own == offloaded_->end()) return none;
    if (!backward) return on.over_before;
    out_->after(copied_.at({device, segment, m}));
    if (on.over_before != none) out_->after(on.over_before);
    return add_copy(device, own->second, {.task = t, .micro_batch = m, .copies = host_copy::from_host});
}

PARSEARCH_INLINE void unroller::come_to(std::uint32_t s, std::uint32_t t, std::uint32_t m, bool backward) {
    if (moves(t)) return;
    auto const there = on_.empty() ? none : turn_to(t, m, backward);
    come_to_block(s, t, m);
    if (there != none) out_->after(there);
}

PARSEARCH_INLINE void unroller::come_to_block(std::uint32_t s, std::uint32_t t, std::uint32_t m) {
    if (shared_->blocks.empty()) return;
    auto const block = how_->block_of(one_->label[t].op);
    auto const group = how_->launching().group_of(s);
    auto& now = now_[group];
    if (now.block != block) {
        auto const over = std::exchange(before_it_[group], std::exchange(now, visit{.block = block}));
        if (auto const at = shared_->blocks.find(block); at != shared_->blocks.end() && !at->second.gather.empty()) {
            for (auto const& [device, last] : over.last) out_->after(last);
            for (auto const r : over.reductions) out_->after(r);
            now.waits_for = {add_transfer(block, m, block_transfer::gather, at->second.gather)};
        } else {
            now.waits_for = over.reductions;
        }
    }
    if (!shared_->waits[one_->label[t].op]) return;
    for (auto const w : now.waits_for) out_->after(w);
}

PARSEARCH_INLINE void unroller::leave(std::uint32_t s, std::uint32_t t, std::uint32_t m, std::uint32_t number) {
    if (moves(t)) return;
    if (!on_.empty()) {
        auto& here = on_[one_->resource[t]].now;
        here.last = number;
        here.last_task = t;
    }
    if (shared_->blocks.empty()) return;
    auto& now = now_[how_->launching().group_of(s)];
    now.last[one_->resource[t]] = number;
    auto const block = shared_->reduced_with[t];
    if (one_->kind[t] != sim::task_kind::backward || block == none) return;
    auto& b = reductions_.at(block);
    if (--b.left[m] > 0) return;
    auto const& of_block = shared_->blocks.at(block);
    for (auto const c : of_block.contributors) out_->after(number_[m][c]);
    auto const reduced = add_transfer(block, m, block_transfer::reduce, of_block.reduce);
    now.reductions.push_back(reduced);
    b.reduced.push_back(reduced);
    if (of_block.once.empty() || b.reduced.size() < how_->micro_batches) return;
    for (auto const r : b.reduced) out_->after(r);
    bool const nodes = how_->sharded == sharded_states::parameters_within_nodes;
    b.reduced = {add_transfer(block, m, nodes ? block_transfer::all_reduce : block_transfer::gather, of_block.once)};
}

PARSEARCH_INLINE void unroller::add(std::uint32_t t, task_origin origin, std::uint32_t& number, std::int64_t duration) {
    auto const r = one_->resource[t];
    if (r < previous_.size() && previous_[r] != none) out_->after(previous_[r]);
    number = out_->add(r < first_host_ ? r : out_->resources - 1, duration, one_->kind[t], one_->label[t]);
    if (r < previous_.size()) previous_[r] = number;
    origins_->push_back(origin);
}

PARSEARCH_INLINE void unroller::add_forward(std::uint32_t stage, std::uint32_t m) {
    for (auto const t : forward_[stage]) {
        come_to(stage, t, m, false);
        for (auto const p : one_->before(t)) out_->after(number_[m][p]);
        add(t, {t, m, false}, number_[m][t]);
        leave(stage, t, m, number_[m][t]);
    }
}

PARSEARCH_INLINE void unroller::add_backward(std::uint32_t stage, std::uint32_t m, bool last) {
    bool const recompute = how_->recomputes(stage);
    std::size_t next = 0; // forward task to be computed again
    auto const compute_again = [&](std::uint32_t segment) {
        auto const& tasks = again_in_[stage];
        while (next < tasks.size() && segment_[tasks[next]] > segment) ++next; // done, or nothing goes back there
        for (; next < tasks.size() && segment_[tasks[next]] == segment; ++next) {
            come_to(stage, tasks[next], m, true);
            for (auto const p : one_->before(tasks[next])) out_->after(recomputed(p, tasks[next], m));
            add(tasks[next], {tasks[next], m, true}, again_[tasks[next]]);
            leave(stage, tasks[next], m, again_[tasks[next]]);
        }
    };
    for (auto const t : backward_[stage]) {
        if (part_[t] == part::once) {
            if (last) add_once(t, m);
            continue;
        }
        if (recompute) compute_again(segment_[t]);
        come_to(stage, t, m, true);
        for (auto const p : one_->before(t)) out_->after(recompute ? recomputed(p, t, m) : number_[m][p]);
        add(t, {t, m, false}, number_[m][t], one_->duration[t] - weights_time(t));
        leave(stage, t, m, number_[m][t]);
    }
}

PARSEARCH_INLINE void unroller::add_weight_gradients(std::uint32_t stage, std::uint32_t m, bool last) {
    for (auto const t : backward_[stage]) {
        if (part_[t] == part::once) {
            if (last) add_once(t, m);
        } else if (is_cut(t)) {
            out_->after(number_[m][t]);
            add(t, {.task = t, .micro_batch = m, .weights = true}, of_weights_[m][t], weights_time(t));
        }
    }
}

PARSEARCH_INLINE void unroller::add_once(std::uint32_t t, std::uint32_t m) {
    for (auto const p : one_->before(t)) {
        if (is_replaced(p))
            for (auto const r : reductions_.at(shared_->reduced_with[p]).reduced) out_->after(r);
        else if (part_[p] == part::once) out_->after(number_.front()[p]);
        else
            for (auto const& of : is_cut(p) ? of_weights_ : number_) out_->after(of[p]);
    }
    add(t, {t, m, false}, number_.front()[t]);
}

} // namespace parsearch::pipeline
