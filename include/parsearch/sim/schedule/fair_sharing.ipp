#pragma once
// Schedules of task graphs in which all messages and collectives that are on their way share the links at max-min fair rates.

#include <cmath>

#include <parsearch/core/interruption.hpp>
#include <parsearch/sim/schedule/fair_sharing.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE void fair_rates::find(std::span<std::vector<use> const> flows, std::vector<double>& rate) {
    rate.assign(flows.size(), std::numeric_limits<double>::infinity());
    links_.clear();
    for (std::uint32_t f = 0; f < flows.size(); ++f)
        for (auto const& u : flows[f]) {
            if (!(u.time_per_byte > 0)) continue;
            if (on_[u.link].empty()) {
                links_.push_back(u.link);
                load_[u.link] = used_[u.link] = 0;
                rising_[u.link] = 0;
            }
            on_[u.link].push_back(f);
            load_[u.link] += u.time_per_byte;
            ++rising_[u.link];
        }
    next_ = {};
    least_ = 0;
    for (auto const l : links_) {
        first_load_[l] = load_[l];
        push(l, flows, rate);
    }
    while (!next_.empty()) {
        auto const [level, link, version] = next_.top();
        next_.pop();
        if (version != version_[link]) continue;
        least_ = level;
        for (auto const f : on_[link]) {
            if (rate[f] != std::numeric_limits<double>::infinity()) continue;
            rate[f] = level;
            for (auto const& u : flows[f]) {
                if (!(u.time_per_byte > 0)) continue;
                used_[u.link] += unfused(level * u.time_per_byte);
                load_[u.link] -= u.time_per_byte;
                --rising_[u.link];
                ++version_[u.link];
                touched_.push_back(u.link);
            }
        }
        for (auto const l : touched_) push(l, flows, rate);
        touched_.clear();
    }
    for (auto const l : links_) on_[l].clear();
}

PARSEARCH_INLINE void fair_rates::push(std::uint32_t l, std::span<std::vector<use> const> flows, std::vector<double> const& rate) {
    if (rising_[l] == 0) return;
    if (load_[l] < first_load_[l] * 0x1p-20) { // most of the digits are gone
        load_[l] = 0;
        for (auto const f : on_[l])
            if (rate[f] == std::numeric_limits<double>::infinity())
                for (auto const& u : flows[f])
                    if (u.link == l) load_[l] += u.time_per_byte;
        first_load_[l] = load_[l];
    }
    // Rates only rise, but for rounding.
    next_.push({std::max(least_, (1 - used_[l]) / load_[l]), l, version_[l]});
}

PARSEARCH_INLINE bool fair_scheduler::run(task_graph const& g, discipline order, schedule& out, std::int64_t bound) {
    begin(g, out);
    if (order == discipline::in_order) sort_by_device();
    for (;;) {
        require_running(stop_);
        auto const arrival = next_arrival(), start = next_start(), ready = ready_.empty() ? never : ready_.top().time;
        now_ = std::min({arrival, start, ready});
        if (now_ == never) break;
        if (now_ > bound) return false;
        advance();
        // What ends comes first, then what begins to flow, so that all that is ready now is known before one of it is taken.
        if (arrival == now_) end_flows();
        else if (start == now_) start_flows();
        else if (!take(order, bound)) return false;
    }
    for (std::uint32_t t = 0; t < g.size(); ++t)
        if (out.end[t] == unknown) out.ready[t] = out.start[t] = out.end[t] = out.makespan = never;
    return out.makespan <= bound;
}

PARSEARCH_INLINE void fair_scheduler::begin(task_graph const& g, schedule& out) {
    graph_ = &g;
    out_ = &out;
    auto const n = g.size();
    out.ready.assign(n, 0);
    out.start.assign(n, 0);
    out.end.assign(n, unknown);
    out.makespan = 0;
    free_at_.assign(g.resources, 0);
    waits_for_.resize(n);
    first_successor_.assign(n + std::size_t{2}, 0);
    for (auto const p : g.predecessors) ++first_successor_[p + 2];
    for (std::uint32_t t = 0; t < n; ++t) first_successor_[t + 2] += first_successor_[t + 1];
    successors_.resize(g.predecessors.size());
    for (std::uint32_t t = 0; t < n; ++t) {
        waits_for_[t] = g.first_predecessor[t + 1] - g.first_predecessor[t];
        for (auto const p : g.before(t)) successors_[first_successor_[p + 1]++] = t;
    }
    ready_ = {};
    starts_ = {};
    active_.clear();
    uses_.clear();
    last_ = 0;
    for (std::uint32_t t = 0; t < n; ++t)
        if (waits_for_[t] == 0) ready_.push({0, t});
}

