#pragma once
// The steady phase of a pipeline: rounds that take the same time each, of which a longer pipeline has more.

#include <algorithm>

#include <parsearch/pipeline/folding/steady_phase.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE std::optional<steady_phase> steady_phase_finder::find(scheduled_pipeline const& p, std::uint32_t micro_batches, std::uint32_t unit,
                                                                       std::uint32_t most) {
    auto const launches = p.launched.size();
    auto const of_unit = launches / micro_batches * unit;
    overtaken_.reset();
    for (std::uint32_t k = 1; k <= most && 2 * k * of_unit < launches; ++k)
        if (auto found = with_period(p, k * unit, k * of_unit)) return found;
    return {};
}

PARSEARCH_INLINE std::optional<steady_phase> steady_phase_finder::with_period(scheduled_pipeline const& p, std::uint32_t micro_batches,
                                                                              std::size_t launches) {
    // The longest run of launches that are as those a period before, later by one time.
    std::size_t first = 0, last = 0, begin = launches;
    std::int64_t now = no_shift;
    for (auto i = launches; i <= p.launched.size(); ++i) {
        auto const shift = i < p.launched.size() ? shift_of(p, i, i - launches, micro_batches, now) : no_shift;
        if (shift == now && shift != no_shift) continue;
        if (now != no_shift && i - begin > last - first) std::tie(first, last) = std::pair(begin, i);
        begin = i;
        now = shift;
        if (now == no_shift) begin = i + 1;
    }
    if (last - first < launches) return {};
    zone const z{.begin = p.first_tasks[first - launches],
                 .end = p.first_tasks[last],
                 .period = p.first_tasks[first] - p.first_tasks[first - launches],
                 .time = shift_of(p, first, first - launches, micro_batches, no_shift)};
    if (z.time <= 0 || z.period == 0 || !may_grow(p, z)) return {};
    return steady_phase{.micro_batches = micro_batches, .time = z.time, .launch = first, .launches = launches};
}

PARSEARCH_INLINE std::int64_t steady_phase_finder::shift_of(scheduled_pipeline const& p, std::size_t i, std::size_t j, std::uint32_t micro_batches,
                                                            std::int64_t known) {
    auto const &a = p.launched[i], &b = p.launched[j];
    if (a.stage != b.stage || a.pass != b.pass || a.micro_batch != b.micro_batch + micro_batches) return no_shift;
    auto const from = p.first_tasks[i], count = p.first_tasks[i + 1] - from, to = p.first_tasks[j];
    if (count == 0 || p.first_tasks[j + 1] - to != count) return count == 0 && p.first_tasks[j + 1] == to ? known : no_shift;
    auto const apart = from - to;
    auto const& when = p.when;
    auto const shift = when.start[from] - when.start[to];
    auto const& g = p.tasks;
    for (std::uint32_t k = 0; k < count; ++k) {
        auto const x = from + k, y = to + k;
        if (when.start[x] - when.start[y] != shift || g.resource[x] != g.resource[y] || g.duration[x] != g.duration[y] || g.kind[x] != g.kind[y])
            return no_shift;
        if (g.resource[x] >= p.chained && when.ready[x] - when.ready[y] != shift) return no_shift;
        auto const of_x = g.before(x), of_y = g.before(y);
        if (!std::ranges::equal(of_x, of_y, [&](auto one, auto other) { return one == other + apart; })) return no_shift;
    }
    return shift;
}

PARSEARCH_INLINE bool steady_phase_finder::may_grow(scheduled_pipeline const& p, zone const& z) {
    auto const length = z.end - z.begin;
    if (length < std::uint64_t{4} * overtaken(p) + std::uint64_t{2} * z.period) return false;
    auto const& g = p.tasks;
    busy_.assign(g.resources, false);
    for (auto x = z.begin; x < z.end; ++x) busy_[g.resource[x]] = true;
    std::int64_t last_end = 0;
    for (auto x = z.begin; x < g.size(); ++x) {
        last_end = std::max(last_end, p.when.end[x]);
        bool const in_turn = g.resource[x] < p.chained && busy_[g.resource[x]]; // behind what its device did in the zone
        if (p.origins[x].again && in_turn) continue;
        auto const before = g.before(x);
        if (before.empty() && x >= z.end && !in_turn) return false;
        auto const is_far = [&](std::uint32_t q) { return x - q + z.period > length && !(in_turn && g.resource[q] == g.resource[x]); };
        if (std::ranges::none_of(before, is_far)) continue;
        if (x < z.end || !waits_for_later_ones(p, z, before, p.when.ready[x])) return false;
    }
    return last_end == p.when.makespan && has_time_between(p, z);
}

PARSEARCH_INLINE bool steady_phase_finder::waits_for_later_ones(scheduled_pipeline const& p, zone const& z, std::span<std::uint32_t const> before,
                                                                std::int64_t ready) {
    std::int64_t latest = 0;
    later_.clear();
    for (auto const q : before)
        if (q + z.period >= z.end) {
            latest = std::max(latest, p.when.end[q]);
            later_.push_back(q);
        }
    auto const is_known = [&](std::uint32_t q) {
        return q + z.period >= z.end || std::ranges::any_of(later_, [&](std::uint32_t other) {
                   auto a = p.origins[q];
                   auto const& b = p.origins[other];
                   a.micro_batch = b.micro_batch;
                   return a == b && p.tasks.resource[q] == p.tasks.resource[other];
               });
    };
    return latest == ready && std::ranges::all_of(before, is_known);
}

PARSEARCH_INLINE bool steady_phase_finder::has_time_between(scheduled_pipeline const& p, zone const& z) {
    auto const& g = p.tasks;
    used_.assign(g.resources, false);
    for (std::uint32_t x = 0; x < z.begin; ++x) used_[g.resource[x]] = true;
    for (auto x = z.end; x < g.size(); ++x)
        if (auto const r = g.resource[x]; !busy_[r] && used_[r] && g.kind[x] != sim::task_kind::barrier && p.when.start[x] != p.when.ready[x])
            return false;
    return true;
}

PARSEARCH_INLINE std::uint32_t steady_phase_finder::overtaken(scheduled_pipeline const& p) {
    if (overtaken_) return *overtaken_;
    auto const& g = p.tasks;
    latest_.resize(g.resources);
    for (auto& l : latest_) l.clear();
    std::uint32_t most = 0;
    for (std::uint32_t x = 0; x < g.size(); ++x) {
        if (g.resource[x] < p.chained || g.kind[x] == sim::task_kind::barrier) continue;
        auto& latest = latest_[g.resource[x]]; // those that are ready later than all before them
        auto const ready = p.when.ready[x];
        if (latest.empty() || latest.back().first <= ready) {
            latest.emplace_back(ready, x);
            continue;
        }
        auto const first = std::ranges::upper_bound(latest, ready, {}, &std::pair<std::int64_t, std::uint32_t>::first);
        most = std::max(most, x - first->second);
    }
    overtaken_ = most;
    return most;
}

} // namespace parsearch::pipeline
