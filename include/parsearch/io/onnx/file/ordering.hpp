#pragma once
/// The nodes of a graph or function that its outputs need, in topological order.

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/topological_order.hpp>
#include <parsearch/io/onnx/file/proto.hpp>

namespace parsearch::io::onnx {

using node_list = google::protobuf::RepeatedPtrField<pb::NodeProto>;

/// What is to be evaluated of a list of nodes.
struct ordered_nodes {
    std::vector<pb::NodeProto const*> nodes; ///< producers before readers, otherwise as in the file
    std::set<std::string_view> read;         ///< the names that these nodes, or the outside, read
};

namespace detail {

/// Calls `see(name)` for all names that a node reads, with those that graphs in its attributes read.
template <class F> void each_read(pb::NodeProto const& n, F const& see) {
    for (auto const& i : n.input())
        if (!i.empty()) see(i);
    auto const within = [&](pb::GraphProto const& g) {
        for (auto const& m : g.node()) each_read(m, see);
        for (auto const& o : g.output()) see(o.name());
    };
    for (auto const& a : n.attribute()) {
        if (a.has_g()) within(a.g());
        for (auto const& g : a.graphs()) within(g);
    }
}

/// The node that writes each name. Throws `invalid_input` for a name that two nodes write.
[[nodiscard]] inline std::map<std::string_view, std::size_t> producers_of(node_list const& nodes) {
    std::map<std::string_view, std::size_t> producer;
    for (int i = 0; i < nodes.size(); ++i)
        for (auto const& o : nodes[i].output())
            if (!o.empty() && !producer.emplace(o, static_cast<std::size_t>(i)).second)
                throw invalid_input("value '", o, "' is written by two nodes (", nodes[static_cast<int>(producer[o])].op_type(), " and ",
                                    nodes[i].op_type(), "): must be written once");
    return producer;
}

} // namespace detail

/// Orders the nodes that `wanted` names need. Throws `invalid_input` for a value that two nodes write and for nodes that feed themselves.
/// Complexity: O(n log n) for n names.
[[nodiscard]] inline ordered_nodes order_nodes(node_list const& nodes, std::span<std::string const> wanted) {
    auto const producer = detail::producers_of(nodes);
    auto const count = static_cast<std::size_t>(nodes.size());
    auto const at = [&](std::size_t i) -> pb::NodeProto const& { return nodes[static_cast<int>(i)]; };

    ordered_nodes out;
    std::vector<bool> live(count);
    std::vector<std::size_t> open;
    auto const need = [&](std::string const& name) {
        out.read.insert(name);
        auto const from = producer.find(name);
        if (from == producer.end() || live[from->second]) return;
        live[from->second] = true;
        open.push_back(from->second);
    };
    for (auto const& w : wanted) need(w);
    while (!open.empty()) {
        auto const i = open.back();
        open.pop_back();
        detail::each_read(at(i), need);
    }

    std::vector<std::size_t> waits(count, 1); // what is not needed waits for ever
    std::vector<std::vector<std::size_t>> readers(count);
    for (std::size_t i = 0; i < count; ++i) {
        if (!live[i]) continue;
        waits[i] = 0;
        detail::each_read(at(i), [&](std::string const& name) {
            if (auto const from = producer.find(name); from != producer.end()) {
                readers[from->second].push_back(i);
                ++waits[i];
            }
        });
    }
    auto const each_reader = [&](std::size_t i, auto const& f) {
        for (auto const r : readers[i]) f(r);
    };
    visit_topologically(std::span(waits), each_reader, [&](std::size_t i) {
        live[i] = false;
        out.nodes.push_back(&at(i));
    });
    for (std::size_t i = 0; i < count; ++i)
        if (live[i]) throw invalid_input("node '", at(i).name(), "' (", at(i).op_type(), ") is on a cycle: it needs its own output");
    return out;
}

} // namespace parsearch::io::onnx
