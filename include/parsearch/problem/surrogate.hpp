#pragma once
/// An additive cost that resembles the simulated one: what exact search minimises in its place.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include <parsearch/concepts/additive_evaluator.hpp>
#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/compiled.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/sim/input/workload.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch {

class surrogate_terms;

/// What limits an additive surrogate.
struct surrogate_options {
    std::size_t candidates = 64;                                ///< configurations per operator, at least 1; those of experts are beside them
    std::optional<std::chrono::steady_clock::time_point> end{}; ///< once it has come, making the tables throws `interrupted`
};

/// A `SearchProblem` whose evaluator is additive, over some of the configurations of a parallelization. In picoseconds:
/// - an operator's term is what its busiest device computes, forward, backward and updates, plus, where it shares its weights with no other,
///   how long the busiest link synchronises them, and the reduction of partial sums that nobody reads;
/// - an edge's term is how long its busiest link moves data, there and, in training, back.
/// Left out: that parts run at the same time or compete, the weights that operators share, memory.
/// Candidates of an operator: at most `surrogate_options::candidates` of its space, and what data_parallel, one_weird_trick and
/// tensor_parallel of each power of two give it, or what the space has nearest to that. Tables are made once, equal ones once for all repeats; copies
/// share them.
class additive_surrogate {
  public:
    using candidates_type = std::vector<std::vector<space::configuration>>;

    /// Throws `invalid_input` where there is to be no candidate, what the oracle throws, and `interrupted` once `stop` is requested or
    /// `options.end` has come.
    /// Complexity: plans each distinct operator once per candidate, each distinct edge once per pair of candidates.
    additive_surrogate(std::shared_ptr<sim::workload const> work, space::strategy_space const& all, surrogate_options const& options = {},
                       std::stop_token const& stop = {});

    [[nodiscard]] candidates_type const& space() const noexcept { return tables_->candidates; }

    /// About as many evaluations as take the time of making it with so many candidates, where the strategies that are priced have `shards` shards,
    /// all operators together. An edge's term visits the messages of a pair of candidates, an evaluation those of the operators that a change is near
    /// to. Measured on 29 networks, on 4 to 128 devices: within a factor of eight. Complexity: O(edges log edges).
    [[nodiscard]] static std::uint64_t evaluations_to_make(sim::workload const& work, std::uint64_t candidates, std::uint64_t shards);

    /// Prices any strategy; of candidates from the tables.
    class evaluator_type {
      public:
        evaluator_type(std::shared_ptr<sim::workload const> work, std::shared_ptr<void const> keeps, candidates_type const& candidates,
                       std::vector<operator_pair> const& edges, std::vector<std::vector<picoseconds>> const& own,
                       std::vector<std::shared_ptr<std::vector<picoseconds> const>> const& pairs);
        evaluator_type(evaluator_type const& other);
        evaluator_type& operator=(evaluator_type const& other);
        evaluator_type(evaluator_type&&) noexcept;
        evaluator_type& operator=(evaluator_type&&) noexcept;
        ~evaluator_type();

        [[nodiscard]] std::vector<operator_pair> const& edges() const noexcept { return *edges_; }
        [[nodiscard]] std::span<picoseconds const> operator_costs(std::size_t op) const noexcept { return (*own_)[op]; }
        [[nodiscard]] std::span<picoseconds const> edge_costs(std::size_t n) const noexcept { return *(*pairs_)[n]; }
        [[nodiscard]] picoseconds operator_cost(std::size_t op, space::configuration const& c) {
            if (auto const n = find(op, c); n < (*candidates_)[op].size()) return (*own_)[op][n];
            return term_of_operator(static_cast<std::uint32_t>(op), c);
        }
        [[nodiscard]] picoseconds edge_cost(std::size_t n, space::configuration const& from, space::configuration const& to);
        template <class S>
            requires Strategy<S, space::configuration>
        [[nodiscard]] picoseconds operator()(S const& s) {
            std::int64_t sum = 0;
            for (std::size_t op = 0; op < candidates_->size(); ++op) sum = saturating_sum(sum, operator_cost(op, configuration_of(s, op)).count());
            for (std::size_t n = 0; n < edges_->size(); ++n)
                sum = saturating_sum(sum, edge_cost(n, configuration_of(s, (*edges_)[n].from), configuration_of(s, (*edges_)[n].to)).count());
            return picoseconds{sum};
        }

      private:
        [[nodiscard]] picoseconds term_of_operator(std::uint32_t op, space::configuration const& c);
        [[nodiscard]] picoseconds term_of_edge(std::uint32_t edge, space::configuration const& from, space::configuration const& to);
        [[nodiscard]] std::size_t find(std::size_t op, space::configuration const& c) const {
            auto const& all = (*candidates_)[op];
            return static_cast<std::size_t>(std::find(all.begin(), all.end(), c) - all.begin());
        }
        std::unique_ptr<surrogate_terms> terms_;
        std::shared_ptr<void const> keeps_;
        candidates_type const* candidates_;
        std::vector<operator_pair> const* edges_;
        std::vector<std::vector<picoseconds>> const* own_;
        std::vector<std::shared_ptr<std::vector<picoseconds> const>> const* pairs_;
    };
    [[nodiscard]] evaluator_type evaluator() const {
        return evaluator_type(work_, tables_, tables_->candidates, tables_->edges, tables_->own, tables_->pairs);
    }

  private:
    struct tables {
        candidates_type candidates;
        std::vector<operator_pair> edges; ///< edge n of the graph
        std::vector<std::vector<picoseconds>> own;
        std::vector<std::shared_ptr<std::vector<picoseconds> const>> pairs;
    };

    [[nodiscard]] std::shared_ptr<tables const> make_tables(space::strategy_space const& all, surrogate_options const& options,
                                                            std::stop_token const& stop) const;

    std::shared_ptr<sim::workload const> work_;
    std::shared_ptr<tables const> tables_;
};

} // namespace parsearch

#ifndef PARSEARCH_COMPILED
#include <parsearch/problem/surrogate.ipp>
#endif
