#pragma once
/// The delta simulator: an `IncrementalEvaluator` with the answers of `simulator`, which redoes only what a change touches.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/concepts/evaluator.hpp>
#include <parsearch/concepts/strategy.hpp>
#include <parsearch/sim/delta/block_cache.hpp>
#include <parsearch/sim/delta/block_graph.hpp>
#include <parsearch/sim/delta/bounds.hpp>
#include <parsearch/sim/delta/engine.hpp>
#include <parsearch/sim/delta/memory_ledger.hpp>
#include <parsearch/sim/simulator.hpp>

namespace parsearch::sim {

/// Prices changes to a current strategy, equal to the full simulation in every task's ready, start and end. See docs/simulation.md.
/// One simulator serves one thread; copies are independent and start with an empty cache.
template <class Oracle, class Device> class delta_simulator {
  public:
    using workload_type = workload<Oracle, Device>;

    /// `cache_bytes`: how much the blocks of configurations that are not current may take before they are forgotten.
    explicit delta_simulator(std::shared_ptr<workload_type const> w, std::size_t cache_bytes = std::size_t{512} << 20)
        : work_(std::move(w)), cache_bytes_(cache_bytes), cache_(std::make_unique<block_cache<Oracle, Device>>(work_)),
          graph_(std::make_unique<block_graph>(
              make_block_graph(work_->graph, work_->classes, work_->class_of, work_->options.training, work_->options.overlap))),
          engine_(*graph_, cache_->resources(), work_->options.discipline),
          bounds_(work_->graph, *graph_, work_->class_of, work_->classes.size()),
          memory_(work_->graph, work_->topology.size(), work_->classes.size(), work_->options), operators_(work_->graph.size()),
          edges_(work_->graph.edges.size()), classes_(work_->classes.size()), next_of_(work_->graph.size()), edge_seen_(work_->graph.edges.size()),
          class_seen_(work_->classes.size()), load_(work_->topology.size()) {
        for (auto const& c : graph_->classes)
            if (c.update != none) engine_.count(c.update, false);
        if (graph_->all_backward == none) return;
        all_backward_->add(cache_->resources().barrier(), 0);
        engine_.set_tasks(graph_->all_backward, all_backward_.get());
    }
    delta_simulator(delta_simulator const& other) : delta_simulator(other.work_, other.cache_bytes_) {
        if (!other.has_strategy_) return;
        std::vector<space::configuration> current;
        for (auto const* b : other.operators_) current.push_back(b->configuration);
        reset(current);
    }
    delta_simulator& operator=(delta_simulator const& other) {
        if (this != &other) *this = delta_simulator(other);
        return *this;
    }
    delta_simulator(delta_simulator&&) = default;
    delta_simulator& operator=(delta_simulator&&) = default;
    ~delta_simulator() = default;

    /// Makes `s` current and answers its cost, as `simulator` does.
    /// Throws `invalid_input` naming operator, value and rule where a configuration does not fit its operator or the topology.
    template <Strategy<space::configuration> S> picoseconds reset(S const& s) {
        if constexpr (requires { { s.size() } -> std::convertible_to<std::size_t>; })
            if (static_cast<std::size_t>(s.size()) != operators_.size())
                throw invalid_input("a strategy of ", s.size(), " configurations: the graph has ", operators_.size(), " operators, must be one each");
        begin();
        for (std::size_t op = 0; op < operators_.size(); ++op) {
            space::configuration const& c = configuration_of(s, op);
            if (has_strategy_ && operators_[op]->configuration == c) continue;
            check(op, c);
            stage(static_cast<std::uint32_t>(op), c);
        }
        auto const cost = *evaluate(infeasible);
        commit();
        has_strategy_ = true;
        return cost;
    }
    template <Strategy<space::configuration> S> picoseconds operator()(S const& s) { return reset(s); }

    /// The cost with `changes` (an operator at most once) applied to the current strategy, or nothing where it is above `bound`: the
    /// simulation stops as soon as that is certain. Throws as `reset` does, and leaves the current strategy; also where there is none.
    std::optional<picoseconds> propose(std::span<change<space::configuration> const> changes, picoseconds bound) {
        if (!has_strategy_) throw invalid_input("delta_simulator: propose without a current strategy: reset must come first");
        begin();
        for (auto const& c : changes) {
            check(c.op, c.configuration);
            stage(static_cast<std::uint32_t>(c.op), c.configuration);
        }
        if (engine_.valid() && total_ < most_total && is_hopeless(bound)) return std::nullopt;
        return evaluate(bound);
    }
    /// The same of one operator.
    std::optional<picoseconds> propose(std::size_t op, space::configuration const& c, picoseconds bound) {
        change<space::configuration> const one{op, c};
        return propose(std::span(&one, 1), bound);
    }
    /// Keeps the last proposal. Throws what the oracle throws only where the proposal was over its bound.
    void commit() {
        if (!patched_ && !staged_.empty()) {
            patch();
            patch_engine();
        }
        engine_.commit();
        for (auto const& [op, old] : undo_operators_) note_work(op);
        clear_undo();
        read_ = false;
    }
    /// Drops the last proposal. Complexity: of what it replaced.
    void roll_back() {
        if (patched_) {
            for (auto const& [number, old] : undo_edges_) edges_[number] = old;
            take_back_edge_facts();
            for (auto const& [c, old] : undo_classes_) {
                classes_[c] = old;
                memory_.set_class(c, old);
                if (old) note_class(c);
            }
            for (auto const& [op, old] : undo_operators_) {
                operators_[op] = old;
                memory_.set_operator(op, old);
                if (old) note_operator(op, *old);
            }
            total_ = total_before_;
            memory_.settle();
            engine_.roll_back();
        }
        clear_undo();
    }

    /// Of the current strategy: its tasks, when they run, memory by device, and bytes moved in one iteration by `traffic_kind`.
    /// Made on the first call after a change. Precondition: there is a current strategy and no open proposal.
    [[nodiscard]] task_graph const& tasks() { return read(), tasks_; }
    [[nodiscard]] sim::schedule const& schedule() { return read(), schedule_; }
    [[nodiscard]] std::vector<memory_use> const& memory() { return read(), use_; }
    [[nodiscard]] std::array<double, traffic_kinds> traffic() { return read(), traffic_of(plan_, work_->options.training); }
    [[nodiscard]] iteration_plan const& plan() { return read(), plan_; }
    [[nodiscard]] workload_type const& input() const noexcept { return *work_; }

    /// Tasks of the current strategy.
    [[nodiscard]] std::uint64_t task_count() const noexcept { return engine_.size(); }
    /// Simulates the current strategy once more without any help from what is known, for measurements. Answers the makespan.
    picoseconds simulate_whole() {
        auto const makespan = engine_.run_whole();
        engine_.commit();
        return picoseconds{makespan};
    }

  private:
    static constexpr picoseconds infeasible = cost_traits<picoseconds>::infinity();
    static constexpr auto none = block_graph::none;
    // Sums of durations above this are left to the full simulator, which stays at the largest value.
    static constexpr double most_total = 0x1p61;

    void check(std::size_t op, space::configuration const& c) const {
        if (op >= operators_.size()) throw invalid_input("change of operator number ", op, ": the graph has ", operators_.size(), " operators");
        space::validate(c, work_->graph.operations[op], work_->topology.size(), work_->graph.names[op]);
    }

    // ---- patching

    void begin() {
        roll_back();
        if (cache_->bytes() > cache_bytes_) cache_->trim(operators_, edges_, classes_);
        total_before_ = total_;
    }
    void stage(std::uint32_t op, space::configuration const& c) {
        auto& b = cache_->of_operator(op, c);
        if (&b != operators_[op]) staged_.push_back({op, &b});
    }
    /// The blocks of `op` with what is staged.
    [[nodiscard]] operator_blocks* proposed(std::uint32_t op) const noexcept { return next_of_[op] ? next_of_[op] : operators_[op]; }
    template <class F> void with_staged(F const& f) {
        for (auto const& [op, b] : staged_) next_of_[op] = b;
        try {
            f();
        } catch (...) {
            for (auto const& [op, b] : staged_) next_of_[op] = nullptr;
            throw;
        }
        for (auto const& [op, b] : staged_) next_of_[op] = nullptr;
    }
    template <class F> void for_edges_at(std::uint32_t op, F const& f) const {
        auto const& g = work_->graph;
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e)
            if (graph_->forward[e].block != none) f(e);
        for (auto const e : g.out(op))
            if (graph_->forward[e].block != none) f(e);
    }

