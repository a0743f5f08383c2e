#pragma once
// What a report shows, and how it is handed to the page: as one JSON document.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <parsearch/io/display/listing.hpp>
#include <parsearch/io/display/task_names.hpp>
#include <parsearch/io/report/graph_drawing.hpp>
#include <parsearch/io/report/packed_numbers.hpp>
#include <parsearch/io/report/report_blocks.hpp>
#include <parsearch/io/report/report_data.hpp>

namespace parsearch::io::detail {

[[nodiscard]] ordered_json figures_json(compared const& c);

[[nodiscard]] inline ordered_json strategies_json(std::vector<compared> const& strategies) {
    ordered_json out = ordered_json::array();
    for (auto const& c : strategies) out.push_back(figures_json(c));
    return out;
}

[[nodiscard]] inline ordered_json classes_json(configuration_classes const& classes) {
    ordered_json out = ordered_json::array();
    for (std::size_t c = 0; c < classes.texts.size(); ++c) out.push_back({classes.texts[c], classes.operators[c]});
    return out;
}

} // namespace parsearch::io::detail

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE std::vector<cost_point> thin_out(std::vector<cost_point> const& curve, std::size_t stretches) {
    if (curve.size() <= 3 * stretches) return curve;
    std::vector<cost_point> out;
    for (std::size_t i = 0; i < stretches; ++i) {
        auto const begin = curve.begin() + static_cast<std::ptrdiff_t>(curve.size() * i / stretches);
        auto const end = curve.begin() + static_cast<std::ptrdiff_t>(curve.size() * (i + 1) / stretches);
        auto const [low, high] = std::minmax_element(begin, end, [](auto const& a, auto const& b) { return a.current < b.current; });
        std::array<std::vector<cost_point>::const_iterator, 3> chosen{begin, low, high};
        std::sort(chosen.begin(), chosen.end());
        for (std::size_t k = 0; k < 3; ++k)
            if (k == 0 || chosen[k] != chosen[k - 1]) out.push_back(*chosen[k]);
    }
    out.push_back(curve.back());
    return out;
}

PARSEARCH_IO_INLINE ordered_json curve_json(std::vector<cost_point> const& curve) {
    ordered_json seconds = ordered_json::array(), evaluations = seconds, current = seconds, best = seconds;
    auto const add = [](ordered_json& to, picoseconds cost) {
        if (cost == picoseconds::max()) to.push_back(nullptr);
        else to.push_back(cost.count());
    };
    for (auto const& p : thin_out(curve)) {
        seconds.push_back(p.seconds);
        evaluations.push_back(p.evaluations);
        add(current, p.current);
        add(best, p.best);
    }
    return {{"seconds", seconds}, {"evaluations", evaluations}, {"current", current}, {"best", best}};
}

PARSEARCH_IO_INLINE ordered_json figures_json(compared const& c) {
    return {{"name", c.name},
            {"time", c.time.count()},
            {"cost", c.cost == cost_traits<picoseconds>::infinity() ? ordered_json(nullptr) : ordered_json(c.cost.count())},
            {"speedUp", c.speed_up},
            {"rate", c.samples_per_second},
            {"unit", c.throughput_unit},
            {"utilisation", c.flops_utilisation},
            {"moved", c.moved},
            {"peak", c.peak_memory},
            {"fullest", c.fullest_device},
            {"use", c.fullest_device_use},
            {"memory", c.fullest_device_memory},
            {"fits", c.fits}};
}

PARSEARCH_IO_INLINE ordered_json devices_json(report_data const& data) {
    auto const& cluster = *data.cluster;
    auto const& r = *data.simulation;
    std::vector<std::set<std::uint32_t>> stages(cluster.size());
    for (std::uint32_t t = 0; !data.stage.empty() && t < r.tasks.size(); ++t)
        if (r.tasks.kind[t] == sim::task_kind::forward) stages[r.tasks.resource[t]].insert(data.stage[r.tasks.label[t].op]);
    ordered_json out = ordered_json::array();
    for (std::uint32_t d = 0; d < cluster.size(); ++d) {
        auto const& m = r.memory[d];
        out.push_back({{"kind", cluster.describe_device(d).kind},
                       {"node", cluster.node_of(d)},
                       {"memory", data.usable.empty() ? cluster.describe_device(d).memory : data.usable[d]},
                       {"stages", stages[d]},
                       {"use", {m.weights, m.gradients, m.optimizer, m.activations, m.cache, m.buffers}}});
    }
    return out;
}

