#pragma once
// How `strategy_bounds` are found.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/sim/bounds/choice_tables.hpp>
#include <parsearch/sim/bounds/class_tables.hpp>
#include <parsearch/sim/bounds/remaining_paths.hpp>
#include <parsearch/sim/bounds/strategy_bounds.hpp>
#include <parsearch/sim/bounds/work_bound.hpp>
#include <parsearch/sim/memory/memory_ledger.hpp>
#include <parsearch/sim/memory/memory_penalty.hpp>
#include <parsearch/sim/memory/memory_use.hpp>

namespace parsearch::sim {

class strategy_bounds::body {
  public:
    /// Throws `invalid_input` where a configuration of the space does not fit, and what the oracle throws.
    body(std::shared_ptr<workload const> w, choice_source const& space, table_limits const& limits)
        : work_(std::move(w)), tables_(std::make_unique<choice_tables>(work_, space, limits)) {
        auto const& g = work_->graph;
        if (!tables_->known()) {
            if (space.whole()) root_ = work_bound(tables_->planner(), *space.whole()).count();
            return;
        }
        if (!bounded()) return;
        class_tables_ = std::make_unique<class_tables>(*tables_, limits);
        paths_.emplace(*tables_, [&](std::uint32_t op, std::size_t choice) -> std::int64_t {
            auto const* const least = least_of(op, choice);
            return least ? least->tail : 0;
        });
        root_ = paths_->least();
        fixed_.assign(g.size(), none);
        open_.reserve(work_->classes.size());
        for (auto const& c : work_->classes) open_.push_back(static_cast<std::uint32_t>(c.size()));
        classes_.resize(work_->classes.size());
        devices_ = static_cast<std::uint32_t>(work_->topology.size());
        busy_.resize(devices_ + work_->topology.links.size());
        ends_.resize(g.size());
        returned_.resize(g.size());
        for (std::uint32_t op = 0; op < g.size(); ++op) {
            auto least = std::numeric_limits<std::int64_t>::max();
            for (auto const& c : tables_->choices(op)) least = std::min(least, work_of(op, c));
            least_work_.push_back(tables_->choices(op).empty() ? 0 : least);
            undecided_ += least_work_.back();
        }
        for (std::uint32_t c = 0; c < work_->classes.size(); ++c) undecided_ += class_tables_->least_work(c);
        root_ = std::max(root_, undecided_ / static_cast<std::int64_t>(devices_));
        if (work_->options.memory == memory_policy::ignore) return;
        ledger_.emplace(g, work_->topology.size(), work_->classes.size(), work_->options);
        memory_.resize(g.size());
        for (std::uint32_t op = 0; op < g.size(); ++op)
            for (auto const& c : tables_->choices(op)) memory_[op].push_back(memory_of(g.operations[op], c.configuration.degrees()));
    }

    /// Operator `op`, which is not fixed, takes configuration number `choice` of its space.
    /// Complexity: O(edges of the operator * shards^2); more where a sharing class is complete that was not met before.
    void fix(std::size_t op, std::size_t choice) {
        if (!paths_) return;
        stack_.push_back(static_cast<std::uint32_t>(op));
        fixed_[op] = static_cast<std::uint32_t>(choice);
        undecided_ -= least_work_[op];
        auto const& mine = tables_->choices(op)[choice];
        auto const& g = work_->graph;
        auto& ends = ends_[op];
        ends.assign(mine.forward.size(), 0);
        if (g.operations[op].work == ops::work_class::source) return;
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e) {
            if (!tables_->has_edge(e)) continue;
            auto const producer = g.edges[e].producer;
            if (auto const from = fixed_[producer]; from != none) {
                auto const& delay = tables_->edge(e, from, choice);
                for (std::size_t t = 0; t < ends.size(); ++t)
                    for (std::size_t s = 0; s < ends_[producer].size(); ++s) ends[t] = std::max(ends[t], ends_[producer][s] + delay.there(s, t));
            } else {
                for (std::size_t t = 0; t < ends.size(); ++t) ends[t] = std::max(ends[t], paths_->arrival(e, choice, t));
            }
        }
        for (std::size_t t = 0; t < ends.size(); ++t) ends[t] += mine.forward[t];
        auto const c = work_->class_of[op];
        if (c != iteration_plan::none) {
            if (open_[c] == work_->classes[c].size()) undecided_ -= class_tables_->least_work(c);
            if (--open_[c] == 0) close(c);
        }
        if (ledger_) {
            ledger_->set_operator(static_cast<std::uint32_t>(op), {&memory_[op][choice], &mine.plan.devices});
            ledger_->settle();
        }
    }

