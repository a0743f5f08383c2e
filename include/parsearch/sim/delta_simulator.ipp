#pragma once
// How `delta_simulator` works.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/sim/delta/block_bounds.hpp>
#include <parsearch/sim/delta/block_cache.hpp>
#include <parsearch/sim/delta/block_graph.hpp>
#include <parsearch/sim/delta/change_bounds.hpp>
#include <parsearch/sim/delta/engine.hpp>
#include <parsearch/sim/delta/place_blocks.hpp>
#include <parsearch/sim/delta/schedule_view.hpp>
#include <parsearch/sim/delta_simulator.hpp>
#include <parsearch/sim/memory/memory_penalty.hpp>
#include <parsearch/sim/schedule/any_scheduler.hpp>

namespace parsearch::sim {

class delta_simulator::body {
  public:
    body(std::shared_ptr<workload const> w, delta_options const& options)
        : work_(std::move(w)), options_(options), cache_(std::make_unique<block_cache>(work_, options.fold, options.stop)),
          graph_(std::make_unique<block_graph>(
              make_block_graph(work_->graph, work_->readers, work_->classes, work_->class_of, work_->options.training, work_->options.overlap))),
          bounds_(work_->graph, *graph_, work_->class_of, work_->classes.size()), operators_(work_->graph.size()), edges_(work_->graph.edges.size()),
          carriers_(work_->graph.edges.size()), classes_(work_->classes.size()), next_of_(work_->graph.size()), edge_seen_(work_->graph.edges.size()),
          class_seen_(work_->classes.size()), group_seen_(work_->readers.size()), next_carrier_(work_->graph.edges.size()),
          changed_(*work_, *graph_, *cache_), assembler_(cache_->make_assembler()), scheduler_(work_->topology, work_->options) {
        scheduler_.stop_at(options.stop);
        std::iota(carriers_.begin(), carriers_.end(), std::uint32_t{0});
        views_.push_back(make_view(false));
        if (cache_->folds()) views_.push_back(make_view(true));
    }
    body(body const& other) : body(other.work_, other.options_) {
        if (!other.has_strategy_) return;
        std::vector<space::configuration> current;
        for (auto const* b : other.operators_) current.push_back(b->configuration);
        for (auto const& [op, old] : other.undo_operators_) current[op] = old->configuration;
        reset(current);
    }
    body& operator=(body const&) = delete;
    ~body() = default;

    /// Makes `s` current and answers its cost, as `simulator` does.
    /// Throws `invalid_input` naming operator, value and rule where a configuration does not fit its operator or the topology.
    picoseconds reset(space::flat_strategy const& s) {
        auto const cost = price(s);
        keep();
        has_strategy_ = true;
        return cost;
    }
    /// The cost of `s`; the current strategy stays. Where there is none, `s` becomes current. Throws as `reset` does.
    picoseconds operator()(space::flat_strategy const& s) {
        if (!has_strategy_) return reset(s);
        if (open_) throw invalid_input("delta_simulator: a strategy while a proposal is open: commit or roll_back must end it first");
        auto const cost = price(s);
        roll_back();
        return cost;
    }

