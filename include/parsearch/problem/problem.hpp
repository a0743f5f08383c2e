#pragma once
/// `make_problem`: an operator graph, a device topology and a cost oracle become a search problem.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <parsearch/concepts/device_topology.hpp>
#include <parsearch/concepts/near_miss.hpp>
#include <parsearch/concepts/operator_graph.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/handle_text.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/problem/constraints.hpp>
#include <parsearch/problem/surrogate.hpp>
#include <parsearch/search/kernel/moves.hpp>
#include <parsearch/sim/delta_simulator.hpp>
#include <parsearch/sim/memory/memory_penalty.hpp>
#include <parsearch/sim/memory/strategy_memory.hpp>
#include <parsearch/sim/report.hpp>
#include <parsearch/sim/simulator.hpp>
#include <parsearch/space/coarsening.hpp>
#include <parsearch/space/propagate.hpp>
#include <parsearch/space/repeat.hpp>
#include <parsearch/space/replicated_operators.hpp>
#include <parsearch/space/strategy_space.hpp>
#include <parsearch/space/textbook/textbook_strategies.hpp>
#include <parsearch/topology/dense_topology.hpp>

namespace parsearch {

/// What is searched and how it is simulated.
struct problem_options {
    space::space_options space{};
    sim::simulation_options simulation{};
};

/// A `SearchProblem`: the strategies of a graph on a topology, priced by simulation. Self-contained and cheap to copy: it keeps
/// what it read of graph and topology, and a copy of the oracle.
class parallelization {
  public:
    parallelization(std::shared_ptr<sim::workload const> w, space::space_options const& options)
        : work_(std::move(w)), space_(work_->graph, work_->topology.size(), options) {}
    /// With the operator spaces of `like` for operators with equal dims: see `with_graph`.
    parallelization(std::shared_ptr<sim::workload const> w, parallelization const& like)
        : work_(std::move(w)), space_(work_->graph, like.space()), stop_(like.stop_) {}

    [[nodiscard]] space::strategy_space const& space() const noexcept { return space_; }
    [[nodiscard]] sim::delta_simulator evaluator() const { return sim::delta_simulator(work_, {.stop = stop_}); }
    /// The same problem, whose evaluators, simulators, bounds and surrogates throw `interrupted` once `stop` is requested: so one evaluation that
    /// takes long ends, too. Searches answer the best so far then.
    [[nodiscard]] parallelization until(std::stop_token stop) const {
        auto out = *this;
        out.stop_ = std::move(stop);
        return out;
    }
    /// See `until`.
    [[nodiscard]] std::stop_token const& stop() const noexcept { return stop_; }
    /// The same problem, whose operators may be on any devices: without `space_options::admits`.
    [[nodiscard]] parallelization anywhere() const {
        auto out = *this;
        out.space_ = space_.anywhere();
        return out;
    }
    /// Whether every device can hold what strategy `s` needs of it, or memory is ignored.
    template <Strategy<space::configuration> S> [[nodiscard]] bool feasible(S const& s) const {
        if (options().memory == sim::memory_policy::ignore) return true;
        auto const& flat = space::flat(s, size());
        return sim::bytes_over_capacity(sim::memory_by_device(graph(), work_->classes, topology().size(), options(), flat), topology().devices) == 0;
    }
    /// The full simulation, for timelines and reports. It gives the evaluator's costs.
    [[nodiscard]] sim::simulator simulator() const { return sim::simulator(work_, stop_); }
    /// Whether `s` has no operator that the space's `allows` and `admits` refuse.
    template <Strategy<space::configuration> S> [[nodiscard]] bool keeps_constraints(S const& s) const {
        return !space::first_not_allowed(space_.options(), graph(), s);
    }
    /// Gives each operator of `s` that they refuse the nearest of its space; answers how many: see `ProjectsStarts`. Throws as `space::validate`
    /// where there are constraints.
    template <Strategy<space::configuration> S> std::uint64_t project(S& s) const {
        auto const& o = space_.options();
        std::uint64_t changed = 0;
        for (std::size_t op = 0; (o.allows || o.admits) && op < size(); ++op) {
            auto const& operation = graph().operations[op];
            if (operation.work == ops::work_class::source) continue;
            space::validate(configuration_of(s, op), operation, topology().size(), graph().names[op]);
            if (space::keeps(o, graph().names[op], operation, configuration_of(s, op))) continue;
            set_configuration(s, op, space_.of(op).nearest(configuration_of(s, op)));
            ++changed;
        }
        return changed;
    }
    /// Uniform configurations of one operator and of all its repeats, and FlexFlow's propagation.
    [[nodiscard]] std::tuple<search::uniform_move, space::propagate_move, space::repeat_move> moves() const {
        return std::tuple{search::uniform_move{0.5}, space::propagate_move{work_->graph}, space::repeat_move{work_->graph}};
    }