PARSEARCH_IO_INLINE ordered_json memory_json(std::vector<report_memory> const& devices, std::size_t stretches) {
    ordered_json out = ordered_json::array();
    for (auto const& [device, steps] : devices) {
        ordered_json time = ordered_json::array(), bytes = ordered_json::array();
        auto const add = [&](pipeline::memory_step const& s) {
            time.push_back(s.time.count());
            bytes.push_back(s.bytes);
        };
        auto const parts = std::min(stretches, steps.size());
        for (std::size_t i = 0; i < parts; ++i) {
            auto const begin = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() * i / parts);
            auto const end = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() * (i + 1) / parts);
            auto const fullest = std::max_element(begin, end, [](auto const& a, auto const& b) { return a.bytes < b.bytes; });
            add(*fullest);
            if (end - fullest > 1) add(*(end - 1));
        }
        out.push_back({{"device", device}, {"time", time}, {"bytes", bytes}});
    }
    return out;
}

PARSEARCH_IO_INLINE ordered_json operators_json(graph::dense_graph const& g, configuration_classes const& classes, space::flat_strategy const& s) {
    ordered_json out = ordered_json::array();
    for (std::size_t op = 0; op < g.size(); ++op) {
        auto const& operation = g.operations[op];
        auto const input = classes.of_operator[op] == configuration_classes::none;
        ordered_json split = ordered_json::array();
        for (std::size_t k = 0; k < s[op].rank && !input; ++k)
            if (s[op].degree[k] > 1) split.push_back(text(operation.dims[k].name, " in ", s[op].degree[k]));
        out.push_back({{"name", g.names[op]},
                       {"kind", operation.kind},
                       {"shape", ops::to_string(ops::tensor_of(operation.outputs.front()))},
                       {"class", input ? -1 : static_cast<int>(classes.of_operator[op])},
                       {"shards", input ? 0 : s[op].shards()},
                       {"split", split}});
    }
    return out;
}

PARSEARCH_IO_INLINE ordered_json tasks_json(sim::report const& r, std::size_t most) {
    std::map<std::int64_t, std::uint64_t> durations;
    std::map<std::tuple<int, std::uint32_t, std::uint32_t, int, int, byte_count, std::uint32_t, sim::task_part>, std::uint64_t> whats;
    auto const none = ordered_json::array();
    ordered_json duration_list = none, what_list = none, rows = none, row_of = none, busy = none, critical = none;
    packed_numbers packed;
    auto const shown = tasks_to_show(r, true, most);
    for (std::uint32_t row = 0; row < shown.rows(); ++row) {
        rows.push_back(shown.first[row + 1] - shown.first[row]);
        std::int64_t free_at = 0;
        for (auto i = shown.first[row]; i < shown.first[row + 1]; ++i) {
            auto const t = shown.tasks[i];
            auto const run = r.run_of(t);
            auto const& who = r.tasks.label[t];
            auto const& carried = r.carried[t];
            bool const moves = r.tasks.kind[t] == sim::task_kind::transfer || r.tasks.kind[t] == sim::task_kind::collective;
            int const traffic = !moves ? -1 : returns_weights(r.tasks, t) ? static_cast<int>(sim::traffic_kinds) : static_cast<int>(who.traffic);
            auto const [what, fresh] = whats.try_emplace({static_cast<int>(r.tasks.kind[t]), who.op, who.edge, traffic,
                                                          static_cast<int>(carried.collective), carried.bytes, carried.devices, run.part},
                                                         whats.size());
            if (fresh)
                what_list.push_back({static_cast<int>(r.tasks.kind[t]), who.op,
                                     who.edge == sim::task_label::no_edge ? -1 : static_cast<std::int64_t>(who.edge), traffic,
                                     static_cast<int>(carried.collective), carried.bytes, carried.devices, static_cast<int>(run.part)});
            auto const [duration, longer] = durations.try_emplace(r.schedule.end[t] - r.schedule.start[t], durations.size());
            if (longer) duration_list.push_back(duration->first);
            packed.add(what->second);
            packed.add(who.number);
            packed.add(static_cast<std::uint64_t>(r.schedule.start[t] - free_at));
            packed.add(duration->second);
            if (!r.runs.empty()) packed.add(run.micro_batch == sim::task_run::once ? 0 : run.micro_batch + 1);
            free_at = r.schedule.end[t];
        }
    }
    for (std::size_t i = 0; i < shown.row_of.size(); ++i) {
        row_of.push_back(shown.row_of[i] == shown_tasks::left_out ? -1 : static_cast<std::int64_t>(shown.row_of[i]));
        busy.push_back(std::round(r.utilisation[i] * 1e4) / 1e4);
    }
    for (auto const t : r.critical_path) {
        auto const row = shown.row_of[std::min<std::size_t>(r.tasks.resource[t], shown.row_of.size() - 1)];
        if (r.tasks.kind[t] == sim::task_kind::barrier || r.schedule.end[t] == r.schedule.start[t] || row == shown_tasks::left_out) continue;
        auto const from = shown.tasks.begin() + static_cast<std::ptrdiff_t>(shown.first[row]),
                   to = shown.tasks.begin() + static_cast<std::ptrdiff_t>(shown.first[row + 1]);
        auto const at = std::lower_bound(from, to, r.schedule.start[t], [&](auto a, auto start) { return r.schedule.start[a] < start; });
        critical.push_back(std::find_if(at, to, [&](auto a) { return r.schedule.end[a] == r.schedule.end[t]; }) - shown.tasks.begin());
    }
    return {{"count", shown.tasks.size()},
            {"rows", rows},
            {"row", row_of},
            {"busy", busy},
            {"batches", !r.runs.empty()},
            {"durations", duration_list},
            {"whats", what_list},
            {"packed", base64(packed.bytes())},
            {"critical", critical}};
}