    /// The cost with `changes`, one after the other, applied to the current strategy, or nothing where it is above `bound`: the
    /// simulation stops as soon as that is certain. Throws as `reset` does, and leaves the current strategy; also where there is none.
    std::optional<picoseconds> propose(std::span<change<space::configuration> const> changes, picoseconds bound) {
        if (!has_strategy_) throw invalid_input("delta_simulator: propose without a current strategy: reset must come first");
        if (open_) throw invalid_input("delta_simulator: propose while a proposal is open: commit or roll_back must end it first");
        begin();
        return or_nothing([&]() -> std::optional<picoseconds> {
            open_ = true;
            for (auto const& c : changes) {
                check(c.op, c.configuration);
                if (changes.size() > 1) std::erase_if(staged_, [&](auto const& earlier) { return earlier.first == c.op; });
                stage(static_cast<std::uint32_t>(c.op), c.configuration);
            }
            if (current().schedule.valid() && !scheduled_whole() && is_hopeless(bound)) return std::nullopt;
            return evaluate(bound);
        });
    }
    /// The same of one operator.
    std::optional<picoseconds> propose(std::size_t op, space::configuration const& c, picoseconds bound) {
        change<space::configuration> const one{op, c};
        return propose(std::span(&one, 1), bound);
    }
    /// Keeps the last proposal. Complexity: of the tasks that were scheduled. Throws what the oracle throws only where the proposal was over its
    /// bound.
    void commit() {
        if (!open_) throw invalid_input("delta_simulator: commit without a proposal: propose must come first");
        keep();
    }
    void keep() {
        open_ = false;
        if (!patched_ && !staged_.empty()) patch();
        if (patched_) {
            current_ = view_;
            current().schedule.commit();
            current().is_up_to_date();
            for (std::size_t other = 0; other < views_.size(); ++other)
                if (other != current_) views_[other].fall_behind(undo_operators_, undo_edges_, undo_classes_);
        }
        for (auto const& [op, old] : undo_operators_) note_work(op);
        if (!undo_operators_.empty()) {
            know_round_trips_ = false;
            since_commit_ = 0;
        }
        clear_undo();
        read_ = false;
    }
    /// Drops the last proposal. Complexity: of what it replaced.
    void roll_back() noexcept {
        open_ = false;
        if (patched_) {
            auto& mine = views_[view_];
            for (auto const& e : undo_edges_) {
                edges_[e.number] = e.blocks;
                carriers_[e.number] = e.carrier;
            }
            take_back_edge_facts();
            for (auto const& [c, old] : undo_classes_) {
                classes_[c] = old;
                mine.set_class_memory(c, old);
                if (old) note_class(c);
            }
            for (auto const& [op, old] : undo_operators_) {
                operators_[op] = old;
                mine.set_operator_memory(op, old);
                if (old) note_operator(op, *old);
            }
            total_ = total_before_;
            unfolded_ = unfolded_before_;
            mine.memory.settle();
            mine.schedule.roll_back();
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
    [[nodiscard]] workload const& input() const noexcept { return *work_; }

    /// Tasks that are scheduled for the current strategy: fewer than it has where nodes are folded into one.
    [[nodiscard]] std::uint64_t scheduled_tasks() const noexcept { return current().schedule.size(); }
    /// Without any help from what is known, for measurements.
    picoseconds simulate_whole() {
        roll_back();
        if (!has_strategy_) throw invalid_input("delta_simulator: simulate_whole without a current strategy: reset must come first");
        if (scheduled_whole()) return picoseconds{*full_makespan(std::numeric_limits<std::int64_t>::max())};
        auto const makespan = current().schedule.run_whole();
        current().schedule.commit();
        return picoseconds{makespan};
    }

  private:
    static constexpr picoseconds infeasible = cost_traits<picoseconds>::infinity();
    static constexpr auto none = block_graph::none;
    // Sums of durations above this are left to the full scheduler, which stays at the largest value.
    static constexpr double most_total = 0x1p61;
    /// Whether plans alone are made anew where they change: the engine knows one way to pass links.
    [[nodiscard]] bool scheduled_whole() const noexcept { return total_ >= most_total || !engine_serves(); }
    [[nodiscard]] bool engine_serves() const noexcept { return work_->options.transfers == transfer_model::streaming; }

    [[nodiscard]] schedule_view make_view(bool folded) const {
        return schedule_view(*graph_, work_->graph, work_->classes.size(), work_->options,
                             folded ? cache_->folds()->resources() : cache_->resources(), folded);
    }
    [[nodiscard]] schedule_view& current() noexcept { return views_[current_]; }
    [[nodiscard]] schedule_view const& current() const noexcept { return views_[current_]; }

    void check(std::size_t op, space::configuration const& c) const {
        if (op >= operators_.size()) throw invalid_input("change of operator number ", op, ": the graph has ", operators_.size(), " operators");
        space::validate(c, work_->graph.operations[op], work_->topology.size(), work_->graph.names[op]);
    }

    // ---- patching

    void begin() {
        roll_back();
        if (cache_->bytes() > options_.cache_bytes) {
            // What is behind may still name blocks that go.
            for (auto& l : views_)
                if (l.is_behind()) {
                    l = make_view(l.folded);
                    l.fall_behind_in_all(edges_);
                }
            cache_->trim(operators_, edges_, classes_);
        }
        for (auto& l : views_) l.schedule.give_back();
        total_before_ = total_;
        unfolded_before_ = unfolded_;
    }
    void stage(std::uint32_t op, space::configuration const& c) {
        auto& b = cache_->of_operator(op, c);
        if (&b != operators_[op]) staged_.push_back({op, &b});
    }
    /// What `f` answers; where it throws, nothing is proposed.
    template <class F> std::invoke_result_t<F const&> or_nothing(F const& f) {
        try {
            return f();
        } catch (...) {
            roll_back();
            throw;
        }
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
                        new_edges_.push_back({number, &cache_->of_edge(number, *proposed(e.producer), *proposed(e.consumer)), carriers_[number]});
                });
                auto const c = work_->class_of[op];
                if (c == none || std::exchange(class_seen_[c], seen_) == seen_) continue;
                new_classes_.push_back({c, &cache_->of_class(c, [&](std::uint32_t member) -> operator_blocks const& { return *proposed(member); })});
            }
            find_carriers();
        });
        patched_ = true;
        for (auto const& [op, b] : staged_) replace(*b, operators_[op], graph_->operators[op].forward != none);
        for (auto const& e : new_edges_) replace(*e.blocks, edges_[e.number], true);
        for (auto const& [c, b] : new_classes_) replace(*b, classes_[c], true);
        view_ = views_.size() > 1 && unfolded_ == 0 ? 1 : 0;
        auto& mine = views_[view_];
        mine.catch_up(operators_, edges_, carriers_, classes_);
        // What is proposed resumes from the schedule of the current strategy, which may be known in the other view only.
        if (has_strategy_ && !mine.is_behind() && !mine.schedule.valid() && total_before_ < most_total && engine_serves()) {
            mine.schedule.run({});
            mine.schedule.commit();
        }
        for (auto const& [op, b] : staged_) {
            undo_operators_.push_back({op, operators_[op]});
            operators_[op] = b;
            mine.set_operator_memory(op, b);
            note_operator(op, *b);
            if (graph_->operators[op].forward != none) sim::place(mine.schedule, *graph_, op, mine.parts(*b));
        }
        for (auto const& [number, b, carrier] : new_edges_) {
            undo_edges_.push_back({number, edges_[number], carriers_[number]});
            edges_[number] = b;
            carriers_[number] = carrier;
            note_edge(number, *operators_[g.edges[number].producer], *operators_[g.edges[number].consumer], b);
            sim::place(mine.schedule, *graph_, number, mine.parts(*b), carrier);
        }
        for (auto const& [c, b] : new_classes_) {
            undo_classes_.push_back({c, classes_[c]});
            classes_[c] = b;
            mine.set_class_memory(c, b);
            note_class(c);
            sim::place(mine.schedule, *graph_, c, mine.parts(*b));
        }
        mine.memory.settle();
    }
    /// The carriers of new edges; edges that stay and get another carrier become new ones. Those between readers of what a staged operator makes stay
    /// alike or not: their readers do.
    void find_carriers() {
        auto const& g = work_->graph;
        auto const& readers = work_->readers;
        auto const alike = [&](std::uint32_t a, std::uint32_t b) {
            return cache_->read_alike(a, *proposed(g.edges[a].consumer), b, *proposed(g.edges[b].consumer));
        };
        for (auto const& [op, b] : staged_)
            for (auto in = g.first_in[op]; in < g.first_in[op + 1]; ++in) {
                auto const group = readers.group_of(in);
                if (group == none || std::exchange(group_seen_[group], seen_) == seen_) continue;
                readers.find_carriers(group, alike, next_carrier_, first_alike_);
                for (auto const e : readers[group])
                    if (edge_seen_[e] != seen_ && next_carrier_[e] != carriers_[e]) {
                        edge_seen_[e] = seen_;
                        new_edges_.push_back({e, edges_[e], next_carrier_[e]});
                    }
            }
        for (auto& e : new_edges_)
            if (auto const group = readers.group_of(e.number); group != none && group_seen_[group] == seen_) e.carrier = next_carrier_[e.number];
    }
    /// Counts that `b` comes in the place of `old`.
    template <class Blocks, class Old> void replace(Blocks const& b, Old const* old, bool scheduled) noexcept {
        total_ += b.work - (old ? old->work : 0);
        if (scheduled) unfolded_ += (b.folded ? 0 : 1) - (old && !old->folded ? 1 : 0);
    }

    void note_operator(std::uint32_t op, operator_blocks const& b) noexcept {
        auto& facts = bounds_.of_operator(op);
        facts.forward = b.shape->shortest_forward;
        facts.backward = b.shape->shortest_backward;
        facts.sums = !b.parts.inside_forward.empty();
        facts.everywhere = b.everywhere;
    }
    /// `blocks`: of the edge, where they are known.
    void note_edge(std::uint32_t number, operator_blocks const& from, operator_blocks const& to, edge_blocks const* blocks = nullptr) {
        auto const& shape = cache_->shape_of_edge(number, from, to);
        undo_facts_.push_back({number, bounds_.of_edge(number)});
        bounds_.of_edge(number) = {shape.every_consumer, shape.every_producer, blocks && is_aligned(*blocks, from, to)};
    }
    [[nodiscard]] static bool is_aligned(edge_blocks const& b, operator_blocks const& from, operator_blocks const& to) noexcept {
        auto const n = from.plan.devices.size();
        return to.plan.devices.size() == n && b.parts.forward.size() + b.parts.backward.size() == 0 && b.parts.consumer_local.aligned == n &&
               b.parts.producer_local.aligned == n;
    }
    void take_back_edge_facts() noexcept {
        for (auto i = undo_facts_.size(); i-- > 0;) bounds_.of_edge(undo_facts_[i].first) = undo_facts_[i].second;
        undo_facts_.clear();
    }
    void note_class(std::uint32_t c) noexcept {
        auto const& b = *classes_[c];
        auto const all = std::find(b.every.begin(), b.every.end(), false) == b.every.end();
        bounds_.of_class(c) = {all ? b.shortest : 0, b.shortest_update, b.parts.sync.size() > 0 && all, b.every.size() > 1};
    }
    /// The committed work of `op` on the first device.
    void note_work(std::uint32_t op) noexcept {
        auto const& b = *operators_[op];
        auto& facts = bounds_.of_operator(op);
        facts.forward_here = facts.backward_here = 0;
        for (std::size_t n = 0; n < b.plan.devices.size() && graph_->operators[op].forward != none; ++n)
            if (b.plan.devices[n] == 0) {
                facts.forward_here += b.parts.forward.duration[n];
                if (graph_->operators[op].backward != none) facts.backward_here += b.parts.backward.duration[n];
            }
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

    /// Proposes all of `s`.
    picoseconds price(space::flat_strategy const& s) {
        begin();
        return or_nothing([&] {
            for (std::size_t op = 0; op < operators_.size(); ++op) {
                space::configuration const& c = s[op];
                if (has_strategy_ && operators_[op]->configuration == c) continue;
                check(op, c);
                stage(static_cast<std::uint32_t>(op), c);
            }
            return *evaluate(infeasible);
        });
    }

    /// Patches in what is staged and prices it: memory first, then bounds, then the schedule as far as it is needed.
    std::optional<picoseconds> evaluate(picoseconds bound) {
        patch();
        require_running(options_.stop);
        auto const penalty = memory_cost(work_->options, bytes_over(), work_->topology.size());
        if (penalty == infeasible) return bound == infeasible ? std::optional(infeasible) : std::nullopt;
        if (!(penalty <= bound)) return std::nullopt;
        auto const left = bound == infeasible ? infeasible : bound - penalty;
        auto const makespan = scheduled_whole() ? full_makespan(left.count()) : schedule_within(left.count());
        if (!makespan || *makespan > left.count()) return std::nullopt;
        auto const cost = total_cost(picoseconds{*makespan}, penalty);
        return cost > bound ? std::nullopt : std::optional(cost);
    }

    [[nodiscard]] byte_count bytes_over() const noexcept {
        auto const& mine = views_[view_];
        auto const& devices = work_->topology.devices;
        byte_count over = 0;
        if (mine.folded) {
            for (std::size_t c = 0; c < cache_->folds()->devices().size(); ++c)
                over = std::max(over, mine.memory.bytes(c) - devices[cache_->folds()->devices()[c]].memory);
        } else {
            for (std::size_t d = 0; d < devices.size(); ++d) over = std::max(over, mine.memory.bytes(d) - devices[d].memory);
        }
        return over;
    }

    std::optional<std::int64_t> schedule_within(std::int64_t bound) {
        auto& mine = views_[view_];
        auto const [device, link] = mine.schedule.heaviest();
        if (device > bound || link > bound) return std::nullopt;
        bounds_.find_tails();
        if (device > bound - bounds_.after_device()) return std::nullopt;
        return mine.schedule.run({bound, bounds_.after(), bounds_.after_device()});
    }

    /// Whether the staged change of one operator is sure to cost more than `bound`, from its shape and its inputs' messages alone:
    /// nothing is patched. See docs/simulation.md for the bounds.
    bool is_hopeless(picoseconds bound) {
        if (staged_.size() != 1 || bound == picoseconds::max()) return false;
        auto const [op, b] = staged_.front();
        auto const& at = graph_->operators[op];
        if (at.forward == none) return false;
        auto const limit = bound.count();
        auto const longest = [](std::vector<std::int64_t> const& by_kind) {
            return static_cast<double>(*std::max_element(by_kind.begin(), by_kind.end()));
        };
        if (total_ + static_cast<double>(b->configuration.shards()) * (longest(b->shape->forward) + longest(b->shape->backward)) >= most_total)
            return false;
        // Most that are hopeless, and the cheapest to find.
        if (changed_.device_load(*operators_[op], *b, current().schedule, current().folded) > limit) return true;
        auto const c = work_->class_of[op];
        auto const class_before = c == none ? path_bounds::class_facts{} : bounds_.of_class(c);
        auto const before = bounds_.of_operator(op);
        auto const restore = [&] {
            take_back_edge_facts();
            if (c != none) bounds_.of_class(c) = class_before;
            bounds_.of_operator(op) = before;
        };
        // Made anew after each commit: not worth it where the next commit is near.
        if (!know_round_trips_ && ++since_commit_ < patience) return false;
        if (!std::exchange(know_round_trips_, true)) bounds_.find_round_trips(work_->options.discipline == discipline::in_order);
        bool hopeless = false;
        try {
            with_staged([&] {
                auto& facts = bounds_.of_operator(op);
                facts.forward = b->shape->shortest_forward;
                facts.backward = b->shape->shortest_backward;
                if (c != none) bounds_.of_class(c) = {};
                auto const& g = work_->graph;
                for_edges_at(op, [&](std::uint32_t e) { note_edge(e, *proposed(g.edges[e].producer), *proposed(g.edges[e].consumer)); });
                hopeless = changed_.earliest(
                               op, *operators_[op], *b, bounds_, current().schedule,
                               [&](std::uint32_t other) -> auto const& { return *proposed(other); }, limit) > limit;
            });
        } catch (...) {
            restore();
            throw;
        }
        restore();
        return hopeless;
    }

    // ---- reading

    /// Puts the plan of the current strategy together; `tasks_` follows from it, `schedule_` from the engine.
    void assemble() {
        plan_.operators.clear();
        plan_.edges.clear();
        plan_.classes.clear();
        plan_.class_of = work_->class_of;
        for (auto const* b : operators_) plan_.operators.push_back(b->plan);
        for (std::uint32_t e = 0; e < edges_.size(); ++e) plan_.edges.push_back(edges_[e] && carriers_[e] == e ? edges_[e]->plan : edge_plan{});
        plan_.carrier = carriers_;
        for (std::uint32_t c = 0; c < classes_.size(); ++c) plan_.classes.push_back(cache_->plan_of(c, *classes_[c]));
        assembler_.run(plan_, work_->options.training, work_->options.overlap, tasks_, options_.stop);
    }
    std::optional<std::int64_t> full_makespan(std::int64_t bound) {
        assemble();
        read_ = false;
        if (!scheduler_.run(tasks_, schedule_, bound)) return std::nullopt;
        return schedule_.makespan;
    }
    void read() {
        if (read_) return;
        if (!has_strategy_) throw invalid_input("delta_simulator: read without a current strategy: reset must come first");
        if (scheduled_whole()) {
            (void)full_makespan(std::numeric_limits<std::int64_t>::max());
        } else {
            assemble();
            if (!current().schedule.valid()) simulate_whole();
            schedule_.ready.clear();
            schedule_.start.clear();
            schedule_.end.clear();
            schedule_.makespan = current().schedule.makespan();
            for_blocks(*graph_, operators_, edges_, carriers_, classes_, *views_[0].all_backward,
                       [&](std::uint32_t block, task_list const& tasks, std::vector<std::uint32_t> const& fold) {
                           auto const& moments = current().schedule.moments(block);
                           for (std::uint32_t i = 0; i < tasks.size(); ++i) {
                               auto const& m = moments[current().folded ? fold[i] : i];
                               schedule_.ready.push_back(m.ready);
                               schedule_.start.push_back(m.end - tasks.duration[i]);
                               schedule_.end.push_back(m.end);
                           }
                       });
        }
        memory_account(work_->graph, work_->topology.size())
            .add_up(
                work_->options, plan_.classes, [&](std::size_t op) -> shard_memory const& { return operators_[op]->shape->memory; },
                [&](std::size_t op) -> std::vector<std::uint32_t> const& { return operators_[op]->plan.devices; }, use_);
        read_ = true;
    }

    std::shared_ptr<workload const> work_;
    delta_options options_;
    std::unique_ptr<block_cache> cache_;
    std::unique_ptr<block_graph> graph_;
    path_bounds bounds_;
    std::vector<schedule_view> views_;   ///< all resources; where nodes are alike, one node
    std::size_t current_ = 0, view_ = 0; ///< the view of the current strategy, of the proposal
    bool has_strategy_ = false;
    // Of the proposal, which is the current strategy where none is open:
    std::vector<operator_blocks*> operators_;
    std::vector<edge_blocks const*> edges_;
    std::vector<std::uint32_t> carriers_; ///< of each edge: see `iteration_plan`
    std::vector<class_blocks const*> classes_;
    double total_ = 0;          ///< of all durations
    std::int64_t unfolded_ = 0; ///< how many of these do not treat all nodes alike
    // What the proposal replaced:
    bool patched_ = false; ///< what is staged is in place
    std::vector<std::pair<std::uint32_t, operator_blocks*>> staged_, undo_operators_;
    struct placed_edge {
        std::uint32_t number = 0;
        edge_blocks const* blocks = nullptr;
        std::uint32_t carrier = 0;
    };
    std::vector<placed_edge> new_edges_, undo_edges_;
    std::vector<std::pair<std::uint32_t, class_blocks const*>> new_classes_, undo_classes_;
    std::vector<std::pair<std::uint32_t, path_bounds::edge_facts>> undo_facts_;
    std::vector<operator_blocks*> next_of_;                          ///< of operators that are being replaced
    std::vector<std::uint64_t> edge_seen_, class_seen_, group_seen_; ///< when each was met last
    std::vector<std::uint32_t> next_carrier_, first_alike_;          ///< of edges of groups that were met; room to find them
    std::uint64_t seen_ = 0;
    double total_before_ = 0;
    std::int64_t unfolded_before_ = 0;
    bool know_round_trips_ = false; ///< by `bounds_`, of the current strategy
    static constexpr std::uint32_t patience = 3;
    bool open_ = false;              ///< `propose` was answered, and not yet kept or dropped
    std::uint32_t since_commit_ = 0; ///< proposals that these might have ended
    change_bounds changed_;
    // For readers, and for what is scheduled whole:
    assembler assembler_;
    any_scheduler scheduler_;
    bool read_ = false;
    iteration_plan plan_;
    task_graph tasks_;
    sim::schedule schedule_;
    std::vector<memory_use> use_;
};

