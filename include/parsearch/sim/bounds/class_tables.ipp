#pragma once
// What the weights of a sharing class cost under given configurations of its members, and the least of it where one is not decided.

#include <algorithm>
#include <limits>

#include <parsearch/sim/bounds/class_tables.hpp>

namespace parsearch::sim {

PARSEARCH_INLINE class_tables::class_tables(choice_tables& tables, table_limits const& limits) : tables_(&tables) {
    auto const& w = tables.input();
    known_.resize(w.classes.size());
    least_.resize(w.classes.size());
    least_work_.assign(w.classes.size(), 0);
    for (std::uint32_t c = 0; c < w.classes.size(); ++c) {
        auto const& members = w.classes[c];
        if (!w.options.training || members.size() > 2) continue;
        auto const width = members.size() == 1 ? 1 : tables.choices(members[1]).size();
        if (tables.choices(members[0]).size() * width <= limits.pairs_per_edge) find_least(c, width);
    }
}

PARSEARCH_INLINE synchronised_class const& class_tables::of(std::uint32_t c, std::vector<std::uint32_t> const& choices) {
    auto& known = known_[c];
    if (auto const at = known.find(choices); at != known.end()) return at->second;
    if (known.size() >= remembered) known.clear();
    return known.emplace(choices, plan(c, choices)).first->second;
}

PARSEARCH_INLINE synchronised_class class_tables::plan(std::uint32_t c, std::vector<std::uint32_t> const& choices) {
    auto const& w = tables_->input();
    synchronised_class out;
    out.plan.members = w.classes[c];
    auto const choice = [&](std::uint32_t op) -> tabled_choice const& {
        auto const at = std::lower_bound(out.plan.members.begin(), out.plan.members.end(), op) - out.plan.members.begin();
        return tables_->choices(op)[choices[static_cast<std::size_t>(at)]];
    };
    tables_->planner().plan_class([&](std::uint32_t op) -> space::configuration const& { return choice(op).configuration; },
                                  [&](std::uint32_t op) -> operator_plan const& { return choice(op).plan; }, out.plan);
    for (auto& update : out.plan.update) update = std::min(update, most_time);
    auto const states = cost_of(w.options.optimizer).states;
    for (auto const& h : out.plan.sync.held) out.memory.push_back({h.device, weight_memory(h, w.options, states)});
    for (std::size_t i = 0; i < out.plan.sync.groups.size(); ++i) {
        out.longest.push_back(0);
        out.links.emplace_back();
        auto const add = [&](std::vector<hop> const& hops) {
            for (auto const& h : hops) {
                auto const duration = std::min(h.duration, most_time);
                out.longest.back() = std::max(out.longest.back(), duration);
                out.links.back().push_back({h.link, duration, 0});
            }
        };
        if (!out.plan.all_reduce.empty()) add(out.plan.all_reduce[i]);
        if (!out.plan.servers.empty())
            for (auto const& client : out.plan.servers[i].clients) add(client.push);
    }
    return out;
}

PARSEARCH_INLINE void class_tables::find_least(std::uint32_t c, std::size_t width) {
    auto const& w = tables_->input();
    auto const& members = w.classes[c];
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    for (auto const op : members)
        least_[c].emplace_back(tables_->choices(op).size(), least_class{std::vector<std::int64_t>(w.topology.size(), most), most});
    least_work_[c] = most;
    std::vector<std::uint32_t> choices(members.size());
    std::vector<std::int64_t> updates(w.topology.size());
    for (choices[0] = 0; choices[0] < tables_->choices(members[0]).size(); ++choices[0])
        for (std::uint32_t second = 0; second < width; ++second) {
            if (members.size() == 2) choices[1] = second;
            auto const& p = of(c, choices);
            std::fill(updates.begin(), updates.end(), 0);
            std::int64_t work = 0;
            for (std::size_t i = 0; i < p.plan.sync.held.size(); ++i)
                if (p.plan.update[i] != class_plan::no_update) work += updates[p.plan.sync.held[i].device] = p.plan.update[i];
            least_work_[c] = std::min(least_work_[c], work);
            for (std::size_t m = 0; m < members.size(); ++m) {
                auto& mine = least_[c][m][choices[m]];
                for (std::size_t d = 0; d < updates.size(); ++d) mine.updates[d] = std::min(mine.updates[d], updates[d]);
                mine.tail = std::min(mine.tail, least_tail(p, members[m], tables_->choices(members[m])[choices[m]].forward.size()));
            }
        }
}

PARSEARCH_INLINE std::int64_t class_tables::least_tail(synchronised_class const& p, std::uint32_t op, std::size_t shards) {
    std::vector<std::int64_t> after(shards, 0);
    auto const follows = [&](std::vector<shard_ref> const& contributors, std::int64_t by) {
        for (auto const s : contributors)
            if (s.op == op) after[s.shard] = std::max(after[s.shard], by);
    };
    bool const served = !p.plan.servers.empty();
    for (std::size_t i = 0; i < p.plan.sync.held.size(); ++i) {
        auto const& h = p.plan.sync.held[i];
        if (p.plan.update[i] == class_plan::no_update) continue;
        follows(h.contributors, p.plan.update[i]);
        for (auto const group : h.groups)
            if (!served) follows(p.plan.sync.groups[group].contributors, p.longest[group] + p.plan.update[i]);
            else if (p.plan.servers[group].server == h.device) follows(p.plan.sync.groups[group].contributors, p.plan.update[i]);
    }
    return *std::min_element(after.begin(), after.end());
}

} // namespace parsearch::sim