    /// The blocks of the staged operators, of the edges at them and of their classes take the places of the current ones. May throw
    /// while it finds them, and then changes nothing.
    void patch() {
        auto const& g = work_->graph;
        ++seen_;
        new_edges_.clear();
        new_classes_.clear();
        with_staged([&] {
            for (auto const& [op, b] : staged_) cache_->build(op, *b);
            for (auto const& [op, b] : staged_) {
                for_edges_at(op, [&](std::uint32_t number) {
                    auto const& e = g.edges[number];
                    if (std::exchange(edge_seen_[number], seen_) != seen_)
                        new_edges_.push_back({number, &cache_->of_edge(number, *proposed(e.producer), *proposed(e.consumer))});
                });
                auto const c = work_->class_of[op];
                if (c == none || std::exchange(class_seen_[c], seen_) == seen_) continue;
                new_classes_.push_back({c, &cache_->of_class(c, [&](std::uint32_t member) -> operator_blocks const& { return *proposed(member); })});
            }
        });
        patched_ = true;
        for (auto const& [op, b] : staged_) {
            undo_operators_.push_back({op, operators_[op]});
            total_ += work_of(b) - work_of(operators_[op]);
            operators_[op] = b;
            memory_.set_operator(op, b);
            note_operator(op, *b);
        }
        for (auto const& [number, b] : new_edges_) {
            undo_edges_.push_back({number, edges_[number]});
            total_ += work_of(b) - work_of(edges_[number]);
            edges_[number] = b;
            note_edge(number, *operators_[g.edges[number].producer], *operators_[g.edges[number].consumer]);
        }
        for (auto const& [c, b] : new_classes_) {
            undo_classes_.push_back({c, classes_[c]});
            total_ += work_of(b) - work_of(classes_[c]);
            classes_[c] = b;
            memory_.set_class(c, b);
            note_class(c);
        }
        memory_.settle();
    }
    template <class Blocks> [[nodiscard]] static double work_of(Blocks const* b) noexcept { return b ? b->work : 0; }

