#pragma once
// The simulated task graph as execution traces of Chakra (MLCommons), one per device: what network simulators read.

#include <algorithm>

#include <parsearch/core/collective.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/io/exports/chakra_trace.hpp>
#include <parsearch/io/exports/link_ends.hpp>
#include <parsearch/io/json/json_writer.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>

namespace parsearch::io::detail {

/// A message of protocol buffers, as bytes.
class protobuf_message {
  public:
    void number(std::uint32_t field, std::uint64_t value) {
        varint(std::uint64_t{field} << 3);
        varint(value);
    }
    void bytes(std::uint32_t field, std::string_view value) {
        varint(std::uint64_t{field} << 3 | 2);
        varint(value.size());
        out_ += value;
    }
    void message(std::uint32_t field, protobuf_message const& value) { bytes(field, value.out_); }
    void numbers(std::uint32_t field, std::vector<std::uint64_t> const& values);
    /// Appends the message behind its size, as files of several messages have it.
    void append_to(std::string& file) const;

  private:
    void varint(std::uint64_t v) {
        for (; v >= 128; v >>= 7) out_ += static_cast<char>(v % 128 + 128);
        out_ += static_cast<char>(v);
    }
    std::string out_;
};

class chakra_writer {
  public:
    explicit chakra_writer(exported_plan const& p) : p_(p), report_(*p.report), devices_(p.topology.size()), traces_(devices_), ends_(p.topology) {}

    [[nodiscard]] std::vector<exported_file> write(std::string const& prefix);

  private:
    enum node_type : std::uint8_t { computation = 4, send = 5, receive = 6, collective = 7 };

    /// By device the nodes that `task` waits for: `waits_for_[task]`.
    void wait(std::uint32_t task);
    /// Makes a node on a device, behind what the task waits for there; others that wait for the task wait for the node.
    void add_node(std::uint32_t device, std::uint32_t first, std::uint32_t last, node_type type, std::set<std::uint64_t> const& before,
                  std::vector<protobuf_message> const& more);
    [[nodiscard]] static protobuf_message attribute(std::string_view name, std::uint32_t field, std::uint64_t value);
    [[nodiscard]] static protobuf_message attribute(std::string_view name, std::string_view value);

    void add_computation(std::uint32_t task);

    void add_movement(std::uint32_t first, std::uint32_t last);

    exported_plan const& p_;
    sim::report const& report_;
    std::size_t devices_;
    std::vector<std::string> traces_;
    link_ends ends_;
    std::map<std::vector<std::uint32_t>, std::size_t> groups_{};
    std::vector<std::map<std::uint32_t, std::set<std::uint64_t>>> waits_for_{}; ///< by task and device, nodes that those behind it wait for
    std::vector<std::uint32_t> unit_{};                                         ///< by task, the first of its message or collective
    std::uint64_t messages_ = 0;
};

} // namespace parsearch::io::detail

