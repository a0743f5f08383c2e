#pragma once
/// Configurations and times for timelines that are worked out by hand.

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/sim/schedule/task_graph.hpp>
#include <parsearch/space/configuration.hpp>

namespace support {

/// Number of the operator of that name.
inline std::uint32_t op_named(parsearch::graph::dense_graph const& g, std::string_view name) {
    for (std::uint32_t op = 0; op < g.size(); ++op)
        if (g.names[op] == name) return op;
    throw parsearch::invalid_input("no operator '", name, "'");
}

/// `op` split by `degree` along the dim of that name, shard by shard on `devices`.
inline parsearch::space::configuration split(parsearch::ops::operation const& op, std::string_view dim, std::vector<std::int32_t> devices) {
    auto c = parsearch::space::whole(op);
    bool found = false;
    for (std::size_t k = 0; k < op.dims.size(); ++k)
        if (op.dims[k].name == dim) c.degree[k] = static_cast<std::int32_t>(devices.size()), found = true;
    if (!found) throw parsearch::invalid_input("no dim '", dim, "'");
    c.listed = std::move(devices);
    return c;
}

/// Every operator whole on device 0.
inline std::vector<parsearch::space::configuration> all_on_first(parsearch::graph::dense_graph const& g) {
    std::vector<parsearch::space::configuration> s;
    for (auto const& op : g.operations) s.push_back(parsearch::space::whole(op));
    return s;
}

/// The number of the task of that kind and label, which must be one.
inline std::uint32_t find_task(parsearch::sim::task_graph const& t, parsearch::sim::task_kind kind, std::uint32_t op, std::uint32_t number = 0) {
    std::uint32_t found = t.size();
    for (std::uint32_t i = 0; i < t.size(); ++i)
        if (t.kind[i] == kind && t.label[i].op == op && t.label[i].number == number) {
            if (found != t.size()) throw parsearch::invalid_input("two such tasks");
            found = i;
        }
    if (found == t.size()) throw parsearch::invalid_input("no such task");
    return found;
}

inline std::size_t count_tasks(parsearch::sim::task_graph const& t, parsearch::sim::task_kind kind) {
    std::size_t n = 0;
    for (auto const k : t.kind) n += k == kind;
    return n;
}

} // namespace support