    void note_operator(std::uint32_t op, operator_blocks const& b) noexcept {
        auto& facts = bounds_.of_operator(op);
        facts.forward = b.shape->shortest_forward;
        facts.backward = b.shape->shortest_backward;
        facts.sums = !b.inside_forward.empty();
    }
    void note_edge(std::uint32_t number, operator_blocks const& from, operator_blocks const& to) {
        auto const& shape = cache_->shape_of_edge(number, from, to);
        undo_facts_.push_back({number, bounds_.of_edge(number)});
        bounds_.of_edge(number) = {shape.every_consumer, shape.every_producer};
    }
    void take_back_edge_facts() noexcept {
        for (auto i = undo_facts_.size(); i-- > 0;) bounds_.of_edge(undo_facts_[i].first) = undo_facts_[i].second;
        undo_facts_.clear();
    }
    void note_class(std::uint32_t c) noexcept {
        auto const& b = *classes_[c];
        auto const all = std::find(b.every.begin(), b.every.end(), false) == b.every.end();
        bounds_.of_class(c) = {all ? b.shortest : 0, b.shortest_update, b.sync.size() > 0 && all};
    }
    /// The committed work of `op` on the first device.
    void note_work(std::uint32_t op) noexcept {
        auto const& b = *operators_[op];
        auto& facts = bounds_.of_operator(op);
        facts.forward_here = facts.backward_here = 0;
        for (std::size_t n = 0; n < b.plan.devices.size() && graph_->operators[op].forward != none; ++n)
            if (b.plan.devices[n] == 0) {
                facts.forward_here += b.forward.duration[n];
                if (graph_->operators[op].backward != none) facts.backward_here += b.backward.duration[n];
            }
    }