PARSEARCH_INLINE void fair_scheduler::sort_by_device() {
    program_.assign(devices_, {});
    next_in_program_.assign(devices_, 0);
    is_ready_.assign(graph_->size(), false);
    for (std::uint32_t t = 0; t < graph_->size(); ++t)
        if (!flows(t) && graph_->kind[t] != task_kind::barrier) program_[graph_->resource[t]].push_back(t);
}

PARSEARCH_INLINE void fair_scheduler::advance() {
    auto const passed = static_cast<double>(now_ - last_);
    for (std::size_t f = 0; f < active_.size() && now_ > last_; ++f)
        active_[f].bytes_left = std::max(0.0, active_[f].bytes_left - unfused(rate_[f] * passed));
    last_ = now_;
}

PARSEARCH_INLINE void fair_scheduler::end_task(std::uint32_t t, std::int64_t at) {
    out_->end[t] = at;
    out_->makespan = std::max(out_->makespan, at);
    for (auto i = first_successor_[t]; i < first_successor_[t + 1]; ++i) {
        auto const s = successors_[i];
        out_->ready[s] = std::max(out_->ready[s], at);
        if (--waits_for_[s] == 0) ready_.push({out_->ready[s], s});
    }
}

PARSEARCH_INLINE void fair_scheduler::end_flows() {
    std::size_t kept = 0;
    for (std::size_t f = 0; f < active_.size(); ++f) {
        if (active_[f].arrives == now_) {
            for (auto t = active_[f].first, last = last_of(t); t < last; ++t) end_task(t, now_);
            continue;
        }
        if (kept != f) {
            active_[kept] = active_[f];
            uses_[kept] = std::move(uses_[f]);
        }
        ++kept;
    }
    active_.resize(kept);
    uses_.resize(kept);
    share();
}

PARSEARCH_INLINE void fair_scheduler::start_flows() {
    for (; !starts_.empty() && starts_.top().time == now_; starts_.pop()) {
        auto const first = starts_.top().task;
        flow f{.first = first};
        std::vector<fair_rates::use> uses;
        for (auto t = first, last = last_of(first); t < last; ++t) {
            out_->start[t] = now_;
            auto const link = graph_->resource[t] - static_cast<std::uint32_t>(devices_);
            f.bytes_left = std::max(f.bytes_left, unfused(static_cast<double>(graph_->duration[t]) * bytes_per_picosecond_[link]));
            uses.push_back({link, static_cast<double>(graph_->duration[t])});
        }
        for (auto& u : uses) u.time_per_byte = f.bytes_left > 0 ? u.time_per_byte / f.bytes_left : 0;
        active_.push_back(f);
        uses_.push_back(std::move(uses));
    }
    share();
}

PARSEARCH_INLINE void fair_scheduler::share() {
    rates_.find(uses_, rate_);
    for (std::size_t f = 0; f < active_.size(); ++f) {
        double const exact = active_[f].bytes_left / rate_[f];
        // Less what rounding may have added: a flow that is alone takes the time of its longest task.
        double const left = std::ceil(exact - unfused(exact * 0x1p-50) - 0x1p-20);
        active_[f].arrives = left < 0x1p62 ? saturating_sum(now_, static_cast<std::int64_t>(std::max(0.0, left))) : never;
    }
}

PARSEARCH_INLINE bool fair_scheduler::take(discipline order, std::int64_t bound) {
    auto const t = ready_.top().task;
    ready_.pop();
    if (flows(t)) {
        // The others are ready too: their predecessors are the same.
        if (graph_->ties[t].task == t) starts_.push({saturating_sum(now_, graph_->ties[t].latency), t});
        return true;
    }
    if (graph_->kind[t] == task_kind::barrier) {
        out_->start[t] = now_;
        end_task(t, now_);
        return true;
    }
    if (order == discipline::fifo) return compute(t, bound);
    is_ready_[t] = true;
    auto const device = graph_->resource[t];
    auto const& program = program_[device];
    for (auto& next = next_in_program_[device]; next < program.size() && is_ready_[program[next]]; ++next)
        if (!compute(program[next], bound)) return false;
    return true;
}

PARSEARCH_INLINE bool fair_scheduler::compute(std::uint32_t t, std::int64_t bound) {
    auto& free_at = free_at_[graph_->resource[t]];
    out_->start[t] = std::max(out_->ready[t], free_at);
    free_at = saturating_sum(out_->start[t], graph_->duration[t]);
    end_task(t, free_at);
    return free_at <= bound;
}

} // namespace parsearch::sim
