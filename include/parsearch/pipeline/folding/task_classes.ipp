#pragma once
// Classes of tasks that run at the same times whatever else happens: those of devices that do the same.

#include <algorithm>
#include <unordered_map>

#include <parsearch/pipeline/folding/task_classes.hpp>

namespace parsearch::pipeline {

PARSEARCH_INLINE shared_blocks fold(shared_blocks const& all, task_classes const& classes) {
    shared_blocks out{.waits = all.waits};
    for (auto const& [number, b] : all.blocks) {
        auto const fold_times = [&](shared_block::link_times const& times) {
            shared_block::link_times of_classes;
            for (auto const& [r, time] : times)
                if (classes.is_first(r)) of_classes.emplace_back(classes.of_resource[r], time); // numbered in their order
            return of_classes;
        };
        auto& folded = out.blocks[number] = {.first = b.first == shared_block::none ? b.first : classes.of_task[b.first],
                                             .gather = fold_times(b.gather),
                                             .reduce = fold_times(b.reduce),
                                             .once = fold_times(b.once)};
        for (auto const t : b.contributors) folded.contributors.push_back(classes.of_task[t]);
        make_set(folded.contributors);
    }
    if (!all.reduced_with.empty())
        for (auto const t : classes.task) out.reduced_with.push_back(all.reduced_with[t]);
    return out;
}

PARSEARCH_INLINE offload_plan fold(offload_plan const& all, task_classes const& classes) {
    offload_plan out;
    for (auto const& [where, part] : all)
        if (classes.is_first(where.first)) out.emplace(std::pair(classes.of_resource[where.first], where.second), part);
    return out;
}

PARSEARCH_INLINE bool task_classes_finder::find(sim::task_graph const& one, std::uint32_t devices, shared_blocks const& shared,
                                                offload_plan const& offloaded, task_classes& out) {
    one_ = &one;
    devices_ = devices;
    begin_with(shared, offloaded);
    for (auto known = count_resources();;) {
        refine();
        auto const now = count_resources();
        if (now == known) break;
        known = now;
    }
    number(out);
    return out.tasks.size() < one.size() && hold(out, shared, offloaded);
}

PARSEARCH_INLINE void task_classes_finder::begin_with(shared_blocks const& shared, offload_plan const& offloaded) {
    auto const n = one_->resources;
    of_resource_.assign(n, 0);
    for (std::uint32_t r = 0; r < n; ++r) of_resource_[r] = r < devices_ ? 1 : r < barrier() ? 2 : 3;
    auto const add = [&](std::uint32_t r, std::uint64_t what) { of_resource_[r] = both(of_resource_[r], what); };
    for (auto const& [number, b] : shared.blocks) {
        std::uint64_t kind = number * std::uint64_t{4};
        for (auto const* times : {&b.gather, &b.reduce, &b.once}) {
            for (auto const& [r, time] : *times) add(r, both(kind, static_cast<std::uint64_t>(time)));
            ++kind;
        }
    }
    for (auto const& [where, part] : offloaded)
        add(where.first, both(both(where.second.first, where.second.second), both(static_cast<std::uint64_t>(part.time), part.op)));
    // What does not change from round to round.
    of_task_.resize(one_->size());
    alike_.resize(one_->size());
    for (std::uint32_t t = 0; t < one_->size(); ++t) {
        auto const& who = one_->label[t];
        auto const what = std::uint64_t{who.op} << 32 | who.edge;
        auto const kind = static_cast<std::uint64_t>(one_->kind[t]) * 8 + static_cast<std::uint64_t>(who.traffic);
        alike_[t] = both(both(what, kind), static_cast<std::uint64_t>(one_->duration[t]));
    }
}

PARSEARCH_INLINE void task_classes_finder::refine() {
    sequence_.assign(of_resource_.begin(), of_resource_.end());
    for (std::uint32_t t = 0; t < one_->size(); ++t) {
        auto const r = one_->resource[t];
        auto color = alike_[t];
        if (r != barrier()) color = both(color, sequence_[r]); // what ran there before, too
        std::uint64_t waits = 0;
        for (auto const p : one_->before(t)) waits += split_mix(of_task_[p])();
        of_task_[t] = both(color, waits);
        if (r != barrier()) sequence_[r] = both(sequence_[r], of_task_[t]);
    }
    of_resource_.swap(sequence_);
}

PARSEARCH_INLINE void task_classes_finder::number_values(std::span<std::uint64_t const> values, std::vector<std::uint32_t>& numbers,
                                                         std::vector<std::uint32_t>& first) {
    numbers.resize(values.size());
    first.clear();
    std::unordered_map<std::uint64_t, std::uint32_t> known;
    for (std::uint32_t i = 0; i < values.size(); ++i) {
        auto const [at, fresh] = known.try_emplace(values[i], static_cast<std::uint32_t>(first.size()));
        if (fresh) first.push_back(i);
        numbers[i] = at->second;
    }
}

PARSEARCH_INLINE void task_classes_finder::number(task_classes& out) {
    number_values(of_resource_, out.of_resource, out.resource);
    out.devices = static_cast<std::uint32_t>(std::ranges::lower_bound(out.resource, devices_) - out.resource.begin());
    number_values(of_task_, out.of_task, out.task);
    out.tasks.clear(static_cast<std::uint32_t>(out.resource.size()));
    for (auto const t : out.task) {
        waits_.clear();
        for (auto const p : one_->before(t)) waits_.push_back(out.of_task[p]);
        make_set(waits_);
        for (auto const p : waits_) out.tasks.after(p);
        out.tasks.add(out.of_resource[one_->resource[t]], one_->duration[t], one_->kind[t], one_->label[t]);
    }
}

PARSEARCH_INLINE bool task_classes_finder::hold(task_classes const& out, shared_blocks const& shared, offload_plan const& offloaded) {
    auto const& all = *one_;
    auto const& g = out.tasks;
    std::vector<std::vector<std::uint32_t>> on(g.resources); // classes, in the order of the first of each class of resources
    for (std::uint32_t t = 0; t < all.size(); ++t)
        if (auto const r = all.resource[t]; r != barrier() && out.is_first(r)) on[out.of_resource[r]].push_back(out.of_task[t]);
    // Numbers decide ties: they must rise as those of tasks do.
    if (std::ranges::any_of(on, [](auto const& order) { return std::ranges::adjacent_find(order, std::ranges::greater_equal{}) != order.end(); }))
        return false;
    std::vector<std::uint32_t> met(all.resources, 0);
    seen_.assign(g.size(), none);
    for (std::uint32_t t = 0; t < all.size(); ++t) {
        auto const c = out.of_task[t], r = all.resource[t], of_r = out.of_resource[r];
        auto const &mine = all.label[t], &its = g.label[c];
        if (g.resource[c] != of_r || g.duration[c] != all.duration[t] || g.kind[c] != all.kind[t] || its.op != mine.op || its.edge != mine.edge ||
            its.traffic != mine.traffic)
            return false;
        if (r != barrier()) {
            auto const& order = on[of_r];
            auto const place = met[r]++;
            if (place >= order.size() || order[place] != c) return false;
        }
        std::size_t distinct = 0;
        for (auto const p : all.before(t))
            if (std::exchange(seen_[out.of_task[p]], t) != t) {
                ++distinct;
                if (!std::ranges::binary_search(g.before(c), out.of_task[p])) return false;
            }
        if (distinct != g.before(c).size()) return false;
    }
    for (std::uint32_t r = 0; r < all.resources; ++r)
        if (r != barrier() && met[r] != on[out.of_resource[r]].size()) return false;
    return blocks_hold(out, shared) && copies_hold(out, offloaded);
}

PARSEARCH_INLINE bool task_classes_finder::blocks_hold(task_classes const& out, shared_blocks const& shared) {
    for (std::uint32_t t = 0; t < shared.reduced_with.size(); ++t)
        if (shared.reduced_with[t] != shared.reduced_with[out.task[out.of_task[t]]]) return false;
    std::vector<std::int64_t> time(one_->resources);
    for (auto const& [number, b] : shared.blocks)
        for (auto const* times : {&b.gather, &b.reduce, &b.once}) {
            if (times->empty()) continue;
            std::ranges::fill(time, -1);
            for (auto const& [r, t] : *times) time[r] = t;
            for (std::uint32_t r = 0; r < one_->resources; ++r)
                if (time[r] != time[out.resource[out.of_resource[r]]]) return false;
        }
    return true;
}

PARSEARCH_INLINE bool task_classes_finder::copies_hold(task_classes const& out, offload_plan const& offloaded) {
    std::vector<std::size_t> copies(one_->resources, 0);
    for (auto const& [where, part] : offloaded) {
        ++copies[where.first];
        auto const at = offloaded.find({out.resource[out.of_resource[where.first]], where.second});
        if (at == offloaded.end() || at->second.time != part.time || at->second.op != part.op) return false;
    }
    for (std::uint32_t d = 0; d < devices_; ++d)
        if (copies[d] != copies[out.resource[out.of_resource[d]]]) return false;
    return true;
}

} // namespace parsearch::pipeline
