#pragma once
/// The best parallelization of one operator graph after another under an additive cost: what a search over graphs asks for each.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/problem/problem.hpp>
#include <parsearch/problem/surrogate_store.hpp>
#include <parsearch/rewrite/joint/graph_pricer_options.hpp>
#include <parsearch/rewrite/mapping/machine_grid.hpp>
#include <parsearch/search/additive/minimise.hpp>
#include <parsearch/sim/input/workload.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch::rewrite {

/// The price of a graph.
struct graph_price {
    picoseconds cost{};              ///< additive cost of `strategy`
    space::flat_strategy strategy{}; ///< a configuration per operator
    picoseconds lower_bound{};       ///< no choice among the candidates costs less, whatever memory it needs
    bool optimal = false;            ///< `cost` is the least among the candidates, whatever memory they need: `lower_bound == cost`
    byte_count memory = 0;           ///< on the fullest device, by the simulator's account; set where a limit is given
    bool fits = true;                ///< `memory` is within the limit
    friend bool operator==(graph_price const&, graph_price const&) = default;
};

/// What operators and edges cost under lists of configurations.
struct choice_costs : surrogate_tables {
    std::vector<std::vector<std::int64_t>> own; ///< picoseconds, by operator, by configuration: work and the counted synchronisation
};

/// Prices graphs on one topology with one oracle. The cost of a strategy is the sum of
/// - per operator: `operator_term::work` and what `counted_synchronisation` leaves of `operator_term::synchronisation`;
/// - per edge: how long its busiest link moves data (see `surrogate_terms`);
/// over the candidates of `space::likely_configurations`; those that put parts of a table far apart begin at another device for each table.
/// Operators that look tables up may also be whole where `space::table_parallel` puts them:
/// as they then run side by side, the share of their work counts that the fullest of these devices has of all tables' bytes, and of the time of
/// moving what they find that of the fullest node.
/// Tables of terms are remembered by exact content, so that a graph that differs from earlier ones in a few operators takes their tables and
/// the elimination. Answers depend on the graph and the options alone, never on what was priced before or is remembered.
class graph_pricer {
  public:
    /// Candidates are of the space that `limits` leave. Throws `invalid_input` on options out of range.
    graph_pricer(std::shared_ptr<sim::workload const> base, space::space_options limits, graph_pricer_options options = {});
    /// Of a problem of `make_problem`: its topology, oracle, options of simulation and of the space.
    explicit graph_pricer(parallelization const& problem, graph_pricer_options options = {})
        : graph_pricer(problem.workload(), problem.space().options(), std::move(options)) {}

    /// The least cost over the candidates and the first strategy found that has it. Optimal where the tables of elimination fit into
    /// `table_bytes`; else the best strategy that mini-buckets and branch and bound of `effort` find (data parallelism at worst), with the bound
    /// that they prove.
    /// With a memory limit: lambda times each operator's bytes on its fullest device is added to its term, in picoseconds per byte, and lambda
    /// raised sixteenfold until the strategy fits by the simulator's account (which knows more: shared tensors and weights, working buffers),
    /// then bisected; `cost` is without it. The answer is the cheapest of those that fit, data parallelism among them; where none does, the one that
    /// needs the least memory, and `fits` is false. It is optimal only where the cheapest strategy fits as it is; another that is cheaper and fits
    /// may be missed. Precondition: `g` is as `graph::read_graph` makes it. Throws what the oracle throws.
    [[nodiscard]] graph_price price(graph::dense_graph const& g) { return price(g, options_.synchronisation); }
    /// Counting synchronisation otherwise than the options say: strategies between which simulation can choose, at the price of an elimination each.
    [[nodiscard]] graph_price price(graph::dense_graph const& g, counted_synchronisation const& synchronisation);

    /// What operators and edges of `g` cost, by the same terms, where each operator may take the configurations of a list of its own, the first of
    /// which is data parallelism. Tables that are looked up cost what any operator does, wherever they are. Remembered as well. Precondition: `g` is
    /// as for `price`, and the configurations fit it. Throws `invalid_input` where there is not a list for each operator with at least one
    /// configuration, and what the oracle throws.
    [[nodiscard]] choice_costs costs(graph::dense_graph const& g, std::vector<surrogate_tables::choices> candidates,
                                     counted_synchronisation const& synchronisation);
    /// What is priced on.
    [[nodiscard]] sim::workload const& input() const noexcept { return *base_; }

