#pragma once
/// The timeline of a simulation in Chrome's trace event format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.
/// Source: Trace Event Format, docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.

#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/io/display/task_names.hpp>
#include <parsearch/io/text/stream_text.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/sim/report.hpp>
#include <parsearch/topology/cluster.hpp>

namespace parsearch::io {

namespace detail {

/// "12.000345": picoseconds as microseconds, exactly.
void add_microseconds(text_writer& out, std::int64_t picoseconds);

/// The members of an event that do not depend on the task's number or time: name, category, arguments. Made once for all alike.
class event_texts {
  public:
    /// `"name":"fc1 forward`, and `","cat":...,"args":{...,"shard":`: the micro-batch comes between, and the number behind.
    struct parts {
        std::string name, rest;
    };

    event_texts(graph::dense_graph const& g, sim::report const& r, std::vector<std::string> configurations)
        : graph_(&g), report_(&r), configurations_(std::move(configurations)) {}

    parts const& of(std::uint32_t t);

  private:
    using key =
        std::tuple<sim::task_kind, bool, sim::task_part, std::uint32_t, std::uint32_t, sim::traffic_kind, collective_kind, byte_count, std::uint32_t>;

    [[nodiscard]] parts make(std::uint32_t t) const;

    graph::dense_graph const* graph_;
    sim::report const* report_;
    std::vector<std::string> configurations_; ///< as JSON
    std::map<key, parts> known_;
};
} // namespace detail

/// Writes the timeline of what was simulated as `r`, with strategy `s` of `p`; of a plan `p` is the problem of one micro-batch
/// (`pipeline::micro_batch_problem`). One event per line. Process 1 has a row per device, process 2 one per link of `cluster`, the topology that `p`
/// was made of, and of plans that offload activations one per device and way to its host and back. A task that takes time is a complete event ("X"):
/// `ts` and `dur` in microseconds with as many decimals as picoseconds need; `args` have the operator that the task belongs to, its kind, for
/// computation its configuration and shard, for data what moves, bytes and number, and of a collective its kind and number of devices. What comes
/// once per micro-batch has its number, from 0, behind its name and as `micro_batch`. What sharded parameters move has the name of the first operator
/// of the block whose weights they are, what is offloaded that of the first of its segment. Barriers and tasks without duration are left out.
///
/// Of more than `most` tasks those of devices and links that do what one before does at the same times are left out, too, and then rows that would
/// make them more. Answers how many devices and links have no row. Streams: memory is that of the distinct names. Complexity: O(n log n) in tasks.
/// Throws `invalid_input` where `r` is not of `p` and `cluster`, and where the stream fails.
template <Strategy<space::configuration> S>
std::size_t write_timeline(std::ostream& stream, parallelization const& p, topology::cluster const& cluster, S const& s, sim::report const& r,
                           std::size_t most = 500'000) {
    graph::dense_graph const& g = p.graph();
    std::vector<std::string> configurations;
    for (std::size_t op = 0; op < g.size(); ++op) configurations.push_back(json_string(space::to_string(configuration_of(s, op), g.operations[op])));
    require_report_of(g, cluster, configurations.size(), r);

    auto const devices = static_cast<std::uint32_t>(cluster.size());
    // Viewers take thread 0 for an idle one and a thread with the number of its process for the main one.
    auto const row = [&](std::uint32_t resource) { return text("\"pid\":", resource < devices ? 1 : 2, ",\"tid\":", resource + 3); };
    std::size_t tasks = 0;
    for (std::uint32_t t = 0; t < r.tasks.size(); ++t) tasks += r.schedule.end[t] > r.schedule.start[t];
    auto const shown = tasks_to_show(r, tasks > most, most);
    text_writer out(stream);
    out.add("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    for (int const process : {1, 2})
        out.add("{\"ph\":\"M\",\"pid\":", process, ",\"name\":\"process_name\",\"args\":{\"name\":\"", process == 1 ? "devices" : "links", "\"}},\n",
                "{\"ph\":\"M\",\"pid\":", process, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":", process, "}},\n");
    std::vector<std::uint32_t> alike(shown.rows(), 0); // devices and links of a row
    for (auto const n : shown.row_of)
        if (n != shown_tasks::left_out) ++alike[n];
    std::uint32_t next = 0; // row
    for (std::uint32_t i = 0; i + 1 < r.tasks.resources; ++i) {
        if (shown.row_of[i] != next) continue;
        auto name = name_of_resource(cluster, i);
        if (i < devices) name += text(" (", cluster.describe_device(i).kind, ", node ", cluster.node_of(i), ')');
        if (alike[next] > 1) name += text(" and ", alike[next] - 1, " alike");
        out.add("{\"ph\":\"M\",", row(i), ",\"name\":\"thread_name\",\"args\":{\"name\":", json_string(name), "}},\n", "{\"ph\":\"M\",", row(i),
                ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":", i, "}},\n");
        ++next;
    }
    detail::event_texts texts(g, r, std::move(configurations));
    for (auto const t : shown.tasks) {
        out.add("{\"ph\":\"X\",", row(r.tasks.resource[t]), ",\"ts\":");
        detail::add_microseconds(out, r.schedule.start[t]);
        out.add(",\"dur\":");
        detail::add_microseconds(out, r.schedule.end[t] - r.schedule.start[t]);
        auto const& [name, rest] = texts.of(t);
        out.add(',', name);
        auto const run = r.run_of(t);
        if (run.micro_batch != sim::task_run::once) out.add(", micro-batch ", run.micro_batch);
        out.add(rest, r.tasks.label[t].number);
        if (run.micro_batch != sim::task_run::once) out.add(",\"micro_batch\":", run.micro_batch);
        out.add("}},\n");
    }
    out.add("{\"ph\":\"M\",\"pid\":1,\"name\":\"process_labels\",\"args\":{\"labels\":\"iteration of ", to_seconds(r.makespan) * 1e3,
            " ms\"}}\n]}\n");
    out.finish("the timeline");
    return shown.row_of.size() - shown.rows();
}

} // namespace parsearch::io

#ifndef PARSEARCH_IO_COMPILED
#include <parsearch/io/display/timeline.ipp>
#endif
