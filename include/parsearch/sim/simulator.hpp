#pragma once
/// The simulator: an `IncrementalEvaluator` that predicts the time of one training iteration under a strategy.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/cost.hpp>
#include <parsearch/sim/assemble.hpp>
#include <parsearch/sim/memory.hpp>
#include <parsearch/sim/schedule.hpp>
#include <parsearch/sim/workload.hpp>
#include <parsearch/space/configuration.hpp>

namespace parsearch::sim {

/// Predicts the iteration time of strategies for one workload. Callable with any `Strategy` of `space::configuration`.
/// It keeps the plans of the last strategy and replans only operators whose configuration differs, with their edges and
/// weights; the task graph is assembled and scheduled anew each time. The answer depends on the strategy alone.
/// One simulator serves one thread; copies are independent.
template <class Oracle, class Device> class simulator {
  public:
    using workload_type = workload<Oracle, Device>;

    explicit simulator(std::shared_ptr<workload_type const> w)
        : work_(std::move(w)), price_(work_->topology, work_->oracle, work_->devices),
          assembler_(work_->graph, work_->topology.kind, static_cast<std::uint32_t>(work_->topology.links.size())),
          account_(work_->graph, work_->topology.size()), current_(work_->graph.size()), planned_(work_->graph.size(), false),
          memory_of_(work_->graph.size()), tables_(work_->graph.edges.size()) {
        plan_.operators.resize(work_->graph.size());
        plan_.edges.resize(work_->graph.edges.size());
        for (std::uint32_t op = 0; op < current_.size(); ++op) unplanned_.push_back(op);
        for (auto const& members : work_->classes) plan_.classes.push_back({.members = members});
        plan_.class_of = work_->class_of;
    }

    /// The cost of `s`: the makespan, with what `simulation_options::memory` says of devices whose memory is exceeded.
    /// Throws `invalid_input` naming operator, value and rule where a configuration does not fit its operator or the topology.
    template <Strategy<space::configuration> S> picoseconds operator()(S const& s) {
        replan(s);
        auto const penalty = penalty_of(bytes_over_capacity());
        if (penalty == infeasible) return infeasible;
        run();
        return cost_of_run(penalty);
    }

    /// The `IncrementalEvaluator`: makes `s` current and answers its cost.
    template <Strategy<space::configuration> S> picoseconds reset(S const& s) { return (*this)(s); }

    /// The cost with `changes` (an operator at most once) applied to the current strategy, or nothing where it is above `bound`:
    /// then the simulation stops as soon as that is certain. Throws as the call does, and leaves the current strategy; also where
    /// there is none.
    std::optional<picoseconds> propose(std::span<change<space::configuration> const> changes, picoseconds bound) {
        if (!has_strategy_) throw invalid_input("simulator: propose without a current strategy: reset must come first");
        undo_.clear();
        for (auto const& c : changes) check(c.op, c.configuration);
        for (auto const& c : changes) undo_.push_back({c.op, current_[c.op]});
        try {
            apply(changes);
        } catch (...) {
            for (auto const& c : undo_) current_[c.op] = c.configuration;
            undo_.clear();
            throw;
        }
        auto const penalty = penalty_of(bytes_over_capacity());
        if (penalty == infeasible && bound == infeasible) return infeasible;
        if (!(penalty <= bound)) return std::nullopt;
        auto const left = bound - penalty;
        if (busiest_device() > left.count()) return std::nullopt;
        if (!run(left)) return std::nullopt;
        auto const cost = cost_of_run(penalty);
        if (cost > bound) return std::nullopt;
        return cost;
    }
    /// Keeps the last proposal.
    void commit() noexcept { undo_.clear(); }
    /// Drops the last proposal.
    void roll_back() {
        apply(undo_);
        undo_.clear();
    }

    /// Simulates `s` whatever memory it needs, for the readers below.
    template <Strategy<space::configuration> S> picoseconds simulate(S const& s) {
        replan(s);
        (void)bytes_over_capacity();
        run();
        return picoseconds{schedule_.makespan};
    }

    /// Of the last strategy simulated: its tasks, when they ran, memory by device, and bytes moved in one iteration by `traffic_kind`.
    [[nodiscard]] task_graph const& tasks() const noexcept { return tasks_; }
    [[nodiscard]] sim::schedule const& schedule() const noexcept { return schedule_; }
    [[nodiscard]] std::vector<memory_use> const& memory() const noexcept { return memory_; }
    [[nodiscard]] std::array<double, traffic_kinds> traffic() const noexcept {
        std::array<double, traffic_kinds> sum{};
        for (auto const& e : plan_.edges)
            for (std::size_t k = 0; k < traffic_kinds; ++k) sum[k] += e.bytes[k];
        for (auto const& p : plan_.operators) sum[static_cast<std::size_t>(traffic_kind::partial_sum)] += p.partial_bytes;
        if (work_->options.training)
            for (auto const& c : plan_.classes)
                for (auto const& g : c.sync.groups)
                    sum[static_cast<std::size_t>(traffic_kind::weight_gradient)] +=
                        collective_volume(collective_kind::all_reduce, static_cast<double>(g.bytes), static_cast<double>(g.devices.size()));
        return sum;
    }
    [[nodiscard]] iteration_plan const& plan() const noexcept { return plan_; } ///< what `tasks` is made of
    [[nodiscard]] workload_type const& input() const noexcept { return *work_; }

  private:
    static constexpr picoseconds infeasible = cost_traits<picoseconds>::infinity();

    void check(std::size_t op, space::configuration const& c) const {
        if (op >= current_.size()) throw invalid_input("change of operator number ", op, ": the graph has ", current_.size(), " operators");
        space::validate(c, work_->graph.operations[op], work_->topology.size(), work_->graph.names[op]);
    }

    template <class S> void replan(S const& s) {
        if constexpr (requires { { s.size() } -> std::convertible_to<std::size_t>; })
            if (static_cast<std::size_t>(s.size()) != current_.size())
                throw invalid_input("a strategy of ", s.size(), " configurations: the graph has ", current_.size(), " operators, must be one each");
        changes_.clear();
        for (std::size_t op = 0; op < current_.size(); ++op) {
            space::configuration const& c = configuration_of(s, op);
            if (planned_[op] && current_[op] == c) continue;
            check(op, c);
            changes_.push_back({op, c});
        }
        has_strategy_ = true;
        apply(changes_);
    }

    /// Replans operators with new configurations (checked), the edges at them and the weights they share. Until all is replanned
    /// they stay among the unplanned, which the next call takes up, so that an oracle that throws leaves no half-made plan in use.
    void apply(std::span<change<space::configuration> const> changes) {
        for (auto const& c : changes) {
            auto const op = static_cast<std::uint32_t>(c.op);
            if (planned_[op]) unplanned_.push_back(op);
            planned_[op] = false;
            current_[op] = c.configuration;
        }
        if (unplanned_.empty()) return;
        auto const& g = work_->graph;
        edges_.clear();
        classes_.clear();
        assembled_ = false;
        for (auto const op : unplanned_) {
            for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e) edges_.push_back(e);
            for (auto const e : g.out(op)) edges_.push_back(e);
            if (work_->class_of[op] != iteration_plan::none) classes_.push_back(work_->class_of[op]);
        }
        detail::make_set(edges_);
        detail::make_set(classes_);
        for (auto const op : unplanned_) plan_operator(op);
        for (auto const e : edges_) plan_edge_number(e);
        for (auto const c : classes_) plan_class(c);
        for (auto const op : unplanned_) planned_[op] = true;
        unplanned_.clear();
    }

