#pragma once
// The time of an iteration during which the links between servers are rewired.

#include <algorithm>
#include <numeric>
#include <utility>

#include <parsearch/core/error.hpp>
#include <parsearch/core/make_set.hpp>
#include <parsearch/fabric/cooptimize/phased_simulator.hpp>
#include <parsearch/fabric/network/reconfigurable.hpp>
#include <parsearch/fabric/servers/traffic.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/sim/memory/memory_penalty.hpp>
#include <parsearch/sim/schedule/any_scheduler.hpp>
#include <parsearch/sim/task/assemble.hpp>

namespace parsearch::fabric {

namespace detail {

inline bool same_label(sim::task_graph const& g, std::uint32_t t, std::uint32_t u) {
    auto const& a = g.label[t];
    auto const& b = g.label[u];
    return a.op == b.op && a.number == b.number && a.edge == b.edge && a.traffic == b.traffic;
}

/// The end of the block that begins with task `t`: messages of one label, a collective between its barriers, or `t` alone.
inline std::uint32_t end_of_block(sim::task_graph const& g, std::uint32_t t) {
    auto end = t + 1;
    auto const goes_on = [&](sim::task_kind k) { return end < g.size() && g.kind[end] == k && same_label(g, t, end); };
    if (g.kind[t] == sim::task_kind::transfer)
        while (goes_on(sim::task_kind::transfer)) ++end;
    if (g.kind[t] != sim::task_kind::barrier) return end;
    while (goes_on(sim::task_kind::collective)) ++end;
    return goes_on(sim::task_kind::barrier) ? end + 1 : t + 1;
}

/// Adds what a collective moves. `pairs(add)` calls `add(from, to, bytes)` for all pairs of an exchange.
template <class Pairs>
void add_collective(server_traffic& sum, collective_kind kind, std::vector<std::uint32_t> members, byte_count bytes, Pairs const& pairs) {
    make_set(members);
    if (is_exchange(kind)) pairs([&](std::uint32_t from, std::uint32_t to, byte_count part) { sum.message(from, to, part); });
    else sum.all_reduce(members, kind == collective_kind::all_reduce ? bytes : bytes / 2 + bytes % 2);
}

/// Adds what the block carries that begins with task `t` of `g`.
inline void add_block(server_traffic& sum, sim::iteration_plan const& plan, graph::dense_graph const& graph, sim::task_graph const& g,
                      std::uint32_t t) {
    auto const& who = g.label[t];
    bool const is_message = g.kind[t] == sim::task_kind::transfer;
    if (who.traffic == sim::traffic_kind::weight_gradient) {
        auto const& owner = plan.classes[plan.class_of[who.op]];
        auto const& group = owner.sync.groups[who.number];
        if (!is_message) return sum.all_reduce(group.devices, group.gradients);
        auto const server = owner.servers[who.number].server;
        auto const waits_for = g.before(t);
        bool const back = !waits_for.empty() && g.kind[waits_for.front()] == sim::task_kind::update;
        for (auto const d : group.devices)
            if (d != server) back ? sum.message(server, d, group.bytes) : sum.message(d, server, group.gradients);
        return;
    }
    if (who.edge == sim::task_label::no_edge) { // a sum that nobody reads
        auto const& of = plan.operators[who.op];
        std::vector<std::uint32_t> members;
        for (auto const shard : of.partial_outputs[who.number].producers) members.push_back(of.devices[shard]);
        return add_collective(sum, collective_kind::all_reduce, std::move(members), of.partial_outputs[who.number].bytes, [](auto const&) {});
    }
    auto const& e = graph.edges[who.edge];
    auto const& p = plan.edges[who.edge];
    auto const& made = plan.operators[e.producer].devices;
    auto const& read = plan.operators[e.consumer].devices;
    auto const element = ops::size_of(graph.operations[e.producer].outputs[e.slot].type);
    bool const back = who.traffic == sim::traffic_kind::gradient;
    auto const send = [&](std::size_t pair, auto const& add) {
        auto const& x = p.table->pairs[pair];
        auto const from = made[x.producer], to = read[x.consumer];
        back ? add(to, from, x.elements * element) : add(from, to, x.elements * element);
    };
    if (is_message) return send(who.number, [&](std::uint32_t from, std::uint32_t to, byte_count bytes) { sum.message(from, to, bytes); });
    auto const& c = p.collectives[who.number];
    std::vector<std::uint32_t> members;
    for (auto const shard : c.producers) members.push_back(made[shard]);
    for (auto const shard : c.consumers) members.push_back(read[shard]);
    add_collective(sum, back ? c.backward_kind : c.forward_kind, std::move(members), back ? c.backward_bytes : c.bytes, [&](auto const& add) {
        for (std::size_t pair = 0; pair < p.collective_of.size(); ++pair)
            if (p.collective_of[pair] == static_cast<std::int32_t>(who.number)) send(pair, add);
    });
}

} // namespace detail

/// Tasks of several wirings as one graph. The switch is a device after the others; then come the links of the wirings, those that all have alike,
/// and what barriers are on.
struct phased_simulator::merged_tasks {
    sim::task_graph tasks;
    topology::dense_topology resources;     ///< devices and links alone
    std::vector<std::uint32_t> first, size; ///< task of each block, and how many it has
    std::vector<std::uint32_t> phase;       ///< of each block
    std::vector<std::uint32_t> rewiring;    ///< task after each phase
};

PARSEARCH_INLINE void phased_simulator::split(tasks_on_wiring& t) const {
    t.first.clear();
    t.block_of.clear();
    for (std::uint32_t task = 0; task < t.tasks.size();) {
        auto const end = detail::end_of_block(t.tasks, task);
        t.block_of.insert(t.block_of.end(), end - task, static_cast<std::uint32_t>(t.first.size()));
        t.first.push_back(task);
        task = end;
    }
    t.first.push_back(t.tasks.size());
}

PARSEARCH_INLINE bool phased_simulator::passes_servers(tasks_on_wiring const& t, std::uint32_t block) const {
    auto const& o = problem_->options().servers;
    auto const hosts = problem_->servers() > 1 ? 2 * problem_->servers() * (o.inside == inside_server::merged ? 1 : o.gpus_per_server) : 0;
    for (auto task = t.first[block]; task < t.first[block + 1]; ++task) {
        auto const kind = t.tasks.kind[task];
        if (kind != sim::task_kind::transfer && kind != sim::task_kind::collective) continue;
        if (t.tasks.resource[task] - devices_ < t.directions + hosts) return true;
    }
    return false;
}

PARSEARCH_INLINE phased_simulator::all_blocks phased_simulator::blocks_of(tasks_on_wiring const& t) const {
    all_blocks out;
    out.first_before.assign(1, 0);
    for (std::uint32_t b = 0; b + 1 < t.first.size(); ++b) {
        bool const passes = passes_servers(t, b);
        out.movement_of.push_back(passes ? static_cast<std::uint32_t>(out.movements.size()) : none);
        if (passes) out.movements.push_back(b);
        std::vector<std::uint32_t> waits_for;
        for (auto task = t.first[b]; task < t.first[b + 1]; ++task)
            for (auto const p : t.tasks.before(task))
                if (p < t.first[b]) waits_for.push_back(t.block_of[p]);
        make_set(waits_for);
        out.before.insert(out.before.end(), waits_for.begin(), waits_for.end());
        out.first_before.push_back(static_cast<std::uint32_t>(out.before.size()));
    }
    return out;
}

PARSEARCH_INLINE bool phased_simulator::like_first(tasks_on_wiring const& t, all_blocks const& blocks) const {
    if (blocks != blocks_) return false;
    auto const& other = tasks_.front();
    for (std::uint32_t b = 0; b + 1 < t.first.size(); ++b) {
        auto const& x = t.tasks.label[t.first[b]];
        auto const& y = other.tasks.label[other.first[b]];
        if (t.tasks.kind[t.first[b]] != other.tasks.kind[other.first[b]] || x.op != y.op || x.number != y.number || x.edge != y.edge ||
            x.traffic != y.traffic)
            return false;
    }
    return true;
}

PARSEARCH_INLINE std::uint32_t phased_simulator::add(network const& n) {
    auto const same = [&](network const& other) { return n.links == other.links && n.rings == other.rings && n.switches == other.switches; };
    if (auto const known = std::ranges::find_if(wirings_, same); known != wirings_.end()) return static_cast<std::uint32_t>(known - wirings_.begin());
    auto const here = problem_->on(n).problem;
    auto simulator = here.simulator();
    auto const makespan = simulator.simulate(strategy_);
    auto const memory =
        sim::memory_cost(here.options(), sim::bytes_over_capacity(simulator.memory(), here.topology().devices), here.topology().size());
    one_wiring alone{.cost = sim::total_cost(makespan, memory)};
    tasks_on_wiring made{simulator.tasks(), {}, {}, static_cast<std::uint32_t>(2 * n.links.size()), here.topology().links};
    if (wirings_.empty()) devices_ = static_cast<std::uint32_t>(here.topology().size());
    split(made);
    auto blocks = blocks_of(made);
    detail::server_traffic sum(problem_->server_of(), problem_->servers());
    for (auto const b : blocks.movements) {
        detail::add_block(sum, simulator.plan(), problem_->graph(), made.tasks, made.first[b]);
        for (auto t = made.first[b]; t < made.first[b + 1]; ++t) alone.arrival = std::max(alone.arrival, picoseconds{simulator.schedule().end[t]});
    }
    auto const all = std::move(sum).take();
    alone.bytes = all.point_to_point_bytes() + all.all_reduce_bytes();
    alone.alike = wirings_.empty() || like_first(made, blocks);
    if (!alone.alike) made = {};
    // All or nothing, should memory end here.
    auto wired = n;
    wirings_.reserve(wirings_.size() + 1);
    alone_.reserve(alone_.size() + 1);
    tasks_.push_back(std::move(made));
    if (wirings_.empty()) {
        memory_ = memory;
        first_ = std::move(simulator);
        blocks_ = std::move(blocks);
    }
    alone_.push_back(alone);
    wirings_.push_back(std::move(wired));
    return static_cast<std::uint32_t>(wirings_.size() - 1);
}

PARSEARCH_INLINE demand phased_simulator::traffic(std::span<std::uint32_t const> movements) const {
    detail::server_traffic sum(problem_->server_of(), problem_->servers());
    for (auto const m : movements)
        detail::add_block(sum, first_->plan(), problem_->graph(), tasks_.front().tasks, tasks_.front().first[blocks_.movements[m]]);
    return std::move(sum).take();
}

PARSEARCH_INLINE phased_simulator::merged_tasks phased_simulator::merge(std::span<std::uint32_t const> phase_of,
                                                                        std::span<std::uint32_t const> wiring_of, picoseconds delay) const {
    auto const phases = static_cast<std::uint32_t>(wiring_of.size());
    auto const of_phase = [&](std::uint32_t block, std::uint32_t phase) -> tasks_on_wiring const& {
        return tasks_[blocks_.movement_of[block] != none ? wiring_of[phase] : wiring_of.front()];
    };
    // The rewirings that each block waits for.
    auto const blocks = static_cast<std::uint32_t>(blocks_.movement_of.size());
    merged_tasks out;
    auto& phase = out.phase;
    phase.assign(blocks, 0);
    std::vector<std::vector<std::uint32_t>> of(phases);
    for (std::uint32_t b = 0; b < blocks; ++b) {
        if (blocks_.movement_of[b] != none) phase[b] = phase_of[blocks_.movement_of[b]];
        for (auto i = blocks_.first_before[b]; i < blocks_.first_before[b + 1]; ++i) phase[b] = std::max(phase[b], phase[blocks_.before[i]]);
        of[phase[b]].push_back(b);
    }

    auto& resources = out.resources;
    resources.devices.resize(devices_ + std::size_t{1});
    std::vector<std::uint32_t> first_link(tasks_.size(), none); // of each wiring
    for (auto const w : wiring_of) {
        if (first_link[w] != none) continue;
        first_link[w] = static_cast<std::uint32_t>(resources.links.size());
        auto const& links = tasks_[w].links;
        resources.links.insert(resources.links.end(), links.begin(), links.begin() + tasks_[w].directions);
    }
    auto const shared = static_cast<std::uint32_t>(resources.links.size());
    auto const& any = tasks_[wiring_of.front()];
    resources.links.insert(resources.links.end(), any.links.begin() + any.directions, any.links.end());
    auto const the_switch = devices_, links = devices_ + 1;
    auto const barriers = links + static_cast<std::uint32_t>(resources.links.size());
    auto& g = out.tasks;
    g.clear(barriers + 1);
    auto const resource = [&](tasks_on_wiring const& t, std::uint32_t number, std::uint32_t task) {
        auto const r = t.tasks.resource[task];
        if (r < devices_) return r;
        auto const link = r - devices_;
        if (link >= t.links.size()) return barriers;
        return links + (link < t.directions ? first_link[number] + link : shared + link - t.directions);
    };

    bool const ties = std::ranges::any_of(wiring_of, [&](auto const w) { return !tasks_[w].tasks.ties.empty(); });
    out.first.resize(blocks);
    auto& size = out.size;
    size.resize(blocks);
    auto const is_collective = [&](std::uint32_t b) { return g.kind[out.first[b]] == sim::task_kind::barrier; };
    auto const wait_for = [&](std::uint32_t b) {
        if (is_collective(b)) return g.after(out.first[b] + size[b] - 1);
        for (std::uint32_t i = 0; i < size[b]; ++i) g.after(out.first[b] + i);
    };
    auto const add = [&](std::uint32_t b) {
        auto const& t = of_phase(b, phase[b]);
        auto const number = static_cast<std::uint32_t>(&t - tasks_.data());
        auto const from = t.first[b];
        out.first[b] = g.size();
        size[b] = t.first[b + 1] - from;
        bool const waits = phase[b] > 0 && blocks_.movement_of[b] != none;
        for (std::uint32_t i = 0; i < size[b]; ++i) {
            auto last = none;
            for (auto const p : t.tasks.before(from + i)) {
                if (p >= from) {
                    g.after(out.first[b] + (p - from));
                } else if (t.block_of[p] != last) {
                    last = t.block_of[p];
                    wait_for(last);
                }
            }
            // The tasks of a collective wait for its first.
            if (waits && (i == 0 || t.tasks.kind[from] == sim::task_kind::transfer)) g.after(out.rewiring[phase[b] - 1]);
            auto const task = g.add(resource(t, number, from + i), t.tasks.duration[from + i], t.tasks.kind[from + i], t.tasks.label[from + i]);
            if (!ties) continue;
            auto tie = t.tasks.ties[from + i];
            if (tie.task != sim::task_tie::none) tie.task = out.first[b] + (tie.task - from);
            g.ties.resize(task);
            g.ties.push_back(tie);
        }
    };
    for (std::uint32_t p = 0; p < phases; ++p) {
        for (auto const b : of[p]) add(b);
        for (auto const b : of[p])
            if (blocks_.movement_of[b] != none) wait_for(b);
        if (p > 0) g.after(out.rewiring.back());
        auto const next = wiring_of[p + 1 < phases ? p + 1 : 0];
        auto const time = rewiring_time({.reconfiguration_time = delay}, wirings_[wiring_of[p]], wirings_[next]);
        out.rewiring.push_back(g.add(the_switch, time.count(), sim::task_kind::update, {}));
    }
    if (ties) g.ties.resize(g.size());
    return out;
}

PARSEARCH_INLINE phased_time phased_simulator::run(std::span<std::uint32_t const> phase_of, std::span<std::uint32_t const> wiring_of,
                                                   picoseconds delay) const {
    if (delay < picoseconds{0}) throw invalid_input("phased_simulator: a rewiring of ", delay.count(), " ps: must not be negative");
    if (wiring_of.empty()) throw invalid_input("phased_simulator: 0 phases: must be at least one");
    for (auto const w : wiring_of)
        if (w >= wirings_.size()) throw invalid_input("phased_simulator: a phase of wiring ", w, " of ", wirings_.size(), ": must be one of them");
    for (auto const w : wiring_of)
        if (!alike(w)) throw invalid_input("phased_simulator: a phase of wiring ", w, ", which has other movements than the first: must be alike");
    if (phase_of.size() != movements())
        throw invalid_input("phased_simulator: phases of ", phase_of.size(), " movements: there are ", movements(), ", must be one each");
    for (auto const p : phase_of)
        if (p >= wiring_of.size())
            throw invalid_input("phased_simulator: a movement of phase ", p, " of ", wiring_of.size(), ": must be one of them");
    auto const merged = merge(phase_of, wiring_of, delay);
    sim::schedule when;
    sim::any_scheduler(merged.resources, problem_->options().problem.simulation).run(merged.tasks, when);
    phased_time out{.cost = sim::total_cost(picoseconds{when.makespan}, memory_), .phases = {}, .movements = {}, .phase_of = {}};
    std::int64_t begin = 0;
    for (auto const t : merged.rewiring) {
        out.phases.push_back({picoseconds{begin}, picoseconds{when.ready[t]}});
        begin = when.end[t];
    }
    for (auto const b : blocks_.movements) {
        bool const collective = merged.tasks.kind[merged.first[b]] == sim::task_kind::barrier;
        auto const last = merged.first[b] + merged.size[b];
        time_span span{picoseconds::max(), picoseconds{0}};
        for (auto t = merged.first[b]; t < last; ++t) {
            span.end = std::max(span.end, picoseconds{when.end[t]});
            if (!collective || merged.tasks.kind[t] == sim::task_kind::collective) span.begin = std::min(span.begin, picoseconds{when.start[t]});
        }
        out.movements.push_back(span);
        out.phase_of.push_back(merged.phase[b]);
    }
    return out;
}

} // namespace parsearch::fabric
