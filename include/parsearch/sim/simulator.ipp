#pragma once
// How `simulator` works.

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/interruption.hpp>
#include <parsearch/core/make_set.hpp>
#include <parsearch/sim/memory/memory_account.hpp>
#include <parsearch/sim/memory/memory_penalty.hpp>
#include <parsearch/sim/schedule/any_scheduler.hpp>
#include <parsearch/sim/simulator.hpp>
#include <parsearch/sim/task/assemble.hpp>
#include <parsearch/sim/task/planner.hpp>

namespace parsearch::sim {

class simulator::body {
  public:
    body(std::shared_ptr<workload const> w, std::stop_token const& stop)
        : work_(std::move(w)), planner_(work_), assembler_(planner_.make_assembler()), scheduler_(work_->topology, work_->options),
          account_(work_->graph, work_->topology.size()), current_(work_->graph.size()), planned_(work_->graph.size(), false),
          memory_of_(work_->graph.size()) {
        planner_.stop_at(stop);
        scheduler_.stop_at(stop);
        plan_.operators.resize(work_->graph.size());
        plan_.edges.resize(work_->graph.edges.size());
        plan_.carrier.assign(work_->graph.edges.size(), iteration_plan::none);
        for (auto const& members : work_->classes) plan_.classes.push_back({.members = members});
        plan_.class_of = work_->class_of;
    }

    /// The cost of `s`: the makespan, with what `simulation_options::memory` says of devices whose memory is exceeded.
    /// Throws `invalid_input` naming operator, value and rule where a configuration does not fit its operator or the topology.
    picoseconds operator()(space::flat_strategy const& s) {
        plan(s);
        add_up_memory();
        auto const penalty = memory_cost(work_->options, bytes_over_capacity(memory_, work_->topology.devices), work_->topology.size());
        if (penalty == cost_traits<picoseconds>::infinity()) return penalty;
        run();
        return total_cost(picoseconds{schedule_.makespan}, penalty);
    }

    /// The makespan of `s` whatever memory it needs, for the readers below.
    picoseconds simulate(space::flat_strategy const& s) {
        assemble(s, {});
        scheduler_.run(tasks_, schedule_);
        return picoseconds{schedule_.makespan};
    }
    /// The tasks of `s` and its memory, not scheduled: `schedule` stays what it was. Throws as a call does.
    task_graph const& assemble(space::flat_strategy const& s, std::span<std::uint32_t const> parts) {
        if (!parts.empty() && parts.size() != current_.size())
            throw invalid_input("simulator: parts of ", parts.size(), " operators: the graph has ", current_.size(), ", must be one each or none");
        replan(s, parts);
        add_up_memory();
        put_together();
        return tasks_;
    }
    [[nodiscard]] std::uint64_t assembled() const noexcept { return assembled_; }
    /// The plan of `s` alone: what the other readers tell stays what it was. Throws as a call does.
    iteration_plan const& plan(space::flat_strategy const& s) {
        replan(s, {});
        return plan_;
    }

    /// Of the last strategy simulated: its tasks, when they ran, memory by device, and bytes moved in one iteration by `traffic_kind`.
    [[nodiscard]] task_graph const& tasks() const noexcept { return tasks_; }
    [[nodiscard]] sim::schedule const& schedule() const noexcept { return schedule_; }
    [[nodiscard]] std::vector<memory_use> const& memory() const noexcept { return memory_; }
    [[nodiscard]] std::array<double, traffic_kinds> traffic() const noexcept { return traffic_of(plan_, work_->options.training); }
    [[nodiscard]] iteration_plan const& plan() const noexcept { return plan_; } ///< what `tasks` is made of
    [[nodiscard]] std::vector<shard_memory> const& shards() const noexcept { return memory_of_; }
    [[nodiscard]] workload const& input() const noexcept { return *work_; }

  private:
    void replan(space::flat_strategy const& s, std::span<std::uint32_t const> parts) {
        for (std::uint32_t op = 0; op < current_.size(); ++op) {
            space::configuration const& c = s[op];
            if (planned_[op] && current_[op] == c) continue;
            space::validate(c, work_->graph.operations[op], work_->topology.size(), work_->graph.names[op]);
            current_[op] = c;
            planned_[op] = false;
        }
        plan_the_unplanned(parts);
    }

