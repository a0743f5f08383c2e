#pragma once
/// An additive cost that resembles the simulated one: what exact search minimises in its place.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <parsearch/concepts/additive_evaluator.hpp>
#include <parsearch/concepts/strategy.hpp>
#include <parsearch/core/error.hpp>
#include <parsearch/core/units.hpp>
#include <parsearch/problem/surrogate_store.hpp>
#include <parsearch/problem/surrogate_terms.hpp>
#include <parsearch/sim/workload.hpp>
#include <parsearch/space/experts.hpp>
#include <parsearch/space/strategy_space.hpp>

namespace parsearch {

/// What limits an additive surrogate.
struct surrogate_options {
    std::size_t candidates = 64; ///< configurations per operator, at least 1; those of experts are beside them
};

namespace detail {

/// At most `limit` configurations of `all`: every combination of degrees with its first placement, most shards first; then with its last
/// placement, then with one in the middle. Complexity: O(combinations log combinations).
[[nodiscard]] inline std::vector<space::configuration> few_configurations(space::operator_space const& all, std::size_t limit) {
    std::vector<space::configuration> out;
    std::vector<std::pair<std::int64_t, std::size_t>> by_shards;
    for (std::size_t n = 0; n < all.splits(); ++n) by_shards.emplace_back(-all.shards_of(n), n);
    std::sort(by_shards.begin(), by_shards.end());
    for (int round = 0; round < 3; ++round)
        for (auto const& [shards, n] : by_shards) {
            auto const [first, last] = all.placements_of(n);
            auto const count = last - first;
            std::array<std::size_t, 3> const places{0, count - 1, count / 2};
            if (out.size() >= limit) return out;
            bool known = false;
            for (int earlier = 0; earlier < round; ++earlier) known = known || places[static_cast<std::size_t>(earlier)] == places[static_cast<std::size_t>(round)];
            if (!known) out.push_back(all[first + places[static_cast<std::size_t>(round)]]);
        }
    return out;
}

} // namespace detail

/// A `SearchProblem` whose evaluator is additive, over some of the configurations of a parallelization. In picoseconds:
/// - an operator's term is what its busiest device computes, forward, backward and updates, plus, where it shares its weights with no other,
///   how long the busiest link synchronises them, and the reduction of partial sums that nobody reads;
/// - an edge's term is how long its busiest link moves data, there and, in training, back.
/// Left out: that parts run at the same time or compete, the weights that operators share, memory.
/// Candidates of an operator: at most `surrogate_options::candidates` of its space, and what data_parallel, one_weird_trick and
/// tensor_parallel of each power of two give it. Tables are made once, equal ones once for all repeats; copies share them.
class additive_surrogate {
  public:
    using candidates_type = std::vector<std::vector<space::configuration>>;

    /// Throws `invalid_input` where there is to be no candidate, and what the oracle throws.
    /// Complexity: plans each distinct operator once per candidate, each distinct edge once per pair of candidates.
    additive_surrogate(std::shared_ptr<sim::workload const> work, space::strategy_space const& all, surrogate_options const& options = {})
        : work_(std::move(work)) {
        if (options.candidates < 1) throw invalid_input("surrogate option candidates is 0: must be at least 1");
        tables_ = make_tables(all, options);
    }

    [[nodiscard]] candidates_type const& space() const noexcept { return tables_->candidates; }

    /// Prices any strategy; of candidates from the tables.
    class evaluator_type {
      public:
        evaluator_type(std::shared_ptr<sim::workload const> work, std::shared_ptr<void const> keeps, candidates_type const& candidates,
                       std::vector<operator_pair> const& edges, std::vector<std::vector<picoseconds>> const& own,
                       std::vector<std::shared_ptr<std::vector<picoseconds> const>> const& pairs)
            : terms_(std::move(work)), keeps_(std::move(keeps)), candidates_(&candidates), edges_(&edges), own_(&own), pairs_(&pairs) {}

