#pragma once
/// What is to be measured: every distinct kernel that the configuration space of a problem can contain.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parsearch/core/error.hpp>
#include <parsearch/cost/profile.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/ops/shard.hpp>
#include <parsearch/sim/input/simulation_options.hpp>
#include <parsearch/sim/task/gradient_sync.hpp>
#include <parsearch/space/configuration.hpp>
#include <parsearch/space/operator_space.hpp>

namespace parsearch::profiler {

/// What of a space is listed.
struct work_limits {
    std::vector<std::int32_t> degrees{};          ///< that a dim may take; empty: all. Degree 1 is always taken
    std::array<bool, 3> passes{true, true, true}; ///< by `ops::pass`
    std::vector<std::string> operators{};         ///< kinds of operations; empty: all
};

/// Checks `limits`; throws `invalid_input` naming option, value and rule.
inline void validate(work_limits const& limits) {
    for (auto const d : limits.degrees)
        if (d < 1) throw invalid_input("degrees has ", d, ": must be at least 1");
    if (std::ranges::none_of(limits.passes, [](bool p) { return p; })) throw invalid_input("passes is empty: must name forward, backward or update");
}

/// A kernel to measure.
struct work_item {
    cost::kernel kernel;
    ops::shard_work work;    ///< a shard that runs it; `work.op` lives in the list
    std::int64_t shared = 0; ///< (operator, degrees) pairs that run it; updates: parts of weights on a device; `add_works`: works
    byte_count memory = 0;   ///< of the arrays that it cannot do without (tables are whole): it may need more, never less
};

/// The kernels of one or more problems, each once, in the order in which they were found. `work.op` of the items points into it: movable, not
/// copyable.
class work_list {
  public:
    work_list() = default;
    work_list(work_list const&) = delete;
    work_list& operator=(work_list const&) = delete;
    work_list(work_list&&) = default;
    work_list& operator=(work_list&&) = default;

    [[nodiscard]] std::vector<work_item> const& items() const noexcept { return items_; }
    [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }
    [[nodiscard]] bool contains(cost::kernel const& k) const { return numbers_.contains(k); }
    /// Classes of operators with common parameters of which not every amount of weights that a device may hold is listed: see `add_problem`.
    [[nodiscard]] std::size_t bracketed_updates() const noexcept { return bracketed_; }

    /// Adds the kernels of every strategy of graph `g` on `devices` devices whose configurations are in the space of `options`, and of the
    /// `configurations` (of operator `first`) that are not, such as those of experts; simulated with `simulation`.
    ///
    /// Forward and backward depend on degrees alone, and so does what a device holds of weights that no other operator has: these are complete.
    /// A device that runs several operators with common parameters holds the union of their parts, which depends on the whole strategy: of
    /// these the amounts of each member alone and that of all weights together are listed, between which every other lies (with
    /// parameter servers, which update parts of what they hold, it may lie below). No placement is walked.
    /// Complexity: O(distinct operators * combinations of degrees * operands), for weights times shards; the number of combinations grows with
    /// the number of divisors of the extents up to `devices`.
    /// Throws `invalid_input` where an option breaks a rule.
    void add_problem(graph::dense_graph const& g, std::size_t devices, space::space_options const& options, sim::simulation_options const& simulation,
                     work_limits const& limits = {}, std::span<std::pair<std::uint32_t, space::configuration> const> configurations = {}) {
        validate(limits);
        space::validate(options, devices);
        std::map<std::uint32_t, std::vector<space::configuration>> others;
        for (auto const& [op, c] : configurations) {
            space::validate(c, g.operations.at(op), devices, g.names[op]);
            others[op].push_back(c);
        }
        std::map<std::uint32_t, std::vector<std::uint32_t>> classes;
        for (std::uint32_t op = 0; op < g.size(); ++op)
            if (!g.operations[op].weights.empty()) classes[g.sharing[op]].push_back(op);
        std::map<std::string, std::vector<distinct>> known;
        for (std::uint32_t op = 0; op < g.size(); ++op) {
            auto const& operation = g.operations[op];
            if (operation.work == ops::work_class::view || operation.work == ops::work_class::source) continue;
            if (!limits.operators.empty() && std::ranges::find(limits.operators, operation.kind) == limits.operators.end()) continue;
            bool const trains = simulation.training && g.trains[op];
            // Equal operators have equal kernels.
            distinct d{.operation = nullptr, .gradients = g.input_gradients(op), .trains = trains};
            auto plain = without_names(operation);
            auto const others_of = others.find(op);
            auto& alike = known[cost::to_string(cost::kernel_of(whole_work(plain)))];
            auto const at = others_of != others.end() ? alike.end() : std::ranges::find_if(alike, [&](distinct const& o) {
                return o.gradients == d.gradients && o.trains == d.trains && *o.operation == plain;
            });
            if (at != alike.end()) {
                for (auto const n : at->items) ++items_[n].shared;
                continue;
            }
            d.operation = &operations_.emplace_back(std::move(plain));
            space::operator_space const space(operation, devices, options, g.names[op]);
            for (std::size_t n = 0; n < space.splits(); ++n) {
                auto const c = space[space.placements_of(n).first];
                if (allowed(c, limits)) add_degrees(d, c.degrees(), limits);
            }
            if (others_of != others.end())
                for (auto const& c : others_of->second)
                    if (space.split_of(c) == space.splits() && allowed(c, limits)) add_degrees(d, c.degrees(), limits);
            if (others_of == others.end()) alike.push_back(std::move(d));
        }
        if (simulation.training && limits.passes[static_cast<std::size_t>(ops::pass::update)]) {
            std::map<std::string, std::vector<updates>> seen;
            for (auto const& [root, members] : classes) add_updates(g, members, devices, options, simulation, limits, others, seen);
        }
    }