    /// An additive problem over some of the configurations whose costs resemble the simulated ones, for `search::dominator_dp`. Made anew.
    [[nodiscard]] additive_surrogate surrogate(surrogate_options const& options = {}) const { return {work_, space_, options, stop_}; }
    [[nodiscard]] additive_surrogate surrogate(std::uint64_t candidates, std::optional<std::chrono::steady_clock::time_point> end = {}) const {
        return surrogate(surrogate_options{.candidates = static_cast<std::size_t>(candidates), .end = end});
    }
    /// About as many evaluations of strategies like `s` as take the time of making `surrogate(candidates)`.
    template <Strategy<space::configuration> S> [[nodiscard]] std::uint64_t surrogate_evaluations(std::uint64_t candidates, S const& s) const {
        std::uint64_t shards = 0;
        for (std::size_t op = 0; op < size(); ++op) shards += static_cast<std::uint64_t>(configuration_of(s, op).shards());
        return additive_surrogate::evaluations_to_make(*work_, candidates, shards);
    }
    /// The operators in topological order, for searches that visit them one by one.
    [[nodiscard]] std::vector<std::uint32_t> const& order() const noexcept { return work_->graph.order; }
    /// Groups of operators that change together, for searches that begin with few decisions. Made anew; refers to this problem.
    [[nodiscard]] space::coarsening coarsening() const { return {work_->graph, space_}; }
    /// Strategies of the space to start a search from, with and without their names: those of experts, or what the space has nearest to them, each
    /// once. See `expert_starts`.
    [[nodiscard]] std::vector<space::named_strategy> named_starts() const;
    [[nodiscard]] std::vector<space::flat_strategy> starts() const {
        std::vector<space::flat_strategy> out;
        for (auto& start : named_starts()) out.push_back(std::move(start.strategy));
        return out;
    }

    /// The number of operators.
    [[nodiscard]] std::size_t size() const noexcept { return work_->graph.size(); }
    /// Of each operator the first that it is tied to, itself where it is that; empty where the problem says nothing: see `tied_parallelization`.
    [[nodiscard]] std::vector<std::uint32_t> const& ties() const noexcept { return ties_; }
    void tie(std::vector<std::uint32_t> first) { ties_ = std::move(first); }
    [[nodiscard]] graph::dense_graph const& graph() const noexcept { return work_->graph; }
    [[nodiscard]] topology::dense_topology const& topology() const noexcept { return work_->topology; }
    [[nodiscard]] sim::simulation_options const& options() const noexcept { return work_->options; }
    /// What is simulated: graph, topology, oracle and options in one.
    [[nodiscard]] std::shared_ptr<sim::workload const> const& workload() const noexcept { return work_; }