    void plan_operator(std::uint32_t op) {
        auto const& g = work_->graph;
        auto const& operation = g.operations[op];
        auto const degrees = current_[op].degrees();
        auto& p = plan_.operators[op];
        p.devices.clear();
        for (std::int64_t n = 0, shards = current_[op].shards(); n < shards; ++n)
            p.devices.push_back(static_cast<std::uint32_t>(current_[op].device(n)));
        memory_of_[op] = memory_of(operation, degrees);
        p.forward.assign(price_.kinds(), 0);
        p.backward.assign(price_.kinds(), 0);
        p.partial_outputs.clear();
        p.partial_bytes = 0;
        if (operation.work == ops::work_class::source) return;
        auto const forward = ops::work_of(operation, degrees, ops::pass::forward);
        auto const backward = ops::work_of(operation, degrees, ops::pass::backward, g.input_gradients(op));
        bool const trains = work_->options.training && g.trains[op];
        for (std::size_t k = 0; k < price_.kinds() && operation.work != ops::work_class::view; ++k) {
            p.forward[k] = price_.shard(forward, k, g.names[op]);
            if (trains) p.backward[k] = price_.shard(backward, k, g.names[op]);
        }
        plan_unread_partial_sums(op);
    }

    /// Outputs that nobody reads are still to be summed: an all-reduce among the shards of each part.
    void plan_unread_partial_sums(std::uint32_t op) {
        auto const& g = work_->graph;
        auto const& operation = g.operations[op];
        auto& p = plan_.operators[op];
        for (std::uint32_t slot = 0; slot < operation.outputs.size(); ++slot) {
            auto const& output = operation.outputs[slot];
            auto const read = std::any_of(g.out(op).begin(), g.out(op).end(), [&](auto e) { return g.edges[e].slot == slot; });
            if (read || ops::partial_sums(operation, output, current_[op].degrees()) == 1) continue;
            detail::shard_regions const regions(operation, output, current_[op].degrees());
            std::map<detail::region, std::vector<std::uint32_t>, detail::region_order> parts;
            for (std::uint32_t n = 0; n < regions.size(); ++n)
                if (detail::region r(regions[n].begin(), regions[n].end()); detail::region_elements(r) > 0) parts[std::move(r)].push_back(n);
            for (auto const& [part, shards] : parts) {
                std::vector<std::uint32_t> members;
                for (auto const n : shards) members.push_back(p.devices[n]);
                detail::make_set(members);
                if (members.size() < 2) continue;
                auto const bytes = detail::region_elements(part) * ops::size_of(output.type);
                p.partial_outputs.push_back({shards, {}, price_.collective(collective_kind::all_reduce, bytes, members), {},
                                             collective_kind::all_reduce, collective_kind::all_reduce, bytes,
                                             static_cast<std::uint32_t>(members.size())});
                p.partial_bytes += collective_volume(collective_kind::all_reduce, static_cast<double>(bytes), static_cast<double>(members.size()));
            }
        }
    }