    /// Adds the kernels of `works`, such as those of `iteration_of`. Complexity: O(works * log size).
    void add_works(std::span<ops::shard_work const> works) {
        std::vector<std::size_t> numbers;
        for (auto const& work : works) add_stored(work, numbers);
    }

  private:
    struct distinct {
        ops::operation const* operation;
        std::uint64_t gradients;
        bool trains;
        std::vector<std::size_t> items{}; ///< numbers, one for each pair
    };
    /// What the updates of an operator whose parameters are its own add up to.
    struct updates {
        ops::operation operation;
        std::vector<std::size_t> items{};
    };

    /// Names of parameters are no matter of time; within the operation, equal ones must stay equal.
    [[nodiscard]] static ops::operation without_names(ops::operation op) {
        std::map<std::string, std::string> renamed;
        for (auto& w : op.weights)
            if (!w.parameter.empty()) w.parameter = renamed.try_emplace(w.parameter, text('p', renamed.size())).first->second;
        return op;
    }
    [[nodiscard]] static ops::shard_work whole_work(ops::operation const& op) {
        std::array<std::int32_t, ops::max_dims> ones{};
        ones.fill(1);
        return ops::work_of(op, {ones.data(), op.dims.size()}, ops::pass::forward);
    }
    [[nodiscard]] static bool allowed(space::configuration const& c, work_limits const& limits) {
        if (limits.degrees.empty()) return true;
        return std::ranges::all_of(c.degrees(),
                                   [&](std::int32_t d) { return d == 1 || std::ranges::find(limits.degrees, d) != limits.degrees.end(); });
    }

    void add_degrees(distinct& d, std::span<std::int32_t const> degrees, work_limits const& limits) {
        if (limits.passes[static_cast<std::size_t>(ops::pass::forward)]) add(ops::work_of(*d.operation, degrees, ops::pass::forward), d.items);
        if (d.trains && limits.passes[static_cast<std::size_t>(ops::pass::backward)])
            add(ops::work_of(*d.operation, degrees, ops::pass::backward, d.gradients), d.items);
    }

    void add(ops::shard_work const& work, std::vector<std::size_t>& numbers) {
        if (work.flops == 0 && work.bytes == 0) return; // takes no time, as `measured_table` has it
        auto k = cost::kernel_of(work);
        auto const [at, fresh] = numbers_.try_emplace(std::move(k), items_.size());
        if (fresh) items_.push_back({.kernel = at->first, .work = work, .shared = 0, .memory = memory_of(work)});
        ++items_[at->second].shared;
        numbers.push_back(at->second);
    }

    [[nodiscard]] static byte_count memory_of(ops::shard_work const& work) {
        // Run as a step of Adam: of 7 numbers that are moved, 3 are written where they were read.
        if (work.pass == ops::pass::update) return static_cast<byte_count>(work.bytes / 7) * 4;
        auto const b = ops::middle_shard(*work.op, {work.degrees.data(), work.op->dims.size()});
        byte_count sum = 0;
        auto const add = [&](ops::operand const& o) { sum += ops::shard_elements(o, b) * ops::size_of(o.type); };
        for (auto const& o : work.op->weights) add(o); // backward: their gradients
        // Of a part of a table only some rows are found, which the rest is made of.
        if (std::ranges::any_of(work.op->weights, [](ops::operand const& o) { return o.touched_bytes >= 0; })) return sum;
        for (auto const& o : work.op->outputs) add(o);
        for (std::size_t i = 0; i < work.op->inputs.size(); ++i)
            if (work.pass == ops::pass::forward || (work.op->inputs[i].differentiable && (i >= 64 || work.input_gradients >> i & 1)))
                add(work.op->inputs[i]);
        return sum;
    }