  private:
    std::shared_ptr<sim::workload const> work_;
    space::strategy_space space_;
    std::stop_token stop_;
    std::vector<std::uint32_t> ties_;
};

/// A `parallelization` that knows the caller's handles: what `make_problem` answers.
template <class Operator, class Device> class parallelization_of : public parallelization {
  public:
    /// `given`: the options of the space without what constraints say, for `with_topology`.
    parallelization_of(parallelization problem, std::shared_ptr<std::vector<Operator> const> operator_handles,
                       std::shared_ptr<std::vector<Device> const> device_handles, std::shared_ptr<space::space_options const> given)
        : parallelization(std::move(problem)), operators_(std::move(operator_handles)), devices_(std::move(device_handles)),
          given_(std::move(given)) {}

    /// See `parallelization::until`; handles stay.
    [[nodiscard]] parallelization_of until(std::stop_token stop) const { return {parallelization::until(std::move(stop)), *this}; }
    /// See `parallelization::anywhere`; handles stay.
    [[nodiscard]] parallelization_of anywhere() const { return {parallelization::anywhere(), *this}; }

    /// The handle in the caller's graph of operator number `op`.
    [[nodiscard]] Operator const& handle(std::size_t op) const { return operators_->at(op); }
    /// The number of the operator with this handle; nothing where there is none. Linear.
    [[nodiscard]] std::optional<std::size_t> number_of(Operator const& handle) const {
        auto const at = std::ranges::find(*operators_, handle);
        return at == operators_->end() ? std::nullopt : std::optional(static_cast<std::size_t>(at - operators_->begin()));
    }
    /// The handle in the caller's topology of device number `d`, as configurations and messages count devices: those that may be used.
    [[nodiscard]] Device const& device(std::size_t d) const { return devices_->at(d); }
    /// The number of the device with this handle. Throws `invalid_input`, with the handle, where it is none of those that may be used. Linear.
    [[nodiscard]] std::size_t number_of_device(Device const& handle) const {
        auto const at = std::ranges::find(*devices_, handle);
        if (at == devices_->end())
            throw invalid_input("number_of_device: a device", said_of_handle(handle), " that is none of the ", devices_->size(), " of the problem");
        return static_cast<std::size_t>(at - devices_->begin());
    }
    [[nodiscard]] std::shared_ptr<std::vector<Operator> const> const& operator_handles() const noexcept { return operators_; }
    [[nodiscard]] std::shared_ptr<std::vector<Device> const> const& device_handles() const noexcept { return devices_; }
    /// The options of its space without what constraints say.
    [[nodiscard]] std::shared_ptr<space::space_options const> const& given_options() const noexcept { return given_; }

  private:
    parallelization_of(parallelization problem, parallelization_of const& like)
        : parallelization_of(std::move(problem), like.operators_, like.devices_, like.given_) {}

    std::shared_ptr<std::vector<Operator> const> operators_;
    std::shared_ptr<std::vector<Device> const> devices_;
    std::shared_ptr<space::space_options const> given_;
};

/// An `OperatorGraph` of which `ops::describe(description(g, op))` makes an `ops::operation`: what simulation needs of a graph.
template <class G>
concept DescribesOperations = OperatorGraph<G> && ops::Describable<operator_description_t<G>>;

/// A `CostOracle` of shards on the devices of `T`: what simulation needs of an oracle.
template <class Oracle, class T>
concept TimesShardsOn = CostOracle<Oracle, ops::shard_work, device_handle_t<T>>;

namespace detail {
/// The operators of `graph`, already with the dims of copies and partial sums, on `topology`.
template <class Operator, DeviceTopology T, class Oracle>
[[nodiscard]] parallelization_of<Operator, device_handle_t<T>>
problem_on(T const& topology, Oracle oracle, graph::dense_graph graph, std::shared_ptr<std::vector<Operator> const> handles,
           std::shared_ptr<space::space_options const> given, sim::simulation_options const& options,
           constraints<Operator, device_handle_t<T>> const& constraints) {
    near_miss::refuse_in_topology<T, device_handle_t<T>>();
    near_miss::refuse_in_oracle<Oracle>();
    auto t = topology::read_topology(topology);
    sim::validate(options);
    // An oracle made for certain devices (a roofline, a measured table) says so.
    if constexpr (requires { oracle.require_devices(t.topology.devices); }) oracle.require_devices(t.topology.devices);
    constraints.apply_to(t);
    for (auto& d : t.topology.devices) d.memory = sim::usable_memory(d.memory, options);
    auto device_handles = std::make_shared<std::vector<device_handle_t<T>> const>(t.devices);
    auto w = sim::make_balanced_workload(std::move(graph), std::move(t.topology), cost::any_oracle(std::move(oracle), std::move(t.devices)), options);
    parallelization made(w, constraints.applied_to(*given, w->graph, *handles));
    constraints.require_ties(made.space(), w->graph, *handles);
    made.tie(constraints.ties(w->graph, *handles));
    return {std::move(made), std::move(handles), std::move(device_handles), std::move(given)};
}
} // namespace detail

/// Reads graph and topology once, checks them, and makes the problem; its graph has the dims of copies and partial sums that `options.space` allows.
/// Its devices have the memory that plans may use (`memory_kept_free`). Throws `invalid_input` as `graph::read_graph`, `topology::read_topology`,
/// `sim::validate` and `space::strategy_space` do, and on a constraint that names what is not there.
template <DescribesOperations G, DeviceTopology T, TimesShardsOn<T> Oracle>
[[nodiscard]] parallelization_of<operator_handle_t<G>, device_handle_t<T>>
make_problem(G const& graph, T const& topology, Oracle oracle, problem_options const& options = {}, constraints_of<G, T> const& constraints = {}) {
    auto g = graph::read_graph(graph);
    auto handles = std::make_shared<std::vector<operator_handle_t<G>> const>(std::move(g.handles));
    return detail::problem_on<operator_handle_t<G>>(topology, std::move(oracle), space::with_replicas(std::move(g.graph), options.space),
                                                    std::move(handles), std::make_shared<space::space_options const>(options.space),
                                                    options.simulation, constraints);
}

/// The operators of `problem` on another topology, after devices have failed, come or been numbered anew, without reading the graph again: what
/// `make_problem` makes of them under the options of `problem`, and throws. `oracle` and `constraints` are of the other devices; none of the
/// constraints of `problem` holds unless it is said again; its stop token does (see `until`).
///
///     auto const bigger = with_topology(problem, other_cluster, roofline(other_cluster), wanted);
///     auto const start = adapted(problem, plan, bigger, [](my_gpu d) { return d.serial_number; }).strategy; // what a device is called there
template <class Operator, class Device, DeviceTopology T, TimesShardsOn<T> Oracle>
[[nodiscard]] parallelization_of<Operator, device_handle_t<T>>
with_topology(parallelization_of<Operator, Device> const& problem, T const& topology, Oracle oracle,
              constraints<std::type_identity_t<Operator>, device_handle_t<T>> const& constraints = {}) {
    return detail::problem_on<Operator>(topology, std::move(oracle), problem.graph(), problem.operator_handles(), problem.given_options(),
                                        problem.options(), constraints)
        .until(problem.stop());
}

namespace detail {
inline parallelization with_dense_graph(parallelization const& problem, graph::dense_graph graph) {
    auto const& like = *problem.workload();
    return {sim::make_balanced_workload(space::with_replicas(std::move(graph), problem.space().options()), like.topology, like.oracle, like.options),
            problem};
}
} // namespace detail

/// The problem of `graph` on the topology, with the oracle and the options of `problem`: what `make_problem` makes of them, and throws, without
/// reading and checking the topology again; operators with equal dims have the operator spaces of `problem`. A `graph::dense_graph` will do.
/// Complexity: linear in graph and topology, which is copied.
template <DescribesOperations G> [[nodiscard]] parallelization with_graph(parallelization const& problem, G const& graph) {
    return detail::with_dense_graph(problem, graph::read_graph(graph).graph);
}
/// The same, with the handles of `graph`.
template <DescribesOperations G, class Operator, class Device>
[[nodiscard]] parallelization_of<operator_handle_t<G>, Device> with_graph(parallelization_of<Operator, Device> const& problem, G const& graph) {
    auto g = graph::read_graph(graph);
    return {detail::with_dense_graph(problem, std::move(g.graph)), std::make_shared<std::vector<operator_handle_t<G>> const>(std::move(g.handles)),
            problem.device_handles(), problem.given_options()};
}

/// Simulates strategy `s` of `p`: timeline, utilisation, critical path, traffic and memory.
template <Strategy<space::configuration> S> [[nodiscard]] sim::report simulate(parallelization const& p, S const& s) {
    auto simulator = p.simulator();
    return sim::make_report(simulator, s);
}

/// A line for each operator of `p` with tasks: its name and its configuration under `s` ("fc1: s4 o2 @0+2,1").
template <Strategy<space::configuration> S> [[nodiscard]] std::string to_string(parallelization const& p, S const& s) {
    std::string out;
    for (std::size_t op = 0; op < p.size(); ++op)
        if (auto const& operation = p.graph().operations[op]; operation.work != ops::work_class::source)
            out += text(p.graph().names[op], ": ", space::to_string(configuration_of(s, op), operation), '\n');
    return out;
}

/// Expert strategies of a problem: see space/textbook/textbook_strategies.hpp.
[[nodiscard]] inline space::flat_strategy data_parallel(parallelization const& p) {
    return space::data_parallel(p.graph(), p.topology().size(), p.space().options().uneven);
}
/// On `count` neighbouring devices alone, from number `first`. Throws `invalid_input` where `count` is 0 or there are not as many.
[[nodiscard]] space::flat_strategy data_parallel(parallelization const& p, std::size_t count, std::size_t first = 0);
[[nodiscard]] inline space::flat_strategy one_weird_trick(parallelization const& p) {
    return space::one_weird_trick(p.graph(), p.topology().size(), p.space().options().uneven);
}
/// Layers over the devices of a node; throws `invalid_input` where nodes differ in size or their devices are not consecutive.
[[nodiscard]] space::flat_strategy operation_parallel(parallelization const& p);
[[nodiscard]] inline space::flat_strategy tensor_parallel(parallelization const& p, std::size_t degree) {
    return space::tensor_parallel(p.graph(), p.topology().size(), degree, p.space().options().uneven);
}
/// Positions of sequences over `degree` neighbouring devices; over `heads` of them heads in their place in attention.
[[nodiscard]] inline space::flat_strategy context_parallel(parallelization const& p, std::size_t degree, std::size_t heads = 1) {
    return space::context_parallel(p.graph(), p.topology().size(), degree, 1, heads, p.space().options().uneven);
}
/// Experts over `degree` neighbouring devices, or over all of them.
[[nodiscard]] inline space::flat_strategy expert_parallel(parallelization const& p, std::size_t degree) {
    return space::expert_parallel(p.graph(), p.topology().size(), degree, p.space().options().uneven);
}
[[nodiscard]] inline space::flat_strategy expert_parallel(parallelization const& p) { return expert_parallel(p, p.topology().size()); }
/// Tensor, context and expert parallelism together, on the first `group` devices: see `space::split_among_neighbours`.
[[nodiscard]] inline space::flat_strategy split_among_neighbours(parallelization const& p, std::size_t group, space::neighbour_split by) {
    return space::split_among_neighbours(p.graph(), group, by, p.space().options().uneven);
}
[[nodiscard]] inline space::flat_strategy table_parallel(parallelization const& p) {
    return space::table_parallel(p.graph(), p.topology().size(), p.space().options().uneven);
}
/// Branches of the network on groups of `group` devices, the rest on all.
[[nodiscard]] inline space::flat_strategy branch_parallel(parallelization const& p, std::size_t group) {
    return space::branch_parallel(p.graph(), p.topology().size(), group, p.topology().size(), p.space().options().uneven);
}
/// The rest on the first `rest` devices.
[[nodiscard]] inline space::flat_strategy branch_parallel(parallelization const& p, std::size_t group, std::size_t rest) {
    return space::branch_parallel(p.graph(), p.topology().size(), group, rest, p.space().options().uneven);
}
/// Tables by columns; what is made of them, or `everywhere` all, by features over `degree` neighbours.
[[nodiscard]] inline space::flat_strategy column_wise_tables(parallelization const& p, std::size_t degree = 1, bool everywhere = false) {
    return space::column_wise_tables(p.graph(), p.topology().size(), degree, everywhere, p.space().options().uneven);
}

/// The experts' strategies that apply to `p`, by name, data parallelism first; one that equals an earlier one is left out:
/// data_parallel, one_weird_trick, operation_parallel where nodes allow it, tensor_parallel_D for every D that divides the devices into groups of
/// neighbours on one node, expert_parallel over all devices and expert_parallel_D over the D of a node, table_parallel. Where tables hold most
/// parameters column_wise_tables_D for D = 1, 2, 4, ... up to the devices of a node, column_wise_tables_D_everywhere for those of one and two nodes,
/// and column_wise_tables_D_on_N on the N devices of one node alone. Where large branches run beside each other branch_parallel_G on groups of G = 1,
/// 2, 4, ... devices, and branch_parallel_G_on_G, of at most a node, with the rest on the first G. Then fewer devices, which is what a network on
/// slow links may come to: data_parallel_on_N, the first N = 1, 2, 4, ..., and data_parallel_on_N_from_D, of each kind of several the most
/// neighbours, N, from a device D that is a multiple of N. All are legal on the devices of `p`; they need neither be in its space nor fit its memory.
/// Complexity: O(operators) for each.
[[nodiscard]] std::vector<space::named_strategy> expert_starts(parallelization const& p);
inline std::vector<space::named_strategy> parallelization::named_starts() const {
    std::vector<space::named_strategy> out;
    for (auto& expert : expert_starts(*this)) {
        expert.strategy = space_.nearest(std::move(expert.strategy));
        if (std::ranges::find(out, expert.strategy, &space::named_strategy::strategy) == out.end()) out.push_back(std::move(expert));
    }
    return out;
}

} // namespace parsearch

#ifndef PARSEARCH_COMPILED
#include <parsearch/problem/problem.ipp>
#endif
