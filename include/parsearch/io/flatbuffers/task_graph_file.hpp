#pragma once
/// Files of task graphs that FlexNet, the simulator of TopoOpt, writes for packet simulators: FlatBuffers of `flexnet_task_graph.fbs`.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <limits>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/flexnet/flexnet_task_graph.hpp>
#include <parsearch/flexnet/validate.hpp>
#include <parsearch/io/flatbuffers/flexnet_task_graph_generated.h>
#include <parsearch/io/text/text.hpp>

namespace parsearch::io {

namespace detail {
namespace fb = FlatBufTaskGraph;

/// The most bytes of a buffer, which has signed offsets of 32 bits.
inline constexpr std::size_t most_flatbuffer_bytes = std::numeric_limits<std::int32_t>::max();

/// Copies out of a buffer that was verified.
class task_graph_reader {
  public:
    task_graph_reader(std::string_view name, std::size_t bytes) : name_(name), entries_left_(bytes) {}

    [[nodiscard]] flexnet::task_graph read(fb::TaskGraph const& in) {
        flexnet::task_graph out{.gpus_per_node = in.ngpupernode(),
                                .nodes = in.nnode(),
                                .switches = in.nswitch(),
                                .gpu_bytes_per_ms = in.intergpubw(),
                                .memory_bytes_per_ms = in.drambw(),
                                .link_bytes_per_ms = in.netbw()};
        each(in.conn(), out.connections, [](auto const& c) { return flexnet::connection{c.fromnode(), c.tonode(), c.nconn()}; });
        each(in.ops(), out.operators, [&](auto const& o) { return flexnet::model_operator{o.opid(), o.type(), string(o.name())}; });
        each(in.tasks(), out.tasks, [&](auto const& t) {
            return flexnet::task{
                static_cast<flexnet::task_type>(t.type()), t.taskid(), t.deviceid(), t.runtime(), t.xfersize(), numbers(t.nexttasks())};
        });
        each(in.devices(), out.devices, [](auto const& d) {
            return flexnet::device{static_cast<flexnet::device_type>(d.type()), d.deviceid(), d.nodeid(), d.deviceproperty(), d.bandwidth()};
        });
        each(in.routes(), out.routes, [&](auto const& r) {
            flexnet::vertex_route route{r.fromnode(), r.tonode(), {}};
            each(r.paths(), route.paths, [&](auto const& p) { return flexnet::path{numbers(p.hopnode()), p.chance()}; });
            return route;
        });
        each(in.rings(), out.rings, [&](auto const& r) {
            flexnet::group_rings rings{r.ringsz(), {}};
            each(r.ringpaths(), rings.jumps, [&](auto const& p) { return numbers(p.jumps()); });
            return rings;
        });
        return out;
    }

  private:
    /// A few bytes may be named from many places: without a limit, a small file would fill the memory.
    void take(std::size_t entries) {
        if (entries > entries_left_) throw invalid_input(name_, ": its lists have more entries than the file has bytes: must not share them");
        entries_left_ -= entries;
    }
    template <class List, class T, class F> void each(List const* in, std::vector<T>& out, F const& make) {
        if (!in) return;
        take(in->size());
        out.reserve(in->size());
        for (auto const* const entry : *in) out.push_back(make(*entry));
    }
    template <class T> std::vector<T> numbers(flatbuffers::Vector<T> const* in) {
        if (!in) return {};
        take(in->size());
        std::vector<T> out(in->size());
        for (std::size_t i = 0; i < out.size(); ++i) { // the verifier of FlatBuffers 2 does not see to it that lists of 64-bit numbers are aligned
            std::memcpy(&out[i], in->Data() + i * sizeof(T), sizeof(T));
            out[i] = flatbuffers::EndianScalar(out[i]);
        }
        return out;
    }
    std::string string(flatbuffers::String const* in) {
        if (!in) return {};
        take(in->size());
        return in->str();
    }

