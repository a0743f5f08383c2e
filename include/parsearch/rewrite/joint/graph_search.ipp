#pragma once
// Substitution search over the graphs that rules make of one, by an additive price of each.

#include <algorithm>
#include <queue>

#include <parsearch/core/error.hpp>
#include <parsearch/rewrite/joint/graph_search.hpp>

namespace parsearch::rewrite {

PARSEARCH_INLINE priced_graph graph_search::run(priced_graph start) {
    note(start);
    auto current = std::move(start);
    auto const step = static_cast<std::size_t>(options_.segment_operators);
    for (std::size_t sweep = 0; sweep < most_sweeps && !ended_(); ++sweep) {
        auto const before = current.price.cost;
        // Every other sweep cuts elsewhere, so that what stood across a cut stands within a segment.
        for (std::size_t kind = 0; !ended_(); ++kind) {
            auto const classes = classes_of(current.graph, step, sweep % 2 ? step / 2 + 1 : 0);
            if (kind >= classes.size()) break;
            improve(current, classes[kind], kind);
        }
        if (sweep % 2 == 1 && current.price.cost == before) break;
    }
    return current;
}

PARSEARCH_INLINE std::vector<graph_search::segment_class> graph_search::classes_of(parallel_graph const& g, std::size_t step, std::size_t offset) {
    std::vector<segment_class> out;
    for (auto const& operators : segments_of(g, step, offset)) {
        auto s = extract(g, operators);
        auto const same = std::ranges::find_if(out, [&](auto const& c) { return c[0].graph == s.graph; });
        if (same == out.end()) out.push_back({std::move(s)});
        else same->push_back(std::move(s));
    }
    return out;
}

PARSEARCH_INLINE void graph_search::note(priced_graph const& g) {
    auto const at = std::ranges::upper_bound(best_, g.price.cost, {}, [](auto const& b) { return b.price.cost; });
    if (static_cast<std::uint64_t>(at - best_.begin()) >= options_.beam) return;
    if (std::ranges::any_of(best_, [&](auto const& b) { return b.price.cost == g.price.cost && b.graph == g.graph; })) return;
    best_.insert(at, g);
    if (best_.size() > options_.beam) best_.pop_back();
}

PARSEARCH_INLINE std::vector<std::tuple<std::size_t, std::string, parallel_graph>> graph_search::steps(parallel_graph const& part) {
    std::vector<std::tuple<std::size_t, std::string, parallel_graph>> out;
    for (std::size_t r = 0; r < rules_.size(); ++r) {
        auto made = rules_[r](part);
        if (made.size() > 1) {
            auto all = made[0].graph;
            std::size_t times = 1;
            detail::seen_graphs on_the_way;                                   // of a rule that goes round in a circle
            while (on_the_way.add(all) && times < part.size() && !ended_()) { // nor may it grow without end
                auto next = rules_[r](all);
                if (next.empty()) break;
                all = std::move(next[0].graph);
                ++times;
            }
            out.emplace_back(r, text(rules_[r].name(), ' ', times, " times: ", made[0].what, ", ..."), std::move(all));
        }
        for (auto& m : made) out.emplace_back(r, text(rules_[r].name(), ": ", m.what), std::move(m.graph));
    }
    return out;
}

PARSEARCH_INLINE void graph_search::improve(priced_graph& current, segment_class const& instances, std::size_t kind) {
    if (!settled_.add(instances[0].graph)) return; // searched before, where it stands now or elsewhere
    double const share = static_cast<double>(instances[0].names.size() * instances.size()) /
                         static_cast<double>(std::max<std::size_t>(current.graph.operators().size(), 1));
    double const slack = (options_.alpha - 1) * static_cast<double>(current.price.cost.count()) * share;
    auto const within = [&](picoseconds cost) {
        return static_cast<double>(cost.count()) - static_cast<double>(current.price.cost.count()) <= slack;
    };
    auto const base = current;
    auto const worse = [](candidate const& a, candidate const& b) {
        return a.whole.price.cost != b.whole.price.cost ? a.whole.price.cost > b.whole.price.cost : a.number > b.number;
    };
    std::priority_queue<candidate, std::vector<candidate>, decltype(worse)> open(worse);
    detail::seen_graphs seen;
    seen.add(instances[0].graph);
    open.push({instances[0].graph, current, 0});
    std::uint64_t priced = 0;
    while (!open.empty() && priced < options_.segment_graphs && !ended_()) {
        auto const from = open.top();
        open.pop();
        if (!within(from.whole.price.cost)) break;
        for (auto& [rule, what, part] : steps(from.part)) {
            if (priced >= options_.segment_graphs || ended_()) break;
            if (!seen.add(part)) continue;
            auto whole = put_in_place(base.graph, instances, part);
            ++priced;
            auto price = price_(whole);
            tell_(kind, rule, price.cost);
            auto applied = from.whole.applied;
            applied.push_back(instances.size() > 1 ? text(what, " (in ", instances.size(), " places)") : what);
            candidate next{std::move(part), {std::move(whole), std::move(price), std::move(applied)}, priced};
            note(next.whole);
            if (next.whole.price.cost < current.price.cost) current = next.whole;
            if (within(next.whole.price.cost)) open.push(std::move(next));
        }
    }
}

} // namespace parsearch::rewrite
