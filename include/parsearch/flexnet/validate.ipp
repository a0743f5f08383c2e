#pragma once
// Checks task graphs of FlexNet: every number, name and reference.

#include <numeric>
#include <set>

#include <parsearch/core/topological_order.hpp>
#include <parsearch/flexnet/validate.hpp>

namespace parsearch::flexnet::detail {

PARSEARCH_INLINE id_index validator::run() {
    sizes();
    connections();
    devices();
    tasks();
    routes();
    rings();
    acyclic();
    return std::move(index_);
}

PARSEARCH_INLINE void validator::sizes() {
    if (g_.nodes < 1) refuse("nnode is 0: there must be at least one node");
    if (std::uint64_t{g_.nodes} + g_.switches > max_vertices)
        refuse("nnode is ", g_.nodes, " and nswitch ", g_.switches, ": must be at most ", max_vertices, " together");
    if (g_.gpus_per_node < 1 || std::uint64_t{g_.nodes} * g_.gpus_per_node > max_gpus)
        refuse("ngpupernode is ", g_.gpus_per_node, " on ", g_.nodes, " nodes: must be from 1, and at most ", max_gpus, " GPUs in all");
    finite(g_.gpu_bytes_per_ms, "intergpubw");
    finite(g_.memory_bytes_per_ms, "drambw");
    finite(g_.link_bytes_per_ms, "netbw");
    for (auto const& [size, what] : {std::pair{g_.tasks.size(), "tasks"}, std::pair{g_.devices.size(), "devices"}})
        if (size > std::numeric_limits<std::uint32_t>::max() / 4) refuse(size, ' ', what, ": too many to be numbered");
}

PARSEARCH_INLINE void validator::connections() {
    for (std::size_t i = 0; i < g_.connections.size(); ++i) {
        auto const& c = g_.connections[i];
        auto const place = text("conn[", i, "] from ", c.from, " to ", c.to);
        if (c.from >= g_.vertices() || c.to >= c.from)
            refuse(place, ": must lead from one of ", g_.vertices(), " vertices to one of a smaller number");
        if (!joined_.emplace(std::pair{c.from, c.to}, c.links > 0).second) refuse(place, ": is there twice: must be once");
    }
}

PARSEARCH_INLINE void validator::devices() {
    std::set<std::uint64_t> numbers;
    for (std::size_t i = 0; i < g_.devices.size(); ++i) {
        auto const& d = g_.devices[i];
        auto const place = text("devices[", i, "] (deviceid ", d.id, ')');
        if (d.type < device_type{} || static_cast<std::size_t>(d.type) >= device_types)
            refuse(place, " has type ", static_cast<int>(d.type), ": must be from 0 to ", device_types - 1);
        if (!index_.device.emplace(d.id, static_cast<std::uint32_t>(i)).second) refuse(place, ": its id is that of another device: must be its own");
        if (computes(d.type) && d.node >= g_.nodes) refuse(place, " has nodeid ", d.node, ": there are ", g_.nodes, " nodes");
        if (d.type == device_type::gpu) {
            if (d.property >= gpus()) refuse(place, " is GPU ", d.property, " by its deviceproperty: there are ", gpus());
            if (!numbers.insert(d.property).second) refuse(place, " is GPU ", d.property, " by its deviceproperty, as another is: must be one");
        }
        auto const n = g_.vertices();
        if (networks(d.type) && (d.property / n >= n || d.property / n == d.property % n))
            refuse(place, " has deviceproperty ", d.property, ": must be sender * ", n, " + receiver, of two of ", n, " vertices");
    }
    numbers_.assign(numbers.begin(), numbers.end());
}

PARSEARCH_INLINE void validator::tasks() {
    for (std::size_t i = 0; i < g_.tasks.size(); ++i) {
        auto const& t = g_.tasks[i];
        if (t.type < task_type{} || static_cast<std::size_t>(t.type) >= task_types)
            refuse("tasks[", i, "] (taskid ", t.id, ") has type ", static_cast<int>(t.type), ": must be from 0 to ", task_types - 1);
        if (!index_.task.emplace(t.id, static_cast<std::uint32_t>(i)).second)
            refuse(place_of(i), ": its id is that of another task: must be its own");
    }
    for (std::size_t i = 0; i < g_.tasks.size(); ++i) {
        auto const& t = g_.tasks[i];
        if (!(t.runtime_ms >= 0) || t.runtime_ms > max_runtime_ms)
            refuse(place_of(i), " has a runtime of ", t.runtime_ms, " ms: must be from 0 to ", max_runtime_ms);
        if (t.bytes > max_task_bytes) refuse(place_of(i), " has an xfersize of ", t.bytes, " bytes: must be at most ", max_task_bytes);
        runs_on(i);
        if (t.type == task_type::all_reduce) {
            members(i);
            continue;
        }
        for (auto const n : t.next)
            if (!index_.task.contains(n)) refuse(place_of(i), " has task ", n, " in nexttasks: there is no such taskid");
    }
}

PARSEARCH_INLINE void validator::runs_on(std::size_t i) const {
    auto const& t = g_.tasks[i];
    if (t.type == task_type::barrier || t.type == task_type::all_reduce) return;
    auto const at = index_.device.find(t.device);
    if (at == index_.device.end()) refuse(place_of(i), " is on device ", t.device, ": there is no such deviceid");
    auto const what = g_.devices[at->second].type;
    bool const moves = t.type == task_type::comm || t.type == task_type::nominal_comm;
    if (moves == computes(what))
        refuse(place_of(i), " is on device ", t.device, " of type ", name_of(what), ": must be one that ", moves ? "moves data" : "computes");
}

PARSEARCH_INLINE void validator::members(std::size_t i) const {
    auto sorted = g_.tasks[i].next;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.empty()) refuse(place_of(i), " names no GPU in nexttasks: must name those that take part");
    for (std::size_t k = 0; k < sorted.size(); ++k) {
        if (!std::binary_search(numbers_.begin(), numbers_.end(), sorted[k]))
            refuse(place_of(i), " names GPU ", sorted[k], " in nexttasks: there is no GPU of this number");
        if (k > 0 && sorted[k] == sorted[k - 1]) refuse(place_of(i), " names GPU ", sorted[k], " twice in nexttasks: a group has each once");
    }
}