    void patch_engine() {
        for (auto const& [op, old] : undo_operators_) place(op, *operators_[op]);
        for (auto const& [number, old] : undo_edges_) place(number, *edges_[number]);
        for (auto const& [c, old] : undo_classes_) place(c, *classes_[c]);
    }
    void place(std::uint32_t op, operator_blocks const& b) {
        auto const& at = graph_->operators[op];
        if (at.forward == none) return;
        engine_.set_tasks(at.forward, &b.forward);
        engine_.set_dependence(at.inside_forward, &b.inside_forward);
        if (at.backward == none) return;
        engine_.set_tasks(at.backward, &b.backward);
        engine_.set_dependence(at.forward_to_backward, &b.backward_waits_forward);
        if (at.to_all_backward == none) return;
        engine_.set_dependence(at.to_all_backward, &b.all_backward_waits);
    }
    void place(std::uint32_t number, edge_blocks const& b) {
        auto const set = [&](block_graph::movement_arcs const& at, task_list const& tasks, dependence const& sender, dependence const& inside,
                             dependence const& receiver, dependence const& local) {
            if (at.block == none) return;
            engine_.set_tasks(at.block, &tasks);
            engine_.set_dependence(at.sender, &sender);
            engine_.set_dependence(at.inside, &inside);
            engine_.set_dependence(at.receiver, &receiver);
            engine_.set_dependence(at.local, &local);
        };
        set(graph_->forward[number], b.forward, b.forward_waits, b.inside_forward, b.consumer_waits, b.consumer_local);
        set(graph_->backward[number], b.backward, b.backward_waits, b.inside_backward, b.producer_waits, b.producer_local);
    }
    void place(std::uint32_t c, class_blocks const& b) {
        auto const& at = graph_->classes[c];
        if (at.update == none) return;
        engine_.set_tasks(at.sync, &b.sync);
        engine_.set_tasks(at.update, &b.update);
        for (std::size_t m = 0; m < at.to_sync.size(); ++m) {
            engine_.set_dependence(at.to_sync[m], &b.sync_waits[m]);
            engine_.set_dependence(at.to_update[m], &b.update_waits[m]);
        }
        if (at.from_all_backward != none) engine_.set_dependence(at.from_all_backward, &b.sync_waits_all);
        engine_.set_dependence(at.inside_sync, &b.inside_sync);
        engine_.set_dependence(at.sync_to_update, &b.update_waits_sync);
        engine_.set_dependence(at.inside_update, &b.inside_update);
    }
    void clear_undo() noexcept {
        undo_operators_.clear();
        undo_edges_.clear();
        undo_classes_.clear();
        undo_facts_.clear();
        staged_.clear();
        patched_ = false;
    }

    // ---- pricing

    /// Patches in what is staged and prices it: memory first, then bounds, then the schedule as far as it is needed.
    std::optional<picoseconds> evaluate(picoseconds bound) {
        patch();
        auto const penalty = memory_cost(work_->options, memory_.over(work_->topology.devices));
        patch_engine();
        if (penalty == infeasible) return bound == infeasible ? std::optional(infeasible) : std::nullopt;
        if (!(penalty <= bound)) return std::nullopt;
        auto const left = bound - penalty;
        auto const makespan = most_total <= total_ ? full_makespan() : schedule_within(left.count());
        if (!makespan || *makespan > left.count()) return std::nullopt;
        auto const cost = total_cost(picoseconds{*makespan}, penalty);
        return cost > bound ? std::nullopt : std::optional(cost);
    }

    std::optional<std::int64_t> schedule_within(std::int64_t bound) {
        auto const [device, link] = engine_.heaviest();
        if (device > bound || link > bound) return std::nullopt;
        bounds_.find_tails();
        if (device > bound - bounds_.after_device()) return std::nullopt;
        return engine_.run({bound, bounds_.after(), bounds_.after_device()});
    }