    /// Takes back the last `fix`, which was of `op`.
    void release(std::size_t op) {
        if (!paths_) return;
        stack_.pop_back();
        fixed_[op] = none;
        undecided_ += least_work_[op];
        if (work_->graph.operations[op].work == ops::work_class::source) return;
        if (auto const c = work_->class_of[op]; c != iteration_plan::none) {
            if (open_[c]++ == 0) {
                classes_[c] = nullptr;
                if (ledger_) ledger_->set_class(c, nullptr);
            }
            if (open_[c] == work_->classes[c].size()) undecided_ += class_tables_->least_work(c);
        }
        if (ledger_) {
            ledger_->set_operator(static_cast<std::uint32_t>(op), {});
            ledger_->settle();
        }
    }

    /// No completion costs less. Complexity: O(fixed operators and edges between them * shards^2 + T log T) for T tasks of these.
    [[nodiscard]] picoseconds value() {
        if (!paths_ || stack_.empty()) return picoseconds{root_};
        auto penalty = picoseconds::zero();
        if (ledger_) {
            byte_count over = 0;
            for (std::size_t d = 0; d < devices_; ++d) over = std::max(over, ledger_->bytes(d) - work_->topology.devices[d].memory);
            penalty = memory_cost(work_->options, over, devices_);
            if (penalty == cost_traits<picoseconds>::infinity()) return penalty;
        }
        for (auto& list : busy_) list.clear();
        makespan_ = root_;
        auto const& g = work_->graph;
        for (auto i = g.order.size(); i-- > 0;)
            if (fixed_[g.order[i]] != none) add_operator(g.order[i]);
        for (std::uint32_t c = 0; c < classes_.size(); ++c)
            if (classes_[c]) add_class(*classes_[c]);
            else if (open_[c] < work_->classes[c].size()) add_open_class(c);
        spread_work();
        for (auto& list : busy_) occupy(list);
        return total_cost(picoseconds{makespan_}, penalty);
    }

  private:
    static constexpr auto none = ~std::uint32_t{0};
    static constexpr auto never = edge_delays::never;

    /// Work on a device or link: not ready before `ready`.
    struct occupation {
        std::int64_t ready = 0, duration = 0;
    };

    [[nodiscard]] bool is_source(std::size_t op) const noexcept { return work_->graph.operations[op].work == ops::work_class::source; }
    [[nodiscard]] bool returns(std::size_t op) const noexcept { return work_->options.training && work_->graph.trains[op] && !is_source(op); }

    /// Whether sums of durations stay far from 64 bits: else the simulators stay at the largest value, and nothing is bounded here.
    [[nodiscard]] bool bounded() const {
        double sum = 0;
        auto const& g = work_->graph;
        for (std::size_t op = 0; op < g.size(); ++op) {
            double most = 0, sums = 0;
            for (auto const& c : tables_->choices(op)) {
                for (std::size_t s = 0; s < c.forward.size(); ++s)
                    most = std::max(most, static_cast<double>(c.forward[s]) + static_cast<double>(c.backward[s]));
                double mine = 0;
                for (auto const& partial : c.plan.partial_outputs)
                    for (auto const& h : partial.forward) mine += static_cast<double>(h.duration);
                sums = std::max(sums, mine);
            }
            sum += most * static_cast<double>(work_->topology.size()) + sums;
        }
        for (std::size_t e = 0; e < g.edges.size(); ++e) {
            if (!tables_->has_edge(e)) continue;
            double most = 0;
            for (std::size_t from = 0; from < tables_->choices(g.edges[e].producer).size(); ++from)
                for (std::size_t to = 0; to < tables_->choices(g.edges[e].consumer).size(); ++to) {
                    double mine = 0;
                    for (auto const& l : tables_->edge(e, from, to).links) mine += static_cast<double>(l.forward) + static_cast<double>(l.backward);
                    most = std::max(most, mine);
                }
            sum += most;
        }
        return sum < 0x1p58;
    }

    [[nodiscard]] std::int64_t work_of(std::uint32_t op, tabled_choice const& c) const {
        std::int64_t sum = 0;
        for (std::size_t s = 0; s < c.forward.size(); ++s) sum += c.forward[s] + (returns(op) ? c.backward[s] : 0);
        return sum;
    }

    void close(std::uint32_t c) {
        key_.clear();
        for (auto const op : work_->classes[c]) key_.push_back(fixed_[op]);
        classes_[c] = &class_tables_->of(c, key_);
        if (ledger_) ledger_->set_class(c, &classes_[c]->memory);
    }