/// A drawing of the graph as `boxes_of` cuts it up, the edges between boxes and frames around the blocks.
PARSEARCH_IO_INLINE ordered_json drawing_json(graph::dense_graph const& g, std::vector<repeated_block> const& blocks,
                                              std::vector<std::vector<std::uint32_t>> const& boxes) {
    constexpr auto hidden = ~std::uint32_t{0};
    std::vector<std::uint32_t> box_of(g.size(), hidden); // by operator; copies have the box of the first
    for (std::uint32_t n = 0; n < boxes.size(); ++n)
        for (auto const op : boxes[n]) box_of[op] = n;
    for (auto const& b : blocks)
        for (auto i = b.first + b.length; i < b.end(); ++i) box_of[g.order[i]] = box_of[g.order[b.first + (i - b.first) % b.length]];
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
    for (auto const& e : g.edges) // one to a later copy of its own block would lead upwards: the frame says it
        if (auto const from = box_of[e.producer], to = box_of[e.consumer]; from < to) edges.emplace_back(from, to);
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    auto const layout = lay_out_graph(boxes.size(), edges);
    auto const rounded = [](double x) { return static_cast<double>(static_cast<std::int64_t>(x * 100 + 0.5)) / 100; };
    ordered_json x = ordered_json::array(), drawn = ordered_json::array(), frames = ordered_json::array();
    for (auto const at : layout.x) x.push_back(rounded(at));
    for (std::size_t e = 0; e < edges.size(); ++e) {
        ordered_json bends = ordered_json::array();
        for (auto const b : layout.bends[e]) bends.push_back(rounded(b));
        drawn.push_back({edges[e].first, edges[e].second, bends});
    }
    for (auto const& b : blocks) {
        auto const first = box_of[g.order[b.first]], last = box_of[g.order[b.first + b.length - 1]];
        frames.push_back({first, last - first + 1, b.count});
    }
    return {{"boxes", boxes},          {"x", x},         {"layer", layout.layer}, {"width", rounded(layout.width)},
            {"layers", layout.layers}, {"edges", drawn}, {"frames", frames}};
}

/// The drawings of a graph: with repeated blocks once, and where that draws less than all, operator by operator.
PARSEARCH_IO_INLINE ordered_json drawings_json(graph::dense_graph const& g, configuration_classes const& classes) {
    auto const blocks = find_blocks(g, classes);
    auto const boxes = boxes_of(g, classes, blocks);
    ordered_json out = ordered_json::array({drawing_json(g, blocks, boxes)});
    if (boxes.size() < g.size()) {
        std::vector<std::vector<std::uint32_t>> single;
        for (auto const op : g.order) single.push_back({op});
        out.push_back(drawing_json(g, {}, single));
    }
    return out;
}