namespace parsearch::io::detail {

PARSEARCH_IO_INLINE void protobuf_message::numbers(std::uint32_t field, std::vector<std::uint64_t> const& values) {
    if (values.empty()) return;
    protobuf_message packed;
    for (auto const v : values) packed.varint(v);
    message(field, packed);
}

PARSEARCH_IO_INLINE void protobuf_message::append_to(std::string& file) const {
    protobuf_message size;
    size.varint(out_.size());
    file += size.out_;
    file += out_;
}

PARSEARCH_IO_INLINE std::vector<exported_file> chakra_writer::write(std::string const& prefix) {
    protobuf_message head;
    head.bytes(1, "0.0.4");
    for (auto& trace : traces_) head.append_to(trace);
    auto const& tasks = report_.tasks;
    waits_for_.resize(tasks.size());
    unit_.resize(tasks.size());
    for (auto const& [first, last] : movements_and_tasks(report_)) {
        for (auto t = first; t < last; ++t) unit_[t] = first;
        switch (tasks.kind[first]) {
        case sim::task_kind::barrier: wait(first); break;
        case sim::task_kind::transfer:
        case sim::task_kind::collective: add_movement(first, last); break;
        default: add_computation(first);
        }
    }
    std::vector<exported_file> out;
    for (std::size_t d = 0; d < devices_; ++d) out.push_back({text(prefix, '.', d, ".et"), std::move(traces_[d])});
    ordered_json groups;
    for (auto const& [members, number] : groups_) groups[text(number)] = members;
    std::string said;
    append_json(said, groups.is_null() ? ordered_json::object() : groups, 0, 0);
    out.push_back({prefix + ".groups.json", said + '\n'});
    return out;
}

PARSEARCH_IO_INLINE void chakra_writer::wait(std::uint32_t task) {
    auto& out = waits_for_[task];
    for (auto const before : report_.tasks.before(task)) {
        for (auto const& [device, nodes] : waits_for_[unit_[before]]) {
            auto& mine = out[device];
            mine.insert(nodes.begin(), nodes.end());
        }
    }
}

PARSEARCH_IO_INLINE void chakra_writer::add_node(std::uint32_t device, std::uint32_t first, std::uint32_t last, node_type type,
                                                 std::set<std::uint64_t> const& before, std::vector<protobuf_message> const& more) {
    auto const& l = report_.tasks.label[first];
    auto const run = report_.run_of(first);
    protobuf_message node;
    node.number(1, first);
    auto name = text(p_.graph.names[l.op], ' ',
                     report_.tasks.kind[first] == sim::task_kind::transfer || report_.tasks.kind[first] == sim::task_kind::collective
                         ? name_of(l.traffic)
                         : name_of(report_.tasks.kind[first]));
    if (run.micro_batch != sim::task_run::once) name += text(" of micro-batch ", run.micro_batch);
    if (run.part != sim::task_part::whole) name += text(", ", spoken(run.part));
    node.bytes(2, name);
    node.number(3, type);
    node.numbers(5, {before.begin(), before.end()});
    auto begin = report_.schedule.start[first], end = report_.schedule.end[first];
    for (auto t = first; t < last; ++t) {
        begin = std::min(begin, report_.schedule.start[t]);
        end = std::max(end, report_.schedule.end[t]);
    }
    constexpr std::int64_t microsecond = 1'000'000;
    node.number(6, static_cast<std::uint64_t>(begin / microsecond));
    node.number(7, static_cast<std::uint64_t>((end - begin + microsecond / 2) / microsecond));
    for (auto const& attribute : more) node.message(10, attribute);
    node.message(10, attribute("duration_ps", 13, static_cast<std::uint64_t>(end - begin)));
    node.append_to(traces_[device]);
}

PARSEARCH_IO_INLINE protobuf_message chakra_writer::attribute(std::string_view name, std::uint32_t field, std::uint64_t value) {
    protobuf_message out;
    out.bytes(1, name);
    out.number(field, value);
    return out;
}

PARSEARCH_IO_INLINE protobuf_message chakra_writer::attribute(std::string_view name, std::string_view value) {
    protobuf_message out;
    out.bytes(1, name);
    out.bytes(29, value);
    return out;
}

PARSEARCH_IO_INLINE void chakra_writer::add_computation(std::uint32_t task) {
    wait(task);
    auto const device = report_.tasks.resource[task];
    auto const& before = waits_for_[task][device];
    add_node(device, task, task + 1, computation, before, {attribute("is_cpu_op", 27, 0)});
    waits_for_[task] = {{device, {task}}};
}

PARSEARCH_IO_INLINE void chakra_writer::add_movement(std::uint32_t first, std::uint32_t last) {
    for (auto t = first; t < last; ++t) wait(t);
    auto before = waits_for_[first];
    for (auto t = first + 1; t < last; ++t)
        for (auto const& [device, nodes] : waits_for_[t]) before[device].insert(nodes.begin(), nodes.end());
    std::vector<std::uint32_t> links;
    for (auto t = first; t < last; ++t) links.push_back(report_.tasks.resource[t] - static_cast<std::uint32_t>(devices_));
    auto const& carried = report_.carried[first];
    auto const size = static_cast<std::uint64_t>(carried.bytes);
    auto& after = waits_for_[first];
    after.clear();
    auto const place =
        text("operator '", p_.graph.names[report_.tasks.label[first].op], "' (", p_.graph.operations[report_.tasks.label[first].op].kind, "): ");
    if (report_.tasks.kind[first] == sim::task_kind::transfer) {
        auto const at = ends_.message(links);
        if (!at) throw invalid_input(place, "a message passes ", links.size(), " links that are no route: a trace tells messages by their ends");
        auto const [from, to] = *at;
        auto const tag = static_cast<std::uint64_t>(messages_++);
        std::vector<protobuf_message> const what{attribute("is_cpu_op", 27, 0), attribute("comm_src", 7, from), attribute("comm_dst", 7, to),
                                                 attribute("comm_size", 9, size), attribute("comm_tag", 7, tag)};
        add_node(from, first, last, send, before[from], what);
        add_node(to, first, last, receive, {}, what);
        after[to] = {first};
        return;
    }
    auto const& members = ends_.devices(links);
    if (members.size() != carried.devices)
        throw invalid_input(place, "a collective of ", carried.devices, " devices passes links that join ", members.size(),
                            ": a trace tells collectives by their devices");
    constexpr std::array<std::uint64_t, 7> types{0, 2, 7, 6, 5, 1, 6}; // of `collective_kind`
    auto const group = groups_.try_emplace(members, groups_.size()).first->second;
    for (auto const d : members) {
        add_node(d, first, last, collective, before[d],
                 {attribute("is_cpu_op", 27, 0), attribute("comm_type", 9, types[static_cast<std::size_t>(carried.collective)]),
                  attribute("comm_size", 9, size), attribute("pg_name", text(group))});
        after[d] = {first};
    }
}

} // namespace parsearch::io::detail

namespace parsearch::io {

PARSEARCH_IO_INLINE std::vector<exported_file> chakra_traces(std::string const& prefix, exported_plan const& p) {
    detail::refuse_offloaded(p, "chakra", "a trace has no copies to hosts");
    if (!p.report) throw invalid_input("chakra: the plan was not simulated: a trace needs its tasks");
    if (p.options.transfers != sim::transfer_model::streaming)
        throw invalid_input("chakra: transfers are ", name_of(p.options.transfers), ": must be streaming, a message is one node");
    return detail::chakra_writer(p).write(prefix);
}

} // namespace parsearch::io
