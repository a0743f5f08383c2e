#pragma once
// What people call the tasks of a simulation, and the devices and links they run on.

#include <map>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/io/display/task_names.hpp>

namespace parsearch::io {

PARSEARCH_IO_INLINE std::string spoken(std::string_view name) {
    std::string out(name);
    for (auto& c : out)
        if (c == '_') c = '-';
    return out;
}

PARSEARCH_IO_INLINE std::string path_of(graph::dense_graph const& g, sim::task_label const& who) {
    if (who.edge == sim::task_label::no_edge) return g.names[who.op];
    auto const& e = g.edges[who.edge];
    auto const from = e.producer == who.op ? e.consumer : e.producer;
    return text(g.names[from], " -> ", g.names[who.op]);
}

PARSEARCH_IO_INLINE std::string name_of_task(graph::dense_graph const& g, sim::report const& r, std::uint32_t t) {
    auto const& who = r.tasks.label[t];
    auto const run = r.run_of(t);
    auto const more = text(run.part == sim::task_part::whole ? "" : " ", sim::spoken(run.part));
    switch (r.tasks.kind[t]) {
    case sim::task_kind::forward:
    case sim::task_kind::backward:
    case sim::task_kind::update: return text(g.names[who.op], ' ', name_of(r.tasks.kind[t]), more);
    case sim::task_kind::transfer: return text(path_of(g, who), ' ', returns_weights(r.tasks, t) ? "weights" : spoken(who.traffic), more);
    case sim::task_kind::collective: {
        bool const weights = who.traffic == sim::traffic_kind::weight_gradient && r.carried[t].collective == collective_kind::all_gather;
        return text(path_of(g, who), ' ', weights ? "weights" : spoken(who.traffic), ", ", spoken(name_of(r.carried[t].collective)), more);
    }
    case sim::task_kind::barrier: break;
    }
    return "barrier";
}

PARSEARCH_IO_INLINE std::string name_of_resource(topology::cluster const& cluster, std::uint32_t resource) {
    if (resource < cluster.size()) return text("device ", resource);
    auto const link = resource - cluster.size();
    if (link < cluster.links().size()) return cluster.name_of_link(static_cast<std::uint32_t>(link));
    auto const copies = link - cluster.links().size();
    return copies % 2 == 0 ? text("device ", copies / 2, " -> host") : text("host -> device ", copies / 2);
}

PARSEARCH_IO_INLINE void require_report_of(graph::dense_graph const& g, topology::cluster const& cluster, std::size_t configurations,
                                           sim::report const& r) {
    auto const resources = cluster.size() + cluster.links().size() + 1;
    if (r.tasks.resources != resources && r.tasks.resources != resources + 2 * cluster.size())
        throw invalid_input("a simulation on ", r.tasks.resources, " devices, links and barriers: the cluster has ", resources,
                            ", must be the same cluster");
    if (configurations != g.size())
        throw invalid_input("a strategy of ", configurations, " configurations: the graph has ", g.size(), " operators, must be one each");
    if (!r.runs.empty() && r.runs.size() != r.tasks.size())
        throw invalid_input("a simulation of ", r.tasks.size(), " tasks has ", r.runs.size(), " runs: must be one each, or none");
    if (r.carried.size() != r.tasks.size() || r.schedule.start.size() != r.tasks.size() || r.schedule.end.size() != r.tasks.size())
        throw invalid_input("a simulation of ", r.tasks.size(), " tasks has ", r.schedule.start.size(), " start times and ", r.carried.size(),
                            " payloads: must be one each");
    for (auto const& who : r.tasks.label)
        if (who.op >= g.size() || (who.edge != sim::task_label::no_edge && who.edge >= g.edges.size()))
            throw invalid_input("a simulation of operator ", who.op, ": the graph has ", g.size(), " operators, must be the same graph");
}

PARSEARCH_IO_INLINE shown_tasks tasks_to_show(sim::report const& r, bool fold, std::size_t most) {
    auto const all = sim::tasks_by_resource(r.tasks, r.schedule);
    auto const work = [&](std::uint32_t t) {
        auto const& who = r.tasks.label[t];
        auto const& carried = r.carried[t];
        auto const run = r.run_of(t);
        return std::tuple(r.schedule.start[t], r.schedule.end[t], r.tasks.kind[t], who.op, who.edge, who.traffic, run.micro_batch, run.part,
                          carried.bytes, carried.devices);
    };
    shown_tasks out;
    std::multimap<std::uint64_t, std::uint32_t> known; // rows by a hash of what they do
    std::vector<std::uint32_t> row;
    for (std::uint32_t resource = 0; resource + 1 < r.tasks.resources; ++resource) {
        row.clear();
        std::uint64_t hash = 0;
        for (auto const t : all.of(resource)) {
            if (r.schedule.end[t] == r.schedule.start[t]) continue;
            row.push_back(t);
            hash = (hash ^ static_cast<std::uint64_t>(r.schedule.start[t])) * 0x9e3779b97f4a7c15U + r.tasks.label[t].op;
        }
        auto const same = [&](auto const& other) {
            auto const begin = out.tasks.begin() + static_cast<std::ptrdiff_t>(out.first[other.second]),
                       end = out.tasks.begin() + static_cast<std::ptrdiff_t>(out.first[other.second + 1]);
            return std::equal(begin, end, row.begin(), row.end(), [&](auto a, auto b) { return work(a) == work(b); });
        };
        auto const [from, to] = known.equal_range(hash);
        if (auto const at = std::find_if(from, to, same); at != to) {
            out.row_of.push_back(at->second);
        } else if (row.size() > most - out.tasks.size()) {
            out.row_of.push_back(shown_tasks::left_out);
        } else {
            out.row_of.push_back(out.rows());
            if (fold) known.emplace(hash, out.rows());
            out.tasks.insert(out.tasks.end(), row.begin(), row.end());
            out.first.push_back(out.tasks.size());
        }
    }
    return out;
}

} // namespace parsearch::io
