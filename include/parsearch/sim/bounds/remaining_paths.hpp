#pragma once
/// The least way that is left from a shard of an operator, over all configurations of the operators that are not decided.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/core/interruption.hpp>
#include <parsearch/sim/bounds/choice_tables.hpp>

namespace parsearch::sim {

/// Lower bounds along dependences, of every choice of every operator, over all strategies of the space. Along each edge the minimum over
/// the configurations at its other end is taken on its own, so that a table is filled in one pass over the graph: what Viterbi (IEEE Trans.
/// Inf. Theory, 1967) does for a chain, and a relaxation of it where paths meet. Each holds for every schedule, as it counts dependences alone.
/// Complexity: O(pairs of configurations * shards^3).
class remaining_paths {
  public:
    static constexpr auto never = edge_delays::never;

    /// Of one choice, by shard; `never`: nothing is known.
    struct ways {
        std::vector<std::int64_t> earliest; ///< end of the forward shard
        std::vector<std::int64_t> tail;     ///< from the end of the forward shard to the makespan
        std::vector<std::int64_t> round;    ///< [s * shards + t]: from the end of forward shard s to that of backward shard t
        std::vector<std::int64_t> back;     ///< from the end of the backward shard to the makespan, through producers
        std::int64_t every_round = never;   ///< from the first end of a forward shard to the end of every backward shard
        [[nodiscard]] std::int64_t between(std::size_t s, std::size_t t) const noexcept { return round[s * earliest.size() + t]; }
    };

    /// `after(op, choice)`: from the end of any backward shard of the operator to the makespan, at least, for its weights.
    template <class After>
    remaining_paths(choice_tables const& tables, After const& after)
        : tables_(&tables), ways_(tables.input().graph.size()), arrival_(tables.input().graph.edges.size()),
          return_(tables.input().graph.edges.size()) {
        auto const& order = tables.input().graph.order;
        for (std::uint32_t op = 0; op < ways_.size(); ++op) ways_[op].resize(tables.choices(op).size());
        for (auto const op : order) find_earliest(op);
        for (auto i = order.size(); i-- > 0;) find_round(order[i]);
        for (auto const op : order) find_back(op, after);
        for (auto i = order.size(); i-- > 0;) find_tail(order[i]);
    }

    [[nodiscard]] ways const& of(std::size_t op, std::size_t choice) const noexcept { return ways_[op][choice]; }
    /// When shard t of the consumer under `choice` has its data along edge e, at least.
    [[nodiscard]] std::int64_t arrival(std::size_t e, std::size_t choice, std::size_t t) const noexcept { return arrival_[e][choice][t]; }
    /// From the end of backward shard t of the consumer under `choice` to the makespan, through edge e.
    [[nodiscard]] std::int64_t after_return(std::size_t e, std::size_t choice, std::size_t t) const noexcept { return return_[e][choice][t]; }

    /// No strategy of the space has a smaller makespan.
    [[nodiscard]] std::int64_t least() const noexcept;

  private:
    [[nodiscard]] graph::dense_graph const& graph() const noexcept { return tables_->input().graph; }
    [[nodiscard]] bool is_source(std::size_t op) const noexcept { return graph().operations[op].work == ops::work_class::source; }
    [[nodiscard]] bool returns(std::size_t op) const noexcept { return tables_->input().options.training && graph().trains[op] && !is_source(op); }
    [[nodiscard]] bool returns_along(std::size_t e) const noexcept {
        return tables_->input().options.training && tables_->has_edge(e) && graph().carries_gradient(graph().edges[e]);
    }
    [[nodiscard]] std::vector<tabled_choice> const& choices(std::size_t op) const noexcept { return tables_->choices(op); }

    void find_earliest(std::uint32_t op);

    void find_round(std::uint32_t op);
    /// Lowers `least` to the way over edge e and back, from the ends of forward shards under `from` to the starts of backward shards, with the
    /// consumer under `to`; answers the way from the first end to every start.
    std::int64_t go_round(std::uint32_t e, std::size_t from, std::size_t to, std::vector<std::int64_t>& least);

    template <class After> void find_back(std::uint32_t op, After const& after) {
        auto const& g = graph();
        for (std::size_t c = 0; c < choices(op).size(); ++c) {
            auto& mine = ways_[op][c];
            auto const n = choices(op)[c].forward.size();
            require_running(tables_->stop());
            mine.back.assign(n, returns(op) ? after(op, c) : 0);
            for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e) {
                return_[e].resize(choices(op).size());
                return_[e][c].assign(n, 0);
                if (!returns_along(e)) continue;
                auto const producer = g.edges[e].producer;
                for (std::size_t t = 0; t < n; ++t) {
                    auto least = std::numeric_limits<std::int64_t>::max();
                    for (std::size_t from = 0; from < choices(producer).size(); ++from) {
                        auto const& delay = tables_->edge(e, from, c);
                        auto const& backward = choices(producer)[from].backward;
                        std::int64_t longest = 0;
                        for (std::size_t s = 0; s < backward.size(); ++s)
                            if (delay.back(t, s) != never)
                                longest = std::max(longest, delay.back(t, s) + backward[s] + ways_[producer][from].back[s]);
                        least = std::min(least, longest);
                    }
                    return_[e][c][t] = least;
                    mine.back[t] = std::max(mine.back[t], least);
                }
            }
        }
    }

    void find_tail(std::uint32_t op);

    choice_tables const* tables_;
    std::vector<std::vector<ways>> ways_;
    std::vector<std::vector<std::vector<std::int64_t>>> arrival_, return_; ///< by edge, choice of the consumer, shard
    std::vector<std::int64_t> over_;
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/bounds/remaining_paths.ipp>
#endif