        [[nodiscard]] std::vector<operator_pair> const& edges() const noexcept { return *edges_; }
        [[nodiscard]] std::span<picoseconds const> operator_costs(std::size_t op) const noexcept { return (*own_)[op]; }
        [[nodiscard]] std::span<picoseconds const> edge_costs(std::size_t n) const noexcept { return *(*pairs_)[n]; }
        [[nodiscard]] picoseconds operator_cost(std::size_t op, space::configuration const& c) {
            if (auto const n = find(op, c); n < (*candidates_)[op].size()) return (*own_)[op][n];
            return sum_of(terms_.of_operator(static_cast<std::uint32_t>(op), c));
        }
        [[nodiscard]] picoseconds edge_cost(std::size_t n, space::configuration const& from, space::configuration const& to) {
            auto const ends = (*edges_)[n];
            auto const a = find(ends.from, from), b = find(ends.to, to), width = (*candidates_)[ends.to].size();
            if (a < (*candidates_)[ends.from].size() && b < width) return (*(*pairs_)[n])[a * width + b];
            return terms_.of_edge(static_cast<std::uint32_t>(n), from, to);
        }
        template <class S>
            requires Strategy<S, space::configuration>
        [[nodiscard]] picoseconds operator()(S const& s) {
            std::int64_t sum = 0;
            for (std::size_t op = 0; op < candidates_->size(); ++op) sum = sim::saturating_sum(sum, operator_cost(op, configuration_of(s, op)).count());
            for (std::size_t n = 0; n < edges_->size(); ++n)
                sum = sim::saturating_sum(sum, edge_cost(n, configuration_of(s, (*edges_)[n].from), configuration_of(s, (*edges_)[n].to)).count());
            return picoseconds{sum};
        }

      private:
        [[nodiscard]] std::size_t find(std::size_t op, space::configuration const& c) const {
            auto const& all = (*candidates_)[op];
            return static_cast<std::size_t>(std::find(all.begin(), all.end(), c) - all.begin());
        }
        surrogate_terms terms_;
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

    static picoseconds sum_of(operator_term const& t) noexcept {
        return picoseconds{sim::saturating_sum(t.work.count(), t.synchronisation.count())};
    }

    std::shared_ptr<tables const> make_tables(space::strategy_space const& all, surrogate_options const& options) const {
        auto const& g = work_->graph;
        std::size_t const size = work_->topology.size();
        std::vector<space::flat_strategy> experts{space::data_parallel(g, size), space::one_weird_trick(g, size)};
        for (std::size_t degree = 2; degree <= size; degree *= 2)
            if (size % degree == 0) experts.push_back(space::tensor_parallel(g, size, degree));
        auto made = std::make_shared<tables>();
        std::vector<surrogate_tables::choices> candidates;
        for (std::uint32_t op = 0; op < g.size(); ++op) {
            auto chosen = detail::few_configurations(all.of(op), options.candidates);
            for (auto const& s : experts)
                if (std::find(chosen.begin(), chosen.end(), s[op]) == chosen.end()) chosen.push_back(s[op]);
            candidates.push_back(std::make_shared<std::vector<space::configuration> const>(chosen));
            made->candidates.push_back(std::move(chosen));
        }
        surrogate_store store;
        surrogate_terms terms(work_);
        auto const numbers = store.numbers_of(g);
        auto read = store.tables_of(g, numbers, std::move(candidates), [&]() -> auto& { return terms; });
        made->edges = std::move(read.edges);
        made->pairs = std::move(read.pairs);
        for (auto const& table : read.operators) {
            auto& own = made->own.emplace_back();
            for (auto const& t : *table) own.push_back(sum_of(t));
        }
        return made;
    }

    std::shared_ptr<sim::workload const> work_;
    std::shared_ptr<tables const> tables_;
};

} // namespace parsearch
