#pragma once
// Simulates task graphs of FlexNet on their own network: iteration time, time of each device, bytes on each link.

#include <algorithm>

#include <parsearch/fabric/network/rings.hpp>
#include <parsearch/flexnet/simulate.hpp>

namespace parsearch::flexnet {

PARSEARCH_INLINE std::string name_of(task_graph const& g, carrier const& c) {
    switch (c.what) {
    case carrier::type::network: return text("vertex ", c.from, " -> vertex ", c.to);
    case carrier::type::inside: return text("gpu ", c.from, " -> gpu ", c.to);
    case carrier::type::local: break;
    }
    return text(name_of(g.devices[c.from].type), " device ", g.devices[c.from].id);
}

} // namespace parsearch::flexnet

namespace parsearch::flexnet::detail {

PARSEARCH_INLINE lowering::lowering(task_graph const& g, id_index index) : g_(g), index_(std::move(index)) {
    compute_number_.assign(g.devices.size(), none);
    for (std::uint32_t d = 0; d < g.devices.size(); ++d) {
        if (computes(g.devices[d].type)) {
            compute_number_[d] = static_cast<std::uint32_t>(out_.computing.size());
            out_.computing.push_back(d);
        }
        if (g.devices[d].type == device_type::gpu) node_of_gpu_.emplace(g.devices[d].property, static_cast<std::uint32_t>(g.devices[d].node));
    }
    for (auto const& c : g.connections)
        if (c.links > 0)
            for (auto const& [from, to] : {std::pair{c.from, c.to}, std::pair{c.to, c.from}})
                find_or_add({carrier::type::network, from, to, static_cast<double>(c.links) * static_cast<double>(g.link_bytes_per_ms)});
    for (std::uint32_t r = 0; r < g.routes.size(); ++r)
        if (!g.routes[r].paths.empty()) route_.emplace(std::pair{g.routes[r].from, g.routes[r].to}, r);
    for (std::uint32_t r = 0; r < g.rings.size(); ++r) rings_.emplace(g.rings[r].size, r);
    for (auto const& d : g.devices) join_gpus(d);
}

PARSEARCH_INLINE lowered lowering::run() && {
    first_piece_.push_back(0);
    for (place_ = 0; place_ < g_.tasks.size(); ++place_) {
        cut(g_.tasks[place_]);
        first_piece_.push_back(pieces_.size());
    }
    out_.bytes.assign(out_.carriers.size(), 0);
    for (auto const& p : pieces_) out_.bytes[p.carrier] = saturating_sum(out_.bytes[p.carrier], p.bytes);
    put_in_order();
    return std::move(out_);
}

PARSEARCH_INLINE double lowering::rate_of(device const& d) const {
    if (d.bytes_per_ms > 0) return static_cast<double>(d.bytes_per_ms);
    switch (d.type) {
    case device_type::nvlink: return static_cast<double>(g_.gpu_bytes_per_ms);
    case device_type::system_memory:
    case device_type::zero_copy_memory:
    case device_type::memory_bus: return static_cast<double>(g_.memory_bytes_per_ms);
    default: return 0;
    }
}

PARSEARCH_INLINE bool lowering::joins_gpus(device const& d) const {
    auto const n = std::uint64_t{g_.nodes} * g_.gpus_per_node;
    if (d.type != device_type::nvlink || d.property / n >= n || d.property / n == d.property % n) return false;
    auto const a = node_of_gpu_.find(d.property / n), b = node_of_gpu_.find(d.property % n);
    return a != node_of_gpu_.end() && b != node_of_gpu_.end() && a->second == b->second;
}

PARSEARCH_INLINE void lowering::put(std::uint32_t on, byte_count bytes) {
    if (on >= put_.size()) put_.resize(out_.carriers.size(), -1);
    if (put_[on] < 0) {
        put_[on] = 0;
        touched_.push_back(on);
    }
    put_[on] = saturating_sum(put_[on], bytes);
    if (++steps_ > most_pieces) refuse("makes the hops of all tasks more than ", most_pieces, ": that is the limit");
}

PARSEARCH_INLINE void lowering::put_on_route(std::uint32_t from, std::uint32_t to, byte_count bytes) {
    auto const at = route_.find({from, to});
    if (at == route_.end()) {
        if (!number_.contains({carrier::type::network, {from, to}}))
            refuse("sends from vertex ", from, " to vertex ", to, ": no route leads there, and no connection joins them");
        return put_on_link(from, to, bytes);
    }
    auto const& paths = g_.routes[at->second].paths;
    double chances = 0, sum = 0;
    for (auto const& p : paths) chances += static_cast<double>(p.chance);
    byte_count sent = 0;
    for (std::size_t i = 0; i < paths.size(); ++i) {
        sum += static_cast<double>(paths[i].chance);
        auto const upto =
            i + 1 == paths.size() ? bytes : std::clamp(static_cast<byte_count>(static_cast<double>(bytes) * (sum / chances)), sent, bytes);
        auto const& v = paths[i].vertices;
        for (std::size_t h = 0; h + 1 < v.size() && (upto > sent || bytes == 0); ++h) put_on_link(v[h], v[h + 1], upto - sent);
        sent = upto;
    }
}

PARSEARCH_INLINE void lowering::all_reduce(task const& t) {
    auto const g = t.next.size();
    if (g < 2) return;
    static std::vector<std::vector<std::int32_t>> const in_order{{1}};
    auto const at = rings_.find(g);
    auto const& rings = at == rings_.end() || g_.rings[at->second].jumps.empty() ? in_order : g_.rings[at->second].jumps;
    auto const parts = fabric::split_evenly(static_cast<byte_count>(t.bytes), rings.size());
    for (std::size_t r = 0; r < rings.size(); ++r) {
        auto const bytes = fabric::ring_traffic(parts[r], g);
        auto const size = static_cast<std::int64_t>(g);
        std::size_t member = 0;
        for (std::size_t i = 0; i < g; ++i) // by position in the ring
            for (auto const j : rings[r]) {
                auto const next = static_cast<std::size_t>((static_cast<std::int64_t>(member) + j % size + size) % size);
                put_between(t.next[member], t.next[next], bytes[i]);
                member = next;
            }
    }
}

PARSEARCH_INLINE void lowering::cut(task const& t) {
    auto const bytes = static_cast<byte_count>(t.bytes);
    if (t.type == task_type::all_reduce) all_reduce(t);
    if (t.type == task_type::comm || t.type == task_type::nominal_comm) {
        auto const position = index_.device.at(t.device);
        auto const& d = g_.devices[position];
        auto const from = static_cast<std::uint32_t>(d.property / g_.vertices()), to = static_cast<std::uint32_t>(d.property % g_.vertices());
        if (d.type == device_type::nominal_network) put_on_route(from, to, bytes);
        else if (d.type == device_type::network) put_on_link(from, to, bytes);
        else if (joins_gpus(d)) put(inside(gpus_of(d).first, gpus_of(d).second), bytes);
        else put(find_or_add({carrier::type::local, position, 0, rate_of(d)}), bytes);
    }
    std::sort(touched_.begin(), touched_.end());
    for (auto const c : touched_) pieces_.push_back({c, std::exchange(put_[c], -1)});
    touched_.clear();
}

PARSEARCH_INLINE std::int64_t lowering::time_on(piece const& p) const {
    auto const& c = out_.carriers[p.carrier];
    if (p.bytes == 0) return 0;
    if (!(c.bytes_per_ms > 0)) refuse("sends ", p.bytes, " bytes over ", name_of(g_, c), ": the file says no bandwidth of it");
    try {
        return time_of(p.bytes, {c.bytes_per_ms * 1000}).count();
    } catch (invalid_input const& e) {
        refuse("sends ", p.bytes, " bytes over ", name_of(g_, c), ": ", e.what());
    }
}

PARSEARCH_INLINE void lowering::put_in_order() {
    auto const n = static_cast<std::uint32_t>(g_.tasks.size());
    auto const compute = static_cast<std::uint32_t>(out_.computing.size());
    auto const barrier = compute + static_cast<std::uint32_t>(out_.carriers.size());
    out_.tasks.clear(barrier + 1);
    std::vector<std::vector<std::uint32_t>> waits_for(n);
    std::vector<std::uint32_t> open(n, 0), first(n, 0), end(n, 0);
    auto const each_next = [&](std::uint32_t t, auto const& f) {
        if (g_.tasks[t].type != task_type::all_reduce)
            for (auto const next : g_.tasks[t].next) f(index_.task.at(next));
    };
    for (std::uint32_t t = 0; t < n; ++t)
        each_next(t, [&](std::uint32_t next) {
            ++open[next];
            if (waits_for[next].empty() || waits_for[next].back() != t) waits_for[next].push_back(t); // some name a task twice
        });
    auto const add = [&](std::uint32_t t, std::uint32_t on, std::int64_t duration, sim::task_kind kind) {
        for (auto const before : waits_for[t])
            for (auto p = first[before]; p < end[before]; ++p) out_.tasks.after(p);
        return add_part(t, on, duration, kind);
    };
    // Barriers before and after several parts keep the dependencies linear in those of the file.
    auto const add_pieces = [&](std::uint32_t t, sim::task_kind kind) {
        auto const parts = first_piece_[t + 1] - first_piece_[t];
        bool const gathers = parts > 1 && waits_for[t].size() > 1;
        auto const begin = gathers ? add(t, barrier, 0, sim::task_kind::barrier) : none;
        auto const first_part = out_.tasks.size();
        for (auto p = first_piece_[t]; p < first_piece_[t + 1]; ++p) {
            auto const on = compute + pieces_[p].carrier;
            auto const duration = time_on(pieces_[p]);
            if (!gathers) {
                add(t, on, duration, kind);
                continue;
            }
            out_.tasks.after(begin);
            add_part(t, on, duration, kind);
        }
        first[t] = first_part;
        if (parts < 2 || g_.tasks[t].type == task_type::all_reduce) return;
        for (auto p = first_part; p < first_part + parts; ++p) out_.tasks.after(p);
        first[t] = add_part(t, barrier, 0, sim::task_kind::barrier);
    };
    visit_topologically(std::span(open), each_next, [&](std::uint32_t t) {
        place_ = t;
        auto const& task = g_.tasks[t];
        first[t] = out_.tasks.size();
        switch (task.type) {
        case task_type::forward: add(t, number_of(task), time_of_work(task), sim::task_kind::forward); break;
        case task_type::backward: add(t, number_of(task), time_of_work(task), sim::task_kind::backward); break;
        case task_type::update: add(t, number_of(task), time_of_work(task), sim::task_kind::update); break;
        case task_type::barrier: add(t, barrier, 0, sim::task_kind::barrier); break;
        case task_type::all_reduce: add_pieces(t, sim::task_kind::collective); break;
        default: add_pieces(t, sim::task_kind::transfer);
        }
        end[t] = out_.tasks.size();
    });
}

} // namespace parsearch::flexnet::detail

namespace parsearch::flexnet {

PARSEARCH_INLINE iteration simulate(task_graph const& g, sim::discipline order) {
    auto low = lower(g);
    sim::schedule times;
    sim::scheduler{}.run(low.tasks, order, times);
    std::vector<picoseconds> compute(low.computing.size());
    for (std::uint32_t t = 0; t < low.tasks.size(); ++t)
        if (auto const r = low.tasks.resource[t]; r < compute.size())
            compute[r] = picoseconds{saturating_sum(compute[r].count(), low.tasks.duration[t])};
    return {picoseconds{times.makespan}, std::move(low.computing), std::move(compute), std::move(low.carriers), std::move(low.bytes)};
}

} // namespace parsearch::flexnet