    void plan_edge_number(std::uint32_t number) {
        auto const& g = work_->graph;
        auto const& e = g.edges[number];
        if (g.operations[e.producer].work == ops::work_class::source) return;
        if (is_served(number)) {
            plan_.edges[number] = {.served = true};
            return;
        }
        auto const& made = g.operations[e.producer].outputs[e.slot];
        plan_.edges[number] =
            plan_edge(overlaps(number), ops::size_of(made.type), plan_.operators[e.producer].devices, plan_.operators[e.consumer].devices,
                      work_->options.movement, work_->options.training && g.carries_gradient(e), price_);
    }

    /// True where an earlier input of the consumer reads the same parts of the same tensor (self-attention): the tensor is moved
    /// once, and backward the gradients of both are added up before they are sent.
    [[nodiscard]] bool is_served(std::uint32_t number) const {
        auto const& g = work_->graph;
        auto const& e = g.edges[number];
        auto const& consumer = g.operations[e.consumer];
        auto const degrees = current_[e.consumer].degrees();
        for (auto earlier = g.first_in[e.consumer]; earlier < number; ++earlier) {
            auto const& other = g.edges[earlier];
            if (other.producer != e.producer || other.slot != e.slot || g.carries_gradient(other) != g.carries_gradient(e)) continue;
            detail::shard_regions const a(consumer, consumer.inputs[e.input], degrees), b(consumer, consumer.inputs[other.input], degrees);
            bool same = true;
            for (std::size_t n = 0; n < a.size() && same; ++n) same = detail::same_region(a[n], b[n]);
            if (same) return true;
        }
        return false;
    }

    /// Overlap tables depend on degrees alone; each edge remembers those it met last.
    std::shared_ptr<overlap_table const> overlaps(std::uint32_t number) {
        auto const& g = work_->graph;
        auto const& e = g.edges[number];
        auto const from = current_[e.producer].degrees(), to = current_[e.consumer].degrees();
        std::vector<std::int32_t> key(from.begin(), from.end());
        key.insert(key.end(), to.begin(), to.end());
        auto& known = tables_[number];
        if (auto const at = known.find(key); at != known.end()) return at->second;
        if (known.size() >= remembered_tables) known.clear();
        auto const& producer = g.operations[e.producer];
        auto const& consumer = g.operations[e.consumer];
        auto table = std::make_shared<overlap_table const>(
            find_overlaps(producer, producer.outputs[e.slot], from, consumer, consumer.inputs[e.input], to));
        return known.emplace(std::move(key), std::move(table)).first->second;
    }

    void plan_class(std::uint32_t c) {
        auto const& g = work_->graph;
        auto& p = plan_.classes[c];
        p.sync = plan_sync(
            g, p.members, [&](std::uint32_t op) { return current_[op].degrees(); },
            [&](std::uint32_t op) -> std::vector<std::uint32_t> const& { return plan_.operators[op].devices; });
        p.all_reduce.clear();
        p.servers.clear();
        p.update.clear();
        if (!work_->options.training) return;
        bool const served = work_->options.synchronisation == synchronisation::parameter_server;
        for (std::uint32_t i = 0; i < p.sync.groups.size(); ++i) {
            auto const& group = p.sync.groups[i];
            if (served) p.servers.push_back(plan_server(group, i));
            else p.all_reduce.push_back(price_.collective(collective_kind::all_reduce, group.bytes, group.devices));
        }
        auto const first = p.members.front();
        auto const rule = cost_of(work_->options.optimizer);
        ops::shard_work work{.op = &g.operations[first], .pass = ops::pass::update};
        std::copy(current_[first].degrees().begin(), current_[first].degrees().end(), work.degrees.begin());
        for (auto const& h : p.sync.held) {
            auto elements = h.elements;
            auto bytes = h.bytes;
            for (auto const group : h.groups)
                if (served && p.servers[group].server != h.device) {
                    elements -= p.sync.groups[group].elements;
                    bytes -= p.sync.groups[group].bytes;
                }
            // Reads weight and gradient, writes the weight, reads and writes each 4-byte state.
            work.flops = rule.flops * static_cast<double>(elements);
            work.bytes = 3.0 * static_cast<double>(bytes) + 8.0 * static_cast<double>(rule.states * elements);
            p.update.push_back(elements == 0 ? class_plan::no_update : price_.shard(work, work_->topology.kind[h.device], g.names[first]));
        }
    }