    /// Bytes of tables and contents remembered, about, and how many tables were made so far.
    [[nodiscard]] std::uint64_t remembered() const noexcept { return store_.bytes(); }
    [[nodiscard]] std::uint64_t tables_made() const noexcept { return store_.made(); }
    [[nodiscard]] graph_pricer_options const& options() const noexcept { return options_; }
    [[nodiscard]] space::space_options const& space() const noexcept { return space_; }

  private:
    using pricing_type = surrogate_terms::pricing_type;
    static constexpr double first_lambda = 1.0 / 1024, last_lambda = 1 << 20; ///< picoseconds per byte: 1 ms and 1e6 s per GB
    static constexpr int bisections = 12;

    /// The tables of `g` over `candidates`, of operators numbered `contents`.
    [[nodiscard]] surrogate_tables tables_of(graph::dense_graph const& g, std::vector<std::uint64_t> const& contents,
                                             std::vector<surrogate_tables::choices> candidates);

    /// Sets what operators cost: the part `share(op, n)` of the work of the n-th configuration, and what counts of synchronisation.
    template <class Share>
    static void count_synchronisation(graph::dense_graph const& g, choice_costs& out, counted_synchronisation const& synchronisation,
                                      Share const& share) {
        double all = 0, before = 0; // work under data parallelism
        for (auto const& table : out.operators) all += static_cast<double>(table->front().work.count());
        out.own.resize(g.size());
        for (auto const op : g.order) {
            auto& own = out.own[op];
            double const volatile end = synchronisation.first * all; // volatile: rounded before it is compared
            double const counted = before < end ? 1 : synchronisation.share;
            before += static_cast<double>(out.operators[op]->front().work.count());
            for (std::size_t n = 0; n < out.operators[op]->size(); ++n) {
                auto const& term = (*out.operators[op])[n];
                double const part = share(op, n);
                // volatile: rounded before it is added
                double const volatile work = part < 1 ? part * static_cast<double>(term.work.count()) : 0;
                double const volatile sync = counted * static_cast<double>(term.synchronisation.count());
                own.push_back(saturating_sum(part < 1 ? whole(work) : term.work.count(), whole(sync)));
            }
        }
    }

    [[nodiscard]] choice_costs read(graph::dense_graph const& g, counted_synchronisation const& synchronisation);

    /// Where tables that are looked up are to be whole, and the shares of their bytes that the fullest device and node have.
    struct lookups {
        space::flat_strategy placed{}; ///< empty: there are none
        std::vector<bool> is{};
        double share = 1, share_of_node = 1;
        lookups(graph::dense_graph const& g, topology::dense_topology const& t);
        [[nodiscard]] bool has(std::uint32_t op) const noexcept { return is[op]; }
    };

    [[nodiscard]] std::vector<surrogate_tables::choices> candidates_of(graph::dense_graph const& g, std::vector<std::uint64_t> const& contents,
                                                                       lookups const& looked_up);

    /// Shards are `step` devices apart.
    static bool apart(space::configuration const& c, std::int64_t step) noexcept {
        return c.listed.empty() && c.start == 0 && c.shards() > 1 && std::find(c.stride.begin(), c.stride.end(), step) != c.stride.end() &&
               std::count(c.stride.begin(), c.stride.end(), 0) == static_cast<std::ptrdiff_t>(c.stride.size()) - 1;
    }
    static std::int64_t whole(double x) noexcept { return x < 9e18 ? static_cast<std::int64_t>(x) : std::int64_t{9'000'000'000'000'000'000}; }

    [[nodiscard]] static picoseconds cost_of(choice_costs const& t, std::vector<std::uint32_t> const& choices) noexcept;

    /// The least with `lambda`; `cost` is without it. Without it, a bound.
    [[nodiscard]] graph_price solve(choice_costs const& t, double lambda) const;

    std::shared_ptr<sim::workload const> base_;
    space::space_options space_;
    graph_pricer_options options_;
    std::size_t per_node_ = 1;
    surrogate_store store_;
    std::optional<pricing_type> price_; ///< remembers groups of devices; holds a reference to the base's topology
};

} // namespace parsearch::rewrite

#ifndef PARSEARCH_COMPILED
#include <parsearch/rewrite/joint/graph_pricer.ipp>
#endif