    std::string_view name_;
    std::size_t entries_left_;
};

/// The bytes that `g` takes at most.
[[nodiscard]] inline std::uint64_t bound_of_bytes(flexnet::task_graph const& g) {
    constexpr std::uint64_t table = 128; // more than any with its vtable, its place in a list, the length of one list and padding
    std::uint64_t sum = 4 * table + table * (g.connections.size() + g.operators.size() + g.tasks.size() + g.devices.size());
    for (auto const& o : g.operators) sum += o.name.size();
    for (auto const& t : g.tasks) sum += 8 * t.next.size();
    for (auto const& r : g.routes) {
        sum += table;
        for (auto const& p : r.paths) sum += table + 4 * p.vertices.size();
    }
    for (auto const& r : g.rings) {
        sum += table;
        for (auto const& j : r.jumps) sum += table + 4 * j.size();
    }
    return sum;
}

/// The buffer of `g`, which may break any rule of values. Precondition: it fits in a buffer.
inline void build(flexnet::task_graph const& g, flatbuffers::FlatBufferBuilder& b) {
    auto const list = [&b](auto const& from, auto const& make) {
        std::vector<decltype(make(from.front()))> made;
        made.reserve(from.size());
        for (auto const& entry : from) made.push_back(make(entry));
        return b.CreateVector(made);
    };
    auto const connections = list(g.connections, [&](auto const& c) { return fb::CreateConnection(b, c.from, c.to, c.links); });
    auto const operators = list(g.operators, [&](auto const& o) { return fb::CreateOperator(b, o.id, o.type, b.CreateString(o.name)); });
    auto const tasks = list(g.tasks, [&](auto const& t) {
        return fb::CreateTask(b, static_cast<fb::SimTaskType>(t.type), t.id, t.device, t.runtime_ms, t.bytes, b.CreateVector(t.next));
    });
    auto const devices = list(
        g.devices, [&](auto const& d) { return fb::CreateDevice(b, static_cast<fb::DeviceType>(d.type), d.id, d.node, d.property, d.bytes_per_ms); });
    auto const routes = list(g.routes, [&](auto const& r) {
        auto const paths = list(r.paths, [&](auto const& p) { return fb::CreatePath(b, b.CreateVector(p.vertices), p.chance); });
        return fb::CreateRoute(b, r.from, r.to, paths);
    });
    auto const rings = list(g.rings, [&](auto const& r) {
        auto const jumps = list(r.jumps, [&](auto const& j) { return fb::CreateRingDescriptor(b, b.CreateVector(j)); });
        return fb::CreateRings(b, r.size, jumps);
    });
    b.Finish(fb::CreateTaskGraph(b, g.gpus_per_node, g.nodes, g.switches, g.gpu_bytes_per_ms, g.memory_bytes_per_ms, g.link_bytes_per_ms, connections,
                                 operators, tasks, devices, routes, rings));
}
} // namespace detail

/// Reads a file of FlexNet's task graphs, given as bytes; `name` stands for it in messages. Throws `invalid_input` where it is no such file, or one
/// that breaks a rule of `flexnet::validate`. Memory: linear in the bytes. Complexity: O(n log n).
[[nodiscard]] inline flexnet::task_graph read_flexnet_task_graph(std::span<std::byte const> bytes, std::string_view name = "FlexNet task graph") {
    if (bytes.size() > detail::most_flatbuffer_bytes)
        throw invalid_input(name, ": longer than ", detail::most_flatbuffer_bytes, " bytes: no FlatBuffer is");
    std::vector<std::uint64_t> aligned((bytes.size() + 7) / 8); // numbers are read where they lie
    if (!bytes.empty()) std::memcpy(aligned.data(), bytes.data(), bytes.size());
    auto const* const data = reinterpret_cast<std::uint8_t const*>(aligned.data());
    // Each table has an offset of its own: files that share tables would take time without limit, and are refused below.
    constexpr flatbuffers::uoffset_t depth = 8;
    auto const tables = static_cast<flatbuffers::uoffset_t>(bytes.size() / sizeof(flatbuffers::uoffset_t) + 1);
    flatbuffers::Verifier verifier(data, bytes.size(), depth, tables);
    if (!verifier.VerifyBuffer<detail::fb::TaskGraph>(nullptr))
        throw invalid_input(name, ": ", bytes.size(), " bytes that are no FlatBuffer of a task graph: must be whole, with all offsets inside");
    auto out = detail::task_graph_reader(name, bytes.size()).read(*flatbuffers::GetRoot<detail::fb::TaskGraph>(data));
    (void)flexnet::validate(out, name);
    return out;
}
/// Reads from a stream opened as binary, to its end.
[[nodiscard]] inline flexnet::task_graph read_flexnet_task_graph(std::istream& in, std::string_view name = "FlexNet task graph") {
    auto const bytes = read_text(in, name, detail::most_flatbuffer_bytes);
    return read_flexnet_task_graph(std::as_bytes(std::span(bytes)), name);
}
[[nodiscard]] inline flexnet::task_graph read_flexnet_task_graph(std::filesystem::path const& path) {
    std::ifstream in(path, std::ios::binary);
    return read_flexnet_task_graph(in, path.string());
}

/// Writes `g` to a stream opened as binary, such that reading it gives an equal one; equal graphs give equal bytes. Throws `invalid_input` where a
/// rule of `flexnet::validate` is broken, where a file may pass 2 GiB or where the stream fails.
inline void write_flexnet_task_graph(std::ostream& out, flexnet::task_graph const& g) {
    (void)flexnet::validate(g);
    if (auto const most = detail::bound_of_bytes(g); most > detail::most_flatbuffer_bytes)
        throw invalid_input("FlexNet task graph of up to ", most, " bytes: a FlatBuffer has at most ", detail::most_flatbuffer_bytes);
    flatbuffers::FlatBufferBuilder b;
    detail::build(g, b);
    out.write(reinterpret_cast<char const*>(b.GetBufferPointer()), static_cast<std::streamsize>(b.GetSize()));
    out.flush();
    if (!out) throw invalid_input("FlexNet task graph cannot be written: the stream has failed");
}

} // namespace parsearch::io
