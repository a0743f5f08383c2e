#pragma once
// Two plans side by side: what differs, equal things in one line.

#include <algorithm>
#include <map>

#include <parsearch/core/error.hpp>
#include <parsearch/io/display/differences.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::io::detail {

/// "s8 o4 @0+4,1", with "stage 1: " ahead where there are several.
[[nodiscard]] inline std::string placed_configuration(plan_and_graph const& p, std::size_t op) {
    auto const configuration = space::to_string(p.plan.strategy[op], p.graph.operations[op]);
    return p.plan.how.stages > 1 ? text("stage ", p.plan.how.stage[op], ": ", configuration) : configuration;
}

} // namespace parsearch::io::detail

namespace parsearch::io::detail {

/// What a plan says beside its configurations, by name.
PARSEARCH_IO_INLINE std::vector<std::pair<std::string, std::string>> schedule_texts(pipeline::pipelining const& how) {
    auto const again = static_cast<std::size_t>(std::count(how.recompute.begin(), how.recompute.end(), true));
    auto const keeping = std::count(how.kept.begin(), how.kept.end(), true);
    auto const kept = keeping > 0 ? text(", but for ", keeping, " operators") : std::string();
    auto const [offloaded, segments] = offloaded_segments(how);
    bool const ordered = how.stages > 1 || how.micro_batches > 1;
    return {{"stages", text(how.stages, how.interleaved > 1 ? text(", ", how.interleaved, " on each group of devices") : "")},
            {"micro-batches", text(how.micro_batches)},
            {"order of launches", ordered ? std::string(name_of(how.order)) : "-"},
            {"shared by replicas", std::string(listed(how.sharded))},
            {"computed again", again == 0            ? "nothing"
                               : again == how.stages ? text("all stages", kept)
                                                     : text(again, " of ", how.stages, " stages", kept)},
            {"activations on hosts", offloaded == 0 ? "none" : text("of ", offloaded, " of ", segments, segments == 1 ? " segment" : " segments")}};
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE std::vector<difference_line> differences(plan_and_graph const& first, plan_and_graph const& second) {
    for (auto const* const p : {&first, &second})
        if (p->plan.strategy.size() != p->graph.size())
            throw invalid_input("a plan of ", p->plan.strategy.size(), " configurations: the graph has ", p->graph.size(),
                                " operators, must be one each");
    std::vector<difference_line> out;
    auto const before = detail::schedule_texts(first.plan.how), after = detail::schedule_texts(second.plan.how);
    for (std::size_t i = 0; i < before.size(); ++i)
        if (before[i] != after[i]) out.push_back({.name = before[i].first, .kind = {}, .first = before[i].second, .second = after[i].second});

    std::map<std::string_view, std::size_t> numbers;
    for (std::size_t op = 0; op < second.graph.size(); ++op) numbers.emplace(second.graph.names[op], op);
    std::vector<difference_line> single;
    std::vector<std::string> names;
    std::vector<std::size_t> kinds;
    std::map<std::tuple<std::string, std::string, std::string>, std::size_t> known;
    auto const add = [&](std::string const& name, std::string const& kind, std::string a, std::string b) {
        if (a == b) return;
        names.push_back(name);
        kinds.push_back(known.try_emplace({kind, a, b}, known.size()).first->second);
        single.push_back({.name = {}, .kind = kind, .first = std::move(a), .second = std::move(b)});
    };
    auto const is_input = [](graph::dense_graph const& g, std::size_t op) { return g.operations[op].work == ops::work_class::source; };
    for (std::size_t op = 0; op < first.graph.size(); ++op) {
        auto const at = numbers.find(first.graph.names[op]);
        auto const other = at == numbers.end() ? std::string("-") : detail::placed_configuration(second, at->second);
        if (!is_input(first.graph, op)) add(first.graph.names[op], first.graph.operations[op].kind, detail::placed_configuration(first, op), other);
        if (at != numbers.end()) numbers.erase(at);
    }
    for (std::size_t op = 0; op < second.graph.size(); ++op)
        if (numbers.contains(second.graph.names[op]) && !is_input(second.graph, op))
            add(second.graph.names[op], second.graph.operations[op].kind, "-", detail::placed_configuration(second, op));
    for (auto& group : detail::group_names(names, kinds)) {
        auto& line = out.emplace_back(single[group.members.front()]);
        line.name = std::move(group.name);
        line.operators = group.members.size();
    }
    return out;
}

} // namespace parsearch::io