PARSEARCH_INLINE void validator::routes() const {
    std::set<std::pair<std::uint32_t, std::uint32_t>> known;
    for (std::size_t i = 0; i < g_.routes.size(); ++i) {
        auto const& r = g_.routes[i];
        auto const place = text("routes[", i, "] from ", r.from, " to ", r.to);
        if (r.from >= g_.vertices() || r.to >= g_.vertices()) refuse(place, ": there are ", g_.vertices(), " vertices");
        if (!known.emplace(r.from, r.to).second) refuse(place, ": is there twice: must be once");
        double chances = 0;
        for (std::size_t k = 0; k < r.paths.size(); ++k) {
            auto const& p = r.paths[k];
            if (!(p.chance >= 0 && p.chance <= 1)) refuse(place, ", path ", k, " has a chance of ", p.chance, ": must be from 0 to 1");
            chances += static_cast<double>(p.chance);
            passes(r, p.vertices, text(place, ", path ", k));
        }
        if (!r.paths.empty() && !(chances > 0.999 && chances < 1.001)) refuse(place, " has chances of ", chances, " in all: must be 1");
    }
}

PARSEARCH_INLINE void validator::passes(vertex_route const& r, std::vector<std::uint32_t> const& hops, std::string const& place) const {
    if (hops.empty() || hops.front() != r.from || hops.back() != r.to) refuse(place, ": must begin and end with the vertices of its route");
    for (auto const v : hops)
        if (v >= g_.vertices()) refuse(place, " passes vertex ", v, ": there are ", g_.vertices());
    for (std::size_t h = 0; h + 1 < hops.size(); ++h)
        if (!joined(hops[h], hops[h + 1])) refuse(place, " goes from ", hops[h], " to ", hops[h + 1], ": no connection joins them");
    auto sorted = hops;
    std::sort(sorted.begin(), sorted.end());
    if (auto const twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
        refuse(place, " passes vertex ", *twice, " twice: must be once");
}

PARSEARCH_INLINE void validator::rings() const {
    std::set<std::uint64_t> known;
    for (std::size_t i = 0; i < g_.rings.size(); ++i) {
        auto const& r = g_.rings[i];
        auto const place = text("rings[", i, "] of size ", r.size);
        if (r.size < 2 || r.size > gpus()) refuse(place, ": must be from 2 to the ", gpus(), " GPUs");
        if (!known.insert(r.size).second) refuse(place, ": is there twice: must be once");
        for (std::size_t k = 0; k < r.jumps.size(); ++k) {
            auto const size = static_cast<std::int64_t>(r.size);
            std::int64_t step = 0;
            for (auto const j : r.jumps[k]) {
                if (j % size == 0) refuse(place, ", ring ", k, " has a jump of ", j, ": must lead to another member");
                step = (step + j % size + size) % size;
            }
            if (std::gcd(step, size) != 1)
                refuse(place, ", ring ", k, " has jumps of ", step, " in all: must have no factor in common with the size");
        }
    }
}

PARSEARCH_INLINE void validator::acyclic() const {
    std::vector<std::uint32_t> waits_for(g_.tasks.size(), 0);
    auto const each_next = [&](std::uint32_t t, auto const& visit) {
        if (g_.tasks[t].type == task_type::all_reduce) return;
        for (auto const n : g_.tasks[t].next) visit(index_.task.at(n));
    };
    for (std::uint32_t t = 0; t < g_.tasks.size(); ++t) each_next(t, [&](auto n) { ++waits_for[n]; });
    visit_topologically(std::span(waits_for), each_next, [](auto) {});
    auto const stuck = std::find_if(waits_for.begin(), waits_for.end(), [](auto n) { return n > 0; });
    if (stuck == waits_for.end()) return;
    refuse(place_of(static_cast<std::size_t>(stuck - waits_for.begin())),
           " waits for tasks that wait for each other: nexttasks must lead in no circle");
}

} // namespace parsearch::flexnet::detail
