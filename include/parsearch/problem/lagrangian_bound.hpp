#pragma once
/// A lower bound on the strategies of a problem that weighs resources against paths: Lagrangian relaxation.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/ops/operation.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/search/additive/cost_network.hpp>
#include <parsearch/sim/bounds/choice_tables.hpp>
#include <parsearch/sim/input/workload.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch {

/// Options of `lagrangian_bound`.
struct lagrangian_options {
    std::uint64_t rounds = 64; ///< in which weights are improved, at least 1; fewer once 16 have gained less than a thousandth
    /// Pairs of configurations that are tabulated, over all edges that differ; over all edges there may be eight times as many. Edges beyond are left
    /// out: the bound is weaker and still holds.
    std::uint64_t pairs = std::uint64_t{1} << 21;
};

/// Throws `invalid_input` naming the option, its value and the rule.
void validate(lagrangian_options const& o);

namespace detail {

/// What the configurations at the ends of an edge make of it, by pair, those of the producer first.
struct edge_terms {
    std::vector<std::int64_t> there; ///< from the first end of a producer's shard to that of a consumer's; empty: some shard does not wait
    std::vector<std::int64_t> back;  ///< the same of gradients, from the consumer's backward shards to the producer's
    std::vector<std::int64_t> links; ///< work of the links of each kind
};

/// What the configurations of an operator make of it.
struct operator_terms {
    std::vector<std::int64_t> forward, backward; ///< of the fastest shard
    std::vector<std::int64_t> tail;              ///< from the end of any backward shard to the makespan
    std::vector<std::int64_t> work;              ///< of the resources of each kind, by configuration
};

/// Weights of an operator's or an edge's part in paths.
struct operator_share {
    std::int64_t begins = 0, turns = 0, ends = 0;
};
struct edge_share {
    std::int64_t there = 0, back = 0;
};

/// A path of dependences: forward along edges from operator `begin`, and where it `returns` back along edges from `turn` on, to the end of the
/// iteration behind operator `end`.
struct dependence_path {
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    std::int64_t length = 0;
    std::uint32_t begin = none, turn = none, end = none; ///< none: there is no path
    bool returns = false;
    std::vector<std::uint32_t> there{}, back{}; ///< edges
};

/// See `lagrangian_bound`.
class lagrangian {
  public:
    lagrangian(parallelization const& problem, lagrangian_options const& options)
        : stop_(problem.stop()), work_(problem.workload()), options_(options), tables_(work_, problem.space(), limits()) {
        if (!tables_.known()) return;
        find_kinds();
        add_operators();
        add_edges(problem.space());
    }

    [[nodiscard]] picoseconds best();

    /// By operator the number of its configuration.
    using strategy = std::vector<std::uint32_t>;
    [[nodiscard]] bool known() const noexcept { return tables_.known(); }
    /// The kind of each resource: of devices, then links.
    [[nodiscard]] std::vector<std::uint32_t> const& kinds() const noexcept { return kind_; }
    /// The longest path under `s`.
    [[nodiscard]] dependence_path longest_path(strategy const& s) const;
    /// What a resource of each kind works under `s` in the mean, in picoseconds, and last the length of `longest`: none is above the makespan.
    [[nodiscard]] std::vector<double> takes(strategy const& s, dependence_path const& longest) const;

  private:
    /// Longer amounts count as this, which keeps sums of them in 64 bits.
    static constexpr std::int64_t most_amount = std::int64_t{1} << 48;
    static constexpr auto none = dependence_path::none;

    [[nodiscard]] sim::table_limits limits() const { return {.pairs = 0, .delays = 0, .stop = stop_}; }
    [[nodiscard]] graph::dense_graph const& graph() const noexcept { return work_->graph; }
    [[nodiscard]] bool is_source(std::size_t op) const noexcept { return graph().operations[op].work == ops::work_class::source; }
    [[nodiscard]] bool returns(std::size_t op) const noexcept { return work_->options.training && graph().trains[op] && !is_source(op); }
    [[nodiscard]] std::size_t choices(std::size_t op) const noexcept { return tables_.choices(op).size(); }
    [[nodiscard]] std::size_t pair(graph::edge const& e, strategy const& s) const noexcept {
        return s[e.producer] * choices(e.consumer) + s[e.consumer];
    }

    /// Devices of a kind, and links of equal rate and latency, get equal weights.
    void find_kinds();
    void add_operators();
    void add_edges(space::strategy_space const& space);
    [[nodiscard]] edge_terms terms_of(std::uint32_t e);

    /// The weighted mean under each strategy, as a sum.
    [[nodiscard]] search::additive::cost_tables<picoseconds> mean() const;
    /// A strategy of the least mean, or nearly; raises the bound to what no strategy is below.
    [[nodiscard]] strategy minimise();
    /// Gives more weight to what takes longest under `s`. False where nothing does.
    bool reweigh(strategy const& s, std::uint64_t round);
    /// It takes its part of the weight of paths.
    void add(dependence_path const& p);

    std::stop_token stop_;
    std::shared_ptr<sim::workload const> work_;
    lagrangian_options options_;
    sim::choice_tables tables_;

    std::vector<std::uint32_t> kind_; ///< of each resource: devices, then links
    std::vector<std::int64_t> count_; ///< of the resources of each kind
    std::vector<operator_terms> operators_;
    std::vector<std::shared_ptr<edge_terms const>> edges_; ///< null: left out
    std::vector<bool> moves_;                              ///< edges that are sure to move their own data

    std::vector<double> mix_;           ///< of each kind, last of paths: the weights, which add up to 1
    std::uint64_t paths_ = 0;           ///< of which there is the mean in
    std::vector<operator_share> stops_; ///< of each operator
    std::vector<edge_share> steps_;     ///< of each edge
    std::int64_t bound_ = 0;
};

} // namespace detail

/// No strategy of the space of `problem` costs less. 0 where the space has more than 2^18 configurations, or the problem's stop token
/// (`parallelization::until`) is requested while tables are made; later the best bound until then is the answer.
///
/// A makespan is at least the mean work of the devices of a kind, that of the links of a kind, and the length of any path of dependences: so it is at
/// least any weighted mean of these. Under fixed weights the least mean over all strategies is that of a sum of terms of one operator and of two
/// neighbours, which `search::additive::minimise` finds exactly. Neither alone says much: what is spread over all devices has little work on each but
/// sends much, what stays together has long paths. Weights are improved from round to round: what takes longest in the strategy found gets more
/// (Held, Karp, Math. Programming 1, 1971; Geoffrion, Math. Programming Study 2, 1974; the weights of paths are a mean of the longest ones found, as
/// of Brown's fictitious play, 1951).
///
/// - A path runs forward from operator to operator, turns at one, and runs back; it ends with the synchronisation and update of a weight. Each step
///   is as long as the fastest shard takes with the slowest message that it waits for.
/// - Work of a device: shards forward and backward, and updates of weights that one operator has, or two with few configurations.
/// - Work of a link: messages, sums of partial results, and the synchronisation of weights that one operator has.
/// - Memory, and the weights that more operators share, are left out. Holds for both disciplines, every movement and synchronisation.
///
/// The same on every platform. Complexity: a plan for each pair of configurations of each edge that differs, and per round the minimisation of an
/// additive cost. Throws `invalid_input` on options out of range, and what the oracle throws.
[[nodiscard]] picoseconds lagrangian_bound(parallelization const& problem, lagrangian_options const& options = {});

} // namespace parsearch

#ifndef PARSEARCH_COMPILED
#include <parsearch/problem/lagrangian_bound.ipp>
#endif