PARSEARCH_INLINE delta_simulator::delta_simulator(std::shared_ptr<workload const> w, delta_options const& options)
    : work_(std::move(w)), stop_(options.stop), body_(std::make_unique<body>(work_, options)) {}
PARSEARCH_INLINE delta_simulator::delta_simulator(delta_simulator const& other)
    : work_(other.work_), stop_(other.stop_), body_(std::make_unique<body>(*other.body_)) {}
PARSEARCH_INLINE delta_simulator& delta_simulator::operator=(delta_simulator const& other) {
    if (this != &other) *this = delta_simulator(other);
    return *this;
}
PARSEARCH_INLINE delta_simulator::delta_simulator(delta_simulator&&) noexcept = default;
PARSEARCH_INLINE delta_simulator& delta_simulator::operator=(delta_simulator&&) noexcept = default;
PARSEARCH_INLINE delta_simulator::~delta_simulator() = default;

PARSEARCH_INLINE picoseconds delta_simulator::reset_flat(space::flat_strategy const& s) { return body_->reset(s); }
PARSEARCH_INLINE picoseconds delta_simulator::cost(space::flat_strategy const& s) { return (*body_)(s); }
PARSEARCH_INLINE std::optional<picoseconds> delta_simulator::propose(std::span<change<space::configuration> const> changes, picoseconds bound) {
    return body_->propose(changes, bound);
}
PARSEARCH_INLINE std::optional<picoseconds> delta_simulator::propose(std::size_t op, space::configuration const& c, picoseconds bound) {
    return body_->propose(op, c, bound);
}
PARSEARCH_INLINE void delta_simulator::commit() { body_->commit(); }
PARSEARCH_INLINE void delta_simulator::roll_back() noexcept { body_->roll_back(); }

PARSEARCH_INLINE task_graph const& delta_simulator::tasks() { return body_->tasks(); }
PARSEARCH_INLINE schedule const& delta_simulator::schedule() { return body_->schedule(); }
PARSEARCH_INLINE std::vector<memory_use> const& delta_simulator::memory() { return body_->memory(); }
PARSEARCH_INLINE std::array<double, traffic_kinds> delta_simulator::traffic() { return body_->traffic(); }
PARSEARCH_INLINE iteration_plan const& delta_simulator::plan() { return body_->plan(); }
PARSEARCH_INLINE std::uint64_t delta_simulator::scheduled_tasks() const noexcept { return body_->scheduled_tasks(); }
PARSEARCH_INLINE picoseconds delta_simulator::simulate_whole() { return body_->simulate_whole(); }

} // namespace parsearch::sim
