#pragma once
// What it takes to change from a plan to another: weights and what else devices keep of them.

#include <algorithm>
#include <ranges>

#include <parsearch/core/error.hpp>
#include <parsearch/problem/state_moves.hpp>
#include <parsearch/sim/memory/memory_account.hpp>

namespace parsearch {

PARSEARCH_INLINE moved_states& moved_states::operator+=(moved_states const& o) noexcept {
    bytes += o.bytes;
    lost += o.lost;
    time = picoseconds(saturating_sum(time.count(), o.time.count()));
    return *this;
}

PARSEARCH_INLINE paying_iterations::paying_iterations(std::uint64_t count, std::string_view who)
    : count_(static_cast<std::int64_t>(std::min<std::uint64_t>(count, std::uint64_t{1} << 62))) {
    if (count == 0) throw invalid_input(who, ": the change is to be paid for by 0 iterations: must be at least 1");
}

PARSEARCH_INLINE void state_moves::validate(space::flat_strategy const& s, sim::workload const& w, std::size_t on) {
    for (auto const& members : w.classes)
        for (auto const op : members) space::validate(s[op], w.graph.operations[op], on, w.graph.names[op]);
}

PARSEARCH_INLINE void state_moves::validate(state_layout const& plan, sim::workload const& w) {
    if (plan.strategy.size() != w.graph.size())
        throw invalid_input("state_moves: the plan before: a strategy of ", plan.strategy.size(), " configurations: the graph has ", w.graph.size(),
                            " operators, must be one each");
    for (auto const d : plan.devices)
        if (d >= w.topology.size())
            throw invalid_input("state_moves: the plan before: is on device number ", d, ": the problem has ", w.topology.size());
    validate(plan.strategy, w, plan.devices.empty() ? w.topology.size() : plan.devices.size());
    bool const shares = plan.shares_optimizer || plan.shares_parameters;
    if (shares && w.options.replicas > 1)
        throw invalid_input("state_moves: states that ", w.options.replicas,
                            " replicas share, of which one is simulated: must be a problem of all devices");
}

PARSEARCH_INLINE std::int64_t state_moves::part::begin_of(std::size_t n, std::size_t axis) const noexcept {
    auto const& all = region[axis];
    return all.begin + ops::part_of(all.end - all.begin, static_cast<std::int64_t>(cuts), static_cast<std::int64_t>(n)).begin;
}

PARSEARCH_INLINE std::vector<state_moves::part> state_moves::kept(spread const& all, bool shared, bool within_nodes,
                                                                  std::span<std::uint32_t const> node) {
    std::vector<part> out;
    for (auto const& [region, on] : all) {
        if (!shared || on.size() < 2 || region.empty()) {
            out.push_back({region, 1, on});
            continue;
        }
        std::map<std::uint32_t, std::vector<std::uint32_t>> copies; // devices by node
        for (auto const d : on) copies[within_nodes ? node[d] : 0].push_back(d);
        auto const parts = copies.begin()->second.size();
        if (std::ranges::any_of(copies, [&](auto const& copy) { return copy.second.size() != parts; })) {
            out.push_back({region, on.size(), on});
            continue;
        }
        part p{region, parts, {}};
        for (std::size_t n = 0; n < parts; ++n)
            for (auto const& copy : copies | std::views::values) p.devices.push_back(copy[n]);
        out.push_back(std::move(p));
    }
    return out;
}

PARSEARCH_INLINE void state_moves::hold(sim::workload const& w, state_layout const& plan, std::span<std::uint32_t const> operator_now,
                                        std::span<std::int32_t const> device_now) {
    validate(plan, w);
    auto const& s = plan.strategy;
    auto all_held = std::make_shared<holdings>();
    for (auto const& members : w.classes)
        for (auto const& tensor : sim::held_tensors(w.graph, members, [&](auto op) { return s[op].degrees(); })) {
            auto const& operand = w.graph.operations[tensor.op].weights[tensor.weight];
            if (operand.parameter.empty() && operator_now[tensor.op] == nowhere) continue;
            auto& held = (*all_held)[{operand.parameter, operand.parameter.empty() ? std::pair{operator_now[tensor.op], tensor.weight} : own_name}];
            held.extents = ops::tensor_of(operand).extents;
            auto const all = spread_of(tensor, [&](auto const& r) { return plan.device(r); });
            auto const in_new_numbers = [&](bool shared) {
                auto out = kept(all, shared, plan.within_nodes, w.topology.node);
                for (auto& p : out)
                    for (auto& d : p.devices) d = device_now[d] < 0 ? nowhere : static_cast<std::uint32_t>(device_now[d]);
                return out;
            };
            held.parameters = in_new_numbers(plan.shares_parameters && w.options.training);
            held.together = plan.shares_optimizer == plan.shares_parameters || !w.options.training;
            if (!held.together) held.optimizer = in_new_numbers(plan.shares_optimizer);
        }
    held_ = std::move(all_held);
}

template <class Size>
void state_moves::move(std::span<part const> before, std::span<part const> now, std::size_t axis, Size const& size, transfers& t) {
    std::vector<std::uint32_t> there;
    auto const have = [&](part const& p, std::size_t cut) -> std::span<std::uint32_t const> {
        there.clear();
        for (auto const d : p.holders(cut))
            if (d != nowhere) there.push_back(d);
        std::ranges::sort(there); // they may be numbered in another order now
        return there;
    };
    for (auto const& wanted : now) {
        auto missing = sim::elements_of(wanted.region);
        std::vector<std::int64_t> lacks; // by cut, where there are several
        for (auto const& p : before) {
            auto const common = sim::common_elements(wanted.region, p.region);
            if (common == 0) continue;
            if (wanted.cuts == 1 && p.cuts == 1) {
                auto const holders = have(p, 0);
                if (holders.empty()) continue;
                missing -= common;
                send(size(common), holders, wanted.holders(0), 0, t);
                continue;
            }
            auto const begin = std::max(wanted.region[axis].begin, p.region[axis].begin);
            auto const end = std::min(wanted.region[axis].end, p.region[axis].end);
            auto const each = common / (end - begin);
            std::size_t to = 0, of = 0;
            for (auto at = begin; at < end;) {
                while (wanted.begin_of(to + 1, axis) <= at) ++to;
                while (p.begin_of(of + 1, axis) <= at) ++of;
                auto const next = std::min({end, wanted.begin_of(to + 1, axis), p.begin_of(of + 1, axis)});
                if (auto const holders = have(p, of); !holders.empty()) {
                    missing -= (next - at) * each;
                    send(size((next - at) * each), holders, wanted.holders(to), to, t);
                }
                at = next;
            }
        }
        t.lost += size(missing);
    }
}

PARSEARCH_INLINE void state_moves::need(std::uint32_t op, std::uint32_t weight, spread const& now, state_layout const& plan, transfers& t) {
    auto const& operand = work_->graph.operations[op].weights[weight];
    auto const at = held_->find({operand.parameter, operand.parameter.empty() ? std::pair{op, weight} : own_name});
    auto const extents = ops::tensor_of(operand).extents;
    bool const known = at != held_->end() && at->second.extents == extents;
    auto const axis = static_cast<std::size_t>(std::ranges::max_element(extents) - extents.begin());
    auto const parameters = [&](std::int64_t elements) { return elements * ops::size_of(operand.type); };
    auto const optimizer = [&](std::int64_t elements) {
        sim::held_weights held;
        held.elements = elements;
        held.bytes = parameters(elements);
        return sim::optimizer_memory(held, sim::cost_of(work_->options.optimizer).states);
    };
    bool const training = work_->options.training;
    auto const keep = [&](bool shared) { return kept(now, shared, plan.within_nodes, work_->topology.node); };
    using parts = std::span<part const>;
    auto const before = known ? parts(at->second.parameters) : parts();
    if (!training || ((!known || at->second.together) && plan.shares_optimizer == plan.shares_parameters)) {
        move(
            before, keep(plan.shares_parameters && training), axis, [&](auto n) { return parameters(n) + (training ? optimizer(n) : 0); }, t);
        return;
    }
    move(before, keep(plan.shares_parameters), axis, parameters, t);
    move(!known || at->second.together ? before : parts(at->second.optimizer), keep(plan.shares_optimizer), axis, optimizer, t);
}

PARSEARCH_INLINE void state_moves::send(byte_count bytes, std::span<std::uint32_t const> holders, std::span<std::uint32_t const> wanted,
                                        std::size_t turn, transfers& t) {
    if (bytes == 0) return;
    auto const& node = work_->topology.node;
    for (auto const d : wanted) {
        if (std::ranges::binary_search(holders, d)) continue;
        near_.clear();
        for (auto const h : holders)
            if (node[h] == node[d]) near_.push_back(h);
        auto const from = near_.empty() ? holders : std::span<std::uint32_t const>(near_);
        auto const sender = from[turn++ % from.size()];
        bool const more = !t.sent.empty() && t.sent.back().from == sender && t.sent.back().to == d;
        if (more) t.sent.back().bytes += bytes;
        else t.sent.push_back({sender, d, bytes});
    }
}

PARSEARCH_INLINE moved_states state_moves::sent(transfers const& t) {
    moved_states out{.lost = t.lost};
    for (auto const& m : t.sent) out.bytes += m.bytes;
    out.time = picoseconds(sim::longest_hop(price_.all_to_all_v(t.sent)));
    return out;
}

PARSEARCH_INLINE moved_states state_moves::operator()(state_layout const& plan, std::span<std::uint32_t const> stage) {
    validate(plan, *work_);
    if (!stage.empty() && stage.size() != work_->graph.size())
        throw invalid_input("state_moves: stages of ", stage.size(), " operators: the graph has ", work_->graph.size());
    std::vector<transfers> rounds;
    std::map<std::uint32_t, std::size_t> sent_of; // classes of each stage so far
    for (auto const& members : work_->classes) {
        auto const round = sent_of[stage.empty() ? 0 : stage[members.front()]]++;
        if (round == rounds.size()) rounds.emplace_back();
        for (auto const& tensor : sim::held_tensors(work_->graph, members, [&](auto op) { return plan.strategy[op].degrees(); })) {
            need(tensor.op, tensor.weight, spread_of(tensor, [&](auto const& s) { return plan.device(s); }), plan, rounds[round]);
        }
    }
    moved_states out;
    for (auto const& round : rounds) out += sent(round);
    return out;
}

} // namespace parsearch
