#pragma once
/// Lower bounds on makespans that need no schedule: what follows a task at least, and what a device has to do after it.

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include <parsearch/core/compiled.hpp>
#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/sim/delta/block_graph.hpp>

namespace parsearch::sim {

/// What bounds need of a strategy, by operator, edge and class, set one by one, and the bounds. They hold for every schedule: they count
/// dependences and work, not queues; round trips by program for those that devices run in program order. Durations in picoseconds.
class path_bounds {
  public:
    path_bounds(graph::dense_graph const& g, block_graph const& b, std::vector<std::uint32_t> const& class_of, std::size_t classes);

    /// Of an operator: the shortest shard in each pass, its work on the device that `after_work` speaks of, and whether sums that nobody
    /// reads are among its forward tasks.
    struct operator_facts {
        std::int64_t forward = 0, backward = 0, forward_here = 0, backward_here = 0;
        bool sums = false;
        bool everywhere = false; ///< a shard on every device
    };
    /// Of an edge: every shard of the operator at that end exchanges something with the other; nothing moves, in either pass, as shard i of
    /// one is where shard i of the other is and no other has a part of its data.
    struct edge_facts {
        bool every_consumer = false, every_producer = false, aligned = false;
    };
    /// Of a sharing class: from the end of a member's backward shard to the end of the update that it leads to; of an update.
    struct class_facts {
        std::int64_t after_backward = 0, update = 0;
        bool synchronises = false;
        bool shared = false; ///< by several operators
    };
    operator_facts& of_operator(std::uint32_t op) noexcept { return operators_[op]; }
    edge_facts& of_edge(std::uint32_t e) noexcept { return edges_[e]; }
    class_facts& of_class(std::uint32_t c) noexcept { return classes_[c]; }

    /// After a change. Complexity: O(operators + edges).
    void find_tails();

    /// Every task of block b is followed by others that take `after()[b]` at least, every shard by `after_device()`.
    [[nodiscard]] std::span<std::int64_t const> after() const noexcept { return after_; }
    [[nodiscard]] std::int64_t after_device() const noexcept { return after_device_; }
    /// From the start of a forward shard of `op` to the makespan, at least.
    [[nodiscard]] std::int64_t tail(std::uint32_t op) const noexcept { return after_[blocks_->operators[op].forward] + operators_[op].forward; }

    /// From the end of the first forward shard of `op` to the makespan, at least: on one device all work that waits for some shard of `op`.
    /// Complexity: O(operators).
    [[nodiscard]] std::int64_t after_work(std::uint32_t op) const noexcept;

    /// After a change, for `round_trip` and `way_back`. `in_order`: devices run tasks in program order.
    /// Complexity: O(operators + edges) in_order, otherwise O((operators + edges) * operators / 64).
    void find_round_trips(bool in_order) {
        if (in_order) find_by_program();
        else find_by_aligned();
    }
    /// From the start of a forward shard of `op` to the end of its backward shard, at least: the work of its device that is sure to lie
    /// between them, as aligned edges or the program say.
    [[nodiscard]] std::int64_t round_trip(std::uint32_t op) const noexcept { return round_trip_[op]; }
    /// From the start of a backward shard of `op` to the makespan: the work that is sure to come after it on its device, and what follows.
    [[nodiscard]] std::int64_t way_back(std::uint32_t op) const noexcept { return way_back_[op]; }

  private:
    static constexpr auto none = block_graph::none;

    /// The update that follows the last backward shard of a device, where no other operator shares the weights.
    [[nodiscard]] std::int64_t update_after(std::uint32_t op) const noexcept {
        auto const c = (*class_of_)[op];
        return c == none || classes_[c].shared ? 0 : classes_[c].after_backward;
    }
    void find_by_program() noexcept;
    void find_by_aligned() noexcept;

    // Sets of operators, one per row.
    [[nodiscard]] std::span<std::uint64_t> row(std::vector<std::uint64_t>& rows, std::uint32_t op) const noexcept {
        return std::span(rows).subspan(op * row_words_, row_words_);
    }
    static void set(std::span<std::uint64_t> r, std::uint32_t bit) noexcept { r[bit / 64] |= std::uint64_t{1} << (bit % 64); }
    static void join(std::span<std::uint64_t> into, std::span<std::uint64_t const> from) noexcept {
        for (std::size_t w = 0; w < into.size(); ++w) into[w] |= from[w];
    }
    template <class F> [[nodiscard]] std::int64_t sum_over(std::uint32_t op, F const& f) noexcept {
        std::int64_t sum = 0;
        auto const members = row(aligned_, op);
        for (std::size_t w = 0; w < members.size(); ++w)
            for (auto bits = members[w]; bits != 0; bits &= bits - 1)
                sum += f(static_cast<std::uint32_t>(64 * w) + static_cast<std::uint32_t>(std::countr_zero(bits)));
        return sum;
    }

    /// Row op of `below_`: operators whose forward waits for that of `op`; of `above_`: those whose backward does.
    void find_descendants();

    graph::dense_graph const* graph_;
    block_graph const* blocks_;
    std::vector<std::uint32_t> const* class_of_;
    std::vector<operator_facts> operators_;
    std::vector<edge_facts> edges_;
    std::vector<class_facts> classes_;
    std::vector<std::int64_t> after_;
    std::int64_t after_device_ = 0;
    bool connected_ = true; ///< every shard waits for some shard of everything before its operator
    std::size_t row_words_;
    std::vector<std::uint64_t> below_, above_, aligned_;
    std::vector<std::int64_t> round_trip_, way_back_, follows_;
};

} // namespace parsearch::sim

#ifndef PARSEARCH_COMPILED
#include <parsearch/sim/delta/block_bounds.ipp>
#endif