    /// Until all is planned the operators stay among the unplanned, so that an oracle that throws leaves no half-made plan in use.
    void plan_the_unplanned(std::span<std::uint32_t const> parts) {
        auto const& g = work_->graph;
        unplanned_.clear();
        for (std::uint32_t op = 0; op < g.size(); ++op)
            if (!planned_[op]) unplanned_.push_back(op);
        if (unplanned_.empty() && is_assembled_ && std::ranges::equal(parts, parts_)) return;
        is_assembled_ = false;
        edges_.clear();
        classes_.clear();
        for (auto const op : unplanned_) {
            for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e) edges_.push_back(e);
            for (auto const e : g.out(op)) edges_.push_back(e);
            if (work_->class_of[op] != iteration_plan::none) classes_.push_back(work_->class_of[op]);
        }
        make_set(classes_);
        for (auto const op : unplanned_) {
            planner_.plan_operator(op, current_[op], plan_.operators[op]);
            memory_of_[op] = memory_of(g.operations[op], current_[op].degrees());
        }
        auto const carriers = planner_.carriers([&](std::uint32_t op) -> auto const& { return current_[op]; },
                                                [&](std::uint32_t op) -> auto const& { return plan_.operators[op]; }, parts);
        for (std::uint32_t e = 0; e < carriers.size(); ++e)
            if (carriers[e] != plan_.carrier[e]) edges_.push_back(e);
        make_set(edges_);
        for (auto const number : edges_) plan_.carrier[number] = iteration_plan::none;
        for (auto const number : edges_) {
            auto const& e = g.edges[number];
            plan_.edges[number] = {};
            if (carriers[number] == number)
                plan_.edges[number] =
                    planner_.plan_edge(number, current_[e.producer], plan_.operators[e.producer], current_[e.consumer], plan_.operators[e.consumer]);
        }
        for (auto const c : classes_)
            planner_.plan_class([&](std::uint32_t op) -> space::configuration const& { return current_[op]; },
                                [&](std::uint32_t op) -> operator_plan const& { return plan_.operators[op]; }, plan_.classes[c]);
        for (auto const number : edges_) plan_.carrier[number] = carriers[number];
        for (auto const op : unplanned_) planned_[op] = true;
        parts_.assign(parts.begin(), parts.end());
    }

    void add_up_memory() {
        if (is_assembled_) return;
        account_.add_up(
            work_->options, plan_.classes, [&](std::size_t op) -> shard_memory const& { return memory_of_[op]; },
            [&](std::size_t op) -> std::vector<std::uint32_t> const& { return plan_.operators[op].devices; }, memory_);
    }
    /// After `add_up_memory`.
    void put_together() {
        require_running(planner_.stop());
        if (is_assembled_) return;
        assembler_.run(plan_, work_->options.training, work_->options.overlap, tasks_, planner_.stop());
        is_assembled_ = true;
        ++assembled_;
    }
    void run() {
        put_together();
        scheduler_.run(tasks_, schedule_);
    }

    std::shared_ptr<workload const> work_;
    planner planner_;
    assembler assembler_;
    any_scheduler scheduler_;
    memory_account account_;
    std::vector<space::configuration> current_;
    std::vector<bool> planned_;
    std::vector<std::uint32_t> parts_; ///< of the plan
    bool is_assembled_ = false;        ///< the plan: `tasks_` and `memory_` are its own
    std::uint64_t assembled_ = 0;
    std::vector<std::uint32_t> unplanned_, edges_, classes_; ///< to be planned
    std::vector<shard_memory> memory_of_;
    iteration_plan plan_;
    task_graph tasks_;
    sim::schedule schedule_;
    std::vector<memory_use> memory_;
};

PARSEARCH_INLINE simulator::simulator(std::shared_ptr<workload const> w, std::stop_token const& stop)
    : work_(std::move(w)), body_(std::make_unique<body>(work_, stop)) {}
PARSEARCH_INLINE simulator::simulator(simulator const& other) : work_(other.work_), body_(std::make_unique<body>(*other.body_)) {}
PARSEARCH_INLINE simulator& simulator::operator=(simulator const& other) {
    if (this != &other) *this = simulator(other);
    return *this;
}
PARSEARCH_INLINE simulator::simulator(simulator&&) noexcept = default;
PARSEARCH_INLINE simulator& simulator::operator=(simulator&&) noexcept = default;
PARSEARCH_INLINE simulator::~simulator() = default;

PARSEARCH_INLINE picoseconds simulator::cost(space::flat_strategy const& s) { return (*body_)(s); }
PARSEARCH_INLINE picoseconds simulator::simulate_flat(space::flat_strategy const& s) { return body_->simulate(s); }
PARSEARCH_INLINE task_graph const& simulator::assemble_flat(space::flat_strategy const& s, std::span<std::uint32_t const> parts) {
    return body_->assemble(s, parts);
}
PARSEARCH_INLINE std::uint64_t simulator::assembled() const noexcept { return body_->assembled(); }
PARSEARCH_INLINE iteration_plan const& simulator::plan_flat(space::flat_strategy const& s) { return body_->plan(s); }

PARSEARCH_INLINE task_graph const& simulator::tasks() const noexcept { return body_->tasks(); }
PARSEARCH_INLINE schedule const& simulator::schedule() const noexcept { return body_->schedule(); }
PARSEARCH_INLINE std::vector<memory_use> const& simulator::memory() const noexcept { return body_->memory(); }
PARSEARCH_INLINE std::array<double, traffic_kinds> simulator::traffic() const noexcept { return body_->traffic(); }
PARSEARCH_INLINE iteration_plan const& simulator::plan() const noexcept { return body_->plan(); }
PARSEARCH_INLINE std::vector<shard_memory> const& simulator::shards() const noexcept { return body_->shards(); }

} // namespace parsearch::sim