    void add_updates(graph::dense_graph const& g, std::vector<std::uint32_t> const& members, std::size_t devices, space::space_options const& options,
                     sim::simulation_options const& simulation, work_limits const& limits,
                     std::map<std::uint32_t, std::vector<space::configuration>> const& others, std::map<std::string, std::vector<updates>>& seen) {
        bool const alone = members.size() == 1;
        if (!alone) ++bracketed_;
        for (auto const op : members) {
            auto const& operation = g.operations[op];
            if (!limits.operators.empty() && std::ranges::find(limits.operators, operation.kind) == limits.operators.end()) continue;
            auto plain = without_names(operation);
            auto& alike = seen[cost::to_string(cost::kernel_of(whole_work(plain)))];
            auto const others_of = others.find(op);
            auto const at = others_of != others.end() ? alike.end() : std::ranges::find(alike, plain, &updates::operation);
            if (at != alike.end()) {
                for (auto const n : at->items) ++items_[n].shared;
                continue;
            }
            updates mine{.operation = std::move(plain), .items = {}};
            space::operator_space const space(operation, devices, options, g.names[op]);
            bool const served = simulation.synchronisation == sim::synchronisation::parameter_server;
            for (std::size_t n = 0; n < space.splits(); ++n) {
                auto const [first, last] = space.placements_of(n);
                auto const c = space[first];
                if (!allowed(c, limits)) continue;
                // Who serves follows from the order of a configuration's shards over the devices, which all placements of an order have in common.
                std::size_t orders = 1;
                if (served && options.all_orders)
                    for (std::size_t i = 2; i <= static_cast<std::size_t>(std::ranges::count_if(c.degrees(), [](auto d) { return d > 1; })); ++i)
                        orders *= i;
                auto const placements = (last - first) / orders;
                for (std::size_t o = 0; o < orders; ++o) add_held(g, op, o == 0 ? c : space[first + o * placements], simulation, mine.items);
            }
            if (others_of != others.end())
                for (auto const& c : others_of->second)
                    if (space.split_of(c) == space.splits() && allowed(c, limits)) add_held(g, op, c, simulation, mine.items);
            if (others_of == others.end()) alike.push_back(std::move(mine));
        }
        if (alone) return;
        // All weights of the class on one device: the most that it can hold.
        std::map<std::string_view, ops::operand const*> named;
        std::int64_t elements = 0;
        byte_count moved = 0;
        for (auto const op : members)
            for (auto const& w : g.operations[op].weights)
                if (w.parameter.empty() || named.try_emplace(w.parameter, &w).second) {
                    elements += ops::elements_of(w);
                    moved += 2 * ops::bytes_of(w) + ops::elements_of(w) * sim::gradient_size(simulation.gradients, w.type);
                }
        std::vector<std::size_t> numbers;
        add_update(g.operations[members.front()], elements, moved, simulation, numbers);
    }

    /// The updates of what each device holds where operator `op` alone has weights.
    void add_held(graph::dense_graph const& g, std::uint32_t op, space::configuration const& c, sim::simulation_options const& simulation,
                  std::vector<std::size_t>& numbers) {
        std::vector<std::uint32_t> devices;
        for (std::int64_t n = 0, shards = c.shards(); n < shards; ++n) devices.push_back(static_cast<std::uint32_t>(c.device(n)));
        std::array<std::uint32_t, 1> const members{op};
        auto const plan = sim::plan_sync(
            g, members, simulation, [&](std::uint32_t) { return c.degrees(); },
            [&](std::uint32_t) -> std::vector<std::uint32_t> const& { return devices; });
        std::set<std::pair<std::int64_t, byte_count>> distinct_amounts;
        for (auto const& h : plan.held) {
            auto elements = h.elements;
            auto moved = sim::update_traffic(h);
            if (simulation.synchronisation == sim::synchronisation::parameter_server)
                for (auto const number : h.groups)
                    if (auto const& group = plan.groups[number]; group.devices[number % group.devices.size()] != h.device) {
                        elements -= group.elements;
                        moved -= sim::update_traffic(group);
                    }
            if (elements > 0) distinct_amounts.emplace(elements, moved);
        }
        for (auto const& [elements, moved] : distinct_amounts) add_update(g.operations[op], elements, moved, simulation, numbers);
    }

    void add_update(ops::operation const& op, std::int64_t elements, byte_count moved, sim::simulation_options const& simulation,
                    std::vector<std::size_t>& numbers) {
        add_stored(sim::update_work(op, elements, moved, simulation.optimizer), numbers);
    }
    /// The graph of `work.op` need not live as long as the list.
    void add_stored(ops::shard_work const& work, std::vector<std::size_t>& numbers) {
        auto const before = items_.size();
        add(work, numbers);
        if (items_.size() > before) items_.back().work.op = &operations_.emplace_back(*work.op);
    }

    std::deque<ops::operation> operations_;
    std::vector<work_item> items_;
    std::map<cost::kernel, std::size_t> numbers_;
    std::size_t bracketed_ = 0;
};

} // namespace parsearch::profiler