    /// Its tasks, and when its backward shards end. Consumers come first.
    void add_operator(std::uint32_t op) {
        if (is_source(op)) return;
        auto const& g = work_->graph;
        auto const choice = fixed_[op];
        auto const& mine = tables_->choices(op)[choice];
        auto const& ways = paths_->of(op, choice);
        auto const& ends = ends_[op];
        auto const n = ends.size();
        std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
        for (std::size_t s = 0; s < n; ++s) {
            makespan_ = std::max(makespan_, ends[s] + ways.tail[s]);
            first = std::min(first, ends[s]);
            last = std::max(last, ends[s]);
            busy_[mine.plan.devices[s]].push_back({ends[s] - mine.forward[s], mine.forward[s]});
        }
        for (auto const& sum : mine.plan.partial_outputs)
            for (auto const& h : sum.forward) busy_[devices_ + h.link].push_back({first, h.duration});
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e) add_links(e, op, true);
        if (!returns(op)) return;
        auto& returned = returned_[op];
        returned.assign(n, ways.every_round == never ? 0 : first + ways.every_round);
        for (std::size_t s = 0; s < n; ++s)
            for (std::size_t t = 0; t < n; ++t)
                if (ways.between(s, t) != never) returned[t] = std::max(returned[t], ends[s] + ways.between(s, t));
        for (auto const e : g.out(op)) {
            auto const consumer = g.edges[e].consumer;
            auto const to = fixed_[consumer];
            if (to == none || !tables_->has_edge(e) || !g.carries_gradient(g.edges[e])) continue;
            auto const& delay = tables_->edge(e, choice, to);
            for (std::size_t v = 0; v < returned_[consumer].size(); ++v)
                for (std::size_t t = 0; t < n; ++t)
                    if (delay.back(v, t) != never) returned[t] = std::max(returned[t], returned_[consumer][v] + delay.back(v, t) + mine.backward[t]);
        }
        for (std::size_t t = 0; t < n; ++t) {
            busy_[mine.plan.devices[t]].push_back({returned[t] - mine.backward[t], mine.backward[t]});
            makespan_ = std::max(makespan_, returned[t] + ways.back[t]);
        }
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e) add_links(e, op, false);
    }
    /// Whether edge `e` is sure to move its own data: those that might bring them are of fixed readers, which read otherwise.
    [[nodiscard]] bool moves_itself(std::uint32_t e) const {
        auto const group = work_->readers.group_of(e);
        if (group == shared_reads::none) return true;
        auto const read = [&](std::uint32_t number) {
            auto const& of = work_->graph.edges[number];
            return tables_->choices(of.consumer)[fixed_[of.consumer]].read[of.input];
        };
        auto const mine = read(e);
        for (auto const other : work_->readers[group]) {
            if (other == e) break;
            if (fixed_[work_->graph.edges[other].consumer] == none || read(other) == mine) return false;
        }
        return true;
    }
    void add_links(std::uint32_t e, std::uint32_t op, bool forward) {
        auto const producer = work_->graph.edges[e].producer;
        if (!tables_->has_edge(e) || fixed_[producer] == none || !moves_itself(e)) return;
        auto const& sent = forward ? ends_[producer] : returned_[op];
        auto const ready = *std::min_element(sent.begin(), sent.end());
        for (auto const& l : tables_->edge(e, fixed_[producer], fixed_[op]).links)
            if (auto const duration = forward ? l.forward : l.backward; duration > 0) busy_[devices_ + l.link].push_back({ready, duration});
    }

    void add_class(synchronised_class const& c) {
        if (!work_->options.training) return;
        auto const latest = [&](std::span<shard_ref const> contributors) {
            std::int64_t end = 0;
            for (auto const s : contributors)
                if (returns(s.op)) end = std::max(end, returned_[s.op][s.shard]);
            return end;
        };
        auto const earliest = [&](std::span<shard_ref const> contributors) {
            auto end = std::numeric_limits<std::int64_t>::max();
            for (auto const s : contributors) end = std::min(end, returned_[s.op][s.shard]);
            return contributors.empty() ? 0 : end;
        };
        auto const& p = c.plan;
        bool const served = !p.servers.empty();
        group_end_.clear();
        for (std::size_t i = 0; i < p.sync.groups.size(); ++i) {
            // A server's clients send when their own shards are done, and it waits for the last of them.
            auto const ready = served ? earliest(p.sync.groups[i].contributors) : latest(p.sync.groups[i].contributors);
            group_end_.push_back(ready + c.longest[i]);
            if (served) group_end_.back() = std::max(group_end_.back(), latest(p.sync.groups[i].contributors));
            makespan_ = std::max(makespan_, group_end_.back());
            for (auto const& l : c.links[i]) busy_[devices_ + l.link].push_back({ready, l.forward});
        }
        for (std::size_t i = 0; i < p.sync.held.size(); ++i) {
            if (p.update[i] == class_plan::no_update) continue;
            auto const& h = p.sync.held[i];
            auto ready = latest(h.contributors);
            for (auto const group : h.groups)
                if (!served || p.servers[group].server == h.device) ready = std::max(ready, group_end_[group]);
            busy_[h.device].push_back({ready, p.update[i]});
        }
    }

    /// The least that the other member's configuration may make of it.
    void add_open_class(std::uint32_t c) {
        if (!work_->options.training) return;
        for (auto const op : work_->classes[c]) {
            if (fixed_[op] == none) continue;
            auto const* const least = least_of(op, fixed_[op]);
            if (!least) return;
            // An update waits for the shard on its device, but where another device serves it.
            bool const served = work_->options.synchronisation == synchronisation::parameter_server;
            auto const ready = served ? 0 : *std::min_element(returned_[op].begin(), returned_[op].end());
            for (std::uint32_t d = 0; d < devices_; ++d)
                if (least->updates[d] > 0) busy_[d].push_back({ready, least->updates[d]});
        }
    }
    [[nodiscard]] least_class const* least_of(std::uint32_t op, std::size_t choice) const noexcept {
        auto const c = work_->class_of[op];
        if (c == iteration_plan::none) return nullptr;
        auto const& members = work_->classes[c];
        return class_tables_->least(c, static_cast<std::size_t>(std::lower_bound(members.begin(), members.end(), op) - members.begin()), choice);
    }

    /// All work, with the least of what is not decided, takes all devices at least so long.
    void spread_work() {
        std::int64_t sum = undecided_;
        for (std::size_t d = 0; d < devices_; ++d)
            for (auto const& o : busy_[d]) sum += o.duration;
        makespan_ = std::max(makespan_, sum / static_cast<std::int64_t>(devices_));
    }

    /// One machine with release times: what is ready last cannot end before it is ready and done (Carlier, European J. Oper. Res. 11, 1982).
    void occupy(std::vector<occupation>& list) {
        std::sort(list.begin(), list.end(), [](auto const& a, auto const& b) { return a.ready > b.ready; });
        std::int64_t sum = 0;
        for (auto const& o : list) {
            sum += o.duration;
            makespan_ = std::max(makespan_, o.ready + sum);
        }
    }

    std::shared_ptr<workload const> work_;
    std::unique_ptr<choice_tables> tables_;
    std::unique_ptr<class_tables> class_tables_;
    std::optional<remaining_paths> paths_; ///< none: nothing is tabulated
    std::uint32_t devices_ = 0;
    std::int64_t root_ = 0, makespan_ = 0, undecided_ = 0;
    std::vector<std::int64_t> least_work_;                   ///< of each operator
    std::vector<std::uint32_t> fixed_, stack_, open_;        ///< choice of each operator; operators fixed; members of each class that are not
    std::vector<synchronised_class const*> classes_;         ///< complete ones
    std::vector<std::vector<std::int64_t>> ends_, returned_; ///< of the shards of fixed operators, forward and backward
    std::vector<std::vector<occupation>> busy_;              ///< devices, then links
    std::vector<std::int64_t> group_end_;
    std::vector<std::uint32_t> key_;
    std::optional<memory_ledger> ledger_;
    std::vector<std::vector<shard_memory>> memory_; ///< by operator and choice
};

PARSEARCH_INLINE strategy_bounds::strategy_bounds(std::shared_ptr<workload const> w, choice_source const& space, table_limits const& limits)
    : work_(std::move(w)), body_(std::make_unique<body>(work_, space, limits)) {}
PARSEARCH_INLINE strategy_bounds::strategy_bounds(strategy_bounds&&) noexcept = default;
PARSEARCH_INLINE strategy_bounds& strategy_bounds::operator=(strategy_bounds&&) noexcept = default;
PARSEARCH_INLINE strategy_bounds::~strategy_bounds() = default;

PARSEARCH_INLINE void strategy_bounds::fix(std::size_t op, std::size_t choice) { body_->fix(op, choice); }
PARSEARCH_INLINE void strategy_bounds::release(std::size_t op) { body_->release(op); }
PARSEARCH_INLINE picoseconds strategy_bounds::value() { return body_->value(); }

} // namespace parsearch::sim