    /// Whether the staged change of one operator is sure to cost more than `bound`, from its shape and its inputs' messages alone:
    /// nothing is patched. See docs/simulation.md for the bounds.
    bool is_hopeless(picoseconds bound) {
        if (staged_.size() != 1 || bound == picoseconds::max()) return false;
        auto const [op, b] = staged_.front();
        auto const& at = graph_->operators[op];
        if (at.forward == none) return false;
        auto const limit = bound.count();
        bool hopeless = false;
        with_staged([&] {
            auto const c = work_->class_of[op];
            auto const class_before = c == none ? path_bounds::class_facts{} : bounds_.of_class(c);
            auto const before = bounds_.of_operator(op);
            auto& facts = bounds_.of_operator(op);
            facts.forward = b->shape->shortest_forward;
            facts.backward = b->shape->shortest_backward;
            if (c != none) bounds_.of_class(c) = {};
            auto const& g = work_->graph;
            for_edges_at(op, [&](std::uint32_t e) { note_edge(e, *proposed(g.edges[e].producer), *proposed(g.edges[e].consumer)); });
            bounds_.find_tails();
            hopeless = device_load_with(op, *b) > limit - bounds_.after_device() || earliest_with(op, *b) > limit;
            take_back_edge_facts();
            if (c != none) bounds_.of_class(c) = class_before;
            facts = before;
        });
        return hopeless;
    }

    /// The forward and backward work of the busiest of the devices that `op` runs on as `b`.
    [[nodiscard]] std::int64_t device_load_with(std::uint32_t op, operator_blocks const& b) {
        auto const& old = *operators_[op];
        auto const& kind = work_->topology.kind;
        auto const sum = [](operator_shape const& s, std::size_t k) { return s.forward[k] + s.backward[k]; };
        if (old.everywhere && b.everywhere && b.shape->forward.size() == 1)
            return engine_.device_load() - sum(*old.shape, 0) + sum(*b.shape, 0);
        auto const shards = b.configuration.shards();
        std::int64_t most = 0;
        for (auto const d : old.plan.devices) load_[d] -= sum(*old.shape, kind[d]);
        for (std::int64_t n = 0; n < shards; ++n) {
            auto const d = static_cast<std::size_t>(b.configuration.device(n));
            load_[d] += sum(*b.shape, kind[d]);
            most = std::max(most, load_[d] + engine_.load(static_cast<std::uint32_t>(d)));
        }
        for (auto const d : old.plan.devices) load_[d] = 0;
        for (std::int64_t n = 0; n < shards; ++n) load_[static_cast<std::size_t>(b.configuration.device(n))] = 0;
        return most;
    }