    /// The server of a class's only group is its first device (FlexFlow's choice); several groups take turns among their devices.
    server_plan plan_server(sync_group const& group, std::uint32_t number) {
        server_plan out{.server = group.devices[number % group.devices.size()], .clients = {}};
        for (auto const d : group.devices) {
            client_plan client;
            for (auto const s : group.contributors)
                if (plan_.operators[s.op].devices[s.shard] == d) client.contributors.push_back(s);
            if (d != out.server) {
                price_.append_route(d, out.server, group.bytes, client.push);
                price_.append_route(out.server, d, group.bytes, client.pull);
            }
            out.clients.push_back(std::move(client));
        }
        return out;
    }

    [[nodiscard]] byte_count bytes_over_capacity() {
        account_.add_up(
            work_->options, plan_.classes, [&](std::size_t op) -> shard_memory const& { return memory_of_[op]; },
            [&](std::size_t op) -> std::vector<std::uint32_t> const& { return plan_.operators[op].devices; }, memory_);
        byte_count over = 0;
        for (std::size_t d = 0; d < memory_.size(); ++d)
            over += std::max<byte_count>(0, memory_[d].total() - work_->topology.devices[d].memory);
        return over;
    }

    /// What exceeding the memory costs.
    [[nodiscard]] picoseconds penalty_of(byte_count over) const noexcept {
        if (over == 0 || work_->options.memory == memory_policy::ignore) return picoseconds::zero();
        if (work_->options.memory == memory_policy::reject) return infeasible;
        return cost_traits<picoseconds>::raised(picoseconds::zero(), static_cast<double>(over) * work_->options.memory_penalty);
    }
    [[nodiscard]] picoseconds cost_of_run(picoseconds penalty) const noexcept {
        auto const makespan = schedule_.makespan;
        return penalty.count() > infeasible.count() - makespan ? infeasible : penalty + picoseconds{makespan};
    }

    /// Work of the busiest device: a lower bound on the makespan that needs no task graph.
    [[nodiscard]] std::int64_t busiest_device() {
        load_.assign(work_->topology.size(), 0);
        for (auto const& p : plan_.operators)
            for (auto const d : p.devices) {
                auto const kind = work_->topology.kind[d];
                load_[d] = saturating_sum(load_[d], saturating_sum(p.forward[kind], p.backward[kind]));
            }
        for (auto const& c : plan_.classes)
            for (std::size_t i = 0; i < c.update.size(); ++i) {
                auto& load = load_[c.sync.held[i].device];
                load = saturating_sum(load, std::max<std::int64_t>(0, c.update[i]));
            }
        return *std::max_element(load_.begin(), load_.end());
    }

    /// Assembles and schedules the current plan; false where the makespan is above `bound`.
    bool run(picoseconds bound = picoseconds::max()) {
        if (assembled_) return true;
        assembler_.run(plan_, work_->options.training, work_->options.overlap, tasks_);
        assembled_ = scheduler_.run(tasks_, work_->options.discipline, schedule_, bound.count());
        return assembled_;
    }

    static constexpr std::size_t remembered_tables = 256;
    std::shared_ptr<workload_type const> work_;
    pricing<Oracle, Device> price_;
    assembler assembler_;
    scheduler scheduler_;
    memory_account account_;
    std::vector<space::configuration> current_;
    std::vector<bool> planned_;
    std::vector<change<space::configuration>> changes_, undo_;
    std::vector<std::uint32_t> unplanned_, edges_, classes_; ///< to be replanned
    bool has_strategy_ = false;
    std::vector<std::int64_t> load_;
    std::vector<shard_memory> memory_of_;
    std::vector<std::map<std::vector<std::int32_t>, std::shared_ptr<overlap_table const>>> tables_;
    iteration_plan plan_;
    task_graph tasks_;
    sim::schedule schedule_;
    std::vector<memory_use> memory_;
    bool assembled_ = false;
};

} // namespace parsearch::sim
