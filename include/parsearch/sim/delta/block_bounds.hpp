#pragma once
/// Lower bounds on makespans that need no schedule: what follows a task at least, and what a device has to do after it.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <parsearch/graph/dense_graph.hpp>
#include <parsearch/sim/delta/block_graph.hpp>

namespace parsearch::sim {

/// What bounds need of a strategy, by operator, edge and class, set one by one, and the bounds. They hold for every schedule: they count
/// dependences and work, not queues; round trips by program for those that devices run in program order. Durations in picoseconds.
class path_bounds {
  public:
    path_bounds(graph::dense_graph const& g, block_graph const& b, std::vector<std::uint32_t> const& class_of, std::size_t classes)
        : graph_(&g), blocks_(&b), class_of_(&class_of), operators_(g.size()), edges_(g.edges.size()), classes_(classes), after_(b.blocks),
          row_words_((g.size() + 63) / 64), below_(g.size() * row_words_), above_(g.size() * row_words_), aligned_(g.size() * row_words_),
          round_trip_(g.size()), way_back_(g.size()), follows_(g.size()) {
        find_descendants();
    }

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
    void find_tails() {
        auto const& g = *graph_;
        constexpr auto most = std::numeric_limits<std::int64_t>::max();
        std::int64_t all_backward = 0;
        if (blocks_->all_backward != none)
            for (auto const& c : classes_)
                if (c.synchronises) all_backward = std::max(all_backward, c.after_backward);
        after_device_ = most;
        connected_ = true;
        for (auto const op : g.order) {
            auto const& at = blocks_->operators[op];
            if (at.backward == none) continue;
            auto after = all_backward;
            if (auto const c = (*class_of_)[op]; c != none) after = std::max(after, classes_[c].after_backward);
            for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e) {
                if (blocks_->backward[e].block == none) continue;
                if (edges_[e].every_consumer)
                    after = std::max(after, after_[blocks_->operators[g.edges[e].producer].backward] + operators_[g.edges[e].producer].backward);
                connected_ = connected_ && edges_[e].every_producer;
            }
            after_[at.backward] = after;
            after_device_ = std::min(after_device_, after);
        }
        for (auto i = g.order.size(); i-- > 0;) {
            auto const op = g.order[i];
            auto const& at = blocks_->operators[op];
            if (at.forward == none) continue;
            auto after = at.backward == none ? 0 : after_[at.backward] + operators_[op].backward;
            for (auto const e : g.out(op)) {
                auto const consumer = g.edges[e].consumer;
                if (edges_[e].every_producer) after = std::max(after, tail(consumer));
                connected_ = connected_ && edges_[e].every_consumer;
            }
            after_[at.forward] = after;
            after_device_ = std::min(after_device_, after);
        }
        if (after_device_ == most) after_device_ = 0; // there are no tasks
        for (std::size_t c = 0; c < classes_.size(); ++c)
            if (blocks_->classes[c].sync != none) after_[blocks_->classes[c].sync] = classes_[c].update;
        // Sums end whenever they do.
        for (std::uint32_t op = 0; op < operators_.size(); ++op)
            if (operators_[op].sums) after_[blocks_->operators[op].forward] = 0;
    }

    /// Every task of block b is followed by others that take `after()[b]` at least, every shard by `after_device()`.
    [[nodiscard]] std::span<std::int64_t const> after() const noexcept { return after_; }
    [[nodiscard]] std::int64_t after_device() const noexcept { return after_device_; }
    /// From the start of a forward shard of `op` to the makespan, at least.
    [[nodiscard]] std::int64_t tail(std::uint32_t op) const noexcept { return after_[blocks_->operators[op].forward] + operators_[op].forward; }

    /// From the end of the first forward shard of `op` to the makespan, at least: on one device all work that waits for some shard of `op`.
    /// Complexity: O(operators).
    [[nodiscard]] std::int64_t after_work(std::uint32_t op) const noexcept {
        if (!connected_) return 0;
        std::int64_t sum = 0;
        auto const* const below = below_.data() + op * row_words_;
        auto const* const above = above_.data() + op * row_words_;
        for (std::uint32_t other = 0; other < operators_.size(); ++other) {
            if (other == op) continue;
            if (below[other / 64] >> (other % 64) & 1) sum += operators_[other].forward_here;
            if (above[other / 64] >> (other % 64) & 1) sum += operators_[other].backward_here;
        }
        return sum + after_device_;
    }

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
    void find_by_program() noexcept {
        auto const& order = graph_->order;
        std::int64_t later = 0; // work of every device on later operators, in both passes
        for (auto i = order.size(); i-- > 0;) {
            auto const& mine = operators_[order[i]];
            round_trip_[order[i]] = later + mine.forward + mine.backward;
            if (mine.everywhere) later += mine.forward + mine.backward;
        }
        std::int64_t earlier = 0, follows = 0; // backward: of earlier ones
        for (auto const op : order) {
            auto const& mine = operators_[op];
            if (earlier == 0) follows = update_after(op);
            way_back_[op] = earlier + mine.backward + follows;
            if (mine.everywhere) earlier += mine.backward;
        }
    }
    void find_by_aligned() noexcept {
        auto const& g = *graph_;
        std::fill(aligned_.begin(), aligned_.end(), 0);
        auto const leads = [&](std::uint32_t e) { return edges_[e].aligned && blocks_->backward[e].block != none; };
        for (auto i = g.order.size(); i-- > 0;) {
            auto const op = g.order[i];
            set(row(aligned_, op), op);
            for (auto const e : g.out(op))
                if (leads(e)) join(row(aligned_, op), row(aligned_, g.edges[e].consumer));
            round_trip_[op] = sum_over(op, [&](std::uint32_t other) { return operators_[other].forward + operators_[other].backward; });
        }
        std::fill(aligned_.begin(), aligned_.end(), 0);
        for (auto const op : g.order) {
            set(row(aligned_, op), op);
            auto& follows = follows_[op];
            follows = std::numeric_limits<std::int64_t>::max();
            for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e)
                if (leads(e)) {
                    join(row(aligned_, op), row(aligned_, g.edges[e].producer));
                    follows = std::min(follows, follows_[g.edges[e].producer]);
                }
            if (follows == std::numeric_limits<std::int64_t>::max()) follows = update_after(op);
            way_back_[op] = follows + sum_over(op, [&](std::uint32_t other) { return operators_[other].backward; });
        }
    }

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
    void find_descendants() {
        auto const& g = *graph_;
        // Backward of an operator leads to backward of what its inputs come from.
        std::vector<std::uint64_t> behind(g.size() * row_words_);
        for (auto const op : g.order) {
            if (blocks_->operators[op].backward == none) continue;
            set(row(behind, op), op);
            for (auto e = g.first_in[op]; e < g.first_in[op + 1]; ++e)
                if (blocks_->backward[e].block != none) join(row(behind, op), row(behind, g.edges[e].producer));
        }
        for (auto i = g.order.size(); i-- > 0;) {
            auto const op = g.order[i];
            if (blocks_->operators[op].forward == none) continue;
            join(row(above_, op), row(behind, op));
            for (auto const e : g.out(op)) {
                auto const consumer = g.edges[e].consumer;
                set(row(below_, op), consumer);
                join(row(below_, op), row(below_, consumer));
                join(row(above_, op), row(above_, consumer));
            }
        }
    }

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