    /// The earliest makespan, given when the current schedule ends what `op` reads: before that nothing is different.
    [[nodiscard]] std::int64_t earliest_with(std::uint32_t op, operator_blocks const& b) {
        auto const& g = work_->graph;
        auto const end_of = [&](std::uint32_t e) { return engine_.least_end(graph_->operators[g.edges[e].producer].forward); };
        auto first = std::numeric_limits<std::int64_t>::max();
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e)
            if (graph_->forward[e].block != none) first = std::min(first, end_of(e));
        if (auto const c = work_->class_of[op]; c != none) // its synchronisation changes, which may begin with other members
            for (auto const member : work_->classes[c])
                if (member != op && graph_->operators[member].backward != none)
                    first = std::min(first, engine_.least_end(graph_->operators[member].backward));
        std::int64_t all = 0, some = 0; // when the last message is there; when some shard has all of its own
        for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e) {
            if (graph_->forward[e].block == none) continue;
            auto const sent = work_->options.discipline == discipline::in_order ? end_of(e) : first;
            auto const times = cache_->arrivals(e, *proposed(g.edges[e].producer), b);
            all = std::max(all, sent + times.last);
            if (bounds_.of_edge(e).every_consumer) some = std::max(some, sent + times.first);
        }
        auto const done = some + b.shape->shortest_forward;
        auto earliest = std::max(all + bounds_.tail(op), done + bounds_.after_work(op));
        for (auto const e : g.out(op)) {
            auto const& consumer = *proposed(g.edges[e].consumer);
            earliest = std::max(earliest, done + cache_->arrivals(e, b, consumer).last + bounds_.tail(g.edges[e].consumer));
        }
        return earliest;
    }

    // ---- reading

    /// Puts the plan of the current strategy together; `tasks_` follows from it, `schedule_` from the engine.
    void assemble() {
        plan_.operators.clear();
        plan_.edges.clear();
        plan_.classes.clear();
        plan_.class_of = work_->class_of;
        for (auto const* b : operators_) plan_.operators.push_back(b->plan);
        for (auto const* b : edges_) plan_.edges.push_back(b ? b->plan : edge_plan{});
        for (auto const* b : classes_) plan_.classes.push_back(b->plan);
        assembler(work_->graph, work_->topology.kind, cache_->resources().links).run(plan_, work_->options.training, work_->options.overlap, tasks_);
    }
    std::optional<std::int64_t> full_makespan() {
        assemble();
        read_ = false;
        scheduler().run(tasks_, work_->options.discipline, schedule_);
        return schedule_.makespan;
    }
    void read() {
        if (read_) return;
        if (!has_strategy_) throw invalid_input("delta_simulator: read without a current strategy: reset must come first");
        if (most_total <= total_) {
            (void)full_makespan();
        } else {
            assemble();
            if (!engine_.valid()) simulate_whole();
            schedule_.ready.clear();
            schedule_.start.clear();
            schedule_.end.clear();
            for (std::uint32_t b = 0; b < graph_->blocks; ++b)
                for (std::uint32_t i = 0; i < engine_.moments(b).size(); ++i) {
                    auto const& m = engine_.moments(b)[i];
                    schedule_.ready.push_back(m.ready);
                    schedule_.start.push_back(m.end - engine_.tasks(b)->duration[i]);
                    schedule_.end.push_back(m.end);
                }
            schedule_.makespan = engine_.makespan();
        }
        memory_account(work_->graph, work_->topology.size())
            .add_up(
                work_->options, plan_.classes, [&](std::size_t op) -> shard_memory const& { return operators_[op]->shape->memory; },
                [&](std::size_t op) -> std::vector<std::uint32_t> const& { return operators_[op]->plan.devices; }, use_);
        read_ = true;
    }

    std::shared_ptr<workload_type const> work_;
    std::size_t cache_bytes_;
    std::unique_ptr<block_cache<Oracle, Device>> cache_;
    std::unique_ptr<block_graph> graph_;
    std::unique_ptr<task_list> all_backward_ = std::make_unique<task_list>();
    engine engine_;
    path_bounds bounds_;
    memory_ledger memory_;
    bool has_strategy_ = false;
    // Of the proposal, which is the current strategy where none is open:
    std::vector<operator_blocks*> operators_;
    std::vector<edge_blocks const*> edges_;
    std::vector<class_blocks const*> classes_;
    double total_ = 0; ///< of all durations
    // What the proposal replaced:
    bool patched_ = false; ///< what is staged is in place
    std::vector<std::pair<std::uint32_t, operator_blocks*>> staged_, undo_operators_;
    std::vector<std::pair<std::uint32_t, edge_blocks const*>> new_edges_, undo_edges_;
    std::vector<std::pair<std::uint32_t, class_blocks const*>> new_classes_, undo_classes_;
    std::vector<std::pair<std::uint32_t, path_bounds::edge_facts>> undo_facts_;
    std::vector<operator_blocks*> next_of_; ///< of operators that are being replaced
    std::vector<std::uint64_t> edge_seen_, class_seen_;
    std::uint64_t seen_ = 0;
    double total_before_ = 0;
    std::vector<std::int64_t> load_; ///< what a change adds to each device
    // For readers:
    bool read_ = false;
    iteration_plan plan_;
    task_graph tasks_;
    sim::schedule schedule_;
    std::vector<memory_use> use_;
};

} // namespace parsearch::sim