/// The graph before rules changed it, as the page draws it, and what changed it; null where none did.
PARSEARCH_IO_INLINE ordered_json rewriting_json(report_data const& d) {
    if (!d.rewriting) return nullptr;
    auto const& r = *d.rewriting;
    if (!r.graph || !r.strategy) throw invalid_input("a report of a rewriting without graph or strategy: needs both");
    if (r.compared >= d.strategies.size())
        throw invalid_input("a report of a rewriting of strategy number ", r.compared, " of ", d.strategies.size(), ": must be one of them");
    if (r.strategy->size() != r.graph->size())
        throw invalid_input("a report of a rewriting: the strategy has ", r.strategy->size(), " configurations: the graph has ", r.graph->size(),
                            " operators");
    auto const classes = classes_of(*r.graph, *r.strategy);
    return {{"before", r.compared},
            {"applied", r.applied},
            {"operatorCount", models::summarize(*r.graph).operators},
            {"classes", classes_json(classes)},
            {"operators", operators_json(*r.graph, classes, *r.strategy)},
            {"drawings", drawings_json(*r.graph, classes)}};
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE nlohmann::ordered_json report_json(report_data const& d) {
    using detail::ordered_json;
    if (!d.graph || !d.cluster || !d.strategy || !d.simulation)
        throw invalid_input("a report without graph, cluster, strategy or simulation: needs all four");
    if (d.found >= d.strategies.size())
        throw invalid_input("a report about strategy number ", d.found, " of ", d.strategies.size(), ": must be one of them");
    auto const& g = *d.graph;
    auto const& r = *d.simulation;
    require_report_of(g, *d.cluster, d.strategy->size(), r);
    if (r.memory.size() != d.cluster->size())
        throw invalid_input("a simulation with the memory of ", r.memory.size(), " devices: the cluster has ", d.cluster->size());
    if (!d.usable.empty() && d.usable.size() != d.cluster->size())
        throw invalid_input("a report with the usable memory of ", d.usable.size(), " devices: the cluster has ", d.cluster->size(),
                            ", must be one each, or none");
    if (!d.stage.empty() && d.stage.size() != g.size())
        throw invalid_input("a report with the stages of ", d.stage.size(), " operators: the graph has ", g.size(), ", must be one each, or none");
    for (auto const& m : d.memory_over_time)
        if (m.device >= d.cluster->size() || m.steps.empty())
            throw invalid_input("a report with ", m.steps.size(), " steps of the memory of device ", m.device, ": the cluster has ",
                                d.cluster->size(), ", must be one of them, and have steps");
    auto const classes = classes_of(g, *d.strategy);
    auto const totals = models::summarize(g);
    ordered_json options = ordered_json::array(), links = ordered_json::array(), lines = ordered_json::array(), edges = ordered_json::array(),
                 weights = ordered_json::array(), hosts = ordered_json::array();
    for (auto const& o : d.options) options.push_back({o.name, o.value});
    for (auto const l : d.cluster->links()) links.push_back({d.cluster->name_of_link(l), d.cluster->describe_link(l).rate.bytes_per_second});
    for (auto i = static_cast<std::uint32_t>(d.cluster->size() + links.size()); i + 1 < r.tasks.resources; ++i) {
        auto const device = hosts.size() / 2;
        hosts.push_back({name_of_resource(*d.cluster, i), d.cluster->describe_device(static_cast<std::uint32_t>(device)).host_rate.bytes_per_second});
    }
    for (auto const& l : listing(g, *d.strategy)) lines.push_back({l.name, l.operators, l.kind, l.shape, l.configuration});
    for (auto const& l : parameter_listing(g)) weights.push_back({l.name, l.tensors, l.shape, l.elements});
    for (auto const& e : g.edges) edges.push_back({e.producer, e.consumer});
    return {{"title", d.title},
            {"model", d.model},
            {"cluster", d.cluster_text},
            {"search", d.search},
            {"options", options},
            {"notes", d.notes},
            {"version", d.version},
            {"generated", d.generated},
            {"makespan", r.makespan.count()},
            {"parameters", totals.parameters},
            {"operatorCount", totals.operators},
            {"found", d.found},
            {"strategies", detail::strategies_json(d.strategies)},
            {"plan", d.plan},
            {"devices", detail::devices_json(d)},
            {"memoryOverTime", detail::memory_json(d.memory_over_time)},
            {"links", links},
            {"hosts", hosts},
            {"classes", detail::classes_json(classes)},
            {"operators", detail::operators_json(g, classes, *d.strategy)},
            {"lines", lines},
            {"weights", weights},
            {"edges", edges},
            {"drawings", detail::drawings_json(g, classes)},
            {"curve", detail::curve_json(d.curve)},
            {"tasks", detail::tasks_json(r)},
            {"network", detail::network_json(d.network)},
            {"rewriting", detail::rewriting_json(d)}};
}

} // namespace parsearch::io
